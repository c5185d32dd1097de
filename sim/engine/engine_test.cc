// Storage, transactions, catalogue and restarts of the simulated server.

#include "sim/engine/engine.h"

#include "sim/engine/engine_fixture_test.h"
#include "sim/engine/shop.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

using StorageTest = EngineTest;

TEST_F(StorageTest, KeysAndNullsAreGuarded) {
  Run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, u varchar(9) "
      "NULL, "
      "n int NOT NULL, CONSTRAINT ck CHECK (n > 0))");
  Run("CREATE UNIQUE INDEX ux ON dbo.t (u)");
  Run("INSERT INTO dbo.t VALUES (1, 'a', 1)");
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (1, 'b', 1)"), 2627);
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (2, 'A', 1)"), 2601);  // By collation.
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (2, 'a  ', 1)"), 2601);
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (2, 'b', NULL)"), 515);
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (2, 'b', 0)"), 547);
  Run("INSERT INTO dbo.t VALUES (2, NULL, 1)");
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (3, NULL, 1)"), 2601);  // One NULL only.
  EXPECT_EQ(Run("SELECT id FROM dbo.t ORDER BY id"), (Rows{"1", "2"}));
}

TEST_F(StorageTest, ForeignKeysHold) {
  Run("CREATE TABLE dbo.p (id int NOT NULL PRIMARY KEY)");
  Run("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY, p int NULL REFERENCES dbo.p "
      "(id))");
  Run("INSERT INTO dbo.p VALUES (1) INSERT INTO dbo.c VALUES (1, 1), (2, NULL)");
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.c VALUES (3, 9)"), 547);
  EXPECT_EQ(ErrorOf("DELETE FROM dbo.p"), 547);
  EXPECT_EQ(ErrorOf("DROP TABLE dbo.p"), 3726);
}

TEST_F(StorageTest, AFailedStatementLeavesNothing) {
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (1), (2), (1)"), 2627);
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.t"), "0");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (5)");
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t VALUES (6), (5)"), 2627);
  Run("COMMIT");
  EXPECT_EQ(Run("SELECT id FROM dbo.t"), (Rows{"5"}));
}

TEST_F(StorageTest, IdentityDefaultsComputedAndRowversion) {
  Run("CREATE TABLE dbo.t (id int IDENTITY(10, 5) PRIMARY KEY, a int NOT NULL DEFAULT "
      "(7), "
      "c AS a * 2, v rowversion)");
  Run("INSERT INTO dbo.t (a) VALUES (1)");
  Run("INSERT INTO dbo.t DEFAULT VALUES");
  EXPECT_EQ(Run("SELECT id, a, c FROM dbo.t ORDER BY id"), (Rows{"10|1|2", "15|7|14"}));
  EXPECT_EQ(ErrorOf("INSERT INTO dbo.t (id) VALUES (1)"), 544);
  Run("SET IDENTITY_INSERT dbo.t ON INSERT INTO dbo.t (id, a) VALUES (100, 0) "
      "SET IDENTITY_INSERT dbo.t OFF INSERT INTO dbo.t (a) VALUES (3)");
  EXPECT_EQ(One("SELECT MAX(id) FROM dbo.t"), "105");
  const std::string before = One("SELECT MAX(v) FROM dbo.t");
  Run("UPDATE dbo.t SET a = 4 WHERE id = 10");
  EXPECT_GT(One("SELECT v FROM dbo.t WHERE id = 10"), before);
  EXPECT_EQ(One("SELECT c FROM dbo.t WHERE id = 10"), "8");
  EXPECT_EQ(ErrorOf("UPDATE dbo.t SET id = 1"), 8102);
}

// S18: neither byte nor text order.
TEST_F(StorageTest, GuidsSortAsSqlServerSortsThem) {
  Run("CREATE TABLE dbo.g (k uniqueidentifier NOT NULL PRIMARY KEY)");
  Run("INSERT INTO dbo.g VALUES ('FFFFFFFF-0000-0000-0000-000000000001'), "
      "('00000000-0000-0000-0000-000000000002'), "
      "('00000000-0000-0000-0100-000000000001'), "
      "('00000001-0000-0000-0000-000000000001')");
  EXPECT_EQ(Run("SELECT k FROM dbo.g ORDER BY k"),
            (Rows{"00000001-0000-0000-0000-000000000001",
                  "FFFFFFFF-0000-0000-0000-000000000001",
                  "00000000-0000-0000-0100-000000000001",
                  "00000000-0000-0000-0000-000000000002"}));
}

// Ranges and both directions over composite and decimal keys.
TEST_F(StorageTest, RangesFollowTheKey) {
  Run("CREATE TABLE dbo.k (a decimal(30, 2) NOT NULL, b varchar(5) NOT NULL, v int, "
      "PRIMARY KEY (a, b))");
  Run("INSERT INTO dbo.k VALUES (-1.5, 'z', 1), (-1.5, 'B', 2), (0, 'a', 3), (2.25, "
      "'c', "
      "4), (100000000000000000000, '', 5)");
  EXPECT_EQ(Run("SELECT v FROM dbo.k ORDER BY a, b"), (Rows{"2", "1", "3", "4", "5"}));
  EXPECT_EQ(Run("SELECT v FROM dbo.k ORDER BY a DESC, b DESC"),
            (Rows{"5", "4", "3", "1", "2"}));
  EXPECT_EQ(Run("SELECT v FROM dbo.k WHERE a = -1.5 AND b > 'c' ORDER BY a, b"),
            (Rows{"1"}));
  EXPECT_EQ(Run("SELECT v FROM dbo.k WHERE a >= 0 AND a < 3 ORDER BY a"),
            (Rows{"3", "4"}));
  EXPECT_EQ(Run("SELECT TOP (1) v FROM dbo.k ORDER BY a DESC, b DESC"), (Rows{"5"}));
}

TEST_F(StorageTest, AnInsertMayReadItsOwnTable) {
  Run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, x int)");
  Run("INSERT INTO dbo.t (x) VALUES (1), (2)");
  Run("INSERT INTO dbo.t (x) SELECT x FROM dbo.t");
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.t"), "4");
}

TEST_F(StorageTest, ReadersSeeWhatIsCommittedAndWritersWait) {
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
  const auto other = engine_->AdminSession("shop");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)");
  RunOn(*other, "SET LOCK_TIMEOUT 0");
  EXPECT_EQ(ErrorOn(*other, "SELECT COUNT(*) FROM dbo.t"), 1222);
  EXPECT_EQ(ErrorOn(*other, "INSERT INTO dbo.t VALUES (2)"), 1222);
  Run("COMMIT");
  EXPECT_EQ(RunOn(*other, "SELECT COUNT(*) FROM dbo.t"), (Rows{"1"}));
}

// What is read outside of statements, by compiling too, holds no snapshot afterwards.
TEST_F(StorageTest, NothingButATransactionKeepsASnapshot) {
  const struct {
    std::string name;
    std::string batch;
  } cases[] = {
      {"IF", "IF EXISTS (SELECT * FROM dbo.t WHERE id = -1) SELECT 1"},
      {"WHILE", "WHILE EXISTS (SELECT * FROM dbo.t WHERE id = -1) SELECT 1"},
      {"DECLARE", "DECLARE @n int = (SELECT COUNT(*) FROM dbo.t)"},
      {"SET", "DECLARE @n int SET @n = (SELECT COUNT(*) FROM dbo.t)"},
      {"two statements", "SELECT 1 SELECT COUNT(*) FROM dbo.t"},
      {"not run", "IF 1 = 0 SELECT COUNT(*) FROM dbo.t"},
      {"procedure", "EXEC dbo.look"},
  };
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
  Run("CREATE PROCEDURE dbo.look AS IF EXISTS (SELECT * FROM dbo.t WHERE id = -1) "
      "SELECT 1");
  int count = 0;
  for (const auto& [name, batch] : cases) {
    const auto other = engine_->AdminSession("shop");
    RunOn(*other, batch);
    Run("INSERT INTO dbo.t VALUES (" + std::to_string(++count) + ")");
    EXPECT_EQ(RunOn(*other, "IF (SELECT COUNT(*) FROM dbo.t) = " +
                                std::to_string(count) + " SELECT 1"),
              (Rows{"1"}))
        << name;
  }
}

// S14: under snapshot isolation an open transaction never sees the maximum move.
TEST_F(StorageTest, ASnapshotStandsStill) {
  Run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY) INSERT INTO dbo.t VALUES (1)");
  const auto other = engine_->AdminSession("shop");
  RunOn(*other,
        "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN SELECT 1 FROM dbo.t");
  Run("INSERT INTO dbo.t VALUES (2)");
  EXPECT_EQ(RunOn(*other, "SELECT COUNT(*) FROM dbo.t"), (Rows{"1"}));
  RunOn(*other, "COMMIT");
  EXPECT_EQ(RunOn(*other, "SELECT COUNT(*) FROM dbo.t"), (Rows{"2"}));
}

TEST_F(StorageTest, StateSurvivesARestart) {
  EnableCdc();
  Run("CREATE TABLE dbo.t (id int IDENTITY PRIMARY KEY, a nvarchar(20))");
  Track("t");
  Run("INSERT INTO dbo.t (a) VALUES (N'captured')");
  Capture();
  Run("INSERT INTO dbo.t (a) VALUES (N'logged')");
  const std::string max = One("SELECT sys.fn_cdc_get_max_lsn()");
  Reopen();
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_max_lsn()"), max);
  Capture();
  EXPECT_GT(One("SELECT sys.fn_cdc_get_max_lsn()"), max);
  Run("INSERT INTO dbo.t (a) VALUES (N'later')");
  EXPECT_EQ(Run("SELECT id, a FROM dbo.t ORDER BY id"),
            (Rows{"1|captured", "2|logged", "3|later"}));
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "2");
}

TEST_F(StorageTest, AnOpenTransactionIsGoneAfterARestart) {
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (1)");
  Reopen();
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.t"), "0");
  Run("INSERT INTO dbo.t VALUES (1)");
}

// Microsoft's pages on DROP DATABASE and ALTER DATABASE SET SINGLE_USER: who is in a
// database keeps it, until WITH ROLLBACK IMMEDIATE ends them. The numbers 924 (severity
// 14) and 5070 (16): its lists "Database engine events and errors, 0 to 999" and "5000
// to 5999".
TEST_F(StorageTest, ADatabaseInUseIsNotDropped) {
  Run("CREATE DATABASE other");
  auto guest = engine_->AdminSession("other");
  RunOn(*guest, "CREATE TABLE dbo.t (id int)");
  EXPECT_EQ(ErrorOf("DROP DATABASE other"), 3702);
  EXPECT_EQ(ErrorOf("ALTER DATABASE other SET SINGLE_USER WITH NO_WAIT"), 5070);
  EXPECT_EQ(ErrorOn(*guest, "SELECT id FROM dbo.t"), 0);
  Run("ALTER DATABASE other SET SINGLE_USER WITH ROLLBACK IMMEDIATE");
  EXPECT_EQ(One("SELECT user_access_desc FROM sys.databases WHERE name = 'other'"),
            "SINGLE_USER");
  EXPECT_EQ(ErrorOn(*guest, "SELECT id FROM dbo.t"), 596);
  guest = engine_->AdminSession("other");
  EXPECT_EQ(ErrorOf("USE other"), 924);
  EXPECT_EQ(ErrorOf("DROP DATABASE other"), 3702);
  RunOn(*guest, "ALTER DATABASE CURRENT SET MULTI_USER");
  Run("USE other");
  RunOn(*guest, "ALTER DATABASE CURRENT SET SINGLE_USER WITH ROLLBACK IMMEDIATE");
  EXPECT_EQ(ErrorOn(*guest, "SELECT id FROM dbo.t"), 0);
  EXPECT_EQ(ErrorOf("SELECT id FROM dbo.t"), 596);
  guest = nullptr;
  session_ = engine_->AdminSession("shop");
  Run("DROP DATABASE other");
  EXPECT_EQ(ErrorOf("USE other"), 911);
}

TEST_F(StorageTest, TemporaryTablesAreTheSessions) {
  Run("CREATE TABLE #x (id int NOT NULL PRIMARY KEY) INSERT INTO #x VALUES (3)");
  EXPECT_EQ(One("SELECT id FROM #x"), "3");
  const auto other = engine_->AdminSession("shop");
  EXPECT_EQ(ErrorOn(*other, "SELECT id FROM #x"), 208);
}

TEST_F(StorageTest, TheCatalogueDescribesTables) {
  Run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk_t PRIMARY KEY, n nvarchar(20) "
      "NULL, d decimal(9, 2) NOT NULL DEFAULT (0))");
  EXPECT_EQ(
      Run("SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, CHARACTER_MAXIMUM_LENGTH, "
          "NUMERIC_PRECISION FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_NAME = 't' "
          "ORDER BY ORDINAL_POSITION"),
      (Rows{"id|int|NO|NULL|10", "n|nvarchar|YES|20|NULL", "d|decimal|NO|NULL|9"}));
  EXPECT_EQ(
      One("SELECT s.name, t.name, i.name, i.is_primary_key FROM sys.tables t JOIN "
          "sys.schemas s ON s.schema_id = t.schema_id JOIN sys.indexes i ON "
          "i.object_id = t.object_id WHERE t.name = 't'"),
      "dbo|t|pk_t|1");
  EXPECT_EQ(One("SELECT OBJECT_NAME(OBJECT_ID('dbo.t')), DB_NAME(), SCHEMA_NAME(1), "
                "SUSER_SNAME(), USER_NAME(), IS_SRVROLEMEMBER('sysadmin')"),
            "t|shop|dbo|sa|dbo|1");
  EXPECT_EQ(One("SELECT OBJECT_ID('dbo.nothing')"), "NULL");
}

// Types of facts 1.3 and extremes, through storage and back.
TEST_F(StorageTest, TheShopWorks) {
  const std::string script = ShopScript("Reader-1");
  std::string batch;
  session_ = engine_->AdminSession("master");
  // The script makes its own database.
  Run("DROP DATABASE shop");
  for (std::size_t at = 0; at < script.size();) {
    const std::size_t end = script.find("\nGO\n", at);
    Run(script.substr(at, end - at));
    at = end + 4;
  }
  session_ = engine_->AdminSession("shop");
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.orders"), "40");
  EXPECT_EQ(One("SELECT c_datetime2, c_decimal_38_0, c_money FROM dbo.all_types WHERE "
                "id = 3"),
            "9999-12-31 23:59:59.999|99999999999999999999999999999999999999|"
            "922337203685477.5807");
  ShopWriter writer(1);
  for (int i = 0; i < 60; ++i) Run(writer.Next());
  Capture();
  EXPECT_NE(One("SELECT COUNT(*) FROM cdc.dbo_orders_CT"), "0");
  LoginRequest request;
  request.user = "cdc_reader";
  request.password = "Reader-1";
  auto login = engine_->Login(request);
  auto* reader = std::get_if<std::unique_ptr<EngineSession>>(&login);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ((*reader)->database(), "shop");
  for (const std::string& table : ShopTableNames()) {
    EXPECT_EQ(ErrorOn(**reader, "SELECT * FROM dbo." + table), 0) << table;
    EXPECT_EQ(ErrorOn(**reader, "SELECT * FROM cdc.dbo_" + table + "_CT"), 0) << table;
  }
  EXPECT_EQ(ErrorOn(**reader, "DELETE FROM dbo.orders"), 229);
}

TEST_F(StorageTest, BulkInsertFillsSourceAndChanges) {
  EnableCdc();
  Run("CREATE TABLE dbo.t (id bigint NOT NULL PRIMARY KEY, n nvarchar(40), d "
      "decimal(18, "
      "4), w datetime2(3))");
  Track("t");
  ASSERT_TRUE(engine_->BulkInsert("shop", "dbo.t", 1000, {}, nullptr).ok());
  EXPECT_EQ(One("SELECT COUNT(*), COUNT(DISTINCT id) FROM dbo.t"), "1000|1000");
  EXPECT_EQ(
      One("SELECT COUNT(*), COUNT(DISTINCT __$start_lsn), COUNT(DISTINCT __$seqval) "
          "FROM cdc.dbo_t_CT"),
      "1000|1|1000");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.fn_cdc_get_all_changes_dbo_t("
                "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all')"),
            "1000");
  Run("INSERT INTO dbo.t VALUES (5000, N'x', 1, NULL)");
  Capture();
  EXPECT_EQ(One("SELECT COUNT(DISTINCT __$start_lsn) FROM cdc.dbo_t_CT"), "2");
}

}  // namespace
}  // namespace mssql_cdc::sim

// Checklist lines 8, 9 and 15: two instances, DDL, names and columns.

#include "sim/engine/checklist_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

class Checklist08 : public ChecklistTest {};
class Checklist09 : public ChecklistTest {};
class Checklist15 : public ChecklistTest {};

constexpr char kEnableSecond[] =
    "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
    "@capture_instance = N'second'";

// S6: the second instance starts at the commit that enabled it; reading the first below
// that and the second from there gives each commit once. S5: same LSN and seqval, other
// command ids.
TEST_F(Checklist08, TheSecondInstanceStartsWhereItWasEnabled) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Run(kEnableSecond);
  Run("INSERT INTO dbo.t VALUES (2, 2, 'x')");
  EXPECT_EQ(MinLsn("second"), kZero);
  Capture();
  EXPECT_EQ(Changes("id", "second"), (Rows{"2"}));
  EXPECT_EQ(Changes("id"), (Rows{"1", "2"}));
  EXPECT_EQ(
      Run("SELECT id FROM cdc.dbo_t_CT WHERE __$start_lsn < "
          "sys.fn_cdc_get_min_lsn('second') UNION ALL SELECT id FROM cdc.second_CT"),
      (Rows{"1", "2"}));
  EXPECT_EQ(
      Run("SELECT a.__$operation, CASE WHEN a.__$command_id <> b.__$command_id THEN "
          "'own' ELSE 'shared' END FROM cdc.dbo_t_CT a JOIN cdc.second_CT b ON "
          "a.__$start_lsn = b.__$start_lsn AND a.__$seqval = b.__$seqval AND "
          "a.__$operation = b.__$operation"),
      (Rows{"2|own"}));
}

// Facts 1.4: 22962. S6: disabling drops the table at once, and a poll that knew the
// instance meets 208.
TEST_F(Checklist08, AtMostTwoAndDroppedAtOnce) {
  Track("t");
  Run(kEnableSecond);
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Capture();
  const std::string poll = "SELECT id FROM cdc.fn_cdc_get_all_changes_dbo_t(" +
                           MinLsn() + ", " + MaxLsn() + ", 'all')";
  EXPECT_EQ(Run(poll), (Rows{"1"}));
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
                    "@capture_instance = N'third'"),
            22962);
  Run("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'dbo_t'");
  EXPECT_EQ(ErrorOf(poll), 208);
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 208);
  EXPECT_EQ(MinLsn(), kZero);
  EXPECT_EQ(Changes("id", "second"), (Rows{"1"}));
}

// A read that began before the drop is served to its end.
TEST_F(Checklist08, AnOpenSnapshotOutlivesTheDrop) {
  Run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
  Track("t");
  Fill(1);
  const auto other = engine_->AdminSession("shop");
  RunOn(*other, "SET TRANSACTION ISOLATION LEVEL SNAPSHOT BEGIN TRAN");
  EXPECT_EQ(RunOn(*other, "SELECT id FROM cdc.dbo_t_CT"), (Rows{"1"}));
  Run("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'");
  EXPECT_EQ(RunOn(*other, "SELECT id FROM cdc.dbo_t_CT"), (Rows{"1"}));
  RunOn(*other, "COMMIT");
  EXPECT_EQ(ErrorOn(*other, "SELECT id FROM cdc.dbo_t_CT"), 208);
}

// S7: an added column is ignored, also by an update of it alone; a dropped one stays,
// NULL; one of that name added again is another column.
TEST_F(Checklist09, ColumnsComeAndGo) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("ALTER TABLE dbo.t ADD extra int NULL");
  Run("UPDATE dbo.t SET extra = 1");
  Run("ALTER TABLE dbo.t DROP COLUMN extra");
  Run("ALTER TABLE dbo.t DROP COLUMN b");
  Run("INSERT INTO dbo.t VALUES (2, 20)");
  Run("ALTER TABLE dbo.t ADD b varchar(20) NULL");
  Run("INSERT INTO dbo.t (id, a, b) VALUES (3, 30, 'again')");
  Capture();
  EXPECT_EQ(Changes("__$operation, id, b"), (Rows{"2|1|x", "2|2|NULL", "2|3|NULL"}));
  EXPECT_EQ(Run("SELECT required_column_update, ddl_command FROM cdc.ddl_history ORDER "
                "BY ddl_lsn"),
            (Rows{"0|ALTER TABLE dbo.t ADD extra int NULL",
                  "0|ALTER TABLE dbo.t DROP COLUMN extra",
                  "0|ALTER TABLE dbo.t DROP COLUMN b",
                  "0|ALTER TABLE dbo.t ADD b varchar(20) NULL"}));
}

// S7, facts 1.2: an update that touches no captured column writes nothing.
TEST_F(Checklist09, UncapturedColumnsWriteNothing) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@captured_column_list = N'id, b'");
  Capture();
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 11");
  Capture();
  EXPECT_EQ(Changes("__$operation"), (Rows{"2"}));
}

// S7, facts 1.1: ddl_history is written by the scan, with times to the minute.
TEST_F(Checklist09, DdlHistoryIsLateAndInMinutes) {
  Track("t");
  engine_->SetClock(kStartUs + 42'123'456);
  Run("ALTER TABLE dbo.t ADD extra int NULL");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.ddl_history"), "0");
  Capture();
  EXPECT_EQ(Run("EXEC sys.sp_cdc_get_ddl_history 'dbo_t'").size(), 1u);
  EXPECT_EQ(One("SELECT CONVERT(varchar(23), ddl_time, 126) FROM cdc.ddl_history"),
            "2026-05-28T20:27:00");
}

// Facts 1.4: the change table's column is altered when the scan meets the record, so
// the same query has other metadata in two polls; writes go on on both sides of it.
TEST_F(Checklist09, TheChangeTableAltersBetweenTwoPolls) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("ALTER TABLE dbo.t ALTER COLUMN a bigint NULL");
  Run("INSERT INTO dbo.t VALUES (2, 5000000000, 'x')");
  const std::string type =
      "SELECT t.name FROM sys.columns c JOIN sys.types t ON t.user_type_id = "
      "c.user_type_id WHERE c.object_id = OBJECT_ID('cdc.dbo_t_CT') AND c.name = 'a'";
  EXPECT_EQ(One(type), "int");
  Capture();
  EXPECT_EQ(One(type), "bigint");
  EXPECT_EQ(Changes("a"), (Rows{"10", "5000000000"}));
  EXPECT_EQ(One("SELECT required_column_update FROM cdc.ddl_history"), "1");
}

// S17, facts 1.4: old values that the new type cannot hold stop the capture until the
// instance is disabled.
TEST_F(Checklist09, NarrowingAColumnStopsTheCapture) {
  struct Case {
    const char* type;
    const char* column;
    int number;
  };
  for (const Case& c :
       {Case{"varchar(3) NULL", "b", 2628}, Case{"decimal(3, 0) NULL", "a", 8115}}) {
    Run("IF OBJECT_ID('dbo.n') IS NOT NULL DROP TABLE dbo.n");
    Run("CREATE TABLE dbo.n (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
        "NULL)");
    Track("n");
    Run("INSERT INTO dbo.n VALUES (1, 100000, 'longer')");
    Run("UPDATE dbo.n SET a = 1, b = 'x'");
    Run(std::string("ALTER TABLE dbo.n ALTER COLUMN ") + c.column + " " + c.type);
    Run("INSERT INTO dbo.n VALUES (2, 2, 'y')");
    // The first scan takes what lies before the DDL.
    (void)engine_->CaptureCycle("shop", 2);
    EXPECT_FALSE(engine_->CaptureNow("shop").ok());
    EXPECT_FALSE(engine_->CaptureNow("shop").ok());
    EXPECT_EQ(One("SELECT COUNT(*) FROM sys.dm_cdc_errors WHERE error_number = " +
                  std::to_string(c.number)),
              "2");
    EXPECT_EQ(Changes("id", "dbo_n"), (Rows{"1", "1", "1"}));
    Run("EXEC sys.sp_cdc_disable_table N'dbo', N'n', N'all'");
    Capture();
  }
}

// Facts 1.5: the list orders the columns; ordinals are not the source's column ids.
TEST_F(Checklist15, TheListOrdersTheColumns) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@captured_column_list = N'[b],  a, id'");
  Capture();
  EXPECT_EQ(Run("SELECT column_name, column_ordinal, column_id FROM "
                "cdc.captured_columns ORDER "
                "BY column_ordinal"),
            (Rows{"b|1|3", "a|2|2", "id|3|1"}));
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 11");
  Capture();
  EXPECT_EQ(NewestChanges("__$update_mask, b, a, id"),
            (Rows{"0x02|x|10|1", "0x02|x|11|1"}));
  TextSink sink;
  session_->Batch("SELECT * FROM cdc.dbo_t_CT", sink);
  EXPECT_EQ(sink.names, (Rows{"__$start_lsn", "__$end_lsn", "__$seqval", "__$operation",
                              "__$update_mask", "b", "a", "id", "__$command_id"}));
}

// Names with brackets, quotes, commas and letters of any script.
TEST_F(Checklist15, NamesMayHoldAnything) {
  Run("CREATE TABLE dbo.[odd ]] 'table'] ([k,1] int NOT NULL PRIMARY KEY, [a]]b] int "
      "NULL, [\"q'\"] int NULL, [Größe 大] int NULL)");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N'odd ] ''table''', @role_name = NULL, "
      "@capture_instance = N'odd ] instance', @captured_column_list = N'[k,1], [a]]b], "
      "[\"q''\"], [Größe 大]'");
  Capture();
  Run("INSERT INTO dbo.[odd ]] 'table'] VALUES (1, 2, 3, 4)");
  Capture();
  EXPECT_EQ(
      Run("SELECT [k,1], [a]]b], [\"q'\"], [Größe 大] FROM cdc.[odd ]] instance_CT]"),
      (Rows{"1|2|3|4"}));
  EXPECT_EQ(Run("SELECT [a]]b] FROM cdc.[fn_cdc_get_all_changes_odd ]] instance]("
                "sys.fn_cdc_get_min_lsn('odd ] instance'), sys.fn_cdc_get_max_lsn(), "
                "'all')"),
            (Rows{"2"}));
}

// Facts 1.5: instance names have up to 100 characters (22927).
TEST_F(Checklist15, InstanceNamesHaveUpTo100Characters) {
  const auto enable = [&](std::size_t size) {
    return ErrorOf(
        "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
        "@capture_instance = N'" +
        std::string(size, 'n') + "'");
  };
  EXPECT_EQ(enable(101), 22927);
  EXPECT_EQ(enable(100), 0);
  Capture();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.[" + std::string(100, 'n') + "_CT]"), "0");
}

// In a database with a case-sensitive collation names are case-sensitive; values too.
TEST_F(Checklist15, CaseSensitiveDatabases) {
  Run("CREATE DATABASE exact COLLATE Latin1_General_CS_AS");
  const auto exact = engine_->AdminSession("exact");
  RunOn(*exact, "EXEC sys.sp_cdc_enable_db");
  RunOn(*exact, "CREATE TABLE dbo.Orders (Id varchar(9) NOT NULL PRIMARY KEY)");
  RunOn(*exact, "CREATE TABLE dbo.orders (Id int NOT NULL PRIMARY KEY)");
  RunOn(*exact,
        "EXEC sys.sp_cdc_enable_table N'dbo', N'Orders', @role_name = NULL "
        "EXEC sys.sp_cdc_enable_table N'dbo', N'orders', @role_name = NULL");
  RunOn(*exact, "INSERT INTO dbo.Orders VALUES ('a'), ('A')");
  ASSERT_TRUE(engine_->CaptureNow("exact").ok());
  EXPECT_EQ(RunOn(*exact, "SELECT COUNT(*) FROM cdc.dbo_Orders_CT WHERE Id = 'a'"),
            (Rows{"1"}));
  EXPECT_EQ(RunOn(*exact, "SELECT COUNT(*) FROM cdc.dbo_orders_CT"), (Rows{"0"}));
  EXPECT_EQ(ErrorOn(*exact, "SELECT * FROM dbo.ORDERS"), 208);
  EXPECT_EQ(ErrorOn(*exact, "SELECT ID FROM dbo.Orders"), 207);
  EXPECT_EQ(ErrorOf("SELECT ID FROM dbo.T"), 0);
}

// Aliases, columns of subqueries and common tables are names as well; inserted and
// deleted are words of the language.
TEST_F(Checklist15, CaseSensitiveNamesInQueries) {
  const struct {
    std::string query;
    std::int32_t exact;  // Its error under a case-sensitive collation; else none.
  } cases[] = {
      {"SELECT X.id FROM dbo.p x", 4104},
      {"SELECT x.id FROM dbo.p x JOIN dbo.p X ON x.id = X.id", 0},
      {"SELECT X.* FROM dbo.p x", 107},
      {"SELECT q.N FROM (SELECT id AS n FROM dbo.p) q", 207},
      {"SELECT n FROM (SELECT id AS n, id AS N FROM dbo.p) q", 0},
      {"WITH q AS (SELECT id FROM dbo.p) SELECT id FROM Q", 208},
      {"SELECT id AS n FROM dbo.p ORDER BY N", 207},
      {"SELECT id FROM dbo.p UNION SELECT id FROM dbo.p ORDER BY ID", 207},
      {"DECLARE @t TABLE (a int) INSERT INTO @t (A) VALUES (1)", 207},
      {"INSERT INTO dbo.p OUTPUT INSERTED.id VALUES (1)", 0},
      {"UPDATE X SET id = id FROM dbo.p x", 208},
  };
  Run("CREATE DATABASE exact COLLATE Latin1_General_CS_AS");
  const auto exact = engine_->AdminSession("exact");
  RunOn(*exact, "CREATE TABLE dbo.p (id int NOT NULL)");
  Run("CREATE TABLE dbo.p (id int NOT NULL)");
  for (const auto& [query, number] : cases) {
    EXPECT_EQ(ErrorOn(*exact, query), number) << query;
    // Where names differ by case only, the other collation takes them for one.
    const bool clashes = number == 0 && query.find("OUTPUT") == std::string::npos;
    EXPECT_EQ(ErrorOf(query) != 0, clashes) << query;
  }
}

// S18: keys follow the collation, uniqueidentifiers the server's own order.
TEST_F(Checklist15, ServerOrderOfTextAndGuids) {
  Run("CREATE TABLE dbo.g (g uniqueidentifier NOT NULL PRIMARY KEY, s nvarchar(9))");
  Run("INSERT INTO dbo.g VALUES "
      "('00000000-0000-0000-0000-010000000000', N'b'), "
      "('01000000-0000-0000-0000-000000000000', N'A'), "
      "('00000000-0000-0001-0000-000000000000', N'B')");
  EXPECT_EQ(Run("SELECT s FROM dbo.g ORDER BY g"), (Rows{"A", "B", "b"}));
  EXPECT_EQ(One("SELECT COUNT(DISTINCT s) FROM dbo.g"), "2");
}

}  // namespace
}  // namespace mssql_cdc::sim

// What change tables and the mapping hold after which statements. Each test names the
// line of the CDC facts that it takes its expectation from ("facts" below).

#include "sim/engine/cdc.h"
#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

class CaptureTest : public EngineTest {
 protected:
  CaptureTest() {
    EnableCdc();
    Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
        "NULL)");
  }
  // Operation and captured columns, in the change table's order.
  Rows Changes(const std::string& columns) {
    return Run("SELECT __$operation, " + columns +
               " FROM cdc.dbo_t_CT ORDER BY __$start_lsn, __$command_id, __$seqval, "
               "__$operation");
  }
};

// Facts 1.2: INSERT, UPDATE in place, DELETE; 1.1: masks of insert and delete all ones.
TEST_F(CaptureTest, EachStatementLeavesItsRows) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 11 WHERE id = 1");
  Run("DELETE FROM dbo.t WHERE id = 1");
  Capture();
  EXPECT_EQ(Changes("id, a, b, __$update_mask"),
            (Rows{"2|1|10|x|0x07", "3|1|10|x|0x02", "4|1|11|x|0x02", "1|1|11|x|0x07"}));
}

// S3: the two images of an update share seqval and command id.
TEST_F(CaptureTest, ImagesOfAnUpdateShareSeqvalAndCommandId) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 11");
  Capture();
  EXPECT_EQ(One("SELECT COUNT(DISTINCT __$seqval), COUNT(DISTINCT __$command_id) FROM "
                "cdc.dbo_t_CT WHERE __$operation IN (3, 4)"),
            "1|1");
}

// Facts 1.2 and S4: one row's key change is delete and insert with one seqval and
// different command ids.
TEST_F(CaptureTest, KeyChangeOfOneRowSharesTheSeqval) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET id = 5 WHERE id = 1");
  Capture();
  EXPECT_EQ(Changes("id"), (Rows{"2|1", "1|1", "2|5"}));
  EXPECT_EQ(One("SELECT COUNT(DISTINCT __$seqval), COUNT(DISTINCT __$command_id) FROM "
                "cdc.dbo_t_CT WHERE __$start_lsn = (SELECT MAX(__$start_lsn) FROM "
                "cdc.dbo_t_CT)"),
            "1|2");
}

// Facts 1.2: many rows' key changes have their own seqvals, all deletes first. Keys may
// swap, since uniqueness is the statement's.
TEST_F(CaptureTest, KeyChangesOfManyRowsDeleteFirst) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x'), (2, 20, 'y')");
  Run("UPDATE dbo.t SET id = 3 - id");
  Capture();
  EXPECT_EQ(Changes("id, a"),
            (Rows{"2|1|10", "2|2|20", "1|1|10", "1|2|20", "2|2|10", "2|1|20"}));
  EXPECT_EQ(One("SELECT COUNT(DISTINCT __$seqval) FROM cdc.dbo_t_CT"), "6");
}

// Facts 1.2: a unique-index column set to the same value gives 1 and 2 with one seqval.
TEST_F(CaptureTest, UniqueColumnSetToTheSameValueIsDeferred) {
  Run("CREATE UNIQUE INDEX ux ON dbo.t (a)");
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 10, b = 'z'");
  Capture();
  EXPECT_EQ(Changes("b"), (Rows{"2|x", "1|x", "2|z"}));
}

// Facts 1.2: only committed work is captured; a savepoint's rollback leaves nothing.
TEST_F(CaptureTest, RolledBackWorkIsNotCaptured) {
  Track("t");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1, 'x') ROLLBACK");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (2, 2, 'x') SAVE TRAN s "
      "INSERT INTO dbo.t VALUES (3, 3, 'x') ROLLBACK TRAN s COMMIT");
  Capture();
  EXPECT_EQ(Changes("id"), (Rows{"2|2"}));
}

// S7: an update of columns that are not captured writes no row.
TEST_F(CaptureTest, UncapturedColumnsWriteNothing) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@captured_column_list = N'[id], [b]'");
  Capture();
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("UPDATE dbo.t SET a = 11");
  Capture();
  EXPECT_EQ(Changes("id, b"), (Rows{"2|1|x"}));
}

// Facts 1.1: several tables in one transaction are one mapping row; several statements
// share the commit's LSN.
TEST_F(CaptureTest, OneTransactionIsOneMappingRow) {
  Run("CREATE TABLE dbo.u (id int NOT NULL PRIMARY KEY)");
  Track("t");
  Track("u");
  const std::string before =
      One("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00");
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1, 'x') INSERT INTO dbo.u VALUES (1) "
      "COMMIT");
  Capture();
  EXPECT_EQ(before, "0");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"),
            "1");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT t JOIN cdc.dbo_u_CT u ON "
                "u.__$start_lsn = t.__$start_lsn"),
            "1");
}

// Facts 1.1: columns and their order.
TEST_F(CaptureTest, ChangeTableHasTheDocumentedColumns) {
  Track("t");
  TextSink sink;
  session_->Batch("SELECT * FROM cdc.dbo_t_CT", sink);
  EXPECT_EQ(sink.names, (Rows{"__$start_lsn", "__$end_lsn", "__$seqval", "__$operation",
                              "__$update_mask", "id", "a", "b", "__$command_id"}));
}

// S5 and S6: two instances see one change under the same LSN and seqval, with different
// command ids; the second is unreachable until capture has met it.
TEST_F(CaptureTest, TwoInstancesDifferInCommandId) {
  Track("t");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, @capture_instance "
      "= "
      "N'second'");
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_min_lsn('second')"), "0x00000000000000000000");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Capture();
  EXPECT_NE(One("SELECT sys.fn_cdc_get_min_lsn('second')"), "0x00000000000000000000");
  EXPECT_EQ(
      One("SELECT COUNT(*), MIN(CASE WHEN a.__$command_id <> b.__$command_id THEN 1 "
          "ELSE 0 END) FROM cdc.dbo_t_CT a JOIN cdc.second_CT b ON a.__$start_lsn = "
          "b.__$start_lsn AND a.__$seqval = b.__$seqval AND a.__$operation = "
          "b.__$operation"),
      "1|1");
  // Facts 1.4: no third.
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
                    "@capture_instance = N'third'"),
            22962);
}

// Facts 1.1: idle rows at most one in 300 s, with tran_id 0x00.
TEST_F(CaptureTest, IdleDatabaseGetsRowsFiveMinutesApart) {
  Track("t");
  const std::string first = One("SELECT sys.fn_cdc_get_max_lsn()");
  engine_->AdvanceClock(299'000);
  Capture();
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_max_lsn()"), first);
  engine_->AdvanceClock(1'000);
  Capture();
  const std::string second = One("SELECT sys.fn_cdc_get_max_lsn()");
  EXPECT_GT(second, first);
  EXPECT_EQ(
      One("SELECT TOP (1) tran_id FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC"),
      "0x00");
  engine_->AdvanceClock(300'000);
  Capture();
  EXPECT_GT(One("SELECT sys.fn_cdc_get_max_lsn()"), second);
}

// Facts 1.12 line 2: NULL before the first scan.
TEST_F(CaptureTest, MaxLsnIsNullBeforeCaptureRan) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL");
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_max_lsn()"), "NULL");
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_min_lsn('dbo_t')"), "0x00000000000000000000");
  Capture();
  EXPECT_EQ(One("SELECT CASE WHEN sys.fn_cdc_get_max_lsn() = "
                "sys.fn_cdc_get_min_lsn('dbo_t') THEN 1 ELSE 0 END"),
            "1");
}

// Facts 1.7: a cycle takes at most maxtrans transactions.
TEST_F(CaptureTest, OneCycleTakesSoManyTransactions) {
  Track("t");
  for (int i = 0; i < 5; ++i) {
    Run("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", 0, '')");
  }
  EXPECT_EQ(engine_->CaptureCycle("shop", 2).value(), 2);
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "2");
  EXPECT_EQ(One("SELECT log_reuse_wait_desc FROM sys.databases WHERE name = 'shop'"),
            "REPLICATION");
  Capture();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "5");
}

// S9: lowest ordinals in the last byte, beyond 8 and 64 columns.
TEST_F(CaptureTest, MaskHasTheLowestOrdinalsLast) {
  std::string columns = "id int NOT NULL PRIMARY KEY";
  for (int i = 2; i <= 70; ++i) columns += ", c" + std::to_string(i) + " int NULL";
  Run("CREATE TABLE dbo.w (" + columns + ")");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N'w', @role_name = NULL");
  Capture();
  Run("INSERT INTO dbo.w (id) VALUES (1)");
  Run("UPDATE dbo.w SET c2 = 1, c70 = 1");
  Capture();
  EXPECT_EQ(
      Run("SELECT __$update_mask FROM cdc.dbo_w_CT WHERE __$operation <> 3 ORDER BY "
          "__$start_lsn"),
      (Rows{"0x3FFFFFFFFFFFFFFFFF", "0x200000000000000002"}));
  EXPECT_EQ(One("SELECT sys.fn_cdc_is_bit_set(70, 0x200000000000000002), "
                "sys.fn_cdc_is_bit_set(3, 0x200000000000000002), "
                "sys.fn_cdc_get_column_ordinal('dbo_w', 'c70')"),
            "1|0|70");
}

// S7 and facts 1.4: ADD, DROP and ALTER COLUMN.
TEST_F(CaptureTest, ColumnsComeAndGo) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 10, 'x')");
  Run("ALTER TABLE dbo.t ADD extra int NULL");
  Run("UPDATE dbo.t SET extra = 1");
  Run("ALTER TABLE dbo.t ALTER COLUMN a bigint NULL");
  Run("UPDATE dbo.t SET a = 5000000000");
  Run("ALTER TABLE dbo.t DROP COLUMN b");
  Run("INSERT INTO dbo.t VALUES (2, 20, 2)");
  Capture();
  EXPECT_EQ(Changes("id, a, b"),
            (Rows{"2|1|10|x", "3|1|10|x", "4|1|5000000000|x", "2|2|20|NULL"}));
  EXPECT_EQ(Run("SELECT required_column_update FROM cdc.ddl_history ORDER BY ddl_lsn"),
            (Rows{"0", "1", "0"}));
  EXPECT_EQ(
      One("SELECT t.name FROM sys.columns c JOIN sys.types t ON t.user_type_id = "
          "c.user_type_id WHERE c.object_id = OBJECT_ID('cdc.dbo_t_CT') AND c.name = "
          "'a'"),
      "bigint");
}

TEST_F(CaptureTest, TruncateRenameAndKeyChangesAreRefused) {
  Track("t");
  EXPECT_EQ(ErrorOf("TRUNCATE TABLE dbo.t"), 4711);                     // Facts 1.2.
  EXPECT_EQ(ErrorOf("EXEC sp_rename 'dbo.t.a', 'z', 'COLUMN'"), 4928);  // Facts 1.4.
  EXPECT_EQ(ErrorOf("EXEC sp_rename 'dbo.t', 'renamed'"), 0);           // S7: allowed.
  EXPECT_EQ(One("SELECT COUNT(*) FROM dbo.renamed"), "0");
}

// Facts 1.7, failure codes in sys.dm_cdc_errors; readers only see that nothing moves.
TEST_F(CaptureTest, BrokenCaptureShowsInTheErrors) {
  Track("t");
  Run("EXEC sim.break_capture 22859");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  EXPECT_FALSE(engine_->CaptureNow("shop").ok());
  EXPECT_EQ(One("SELECT error_number FROM sys.dm_cdc_errors"), "22859");
  Run("EXEC sim.mend_capture");
  Capture();
  EXPECT_EQ(Changes("id"), (Rows{"2|1"}));
}

// Facts 1.1: commit times are server-local datetime, rounded to 1/300 s.
TEST_F(CaptureTest, CommitTimesAreRounded) {
  Track("t");
  engine_->SetClock(kStartUs + 5'000);
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Capture();
  EXPECT_EQ(One("SELECT CONVERT(varchar(23), MAX(tran_end_time), 126) FROM "
                "cdc.lsn_time_mapping"),
            "2026-05-28T20:26:40.007");
}

TEST_F(CaptureTest, SameSeedGivesTheSameLsns) {
  auto work = [&] {
    Track("t");
    Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
    Run("UPDATE dbo.t SET a = 2");
    Capture();
    return Run(
        "SELECT __$start_lsn, __$seqval FROM cdc.dbo_t_CT ORDER BY __$start_lsn");
  };
  const Rows first = work();
  session_ = nullptr;
  engine_ = nullptr;
  std::filesystem::remove_all(directory_);
  Open();
  EnableCdc();
  Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL, b varchar(20) "
      "NULL)");
  EXPECT_EQ(work(), first);
  EXPECT_EQ(first.size(), 3u);
}

}  // namespace
}  // namespace mssql_cdc::sim

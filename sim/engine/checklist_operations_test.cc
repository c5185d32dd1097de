// Checklist lines 10 to 12, 14 and 17: cleanup, the jobs, accidents, rights, errors.

#include "sim/engine/checklist_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

class Checklist10 : public ChecklistTest {};
class Checklist11 : public ChecklistTest {};
class Checklist12 : public ChecklistTest {};
class Checklist14 : public ChecklistTest {};

// Facts 1.8, S11: (1) all starts move at once, (2) rows go later, in portions; between
// them a direct reader sees what is about to go, and the function refuses.
TEST_F(Checklist10, CleanupMovesTheStartBeforeItDeletes) {
  Track("t");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@capture_instance = N'second'");
  Capture();
  Fill(5);
  const std::string old_min = MinLsn();
  const std::string first = "SELECT COUNT(*) FROM cdc.dbo_t_CT";
  EXPECT_EQ(One(first), "5");
  Run("EXEC sim.cleanup_move 2");
  EXPECT_GT(MinLsn(), old_min);
  // Both instances may share one start; create_date tells them apart.
  EXPECT_EQ(MinLsn(), MinLsn("second"));
  EXPECT_EQ(One(first), "5");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(" + old_min +
                    ", sys.fn_cdc_get_max_lsn(), 'all')"),
            313);
  Run("EXEC sim.cleanup_delete 1");
  EXPECT_EQ(One(first), "4");
  Run("EXEC sim.cleanup_delete");
  EXPECT_EQ(One(first), "3");
  // The mark itself stays in the mapping.
  EXPECT_EQ(One("SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping"), MinLsn());
}

// Facts 1.8: the mark is the newest commit's time less the retention, not the clock's;
// it never moves back.
TEST_F(Checklist10, RetentionCountsFromTheNewestCommit) {
  Track("t");
  Fill(5);
  engine_->AdvanceClock(86'400'000);
  Run("EXEC sim.cleanup 2");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "3");
  const std::string min = MinLsn();
  Run("EXEC sim.cleanup @low_water_mark = 0x00000000000000000001");
  EXPECT_EQ(MinLsn(), min);
}

// Facts 1.8: the manual procedure: 22964 for an LSN the mapping has not, 22850, 22910.
TEST_F(Checklist10, TheManualProcedureChecksItsMark) {
  Track("t");
  Fill(3);
  const std::string call = "EXEC sys.sp_cdc_cleanup_change_table ";
  EXPECT_EQ(ErrorOf(call + "'dbo_t', 0x00000000000000000001"), 22964);
  EXPECT_EQ(ErrorOf(call + "'dbo_t', NULL, 0"), 22850);
  EXPECT_EQ(ErrorOf("CREATE DATABASE plain"), 0);
  EXPECT_EQ(ErrorOf("USE plain " + call + "'dbo_t', NULL"), 22910);
  EXPECT_EQ(ErrorOf("USE shop DECLARE @m binary(10) = sys.fn_cdc_get_max_lsn() " +
                    call + "'dbo_t', @m"),
            0);
  EXPECT_EQ(Changes("id"), (Rows{"3"}));
}

// Facts 1.7: the Agent down, or its job stopped: nothing is captured, nothing
// complains, the log waits. A manual scan works.
TEST_F(Checklist11, AStoppedCaptureSaysNothing) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  const auto wait = [&] {
    return One("SELECT log_reuse_wait_desc FROM sys.databases WHERE name = 'shop'");
  };
  EXPECT_EQ(wait(), "REPLICATION");
  for (const std::string stop :
       {"EXEC sim.stall", "EXEC sys.sp_cdc_stop_job 'capture'"}) {
    Run(stop);
    engine_->AdvanceClock(60'000);
    Run("EXEC sim.run_jobs");
    EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "0") << stop;
    Run("EXEC sim.resume");
  }
  EXPECT_EQ(One("SELECT COUNT(*) FROM sys.dm_cdc_errors"), "0");
  Run("EXEC sys.sp_cdc_start_job 'capture' EXEC sim.run_jobs");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "1");
  EXPECT_EQ(wait(), "NOTHING");
  Run("EXEC sim.stall INSERT INTO dbo.t VALUES (2, 1, 'x') EXEC sys.sp_cdc_scan");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "2");
}

// Facts 1.7: up to maxtrans transactions in a scan, maxscans scans, then the polling
// interval.
TEST_F(Checklist11, TheJobHasItsLimits) {
  Track("t");
  Run("EXEC sys.sp_cdc_change_job 'capture', @maxtrans = 2, @maxscans = 3, "
      "@pollinginterval = 10");
  for (int i = 0; i < 10; ++i) {
    Run("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", 0, 'x')");
  }
  const std::string count = "SELECT COUNT(*) FROM cdc.dbo_t_CT";
  EXPECT_EQ(engine_->CaptureCycle("shop", 2).value(), 2);
  EXPECT_EQ(One(count), "2");
  engine_->RunDueJobs();
  EXPECT_EQ(One(count), "8");
  engine_->AdvanceClock(9'999);
  engine_->RunDueJobs();
  EXPECT_EQ(One(count), "8");
  engine_->AdvanceClock(1);
  engine_->RunDueJobs();
  EXPECT_EQ(One(count), "10");
  EXPECT_EQ(One("SELECT maxtrans, maxscans, pollinginterval FROM msdb.dbo.cdc_jobs "
                "WHERE job_type = 'capture'"),
            "2|3|10");
  EXPECT_EQ(
      Run("SELECT tran_count FROM sys.dm_cdc_log_scan_sessions WHERE tran_count > "
          "0 AND command_count > 0 AND session_id > 0 ORDER BY session_id"),
      (Rows{"2", "2", "2", "2", "2"}));
  EXPECT_EQ(One("SELECT empty_scan_count FROM sys.dm_cdc_log_scan_sessions WHERE "
                "session_id = 0"),
            One("SELECT SUM(empty_scan_count) FROM sys.dm_cdc_log_scan_sessions WHERE "
                "session_id > 0"));
}

// Facts 1.7: failures are in sys.dm_cdc_errors, readers only see that nothing moves.
TEST_F(Checklist11, FailuresAreInTheErrors) {
  Track("t");
  Run("EXEC sim.break_capture 22858");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  const std::string before = MaxLsn();
  EXPECT_FALSE(engine_->CaptureNow("shop").ok());
  EXPECT_EQ(MaxLsn(), before);
  EXPECT_EQ(One("SELECT error_number, error_severity FROM sys.dm_cdc_errors"),
            "22858|16");
  EXPECT_EQ(
      One("SELECT scan_phase, error_count FROM sys.dm_cdc_log_scan_sessions WHERE "
          "error_count > 0 AND session_id > 0"),
      "Aborted|1");
  EXPECT_EQ(One("SELECT scan_phase, error_count FROM sys.dm_cdc_log_scan_sessions "
                "WHERE session_id = 0"),
            "Aggregate|1");
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_scan"), 22858);
  Run("EXEC sim.mend_capture");
  Capture();
  EXPECT_GT(MaxLsn(), before);
}

// Facts 1.7: Azure SQL Database captures every 20 s and cleans up every hour, has its
// jobs in the database, and says it is Azure.
TEST_F(Checklist11, AzureHasASchedulerOfItsOwn) {
  ReopenWith([](EngineOptions& options) { options.azure = true; });
  Track("t");
  engine_->RunDueJobs();
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  engine_->AdvanceClock(19'999);
  engine_->RunDueJobs();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "0");
  engine_->AdvanceClock(1);
  engine_->RunDueJobs();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "1");
  EXPECT_EQ(One("SELECT SERVERPROPERTY('EngineEdition'), SERVERPROPERTY('Edition')"),
            "5|SQL Azure");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.cdc_jobs"), "2");
}

// Facts 1.8: the cleanup job runs at two in the night.
TEST_F(Checklist10, TheJobRunsAtNight) {
  Track("t");
  Run("EXEC sys.sp_cdc_change_job 'cleanup', @retention = 2");
  Fill(5);
  engine_->SetClock(1'780'012'800'000'000);  // 2026-05-29 00:00 UTC.
  engine_->RunDueJobs();
  engine_->SetClock(1'780'019'999'000'000);  // 01:59:59
  engine_->RunDueJobs();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "5");
  engine_->SetClock(1'780'020'004'000'000);  // 02:00:04
  Run("INSERT INTO dbo.t VALUES (9, 0, 'x')");
  engine_->RunDueJobs();
  // Idle rows have come since, so the newest commit is of this night.
  EXPECT_EQ(One("SELECT MIN(id) FROM cdc.dbo_t_CT"), "9");
}

// Facts 1.10: after a restore to an earlier point a stored LSN is above max_lsn, the
// recovery fork is another one, and the same LSNs may come again with other data.
TEST_F(Checklist12, RestoreToAnOlderPointForksTheLog) {
  Track("t");
  Fill(1);
  const std::string forks =
      "SELECT database_guid, recovery_fork_guid FROM sys.database_recovery_status "
      "WHERE database_id = DB_ID()";
  const std::string before = One(forks);
  Run("EXEC sim.back_up 'monday'");
  Run("INSERT INTO dbo.t VALUES (2, 0, 'lost')");
  Capture();
  const std::string stored = MaxLsn();
  const auto other = engine_->AdminSession("shop");
  RunOn(*other, "BEGIN TRAN INSERT INTO dbo.t VALUES (9, 0, 'open')");
  EXPECT_EQ(ErrorOf("EXEC sim.restore_to 'monday'"), 3101);
  RunOn(*other, "ROLLBACK");
  Run("EXEC sim.restore_to 'monday'");
  EXPECT_LT(MaxLsn(), stored);
  EXPECT_EQ(Changes("id"), (Rows{"1"}));
  EXPECT_NE(One(forks), before);
  EXPECT_EQ(One(forks).substr(0, 36), before.substr(0, 36));
  Run("INSERT INTO dbo.t VALUES (3, 0, 'other')");
  Capture();
  EXPECT_EQ(Changes("id, b"), (Rows{"1|x", "3|other"}));
  // A restore needs the database for itself: everybody else was thrown out.
  EXPECT_EQ(ErrorOn(*other, "SELECT 1"), 596);
  EXPECT_EQ(ErrorOf("EXEC sim.restore_to 'never'"), 3201);
  Reopen();
  EXPECT_EQ(Changes("id"), (Rows{"1", "3"}));
}

// Facts 1.10: without KEEP_CDC, elsewhere, CDC is gone.
TEST_F(Checklist12, RestoreElsewhereDropsCdcUnlessKept) {
  Track("t");
  Run("EXEC sim.back_up 'a' EXEC sim.restore_to 'a', @keep_cdc = 1");
  EXPECT_EQ(One("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'shop'"), "1");
  Run("EXEC sim.restore_to 'a', @keep_cdc = 0");
  EXPECT_EQ(One("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'shop'"), "0");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 208);
}

// S15: after a failover sessions are gone and the jobs are missing: nothing arrives and
// nothing fails until sp_cdc_add_job.
TEST_F(Checklist12, FailoverLosesTheJobs) {
  Track("t");
  const auto other = engine_->AdminSession("shop");
  Run("EXEC sim.fail_over");
  EXPECT_EQ(ErrorOn(*other, "SELECT 1"), 596);
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  engine_->AdvanceClock(60'000);
  engine_->RunDueJobs();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "0");
  EXPECT_EQ(One("SELECT COUNT(*) FROM msdb.dbo.cdc_jobs"), "0");
  EXPECT_EQ(One("SELECT COUNT(*) FROM sys.dm_cdc_errors"), "0");
  Run("EXEC sys.sp_cdc_add_job 'capture'");
  engine_->RunDueJobs();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "1");
}

// S14: on a readable secondary max_lsn never moves inside a transaction, and nothing
// can be written.
TEST_F(Checklist12, AReadableSecondaryReadsSnapshots) {
  Track("t");
  Fill(1);
  MakeReader();
  Run("GRANT SELECT ON dbo.t TO r GRANT SELECT ON SCHEMA::cdc TO r GRANT INSERT ON "
      "dbo.t "
      "TO r EXEC sim.readable_secondary 1");
  const auto secondary = LoginAs("r", true);
  const auto primary = LoginAs("r");
  const std::string max = "SELECT sys.fn_cdc_get_max_lsn()";
  RunOn(*secondary, "BEGIN TRAN");
  RunOn(*primary, "BEGIN TRAN");
  const Rows seen = RunOn(*secondary, max);
  EXPECT_EQ(RunOn(*primary, max), seen);
  Run("INSERT INTO dbo.t VALUES (2, 0, 'x')");
  Capture();
  EXPECT_EQ(RunOn(*secondary, max), seen);
  EXPECT_NE(RunOn(*primary, max), seen);
  RunOn(*secondary, "COMMIT");
  EXPECT_NE(RunOn(*secondary, max), seen);
  EXPECT_EQ(ErrorOn(*secondary, "INSERT INTO dbo.t VALUES (3, 0, 'x')"), 3906);
  EXPECT_EQ(RunOn(*secondary, "SELECT DATABASEPROPERTYEX('shop', 'Updateability')"),
            (Rows{"READ_ONLY"}));
}

// Facts 1.9, S12: rights that go while a reader runs: 229 on tables, zero and nothing
// from functions and procedures.
TEST_F(Checklist14, RightsMayGoWhileRunning) {
  Track("t");
  Fill(1);
  MakeReader();
  Run("GRANT SELECT ON dbo.t TO r GRANT SELECT ON SCHEMA::cdc TO r");
  const auto reader = LoginAs("r");
  const std::string help = "EXEC sys.sp_cdc_help_change_data_capture";
  EXPECT_EQ(RunOn(*reader, help).size(), 1u);
  EXPECT_EQ(RunOn(*reader, "SELECT id FROM cdc.dbo_t_CT"), (Rows{"1"}));
  Run("DENY SELECT ON dbo.t TO r");
  EXPECT_EQ(RunOn(*reader, help), Rows{});
  EXPECT_EQ(RunOn(*reader, "SELECT sys.fn_cdc_get_min_lsn('dbo_t')"), (Rows{kZero}));
  EXPECT_EQ(ErrorOn(*reader, "EXEC sys.sp_cdc_get_captured_columns 'dbo_t'"), 22981);
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(" +
                                 MinLsn() + ", " + MaxLsn() + ", 'all')"),
            229);
  Run("DENY SELECT ON cdc.dbo_t_CT TO r");
  EXPECT_EQ(ErrorOn(*reader, "SELECT id FROM cdc.dbo_t_CT"), 229);
  EXPECT_EQ(ErrorOn(*reader, "EXEC sys.sp_cdc_disable_db"), 22902);
  EXPECT_EQ(ErrorOn(*reader, "EXEC sim.capture_now"), 229);
}

// Facts 1.9: gating role, and SELECT on every captured column; db_owner passes.
TEST_F(Checklist14, GatingNeedsTheRoleAndAllColumns) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = N'gate'");
  Capture();
  MakeReader();
  Run("GRANT SELECT ON dbo.t (id, a) TO r");
  const auto reader = LoginAs("r");
  const std::string help = "EXEC sys.sp_cdc_help_change_data_capture";
  EXPECT_EQ(RunOn(*reader, help), Rows{});
  Run("ALTER ROLE gate ADD MEMBER r");
  EXPECT_EQ(RunOn(*reader, help), Rows{});
  Run("GRANT SELECT ON dbo.t (b) TO r");
  EXPECT_EQ(RunOn(*reader, help).size(), 1u);
  Run("ALTER ROLE gate DROP MEMBER r");
  EXPECT_EQ(RunOn(*reader, help), Rows{});
  Run("CREATE ROLE inner_gate ALTER ROLE gate ADD MEMBER inner_gate ALTER ROLE "
      "inner_gate ADD MEMBER r");
  EXPECT_EQ(RunOn(*reader, help).size(), 1u);
  Run("ALTER ROLE inner_gate DROP MEMBER r ALTER ROLE db_owner ADD MEMBER r");
  EXPECT_EQ(RunOn(*reader, help).size(), 1u);
}

// Facts 1.11: deadlock victim and lock timeout on the poll, at once or after rows.
TEST_F(Checklist17, PollsFailOnDemand) {
  Track("t");
  Fill(3);
  Run("EXEC sim.fail_reads 1205, 2");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 1205);
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.lsn_time_mapping"), 1205);
  EXPECT_EQ(Run("SELECT id FROM cdc.dbo_t_CT"), (Rows{"1", "2", "3"}));
  Run("EXEC sim.fail_reads 1222, @rows = 2");
  TextSink sink;
  session_->Batch("SELECT id FROM cdc.dbo_t_CT", sink);
  EXPECT_EQ(sink.rows, (Rows{"1", "2"}));
  ASSERT_EQ(sink.errors.size(), 1u);
  EXPECT_EQ(sink.errors[0].number, 1222);
  Run("EXEC sim.fail_reads 1205, @table = 'dbo.t'");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 0);
  EXPECT_EQ(ErrorOf("SELECT * FROM dbo.t"), 1205);
}

// A lock that somebody holds: READ COMMITTED waits as long as LOCK_TIMEOUT says, also
// where SET stands in the same batch; SNAPSHOT and NOLOCK do not.
TEST_F(Checklist17, HeldLocksBlockWhoWaitsForThem) {
  Run("ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Run("EXEC sim.hold_lock 'dbo.t'");
  const std::string read = "SELECT id FROM dbo.t";
  EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 0 " + read), 1222);
  EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 0 INSERT INTO dbo.t VALUES (2, 2, 'x')"), 1222);
  EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 1; UPDATE dbo.t SET a = 2"), 1222);
  EXPECT_EQ(Run(read + " WITH (NOLOCK)"), (Rows{"1"}));
  EXPECT_EQ(Run("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; " + read), (Rows{"1"}));
  Run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED EXEC sim.release_lock 'dbo.t'");
  EXPECT_EQ(Run(read), (Rows{"1"}));
}

// A reader's lock (TABLOCKX): held until its transaction ends, by whichever way.
TEST_F(Checklist17, ALockedTableIsLockedUntilTheTransactionEnds) {
  const std::string read = "SET LOCK_TIMEOUT 0 SELECT id FROM dbo.t";
  for (const std::string end : {"ROLLBACK", "COMMIT"}) {
    const auto other = engine_->AdminSession("shop");
    RunOn(*other, "SELECT TOP (0) id FROM dbo.t WITH (TABLOCKX)");
    EXPECT_EQ(ErrorOf(read), 0);  // The statement was all of its transaction.
    RunOn(*other, "BEGIN TRAN SELECT TOP (0) id FROM dbo.t WITH (TABLOCKX)");
    EXPECT_EQ(ErrorOf(read), 1222);
    EXPECT_EQ(ErrorOf(read + " WITH (TABLOCK, XLOCK)"), 1222);
    EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 0 DELETE FROM dbo.t"), 1222);
    EXPECT_EQ(ErrorOf(read + " WITH (NOLOCK)"), 0);
    EXPECT_EQ(ErrorOn(*other, "INSERT INTO dbo.t VALUES (1, 1, 'x')"), 0);
    RunOn(*other, end);
    EXPECT_EQ(ErrorOf(read), 0) << end;
  }
  auto gone = engine_->AdminSession("shop");
  RunOn(*gone, "BEGIN TRAN SELECT TOP (0) id FROM dbo.t WITH (TABLOCKX)");
  EXPECT_EQ(ErrorOf(read), 1222);
  gone = nullptr;
  EXPECT_EQ(ErrorOf(read), 0);
}

// A writer's lock too: SET and the statement it concerns in one batch.
TEST_F(Checklist17, LockTimeoutHoldsInItsOwnBatch) {
  const auto other = engine_->AdminSession("shop");
  RunOn(*other, "BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1, 'x')");
  EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 0 INSERT INTO dbo.t VALUES (2, 2, 'x')"), 1222);
  RunOn(*other, "COMMIT");
  EXPECT_EQ(ErrorOf("SET LOCK_TIMEOUT 0 INSERT INTO dbo.t VALUES (2, 2, 'x')"), 0);
}

// Facts 1.11: 40613 and its kin at login.
TEST_F(Checklist17, LoginsFailOnDemand) {
  LoginRequest request;
  request.user = "sa";
  request.password = "Sa-1";
  for (const auto& [number, severity] :
       std::vector<std::pair<int, int>>{{40613, 17}, {4060, 11}, {10928, 20}}) {
    Run("EXEC sim.fail_logins " + std::to_string(number));
    auto refused = engine_->Login(request);
    ASSERT_TRUE(std::holds_alternative<LoginFailure>(refused)) << number;
    EXPECT_EQ(std::get<LoginFailure>(refused).message.number, number);
    EXPECT_EQ(std::get<LoginFailure>(refused).message.severity, severity);
    EXPECT_TRUE(std::holds_alternative<std::unique_ptr<EngineSession>>(
        engine_->Login(request)));
  }
}

}  // namespace
}  // namespace mssql_cdc::sim

// The procedures and functions that readers call, cleanup, and who may do what. Each
// test names the line of the CDC facts that it takes its expectation from.

#include "sim/engine/cdc.h"
#include "sim/engine/engine_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

using Rows = std::vector<std::string>;

class CdcProceduresTest : public EngineTest {
 protected:
  CdcProceduresTest() {
    EnableCdc();
    Run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, a int NULL)");
  }
  void Fill(int count) {
    for (int i = 1; i <= count; ++i) {
      Run("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", 0)");
      engine_->AdvanceClock(60'000);
      Capture();
    }
  }
};

// Facts 1.6: closed interval; no __$command_id; old images on request.
TEST_F(CdcProceduresTest, AllChangesReadsAClosedInterval) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1)");
  Run("UPDATE dbo.t SET a = 2");
  Capture();
  const std::string from =
      "SELECT __$operation, id, a FROM cdc.fn_cdc_get_all_changes_dbo_t("
      "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), ";
  EXPECT_EQ(Run(from + "N'all')"), (Rows{"2|1|1", "4|1|2"}));
  EXPECT_EQ(Run(from + "N' All Update Old ')"), (Rows{"2|1|1", "3|1|1", "4|1|2"}));
  TextSink sink;
  session_->Batch(
      "SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t("
      "sys.fn_cdc_get_min_lsn('dbo_t'), sys.fn_cdc_get_max_lsn(), 'all')",
      sink);
  EXPECT_EQ(sink.names, (Rows{"__$start_lsn", "__$seqval", "__$operation",
                              "__$update_mask", "id", "a"}));
}

// Facts 1.6: net changes reduce to one row for each key.
TEST_F(CdcProceduresTest, NetChangesReducePerKey) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1), (2, 2), (3, 3)");
  Capture();
  const std::string first = One("SELECT sys.fn_cdc_get_max_lsn()");
  Run("UPDATE dbo.t SET a = 10 WHERE id = 1");
  Run("UPDATE dbo.t SET a = 11 WHERE id = 1");
  Run("DELETE FROM dbo.t WHERE id = 2");
  Run("INSERT INTO dbo.t VALUES (4, 4)");
  Run("DELETE FROM dbo.t WHERE id = 4");
  Capture();
  EXPECT_EQ(Run("SELECT __$operation, id, a, __$update_mask FROM "
                "cdc.fn_cdc_get_net_changes_dbo_t(sys.fn_cdc_increment_lsn(" +
                first + "), sys.fn_cdc_get_max_lsn(), 'all with mask') ORDER BY id"),
            (Rows{"4|1|11|0x02", "1|2|2|NULL"}));
}

// Facts 1.6: the four comparisons, ties included.
TEST_F(CdcProceduresTest, TimesMapToLsnsAndBack) {
  Track("t");
  Fill(3);
  const Rows lsns =
      Run("SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 "
          "ORDER BY start_lsn");
  ASSERT_EQ(lsns.size(), 3u);
  const std::string middle = "sys.fn_cdc_map_lsn_to_time(" + lsns[1] + ")";
  auto map = [&](const std::string& how) {
    return One("SELECT sys.fn_cdc_map_time_to_lsn('" + how + "', " + middle + ")");
  };
  EXPECT_EQ(map("largest less than or equal"), lsns[1]);
  EXPECT_EQ(map("largest less than"), lsns[0]);
  EXPECT_EQ(map("smallest greater than or equal"), lsns[1]);
  EXPECT_EQ(map("smallest greater than"), lsns[2]);
  EXPECT_EQ(One("SELECT sys.fn_cdc_map_lsn_to_time(0x01)"), "NULL");
}

// Facts 1.8: the low water mark moves first, rows are still there; TVF refuses; deletes
// come later; the mark is the newest commit's time less the retention.
TEST_F(CdcProceduresTest, CleanupMovesTheMarkBeforeItDeletes) {
  Track("t");
  Fill(5);
  const std::string old_min = One("SELECT sys.fn_cdc_get_min_lsn('dbo_t')");
  ASSERT_TRUE(engine_->MoveLowWaterMark("shop", 2).ok());
  EXPECT_GT(One("SELECT sys.fn_cdc_get_min_lsn('dbo_t')"), old_min);
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "5");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(" + old_min +
                    ", sys.fn_cdc_get_max_lsn(), 'all')"),
            313);
  EXPECT_EQ(engine_->DeleteBelowLowWaterMark("shop", 1).value(), 1);
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "4");
  ASSERT_TRUE(engine_->DeleteBelowLowWaterMark("shop", std::nullopt).ok());
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "3");
  EXPECT_EQ(
      One("SELECT CASE WHEN MIN(start_lsn) = sys.fn_cdc_get_min_lsn('dbo_t') THEN 1 "
          "ELSE 0 END FROM cdc.lsn_time_mapping"),
      "1");
}

// Facts 1.8: the manual procedure.
TEST_F(CdcProceduresTest, ManualCleanupNeedsAnLsnOfTheMapping) {
  Track("t");
  Fill(2);
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_cleanup_change_table 'dbo_t', "
                    "0x00000000000000000001"),
            22964);
  EXPECT_EQ(ErrorOf("DECLARE @m binary(10) = sys.fn_cdc_get_max_lsn() EXEC "
                    "sys.sp_cdc_cleanup_change_table @capture_instance = 'dbo_t', "
                    "@low_water_mark = @m"),
            0);
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "1");
}

// Facts 1.5: the errors of sp_cdc_enable_table and of a database without CDC.
TEST_F(CdcProceduresTest, EnablingRefusesWhatSqlServerRefuses) {
  Run("CREATE TABLE dbo.heap (x int NULL)");
  Run("CREATE DATABASE plain");
  const std::pair<const char*, int> kCases[] = {
      {"N'dbo', N'missing', @role_name = NULL", 22931},
      {"N'cdc', N'lsn_time_mapping', @role_name = NULL", 22974},
      {"N'dbo', N'heap', @role_name = NULL, @supports_net_changes = 1", 22939},
      {"N'dbo', N't', @role_name = NULL, @index_name = N'nope'", 22928},
      {"N'dbo', N't', @role_name = NULL, @captured_column_list = N'id, z'", 22930},
      {"N'dbo', N't', @role_name = NULL, @captured_column_list = N'id, a, id'", 22943},
      {"N'dbo', N't', @role_name = NULL, @captured_column_list = N'a'", 22942},
      {"N'dbo', N't'", 201},
      {"N'dbo', N't', @role_name = NULL, @wrong = 1", 8145},
  };
  for (const auto& [arguments, number] : kCases) {
    EXPECT_EQ(ErrorOf(std::string("EXEC sys.sp_cdc_enable_table ") + arguments), number)
        << arguments;
  }
  EXPECT_EQ(ErrorOf("USE plain EXEC sys.sp_cdc_help_change_data_capture"), 22901);
  EXPECT_EQ(ErrorOf("USE master EXEC sys.sp_cdc_enable_db"), 22989);
}

// Facts 1.5: what the helper procedures show.
TEST_F(CdcProceduresTest, HelpersDescribeTheInstance) {
  Run("CREATE TABLE dbo.d (k1 int NOT NULL, [odd ]] name] nvarchar(30) NULL, m "
      "decimal(12, 3) NULL, k2 datetime2(5) NOT NULL, CONSTRAINT pk_d PRIMARY KEY (k2, "
      "k1))");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N'd', @role_name = N'gate'");
  TextSink sink;
  session_->Batch("EXEC sys.sp_cdc_help_change_data_capture N'dbo', N'd'", sink);
  ASSERT_EQ(sink.rows.size(), 1u);
  EXPECT_NE(sink.rows[0].find("|gate|pk_d|"), std::string::npos) << sink.rows[0];
  EXPECT_NE(sink.rows[0].find("|[k2], [k1]|[k1], [odd ]] name], [m], [k2]"),
            std::string::npos)
      << sink.rows[0];
  EXPECT_EQ(Run("EXEC sys.sp_cdc_get_captured_columns 'dbo_d'"),
            (Rows{"dbo|d|dbo_d|k1|1|1|int|NULL|10|10|0|NULL",
                  "dbo|d|dbo_d|odd ] name|2|2|nvarchar|30|NULL|NULL|NULL|NULL",
                  "dbo|d|dbo_d|m|3|3|decimal|NULL|12|10|3|NULL",
                  "dbo|d|dbo_d|k2|4|4|datetime2|NULL|NULL|NULL|NULL|5"}));
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_get_captured_columns 'nope'"), 22981);
  EXPECT_EQ(ErrorOf("EXEC sys.sp_cdc_help_change_data_capture @source_schema = N'dbo'"),
            22972);
}

// Facts 1.9 and S12: a login without rights sees nothing and gets no error but 229.
TEST_F(CdcProceduresTest, WithoutRightsReadersSeeNothing) {
  Track("t");
  Run("CREATE LOGIN r WITH PASSWORD = 'Pw-1' CREATE USER r FOR LOGIN r");
  const auto reader = LoginAs("r");
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(RunOn(*reader, "SELECT sys.fn_cdc_get_min_lsn('dbo_t')"),
            (Rows{"0x00000000000000000000"}));
  EXPECT_EQ(RunOn(*reader, "EXEC sys.sp_cdc_help_change_data_capture"), Rows{});
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.dbo_t_CT"), 229);
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.change_tables"), 229);
  EXPECT_EQ(ErrorOn(*reader, "EXEC sys.sp_cdc_get_captured_columns 'dbo_t'"), 22981);
  EXPECT_EQ(ErrorOn(*reader, "EXEC sim.capture_now"), 229);
  Run("GRANT SELECT ON dbo.t TO r GRANT SELECT ON SCHEMA::cdc TO r");
  EXPECT_NE(RunOn(*reader, "SELECT sys.fn_cdc_get_min_lsn('dbo_t')"),
            (Rows{"0x00000000000000000000"}));
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.dbo_t_CT"), 0);
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.change_tables"), 0);
  // Taken away while it runs.
  Run("DENY SELECT ON cdc.dbo_t_CT TO r");
  EXPECT_EQ(ErrorOn(*reader, "SELECT * FROM cdc.dbo_t_CT"), 229);
}

// Facts 1.9: the gating role.
TEST_F(CdcProceduresTest, TheGatingRoleGuardsTheInstance) {
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = N'gate'");
  Capture();
  Run("CREATE LOGIN r WITH PASSWORD = 'Pw-1' CREATE USER r FOR LOGIN r "
      "GRANT SELECT ON dbo.t TO r");
  const auto reader = LoginAs("r");
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(RunOn(*reader, "EXEC sys.sp_cdc_help_change_data_capture"), Rows{});
  Run("ALTER ROLE gate ADD MEMBER r");
  EXPECT_EQ(RunOn(*reader, "EXEC sys.sp_cdc_help_change_data_capture").size(), 1u);
}

// S6: disabling drops the change table at once; its function is then 208.
TEST_F(CdcProceduresTest, DisablingDropsAtOnce) {
  Track("t");
  Run("EXEC sys.sp_cdc_disable_table N'dbo', N't', N'all'");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 208);
  EXPECT_EQ(
      ErrorOf("SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(0x00, 0x00, 'all')"),
      208);
  EXPECT_EQ(One("SELECT is_tracked_by_cdc FROM sys.tables WHERE name = 't'"), "0");
  Run("EXEC sys.sp_cdc_disable_db");
  EXPECT_EQ(One("SELECT is_cdc_enabled FROM sys.databases WHERE name = 'shop'"), "0");
}

// Facts 1.12 line 17.
TEST_F(CdcProceduresTest, ReadsOfChangeTablesFailOnDemand) {
  Track("t");
  Run("EXEC sim.fail_reads 1222, 2");
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 1222);
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 1222);
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.dbo_t_CT"), 0);
}

TEST_F(CdcProceduresTest, LoginsAreRefusedAsSqlServerDoes) {
  LoginRequest request;
  request.user = "sa";
  request.password = "wrong";
  auto failed = engine_->Login(request);
  ASSERT_TRUE(std::holds_alternative<LoginFailure>(failed));
  // Facts 1.11: state 1 whatever the reason.
  EXPECT_EQ(std::get<LoginFailure>(failed).message.number, 18456);
  EXPECT_EQ(std::get<LoginFailure>(failed).message.state, 1);
  request.password = "Sa-1";
  request.database = "nope";
  failed = engine_->Login(request);
  ASSERT_TRUE(std::holds_alternative<LoginFailure>(failed));
  EXPECT_EQ(std::get<LoginFailure>(failed).message.number, 4060);
}

// The queries of the existing package (existing-package-tsql.md).
TEST_F(CdcProceduresTest, TheExistingPackagesQuestionsAreAnswered) {
  Track("t");
  Fill(3);
  EXPECT_EQ(
      One("SELECT CASE WHEN CAST(SERVERPROPERTY('ProductMajorVersion') AS int) >= 16 "
          "OR CAST(SERVERPROPERTY('EngineEdition') AS int) IN (5, 8) THEN 1 ELSE 0 "
          "END"),
      "1");
  EXPECT_EQ(One("SELECT CURRENT_TIMEZONE_ID()"), "UTC");
  EXPECT_EQ(
      One("SELECT wait_time_ms FROM sys.dm_exec_session_wait_stats WHERE session_id "
          "= @@SPID AND wait_type = 'ASYNC_NETWORK_IO'"),
      "0");
  EXPECT_EQ(
      Run("SELECT name, column_id, is_computed FROM sys.columns WHERE object_id = "
          "OBJECT_ID(QUOTENAME('dbo') + '.' + QUOTENAME('t'))"),
      (Rows{"id|1|0", "a|2|0"}));
  EXPECT_EQ(
      One("SELECT CASE WHEN sys.fn_cdc_get_min_lsn('dbo_t') > "
          "0x00000000000000000000 THEN HAS_PERMS_BY_NAME('cdc.[dbo_t_CT]', 'OBJECT', "
          "'SELECT') END"),
      "1");
  const Rows space = Run("EXEC sys.sp_spaceused @objname = '[dbo].[t]'");
  ASSERT_EQ(space.size(), 1u);
  EXPECT_EQ(space[0].substr(0, 4), "t|3 ");
  EXPECT_EQ(
      Run("SELECT CONVERT(varchar(22), MAX(start_lsn), 1) FROM (SELECT TOP (2) "
          "start_lsn FROM cdc.lsn_time_mapping WHERE start_lsn > CONVERT(binary(10), "
          "'0x00000000000000000000', 1) ORDER BY start_lsn) t")
          .size(),
      1u);
}

}  // namespace
}  // namespace mssql_cdc::sim

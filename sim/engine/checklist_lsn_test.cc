// Checklist lines 1 to 3 and 13: the mapping, the LSN functions, the table functions,
// times.

#include "sim/engine/checklist_fixture_test.h"

namespace mssql_cdc::sim {
namespace {

class Checklist01 : public ChecklistTest {};
class Checklist02 : public ChecklistTest {};
class Checklist03 : public ChecklistTest {};
class Checklist13 : public ChecklistTest {};

// Facts 1.1: one row for a transaction with change rows, none for one without; an
// enabling row of each instance with both times its creation.
TEST_F(Checklist01, MappingHasUserRowsAndEnablingRows) {
  Track("t");
  EXPECT_EQ(
      Run("SELECT m.tran_id, CASE WHEN m.start_lsn = c.start_lsn AND "
          "m.tran_begin_time = c.create_date AND m.tran_end_time = c.create_date "
          "THEN 1 END FROM cdc.lsn_time_mapping m CROSS JOIN cdc.change_tables c"),
      (Rows{"0x00|1"}));
  Run("BEGIN TRAN INSERT INTO dbo.t VALUES (1, 1, 'x') UPDATE dbo.t SET a = 2 COMMIT");
  Run("ALTER TABLE dbo.t ADD extra int NULL");
  Capture();
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00"),
            "1");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping"), "2");
}

// Facts 1.1 (dummy entry): idle rows, tran_id 0x00, at least 300 s after the newest.
TEST_F(Checklist01, IdleRowsComeFiveMinutesApart) {
  Track("t");
  const std::string first = MaxLsn();
  for (const auto& [step_ms, moves] : std::vector<std::pair<int, bool>>{
           {299'000, false}, {1'000, true}, {299'990, false}, {10, true}}) {
    const std::string before = MaxLsn();
    // A transaction that is not captured moves the log, as any work does.
    Run("CREATE TABLE dbo.work (x int) DROP TABLE dbo.work");
    engine_->AdvanceClock(step_ms);
    Capture();
    EXPECT_EQ(MaxLsn() > before, moves) << step_ms;
  }
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping WHERE tran_id = 0x00"), "3");
  EXPECT_GT(MaxLsn(), first);
}

// Facts 1.8: cleanup may leave the mapping empty, and max_lsn NULL.
TEST_F(Checklist01, CleanupCanEmptyTheMapping) {
  Track("t");
  Fill(3);
  Run("DECLARE @m binary(10) = sys.fn_cdc_increment_lsn(sys.fn_cdc_get_max_lsn()) "
      "EXEC sim.cleanup @low_water_mark = @m");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.lsn_time_mapping"), "0");
  EXPECT_EQ(One("SELECT COUNT(*) FROM cdc.dbo_t_CT"), "0");
  EXPECT_EQ(MaxLsn(), "NULL");
}

// Facts 1.6, S10.
TEST_F(Checklist02, MaxLsnIsNullBeforeTheFirstScan) {
  EXPECT_EQ(MaxLsn(), "NULL");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL");
  EXPECT_EQ(MaxLsn(), "NULL");
  Capture();
  EXPECT_NE(MaxLsn(), "NULL");
}

// S6: the new instance starts above what has been captured.
TEST_F(Checklist02, MaxLsnMayBeBelowMinLsnOfAFreshInstance) {
  Track("t");
  Run("EXEC sim.freeze_lsn");
  Run("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL, "
      "@capture_instance = N'fresh'");
  EXPECT_EQ(MinLsn("fresh"), kZero);
  Capture();
  EXPECT_LT(MaxLsn(), MinLsn("fresh"));
  Run("EXEC sim.unfreeze_lsn");
  EXPECT_GE(MaxLsn(), MinLsn("fresh"));
}

// Facts 1.6, 1.9, S12.
TEST_F(Checklist02, MinLsnIsZeroForUnknownForbiddenAndNull) {
  Track("t");
  EXPECT_EQ(MinLsn("nope"), kZero);
  EXPECT_EQ(MinLsn(""), kZero);
  EXPECT_EQ(One("SELECT sys.fn_cdc_get_min_lsn(NULL)"), kZero);
  MakeReader();
  const auto reader = LoginAs("r");
  const std::string ask = "SELECT sys.fn_cdc_get_min_lsn('dbo_t')";
  EXPECT_EQ(RunOn(*reader, ask), (Rows{kZero}));
  Run("GRANT SELECT ON dbo.t TO r");
  EXPECT_EQ(RunOn(*reader, ask), (Rows{MinLsn()}));
}

// Facts 1.6: closed at both ends, both filters in any case, no __$command_id.
TEST_F(Checklist03, IntervalIsClosedAndFiltersChooseImages) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x')");
  Run("UPDATE dbo.t SET a = 2");
  Run("DELETE FROM dbo.t");
  Capture();
  const Rows lsns =
      Run("SELECT DISTINCT __$start_lsn FROM cdc.dbo_t_CT ORDER BY __$start_lsn");
  ASSERT_EQ(lsns.size(), 3u);
  const auto ask = [&](const std::string& first, const std::string& last,
                       const std::string& filter) {
    return Run("SELECT __$operation, a FROM cdc.fn_cdc_get_all_changes_dbo_t(" + first +
               ", " + last + ", N'" + filter + "')");
  };
  EXPECT_EQ(ask(lsns[0], lsns[2], "all"), (Rows{"2|1", "4|2", "1|2"}));
  EXPECT_EQ(ask(lsns[0], lsns[1], "all update old"), (Rows{"2|1", "3|1", "4|2"}));
  EXPECT_EQ(ask(lsns[1], lsns[1], " ALL Update Old "), (Rows{"3|1", "4|2"}));
  TextSink sink;
  session_->Batch("SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(" + lsns[0] + ", " +
                      lsns[2] + ", 'all')",
                  sink);
  EXPECT_EQ(sink.names, (Rows{"__$start_lsn", "__$seqval", "__$operation",
                              "__$update_mask", "id", "a", "b"}));
}

// Facts 1.6: 313 for NULL ends, below min, above max, reversed; text of the function.
TEST_F(Checklist03, OutsideTheValidityIntervalIs313) {
  Track("t");
  Fill(2);
  const std::string min = "sys.fn_cdc_get_min_lsn('dbo_t')";
  const std::string max = "sys.fn_cdc_get_max_lsn()";
  const std::pair<std::string, std::string> kRanges[] = {
      {"NULL", max},
      {min, "NULL"},
      {"sys.fn_cdc_decrement_lsn(" + min + ")", max},
      {min, "sys.fn_cdc_increment_lsn(" + max + ")"},
      {max, min}};
  for (const auto& [first, last] : kRanges) {
    for (const std::string kind : {"all", "net"}) {
      const std::string sql = "SELECT * FROM cdc.fn_cdc_get_" + kind +
                              "_changes_dbo_t(" + first + ", " + last + ", 'all')";
      TextSink sink;
      session_->Batch(sql, sink);
      ASSERT_EQ(sink.errors.size(), 1u) << sql;
      EXPECT_EQ(sink.errors[0].number, 313) << sql;
      EXPECT_EQ(sink.errors[0].state, 3) << sql;
      EXPECT_EQ(
          sink.errors[0].text,
          "An insufficient number of arguments were supplied for the procedure or "
          "function cdc.fn_cdc_get_" +
              kind + "_changes_ ... .");
    }
  }
  EXPECT_EQ(ErrorOf("SELECT * FROM cdc.fn_cdc_get_all_changes_dbo_t(" + min + ", " +
                    max + ", 'some')"),
            313);
}

// Facts 1.6: one row for each key; 5 is insert or update.
TEST_F(Checklist03, NetChangesReduceToOneRowPerKey) {
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 1, 'x'), (2, 2, 'x')");
  Capture();
  const std::string first = MaxLsn();
  Run("UPDATE dbo.t SET a = 10 WHERE id = 1");
  Run("UPDATE dbo.t SET a = 11 WHERE id = 1");
  Run("DELETE FROM dbo.t WHERE id = 2");
  Capture();
  const auto ask = [&](const std::string& filter) {
    return Run(
        "SELECT __$operation, id, a, __$update_mask FROM "
        "cdc.fn_cdc_get_net_changes_dbo_t(sys.fn_cdc_increment_lsn(" +
        first + "), sys.fn_cdc_get_max_lsn(), '" + filter + "') ORDER BY id");
  };
  EXPECT_EQ(ask("all"), (Rows{"4|1|11|NULL", "1|2|2|NULL"}));
  EXPECT_EQ(ask("all with mask"), (Rows{"4|1|11|0x02", "1|2|2|NULL"}));
  EXPECT_EQ(ask("all with merge"), (Rows{"5|1|11|NULL", "1|2|2|NULL"}));
}

// Facts 1.1: many commits in one tick of 3.33 ms have one tran_end_time; 1.6: of equal
// times map_time_to_lsn takes the smallest or the largest LSN.
TEST_F(Checklist13, TiesOfDatetimeMapToTheirEnds) {
  Track("t");
  engine_->SetClock(kStartUs + 5'000);
  for (int i = 0; i < 3; ++i) {
    Run("INSERT INTO dbo.t VALUES (" + std::to_string(i) + ", 0, 'x')");
  }
  Capture();
  const Rows lsns = Run(
      "SELECT start_lsn FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY 1");
  ASSERT_EQ(lsns.size(), 3u);
  // 5 ms are rounded to 1/300 s: .007.
  EXPECT_EQ(Run("SELECT DISTINCT CONVERT(varchar(23), tran_end_time, 126) FROM "
                "cdc.lsn_time_mapping WHERE tran_id <> 0x00"),
            (Rows{"2026-05-28T20:26:40.007"}));
  const auto map = [&](const std::string& how) {
    return One("SELECT sys.fn_cdc_map_time_to_lsn('" + how +
               "', sys.fn_cdc_map_lsn_to_time(" + lsns[1] + "))");
  };
  EXPECT_EQ(map("largest less than or equal"), lsns[2]);
  EXPECT_EQ(map("smallest greater than or equal"), lsns[0]);
  EXPECT_EQ(map("smallest greater than"), "NULL");
}

// Facts 1.1: the mapping has the server's own clock, which may go back; LSNs do not.
TEST_F(Checklist13, ClockMayGoBackButLsnsDoNot) {
  Track("t");
  Fill(1);
  engine_->SetClock(kStartUs - 3'600'000'000);
  Run("INSERT INTO dbo.t VALUES (7, 0, 'x')");
  Capture();
  EXPECT_EQ(
      One("SELECT COUNT(*) FROM cdc.lsn_time_mapping a JOIN cdc.lsn_time_mapping b ON "
          "a.start_lsn < b.start_lsn AND a.tran_end_time > b.tran_end_time"),
      "2");
}

// S13: times are local, so the hour before the clock goes back comes twice.
TEST_F(Checklist13, TimesAreLocalAndAnHourComesTwice) {
  session_ = nullptr;
  ReopenWith([](EngineOptions& options) {
    options.time_zone = "W. Europe Standard Time";
    // 2026-10-25 00:30 UTC: half an hour before the end of daylight saving time.
    options.start_utc_us = 1'792'888'200'000'000;
  });
  Track("t");
  Run("INSERT INTO dbo.t VALUES (1, 0, 'x')");
  engine_->AdvanceClock(3'600'000);
  Run("INSERT INTO dbo.t VALUES (2, 0, 'x')");
  Capture();
  EXPECT_EQ(Run("SELECT CONVERT(varchar(19), tran_end_time, 126) FROM "
                "cdc.lsn_time_mapping WHERE tran_id <> 0x00 ORDER BY start_lsn"),
            (Rows{"2026-10-25T02:30:00", "2026-10-25T02:30:00"}));
  EXPECT_EQ(One("SELECT DATEPART(TZOFFSET, SYSDATETIMEOFFSET()), "
                "CURRENT_TIMEZONE_ID()"),
            "60|W. Europe Standard Time");
}

// CURRENT_TIMEZONE_ID is of 2022: before, an unknown function (195).
TEST_F(Checklist13, TheZonesNameIsKnownFrom2022On) {
  for (const int year : {2016, 2017, 2019, 2022}) {
    ReopenWith([year](EngineOptions& options) {
      options.version = VersionOfRelease(year).value();
    });
    EXPECT_EQ(ErrorOf("SELECT CURRENT_TIMEZONE_ID()"), year < 2022 ? 195 : 0) << year;
    EXPECT_EQ(ErrorOf("SELECT GREATEST(1, 2)"), year < 2022 ? 195 : 0) << year;
    EXPECT_EQ(ErrorOf("SELECT TRIM(' x ')"), year < 2017 ? 195 : 0) << year;
    EXPECT_NE(One("SELECT @@VERSION").find("SQL Server " + std::to_string(year)),
              std::string::npos);
    EXPECT_EQ(One("SELECT compatibility_level FROM sys.databases WHERE name = 'shop'"),
              year == 2016   ? "130"
              : year == 2017 ? "140"
              : year == 2019 ? "150"
                             : "160");
  }
  EXPECT_FALSE(VersionOfRelease(2008).has_value());
}

}  // namespace
}  // namespace mssql_cdc::sim

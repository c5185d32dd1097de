// The cures that docs/errors.md gives for a stream that cannot go on, followed to their
// end: bronze has each change once, and silver is the source.

#include <set>

#include "runtime/backfill.h"
#include "runtime/checkpoint.h"
#include "runtime/control_table.h"
#include "runtime/watched_lake_test.h"
#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using testing::UnorderedElementsAre;

class CuresTest : public RepairTest {
 protected:
  // Rows 1 (of the snapshot) and 2, read and applied.
  void Streamed() {
    Fresh();
    WithSilver();
    Commit("INSERT dbo.t VALUES (2, N'b')");
    RunWell();
    ApplyWell();
  }

  void LoseChanges() {
    Commit("INSERT dbo.t VALUES (3, N'c')");
    Pass(20);
    Pass(20);
    Commit("INSERT dbo.t VALUES (4, N'd')");
    Clean(10);
  }
  void RestoreTheSource(bool goes_past) {
    source_->Backup(directory_ + "/backup");
    for (int i = 5; i < 8; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'lost')");
    }
    RunWell();
    source_->engine().AdvanceClock(77'123);
    source_->Restore(directory_ + "/backup");
    Commit("INSERT dbo.t VALUES (3, N'c')");
    Commit("INSERT dbo.t VALUES (4, N'd')");
    for (int i = 0; goes_past && i < 9; ++i) {
      Commit("UPDATE dbo.t SET note = N'd" + std::string(i % 2, 'd') +
             "' WHERE id = 4");
    }
  }

  // docs/errors.md, "To begin anew".
  void BeginAnew() {
    config_.app_id = "anew";
    config_.checkpoint = directory_ + "/anew";
    config_.target = config_.target_location = "bronze_anew";
    config_.silver = config_.silver_location = "silver_anew";
  }
  // Goes on from where the table has rows 1 to 4.
  void ExpectCured() {
    RunWell();
    Commit("UPDATE dbo.t SET note = N'B' WHERE id = 2; DELETE dbo.t WHERE id = 3");
    RunWell();
    ApplyWell();
    EXPECT_TRUE(Compare().is_equal());
    EXPECT_THAT(lake::RowsOf(*lake_, *config_.silver, {{"id", "note"}}),
                UnorderedElementsAre("1|a", "2|B", "4|d"));
    const Lines changes =
        lake::RowsOf(*lake_, config_.target_location,
                     {{"id", "note", "_operation", "_start_lsn", "_snapshot"}});
    EXPECT_EQ(std::set<std::string>(changes.begin(), changes.end()).size(),
              changes.size());
    RunWell();
  }
};

TEST_F(CuresTest, MC3001ByANewSnapshotInTheSameTarget) {
  Streamed();
  LoseChanges();
  RunInto(ErrorId::kDataLoss);
  config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
  ExpectCured();
}

TEST_F(CuresTest, MC3001IntoTheOldTargetComesAgainAndAnewItDoesNot) {
  Streamed();
  LoseChanges();
  RunInto(ErrorId::kDataLoss);
  config_.app_id = "half";
  config_.checkpoint = directory_ + "/half";
  for (int run = 0; run < 2; ++run) RunInto(ErrorId::kDataLoss);
  BeginAnew();
  ExpectCured();
}

TEST_F(CuresTest, MC5003ByTheCheckpointThatBelongsToTheTable) {
  Streamed();
  Commit("INSERT dbo.t VALUES (3, N'c')");
  Commit("INSERT dbo.t VALUES (4, N'd')");
  const std::string kept = directory_ + "/kept";
  std::filesystem::rename(config_.checkpoint, kept);
  RunInto(ErrorId::kCheckpointRewound);
  std::filesystem::remove_all(config_.checkpoint);
  std::filesystem::rename(kept, config_.checkpoint);
  ExpectCured();
}

TEST_F(CuresTest, MC5003IntoTheOldTargetDoublesChangesAndAnewItDoesNot) {
  Streamed();
  Commit("INSERT dbo.t VALUES (3, N'c')");
  Commit("INSERT dbo.t VALUES (4, N'd')");
  RunWell();
  std::filesystem::remove_all(config_.checkpoint);
  RunInto(ErrorId::kCheckpointRewound);
  config_.app_id = "half";
  config_.checkpoint = directory_ + "/half";
  RunWell();
  const Lines rows = Rows();
  EXPECT_EQ(std::ranges::count(rows, "2 2 b"), 2);
  BeginAnew();
  ExpectCured();
}

TEST_F(CuresTest, MC3006AndMC3008Anew) {
  for (const bool goes_past : {false, true}) {
    SCOPED_TRACE(goes_past);
    const ErrorId id =
        goes_past ? ErrorId::kSourceForked : ErrorId::kPositionAheadOfServer;
    Streamed();
    RestoreTheSource(goes_past);
    RunInto(id);
    const Status compared = TryCompare();
    ASSERT_FALSE(compared.ok());
    EXPECT_EQ(compared.error().id(), id);
    BeginAnew();
    ExpectCured();
  }
}

// A database restored without its CDC, enabled anew: the run cannot go on, so a repair
// that waits for it says why.
TEST_F(CuresTest, ARepairThatTheStreamCanNeverReachSaysWhy) {
  Streamed();
  Commit("INSERT dbo.t VALUES (3, N'c')");
  RunWell();
  ApplyWell();
  Sql("EXEC sys.sp_cdc_disable_db");
  Sql("EXEC sys.sp_cdc_enable_db");
  Enable("t", "dbo_t");
  Commit("INSERT dbo.t VALUES (4, N'd')");
  Plant({"2"}, {});
  const runtime::ReconcileOutcome found = Compare();
  EXPECT_FALSE(found.is_equal());
  for (int call = 0; call < 2; ++call) {
    const Status status = Repair(found, *lake_);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kDataLoss) << status.error().Text();
    EXPECT_NE(status.error().Text().find("created again"), std::string::npos);
  }
  RunInto(ErrorId::kDataLoss);
  config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
  ExpectCured();
}

// The target went away, and its name is taken again, with and without its silver.
class TargetLostTest : public CuresTest {
 protected:
  void LoseTarget(bool with_silver) {
    Fresh();
    config_.granularity = pipeline::Granularity::kMinute;
    WithSilver();
    Pass(10);
    Commit("INSERT dbo.t VALUES (2, N'b')");
    RunWell();
    Advance();
    ApplyWell();
    until_us_ = Until("silver").value();
    EXPECT_EQ(Until("bronze"), until_us_);
    Commit("INSERT dbo.t VALUES (3, N'c')");
    Commit("INSERT dbo.t VALUES (4, N'd')");
    lake_->Drop("bronze");
    if (with_silver) lake_->Drop("silver");
    RunInto(ErrorId::kTargetLost);
    config_.app_id = "anew";
    config_.checkpoint = directory_ + "/anew";
  }
  void RunInto(ErrorId id) {
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), id);
  }
  void Advance() {
    const Status status =
        With(*lake_,
             [&](const runtime::SilverConfig& silver,
                 const runtime::ReconcileParts& parts) -> Status {
               TRY_ASSIGN(const runtime::CheckpointState state,
                          runtime::ReadCheckpoint(config_.checkpoint));
               runtime::ControlTable control(parts.lake, parts.clock, dice_, "control");
               TRY(control.Advance("bronze", state.position(), silver.granularity));
               return Unit{};
             });
    ASSERT_TRUE(status.ok()) << status.error().Text();
  }
  std::optional<std::int64_t> Until(const std::string& table) {
    ManualClock clock(0);
    runtime::ControlTable control(*lake_, clock, dice_, "control");
    return control.Read(table).value().finalized_until;
  }

  std::int64_t until_us_ = 0;
};

TEST_F(TargetLostTest, MC5007InTheOldTargetNothingIsCompleteBeforeTheSnapshotIs) {
  for (const bool with_silver : {true, false}) {
    SCOPED_TRACE(with_silver);
    LoseTarget(with_silver);
    int look_count = 0;
    runtime::WatchedLake watched(*lake_);
    // Before anything is in bronze silver is applied, as a run does beside its stream.
    watched.before = [&](std::string_view call, const std::string& location) -> Status {
      if (call != "Append" || location != "bronze" || look_count++ > 0) return Unit{};
      EXPECT_EQ(Until("bronze"), std::nullopt);
      ApplyWell();
      EXPECT_EQ(Until("bronze"), std::nullopt);
      // A silver that is there still has what it had.
      EXPECT_EQ(Until("silver"), with_silver ? std::nullopt : std::optional(until_us_));
      EXPECT_EQ(lake_->RowCount("silver").value(), with_silver ? 0 : 2);
      return Unit{};
    };
    const Status status = source_->RunOn(config_, watched);
    ASSERT_TRUE(status.ok()) << status.error().Text();
    EXPECT_EQ(look_count, 1);
    Advance();
    ApplyWell();
    EXPECT_GE(Until("silver"), until_us_);
    EXPECT_TRUE(Compare().is_equal());
    ExpectCured();
  }
}

TEST_F(TargetLostTest, MC5007InTheOldTargetByChunks) {
  LoseTarget(true);
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  RunWell();
  Advance();
  ApplyWell();
  EXPECT_EQ(Until("silver"), std::nullopt);
  const runtime::ReconcileOutcome found = Compare();
  EXPECT_TRUE(found.may_pass());
  EXPECT_TRUE(found.open_snapshot_lsn.has_value());
  const Status repaired = Repair(found, *lake_);
  ASSERT_FALSE(repaired.ok());
  EXPECT_EQ(repaired.error().id(), ErrorId::kRepairNotYet);
  EXPECT_EQ(repaired.error().Fact("snapshot"), found.open_snapshot_lsn);
  const Status status = source_->With(
      *lake_, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
        TRY(runtime::Backfill::Make(config_, {}, parts, nullptr)->Run());
        return Unit{};
      });
  ASSERT_TRUE(status.ok()) << status.error().Text();
  // Silver has not got it yet.
  EXPECT_TRUE(Compare().may_pass());
  ApplyWell();
  EXPECT_GE(Until("silver"), until_us_);
  EXPECT_EQ(Compare().open_snapshot_lsn, std::nullopt);
  ExpectCured();
}

}  // namespace
}  // namespace mssql_cdc

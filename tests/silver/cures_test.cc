// The cures that docs/errors.md gives for a stream that cannot go on, followed to their
// end: bronze has each change once, and silver is the source.

#include <set>

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

}  // namespace
}  // namespace mssql_cdc

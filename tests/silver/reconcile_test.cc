// What a comparison of silver with its source must not take for a difference, and what
// it must not overlook.

#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using ReconcileTest = RepairTest;

TEST_F(ReconcileTest, ASourceThatWasRestoredIsNoSourceOfThisSilver) {
  for (const bool goes_past : {false, true}) {
    SCOPED_TRACE(goes_past);
    Fresh();
    Made();
    source_->Backup(directory_ + "/backup");
    for (int i = 6; i < 9; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'lost')");
    }
    RunWell();
    ApplyWell();
    EXPECT_TRUE(Compare().is_equal());
    source_->engine().AdvanceClock(77'123);
    source_->Restore(directory_ + "/backup");
    for (int i = 6; goes_past && i < 13; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'other')");
    }
    Status status = TryCompare();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(),
              goes_past ? ErrorId::kSourceForked : ErrorId::kPositionAheadOfServer);
    if (goes_past) continue;
    // Where another program has the checkpoint, silver itself tells.
    config_.checkpoint = directory_ + "/another";
    status = TryCompare();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kPositionAheadOfServer);
  }
}

}  // namespace
}  // namespace mssql_cdc

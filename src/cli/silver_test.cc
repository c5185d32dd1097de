#include "cli/silver.h"

#include <gtest/gtest.h>

#include <string>

namespace mssql_cdc::cli {
namespace {

std::string Told(const runtime::ApplyOutcome& outcome) {
  runtime::StreamConfig config;
  config.app_id = "orders";
  config.silver = "silver.orders";
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  SilverProgress progress(config, output);
  testing::internal::CaptureStdout();
  progress.OnApplyDone(outcome);
  return testing::internal::GetCapturedStdout();
}

TEST(SilverProgress, BeforeThereIsAnythingToApplyItSaysWhatIsMissing) {
  runtime::ApplyOutcome outcome;
  outcome.bronze_found = true;
  EXPECT_EQ(Told(outcome),
            "orders: silver.orders: nothing to apply yet: bronze has no snapshot and "
            "no changes\n");
  outcome.position.open_snapshot = cdc::Lsn{{0, 0, 0, 0, 0, 0, 0, 0, 0, 7}};
  EXPECT_EQ(Told(outcome),
            "orders: silver.orders: nothing to apply yet: snapshot "
            "0x00000000000000000007 is open and has no chunks yet\n");
}

TEST(SilverProgress, AnApplyIsToldWithWhatItReached) {
  runtime::ApplyOutcome outcome;
  outcome.bronze_found = true;
  outcome.position.open_snapshot = cdc::Lsn{{0, 0, 0, 0, 0, 0, 0, 0, 0, 7}};
  outcome.window_row_count = 1200;
  outcome.added_count = 1200;
  EXPECT_EQ(Told(outcome),
            "orders: silver.orders: 1,200 rows applied (+1,200 -0), snapshot "
            "0x00000000000000000007 open in 0 ms, no period complete yet\n");
  outcome.position.open_snapshot.reset();
  outcome.position.applied = cdc::Lsn{{0, 0, 0, 0, 0, 0, 0, 0, 0, 9}};
  outcome.rebuilt = true;
  outcome.finalized_until_us = 1'780'272'000'000'000;
  EXPECT_EQ(Told(outcome),
            "orders: silver.orders: 1,200 rows applied (+1,200 -0), rebuilt through "
            "0x00000000000000000009 in 0 ms, complete until 2026-06-01T00:00:00.000\n");
}

}  // namespace
}  // namespace mssql_cdc::cli

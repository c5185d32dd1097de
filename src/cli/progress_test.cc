#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mssql_cdc::cli {
namespace {

TEST(Progress, AQuietPositionIsToldOnceAndAShortWaitNotAtAll) {
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  Progress progress("orders", output, clock);
  testing::internal::CaptureStdout();
  progress.OnIdle({.lsn = "0x0A", .commit_ts = "", .wait_ms = 20});
  progress.OnIdle({.lsn = "0x0A", .commit_ts = "", .wait_ms = 2000});
  progress.OnIdle({.lsn = "0x0A", .commit_ts = "", .wait_ms = 2000});
  progress.OnIdle({.lsn = "0x0B", .commit_ts = "2026-01-01", .wait_ms = 2000});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "orders: up to date at 0x0A\norders: up to date at 0x0B (2026-01-01)\n");
}

TEST(Progress, SnapshotProgressIsToldOnceASecond) {
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  Progress progress("orders", output, clock);
  testing::internal::CaptureStdout();
  for (int i = 0; i < 30; ++i) {
    clock.AdvanceMs(100);
    progress.OnSnapshotProgress({.row_count = i, .size_bytes = 0});
  }
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace mssql_cdc::cli

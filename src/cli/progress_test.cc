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

TEST(Progress, ARunThatEndsSaysWhatItDid) {
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  Progress progress("orders", output, clock);
  testing::internal::CaptureStdout();
  progress.OnRunDone({.lsn = "0x0A", .commit_ts = "2026-01-01", .batch_count = 0});
  progress.OnRunDone({.lsn = "0x0A", .commit_ts = "", .batch_count = 1});
  progress.OnRunDone({.lsn = "0x0B", .commit_ts = "", .batch_count = 2});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "orders: nothing new: up to date at 0x0A (2026-01-01)\n"
            "orders: done: 1 batch, up to date at 0x0A\n"
            "orders: done: 2 batches, up to date at 0x0B\n");
}

TEST(Progress, ARunThatWaitsForTheServerDoesNotSayUpToDate) {
  ManualClock clock(0);
  Output output(LogForm::kText, clock);
  Progress progress("orders", output, clock);
  testing::internal::CaptureStdout();
  progress.OnRunDone(
      {.lsn = "0x0A", .commit_ts = "", .batch_count = 0, .stall = "it is ahead"});
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "orders: nothing read: waiting at 0x0A: it is ahead\n");
}

TEST(Progress, RangesAreCountedOnceOneIsThrough) {
  ManualClock clock(5'000'000'000);
  Output output(LogForm::kText, clock);
  Progress progress("orders", output, clock);
  testing::internal::CaptureStdout();
  runtime::SnapshotProgress so_far{
      .row_count = 3000, .size_bytes = 9000, .range_count = 4, .elapsed_ms = 2000};
  clock.AdvanceMs(2000);
  progress.OnSnapshotProgress(so_far);
  so_far.range_done_count = 1;
  clock.AdvanceMs(2000);
  progress.OnSnapshotProgress(so_far);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "orders: snapshot: 3,000 rows, 9.0 kB, 1,500 rows/s, 2.0 s\n"
            "orders: snapshot: 3,000 rows, 9.0 kB, 1,500 rows/s, 2.0 s, 1 of 4 ranges "
            "done\n");
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

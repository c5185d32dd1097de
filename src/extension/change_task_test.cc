#include "extension/change_task.h"

#include <gtest/gtest.h>

#include "extension/stream_driver.h"

namespace mssql_cdc::extension {
namespace {

cdc::Lsn LsnOf(const char* text) { return cdc::Lsn::Parse(text).value(); }

ChangeTask Everything() {
  ChangeTask task;
  reader::ChangePlan& plan = task.plan;
  plan.capture_instance = "dbo_Café";
  plan.columns = {{"id", {columns::Kind::kInt32}},
                  {"odd `name`, too", {columns::Kind::kDecimal128, 18, 2}},
                  {"at", {columns::Kind::kTimestampUtc}}};
  plan.reads = {{"ID", columns::Type{columns::Kind::kInt16}},
                {std::nullopt, std::nullopt},
                {"at", std::nullopt}};
  plan.command_id = false;
  plan.window = {LsnOf("0x1F"), LsnOf("0x2F")};
  plan.clock = {cdc::CommitClock::Kind::kNamedZone, -180,
                "E. South America Standard Time"};
  plan.fail_on_data_loss = false;
  task.declared = {{"id", {columns::Kind::kInt64}}};
  return task;
}

TEST(ChangeTask, ComesBackAsItWas) {
  const ChangeTask sent = Everything();
  const Result<ChangeTask> got = ChangeTask::Parse(sent.Json());
  ASSERT_TRUE(got.ok());
  const reader::ChangePlan& plan = got.value().plan;
  EXPECT_EQ(plan.capture_instance, sent.plan.capture_instance);
  EXPECT_EQ(plan.columns, sent.plan.columns);
  EXPECT_EQ(plan.reads, sent.plan.reads);
  EXPECT_EQ(plan.command_id, sent.plan.command_id);
  EXPECT_EQ(plan.window, sent.plan.window);
  EXPECT_EQ(plan.clock, sent.plan.clock);
  EXPECT_EQ(plan.fail_on_data_loss, sent.plan.fail_on_data_loss);
  EXPECT_EQ(got.value().declared, sent.declared);
}

TEST(ChangeTask, AnotherTextIsAnErrorOfOurs) {
  for (const char* text : {"", "[]", "{}", R"({"after": 1, "through": "0x02"})"}) {
    const Result<ChangeTask> got = ChangeTask::Parse(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().id(), ErrorId::kInternalError);
  }
}

ReadReport Report(const char* after, const char* through, std::int64_t row_count) {
  ReadReport report;
  report.capture_instance = "dbo_orders";
  report.window = {LsnOf(after), LsnOf(through)};
  report.counts.row_count = row_count;
  if (row_count == 0) return report;
  report.counts.deletes = 1;
  report.counts.inserts = row_count - 1;
  report.counts.min_lsn = LsnOf(after).Next();
  report.counts.max_lsn = LsnOf(through);
  report.counts.min_commit_us = 1'000 * row_count;
  report.counts.max_commit_us = 2'000 * row_count;
  return report;
}

TEST(ReadReport, ComesBackAsItWas) {
  ReadReport sent = Report("0x10", "0x20", 7);
  sent.counts.size_bytes = 12345;
  sent.counts.read_ns = 678;
  sent.after =
      reader::AfterRead{LsnOf("0x05"), 99, cdc::Offset{LsnOf("0x30"), 5}, 12, true};
  const Result<ReadReport> got = ReadReport::Parse(sent.Json());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().Json(), sent.Json());
  ASSERT_TRUE(got.value().after.has_value());
  EXPECT_TRUE(got.value().after->may_lack_rows);
  EXPECT_EQ(got.value().after->newest, sent.after->newest);
}

TEST(SumCounts, LeavesOutRangesWithoutRows) {
  const pipeline::BatchCounts sum =
      SumCounts({Report("0x00", "0x10", 0), Report("0x10", "0x20", 3),
                 Report("0x20", "0x30", 2), Report("0x30", "0x40", 0)});
  EXPECT_EQ(sum.rows, 5);
  EXPECT_EQ(sum.deletes, 2);
  EXPECT_EQ(sum.inserts, 3);
  EXPECT_EQ(sum.min_lsn, LsnOf("0x11"));
  EXPECT_EQ(sum.max_lsn, LsnOf("0x30"));
  EXPECT_EQ(sum.min_commit_us, 2'000);
  EXPECT_EQ(sum.max_commit_us, 6'000);
}

TEST(BatchSummary, ComesBackAsItWas) {
  BatchSummary sent{{LsnOf("0x10"), 5}, {LsnOf("0x20"), std::nullopt}, 1.5, 42, {}, {}};
  sent.windows = {{LsnOf("0x10"), LsnOf("0x18")}, {LsnOf("0x18"), LsnOf("0x20")}};
  sent.note.warnings = {"column x is computed"};
  const Result<BatchSummary> got = BatchSummary::Parse(sent.Json());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got.value().Json(), sent.Json());
  EXPECT_EQ(got.value().windows, sent.windows);
  EXPECT_EQ(got.value().note, sent.note);
}

}  // namespace
}  // namespace mssql_cdc::extension

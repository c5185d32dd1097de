#include <gtest/gtest.h>

#include "pipeline/bootstrap.h"
#include "pipeline/sink.h"

namespace mssql_cdc::pipeline {
namespace {

cdc::Offset At(const char* lsn) { return {cdc::Lsn::Parse(lsn).value(), std::nullopt}; }

TEST(PlanSink, WhatTheTablesLack) {
  const std::optional<std::int64_t> none;
  const struct {
    const char* when;
    SinkFacts facts;               // batch_id, bronze_txn, facts_txn, has_facts_table
    std::optional<SinkWork> work;  // nullopt: CheckpointRewound.
  } kRows[] = {
      {"first batch", {0, none, none, true}, SinkWork::kEverything},
      {"next batch", {5, 4, 4, true}, SinkWork::kEverything},
      {"next after batches without rows", {5, 1, 4, true}, SinkWork::kEverything},
      {"killed between bronze and facts", {5, 5, 4, true}, SinkWork::kFacts},
      {"killed between facts and checkpoint", {5, 5, 5, true}, SinkWork::kNothing},
      {"the same, without rows", {5, 4, 5, true}, SinkWork::kNothing},
      {"first batch, killed after bronze", {0, 0, none, true}, SinkWork::kFacts},
      {"no facts table, new", {5, 4, none, false}, SinkWork::kEverything},
      {"no facts table, replay", {5, 5, none, false}, SinkWork::kNothing},
      {"a facts table of old that is not used",
       {5, 4, 9, false},
       SinkWork::kEverything},
      {"rewound, by facts", {5, none, 6, true}, std::nullopt},
      {"rewound, by bronze", {5, 6, 4, true}, std::nullopt},
      {"rewound, by bronze alone", {0, 6, none, false}, std::nullopt},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    const Result<SinkWork> work = PlanSink(row.facts);
    ASSERT_EQ(work.ok(), row.work.has_value());
    if (work.ok()) {
      EXPECT_EQ(work.value(), *row.work);
    } else {
      EXPECT_EQ(work.error().id(), ErrorId::kCheckpointRewound);
    }
  }
}

SnapshotEvent Event(const char* event, const char* app_id, const char* lsn,
                    std::optional<std::int64_t> rows, const char* detail) {
  return {event, app_id, cdc::Lsn::Parse(lsn).value(), std::nullopt, rows, detail};
}

struct BootstrapRow {
  const char* when;
  std::optional<cdc::Offset> in_target;
  std::vector<SnapshotEvent> events;
  std::optional<BootstrapPlan> plan;  // nullopt: SnapshotModeLocked.
};

void ExpectPlans(const std::vector<BootstrapRow>& rows) {
  for (const BootstrapRow& row : rows) {
    SCOPED_TRACE(row.when);
    const Result<BootstrapPlan> plan = PlanBootstrap({"a", row.in_target, row.events});
    ASSERT_EQ(plan.ok(), row.plan.has_value());
    if (plan.ok()) {
      EXPECT_EQ(plan.value(), *row.plan);
    } else {
      EXPECT_EQ(plan.error().id(), ErrorId::kSnapshotModeLocked);
    }
  }
}

TEST(PlanBootstrap, FindsWhatAWholeSnapshotLeft) {
  const char* kFull = R"({"mode": "full"})";
  ExpectPlans({
      {"nothing yet", std::nullopt, {}, TakeSnapshot{}},
      {"killed while it was read",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kFull)},
       TakeSnapshot{}},
      {"killed before its row",
       At("10"),
       {Event("snapshot_open", "a", "10", 0, kFull)},
       StartFromTarget{At("10")}},
      {"complete",
       At("10"),
       {Event("bootstrap", "a", "10", 30, "")},
       StartFromTarget{At("10")}},
      {"of an empty table",
       std::nullopt,
       {Event("bootstrap", "a", "10", 0, "")},
       StartFromFacts{At("10")}},
      {"target was dropped since",
       std::nullopt,
       {Event("bootstrap", "a", "10", 30, "")},
       TakeSnapshot{}},
      {"of another stream",
       std::nullopt,
       {Event("bootstrap", "b", "10", 0, "")},
       TakeSnapshot{}},
  });
}

TEST(PlanBootstrap, LeavesChunkedSnapshotsToTheirOwnMode) {
  const char* kChunked = R"({"mode": "chunked"})";
  ExpectPlans({
      {"a chunked one is open",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kChunked)},
       std::nullopt},
      {"a chunked one without a mode is open",
       At("05"),
       {Event("snapshot_open", "a.g1", "10", 0, "{}")},
       std::nullopt},
      {"a chunked one is complete",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kChunked),
        Event("bootstrap", "a", "10", 30, "{}")},
       StartFromFacts{At("10")}},
      {"another stream's chunked one is open",
       std::nullopt,
       {Event("snapshot_open", "ab", "10", 0, kChunked)},
       TakeSnapshot{}},
  });
}

TEST(IsOfFamily, GenerationsAndNothingElse) {
  EXPECT_TRUE(IsOfFamily("orders-v1", "orders-v1"));
  EXPECT_TRUE(IsOfFamily("orders-v1.g12", "orders-v1"));
  for (const char* other : {"orders-v11", "orders-v1.g", "orders-v1.g1x",
                            "orders-v1.h1", "orders-v", "x.orders-v1"}) {
    EXPECT_FALSE(IsOfFamily(other, "orders-v1")) << other;
  }
}

}  // namespace
}  // namespace mssql_cdc::pipeline

#include <gtest/gtest.h>

#include "pipeline/bootstrap.h"
#include "pipeline/recovery.h"
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
  BootstrapPlan full;
  BootstrapPlan chunked;
};

void ExpectPlans(const std::vector<BootstrapRow>& rows) {
  for (const BootstrapRow& row : rows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanBootstrap({"a", SnapshotMode::kFull, row.in_target, row.events}),
              row.full);
    EXPECT_EQ(PlanBootstrap({"a", SnapshotMode::kChunked, row.in_target, row.events}),
              row.chunked);
  }
}

TEST(PlanBootstrap, FindsWhatAWholeSnapshotLeft) {
  const char* kFull = R"({"mode": "full"})";
  ExpectPlans({
      {"nothing yet", std::nullopt, {}, TakeSnapshot{}, OpenChunked{}},
      {"killed while it was read",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kFull)},
       TakeSnapshot{},
       OpenChunked{}},
      {"killed before its row",
       At("10"),
       {Event("snapshot_open", "a", "10", 0, kFull)},
       StartFromTarget{At("10")},
       StartFromTarget{At("10")}},
      {"complete",
       At("10"),
       {Event("bootstrap", "a", "10", 30, "")},
       StartFromTarget{At("10")},
       StartFromTarget{At("10")}},
      {"of an empty table",
       std::nullopt,
       {Event("bootstrap", "a", "10", 0, "")},
       StartFromFacts{At("10")},
       StartFromFacts{At("10")}},
      // As releases of the existing package leave it: every rerun opened another.
      {"of an empty table, opened again and again",
       std::nullopt,
       {Event("bootstrap", "a", "10", 0, ""),
        Event("snapshot_open", "a", "10", 0, kFull),
        Event("snapshot_open", "a", "20", 0, kFull)},
       StartFromFacts{At("10")},
       StartFromFacts{At("10")}},
      {"target was dropped since",
       std::nullopt,
       {Event("bootstrap", "a", "10", 30, "")},
       TakeSnapshot{},
       OpenChunked{}},
      {"of another stream",
       std::nullopt,
       {Event("bootstrap", "b", "10", 0, "")},
       TakeSnapshot{},
       OpenChunked{}},
  });
}

TEST(PlanBootstrap, GoesOnFromAChunkedSnapshotOfItsOwn) {
  const char* kChunked = R"({"mode": "chunked"})";
  ExpectPlans({
      {"it is open",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kChunked)},
       StartFromFacts{At("10")},
       StartFromFacts{At("10")}},
      {"it is complete",
       std::nullopt,
       {Event("snapshot_open", "a", "10", 0, kChunked),
        Event("bootstrap", "a", "10", 30, "{}")},
       StartFromFacts{At("10")},
       StartFromFacts{At("10")}},
      {"another generation's",
       std::nullopt,
       {Event("snapshot_open", "a.g1", "10", 0, kChunked)},
       TakeSnapshot{},
       OpenChunked{}},
      {"another stream's",
       std::nullopt,
       {Event("snapshot_open", "ab", "10", 0, kChunked)},
       TakeSnapshot{},
       OpenChunked{}},
  });
}

cdc::Lsn L(const char* text) { return At(text).lsn; }

// A stream that read up to 10 while cleanup went up to 20; the server is at 30.
RecoveryFacts Behind() {
  RecoveryFacts facts;
  facts.app_id = "a";
  facts.capture_instance = "dbo_t";
  facts.position = At("10");
  facts.server_max = L("30");
  facts.instances = {{"dbo", "t", "dbo_t", L("20"), 0, {}}};
  facts.now_us = std::int64_t{100} * 86'400'000'000;
  return facts;
}

TEST(PlanRecovery, OnlyWhatIsLostIsRecovered) {
  EXPECT_EQ(PlanRecovery(Behind()).value(), (Recovery{At("10"), L("20"), 1, {}}));
  RecoveryFacts just_in_time = Behind();
  just_in_time.position = At("1F");
  EXPECT_EQ(PlanRecovery(just_in_time).value(), std::nullopt);
  RecoveryFacts nothing_new = Behind();
  nothing_new.server_max = L("10");
  EXPECT_EQ(PlanRecovery(nothing_new).value(), std::nullopt);
  RecoveryFacts fresh = Behind();
  fresh.position.reset();
  fresh.in_target = At("12");
  EXPECT_EQ(PlanRecovery(fresh).value(), std::nullopt);
  fresh.bootstrap = true;
  EXPECT_EQ(PlanRecovery(fresh).value(), (Recovery{At("12"), L("20"), 1, {}}));
  // The newer instance holds what is above it.
  RecoveryFacts two = Behind();
  two.instances.push_back({"dbo", "t", "dbo_t2", L("25"), 1, {}});
  two.position = At("26");
  EXPECT_EQ(PlanRecovery(two).value(), std::nullopt);
}

TEST(PlanRecovery, GoesOnWithWhatAnEarlierAttemptLeft) {
  RecoveryFacts facts = Behind();
  facts.state.recovering = At("0C");
  facts.in_target = At("28");
  EXPECT_EQ(PlanRecovery(facts).value(), (Recovery{At("0C"), L("20"), 1, At("28")}));
  facts.in_target = At("15");  // Cleanup has passed it, too.
  EXPECT_EQ(PlanRecovery(facts).value(), (Recovery{At("0C"), L("20"), 1, {}}));

  const char* kChunked = R"({"mode": "chunked", "generation": 1})";
  RecoveryFacts chunked = Behind();
  chunked.mode = SnapshotMode::kChunked;
  chunked.events = {Event("snapshot_open", "a.g1", "25", 0, kChunked)};
  EXPECT_EQ(PlanRecovery(chunked).value(), (Recovery{At("10"), L("20"), 1, At("25")}));
  // One that was lost while it was open is left behind with its generation.
  chunked.events = {Event("snapshot_open", "a.g1", "15", 0, kChunked)};
  EXPECT_EQ(PlanRecovery(chunked).value(), (Recovery{At("10"), L("20"), 2, {}}));
}

TEST(PlanRecovery, NotTwiceWithinTheInterval) {
  const auto day = [](std::int64_t n) { return n * std::int64_t{86'400'000'000}; };
  RecoveryFacts facts = Behind();
  facts.state.generation = 1;
  facts.state.start = At("05");
  facts.state.at_us = day(94);
  const auto soon = PlanRecovery(facts);
  ASSERT_FALSE(soon.ok());
  EXPECT_EQ(soon.error().id(), ErrorId::kDataLoss);
  facts.interval_days = 5.5;
  EXPECT_EQ(PlanRecovery(facts).value()->generation, 2);
  facts.interval_days = 7;
  facts.state.at_us = day(92);
  EXPECT_EQ(PlanRecovery(facts).value()->generation, 2);
  facts.state.failed_at_us = day(99);
  EXPECT_FALSE(PlanRecovery(facts).ok());
  // What is taken already is used at once.
  facts.in_target = At("28");
  EXPECT_EQ(PlanRecovery(facts).value()->reuse, At("28"));
}

// The three shapes that the existing package writes: existing-package-0.8.0, seen/.
TEST(GenerationState, ReadsAndWritesWhatTheExistingPackageWrites) {
  for (const char* text :
       {R"({"generation": 0, "recovering": {"lsn": "0x0000002A000001000091", )"
        R"("commit_ts": "2026-11-20T10:00:00.000"}})",
        R"({"generation": 1, "snapshot_lsn": "0x0000002A0000010000B1", )"
        R"("commit_ts": "2026-11-20T10:20:00.000", "at": "2026-11-29T18:25:07+00:00"})",
        R"({"generation": 1, "snapshot_lsn": "0x0000002A0000010000B1", )"
        R"("commit_ts": "", "at": "2026-11-29T18:25:07+00:00", "recovering": )"
        R"({"lsn": "0x0000002A0000010000C1", "commit_ts": ""}, )"
        R"("failed_at": "2026-11-29T18:26:07+00:00"})"}) {
    const auto state = GenerationState::Parse(text);
    ASSERT_TRUE(state.ok()) << text;
    EXPECT_EQ(state.value().Json(), text);
  }
  for (const char* wrong : {"", "[]", "{}", R"({"generation": -1})",
                            R"({"generation": "1"})", R"({"generation": 1})"}) {
    const auto state = GenerationState::Parse(wrong);
    ASSERT_FALSE(state.ok()) << wrong;
    EXPECT_EQ(state.error().id(), ErrorId::kCheckpointUnreadable);
  }
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

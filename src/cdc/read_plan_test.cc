#include "cdc/read_plan.h"

#include <gtest/gtest.h>

#include <functional>

#include "cdc/capture_health.h"
#include "cdc/source_memory.h"
#include "cdc/tiles.h"
#include "cdc/type_fit.h"

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;
using columns::Type;

constexpr Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

CapturedColumn Column(std::string name, std::int64_t id, std::string type) {
  return {std::move(name), id, std::move(type), {}, {}};
}

InstanceFacts Instance(std::string name, std::int64_t created_us, std::uint8_t first,
                       std::vector<CapturedColumn> captured) {
  InstanceFacts facts;
  facts.columns.instance = {"dbo", "t", std::move(name), L(first), created_us, {}};
  facts.columns.captured = std::move(captured);
  return facts;
}

// One instance from 1 on with columns id and note, a batch above 5 up to 9.
ReadFacts OneInstance() {
  ReadFacts facts;
  facts.window = {L(5), L(9)};
  facts.after_commit_us = 5'000'000;
  facts.instances = {
      Instance("v1", 1, 1, {Column("id", 1, "int"), Column("note", 2, "nvarchar")})};
  facts.fields = {{"id", {Kind::kInt32}, true, ""}, {"note", {Kind::kUtf8}, true, ""}};
  return facts;
}

// The same with a second one from 8 on.
ReadFacts TwoInstances() {
  ReadFacts facts = OneInstance();
  facts.instances.push_back(
      Instance("v2", 2, 8, {Column("id", 1, "int"), Column("note", 2, "nvarchar")}));
  facts.instances[1].is_checked = false;
  return facts;
}

// "v1 (5, 7]; v2 (7, 9] | schema_change v1@6: ALTER".
std::string TextOf(const ReadFacts& facts, const ReadPlan& plan) {
  std::string text;
  for (const ReadPiece& piece : plan.pieces) {
    if (!text.empty()) text += "; ";
    text += facts.instances[piece.instance_index].columns.instance.name + " (" +
            std::to_string(piece.window.after.bytes[9]) + ", " +
            std::to_string(piece.window.through.bytes[9]) + "]";
  }
  for (const SourceEvent& event : plan.events) {
    text += std::string(" | ") + NameOf(event.kind) + " " + event.capture_instance +
            "@" + std::to_string(event.at.lsn.bytes[9]) + ": " + event.detail;
  }
  return text;
}

struct ReadCase {
  const char* when;
  ReadFacts (*facts)();
  std::function<void(ReadFacts&)> change;
  const char* plan;
};
const ReadCase kReadCases[] = {
    {"one instance", OneInstance, [](ReadFacts&) {}, "v1 (5, 9]"},
    {"cleanup stopped just short", OneInstance,
     [](ReadFacts& facts) { facts.instances[0].columns.instance.start_lsn = L(6); },
     "v1 (5, 9]"},
    {"a newer instance from 8 on", TwoInstances, [](ReadFacts&) {},
     "v1 (5, 7]; v2 (7, 9] | capture_instance_switched v2@8: v1 -> v2"},
    {"one that capture has not reached", TwoInstances,
     [](ReadFacts& facts) { facts.instances[1].columns.instance.start_lsn.reset(); },
     "v1 (5, 9]"},
    {"a stream that begins above its first LSN switches nothing", TwoInstances,
     [](ReadFacts& facts) { facts.window = {L(8), L(9)}; }, "v2 (8, 9]"},
    {"the newer lacks a column", TwoInstances,
     [](ReadFacts& facts) { facts.instances[1].columns.captured.pop_back(); },
     "v1 (5, 7]; v2 (7, 9] | capture_instance_switched v2@8: v1 -> v2; no longer "
     "captured, read as NULL: note"},
    {"both of one first LSN: the newer is read", TwoInstances,
     [](ReadFacts& facts) {
       for (InstanceFacts& each : facts.instances) {
         each.columns.instance.start_lsn = L(4);
       }
     },
     "v2 (5, 9]"},
    {"DDL inside the batch that the types hold", OneInstance,
     [](ReadFacts& facts) { facts.instances[0].ddl = {{L(6), "ALTER x"}}; },
     "v1 (5, 9] | schema_change v1@6: ALTER x"},
    {"DDL exactly at the batch's first and last LSN, and just outside", OneInstance,
     [](ReadFacts& facts) {
       facts.instances[0].ddl = {
           {L(5), "before"}, {L(6), "first"}, {L(9), "last"}, {L(10), "after"}};
     },
     "v1 (5, 9] | schema_change v1@6: first | schema_change v1@9: last"},
    {"DDL that both instances record is told once", TwoInstances,
     [](ReadFacts& facts) {
       facts.instances[0].ddl = {{L(9), "ALTER x"}};
       facts.instances[1].ddl = {{L(9), "ALTER x"}};
     },
     "v1 (5, 7]; v2 (7, 9] | schema_change v1@9: ALTER x | "
     "capture_instance_switched v2@8: v1 -> v2"},
    {"a column was narrowed: the written type holds it", OneInstance,
     [](ReadFacts& facts) {
       facts.instances[0].ddl = {{L(6), "ALTER x"}};
       facts.instances[0].columns.captured[0].type_name = "smallint";
     },
     "v1 (5, 9] | schema_change v1@6: ALTER x"},
    {"declared columns may leave new ones out", TwoInstances,
     [](ReadFacts& facts) {
       facts.fields_are_declared = true;
       facts.instances[1].columns.captured.push_back(Column("extra", 3, "int"));
     },
     "v1 (5, 7]; v2 (7, 9] | capture_instance_switched v2@8: v1 -> v2"},
    {"a gap that is skipped", OneInstance,
     [](ReadFacts& facts) {
       facts.fail_on_data_loss = false;
       facts.instances[0].columns.instance.start_lsn = L(8);
     },
     "v1 (7, 9] | data_skipped v1@8: {\"from\": \"0x00000001000000020006\", "
     "\"to\": \"0x00000001000000020008\", \"certain\": true}"},
    {"a gap beyond the batch", OneInstance,
     [](ReadFacts& facts) {
       facts.fail_on_data_loss = false;
       facts.instances[0].columns.instance.start_lsn = L(10);
     },
     " | data_skipped v1@10: {\"from\": \"0x00000001000000020006\", "
     "\"to\": \"0x0000000100000002000A\", \"certain\": true}"},
};

TEST(PlanReads, WhatIsReadAndWhatIsTold) {
  for (const ReadCase& row : kReadCases) {
    SCOPED_TRACE(row.when);
    ReadFacts facts = row.facts();
    row.change(facts);
    const Result<ReadPlan> plan = PlanReads(facts);
    ASSERT_TRUE(plan.ok()) << plan.error().Text();
    EXPECT_EQ(TextOf(facts, plan.value()), row.plan);
  }
}

TEST(PlanReads, ASkipNamesTheLastChangeThatIsLost) {
  const struct {
    std::uint8_t first_readable;
    const char* said;
  } kRows[] = {
      {8, "changes from 0x00000001000000020006 through 0x00000001000000020007"},
      {30, "changes from 0x00000001000000020006 through 0x00000001000000020009"}};
  for (const auto& row : kRows) {
    ReadFacts facts = OneInstance();
    facts.fail_on_data_loss = false;
    facts.instances[0].columns.instance.start_lsn = L(row.first_readable);
    const Result<ReadPlan> plan = PlanReads(facts);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan.value().warnings.size(), 1u);
    EXPECT_TRUE(plan.value().warnings[0].starts_with(row.said))
        << plan.value().warnings[0];
  }
}

const auto kAlter = [](const char* type) {
  return [type](ReadFacts& facts) {
    facts.instances[0].ddl = {{L(6), "ALTER TABLE t"}};
    facts.instances[0].columns.captured[0].type_name = type;
  };
};
const auto kGap = [](std::optional<SourceMemory> memory) {
  return [memory](ReadFacts& facts) {
    facts.memory = memory;
    facts.instances[0].columns.instance.start_lsn = L(7);
  };
};
const auto kToBigint = kAlter("bigint");
const auto kToGeography = kAlter("geography");
const auto kGapUnknown = kGap({});
const auto kGapKnown = kGap(SourceMemory{"d", "dbo", "t", {{"v1", 1}}});
const auto kGapRemade = kGap(SourceMemory{"d", "dbo", "t", {{"v1", 0}}});
const auto kGapOfGone = kGap(SourceMemory{"d", "dbo", "t", {{"v0", 0}, {"v1", 1}}});

struct StopCase {
  const char* when;
  ReadFacts (*facts)();
  std::function<void(ReadFacts&)> change;
  ErrorId error;
  const char* fact;
  const char* value;
};
const StopCase kStopCases[] = {
    {"a type that the written one does not hold", OneInstance, kToBigint,
     ErrorId::kSchemaChanged, "changes", "id long (read as integer)"},
    {"a type that cannot be read", OneInstance, kToGeography, ErrorId::kSchemaChanged,
     "changes", "id unreadable (read as integer)"},
    {"policy fail", OneInstance,
     [](ReadFacts& facts) {
       facts.policy = SchemaChangePolicy::kFail;
       facts.instances[0].ddl = {{L(7), "harmless"}, {L(8), "too"}};
     },
     ErrorId::kSchemaChanged, "ddl", "harmless"},
    {"a newer instance with a new column", TwoInstances,
     [](ReadFacts& facts) {
       facts.instances[1].columns.captured.push_back(Column("extra", 3, "int"));
     },
     ErrorId::kSchemaChanged, "changes", "extra int (new)"},
    {"a newer instance with a wider type", TwoInstances,
     [](ReadFacts& facts) {
       facts.instances[1].columns.captured[0].type_name = "bigint";
     },
     ErrorId::kSchemaChanged, "changes", "id long (read as integer)"},
    {"a skip that lands on the newer instance checks it", TwoInstances,
     [](ReadFacts& facts) {
       facts.fail_on_data_loss = false;
       facts.instances[0].columns.instance.start_lsn = L(9);
       facts.instances[1].columns.captured.push_back(Column("extra", 3, "int"));
     },
     ErrorId::kSchemaChanged, "first_lsn", "0x00000001000000020008"},
    {"cleanup went one too far", OneInstance, kGapUnknown, ErrorId::kDataLoss, "cause",
     "purged by CDC cleanup"},
    {"the same, of an instance that is known", OneInstance, kGapKnown,
     ErrorId::kDataLoss, "cause", "purged by CDC cleanup"},
    {"the instance was made anew", OneInstance, kGapRemade, ErrorId::kDataLoss, "cause",
     "capture instance v1 was dropped and created again"},
    {"what held them was disabled", OneInstance, kGapOfGone, ErrorId::kDataLoss,
     "cause",
     "held only by capture instance v0, which was disabled before they were read"},
    {"nothing is remembered, but it is younger than the position", OneInstance,
     [](ReadFacts& facts) {
       facts.instances[0].columns.instance.start_lsn = L(7);
       facts.instances[0].columns.instance.created_us = 6'000'000;
     },
     ErrorId::kDataLoss, "cause",
     "capture instance v1 was created after the last commit that was read"},
    {"capture has not reached the only instance", OneInstance,
     [](ReadFacts& facts) { facts.instances[0].columns.instance.start_lsn.reset(); },
     ErrorId::kCaptureHasNotRun, "capture_instance", "v1"},
};

TEST(PlanReads, WhatStopsABatchIsNamedBeforeAnythingIsRead) {
  for (const StopCase& row : kStopCases) {
    SCOPED_TRACE(row.when);
    ReadFacts facts = row.facts();
    row.change(facts);
    const Result<ReadPlan> plan = PlanReads(facts);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().id(), row.error) << plan.error().Text();
    EXPECT_EQ(plan.error().Fact(row.fact), row.value) << plan.error().Text();
  }
}

TEST(CleanupReached, IsAskedOfTheFirstUnreadLsn) {
  EXPECT_FALSE(CleanupReached({L(5), L(9)}, L(6)));
  EXPECT_TRUE(CleanupReached({L(5), L(9)}, L(7)));
  EXPECT_TRUE(CleanupReached({L(5), L(9)}, std::nullopt));
}

TEST(Fits, Table) {
  const Type i16{Kind::kInt16}, i32{Kind::kInt32}, i64{Kind::kInt64};
  const Type f32{Kind::kFloat32}, f64{Kind::kFloat64}, text{Kind::kUtf8};
  const auto d = [](std::uint8_t p, std::uint8_t s) {
    return Type{Kind::kDecimal128, p, s};
  };
  const struct {
    Type from, to;
    bool fits;
  } kRows[] = {
      {i32, i32, true},
      {i16, i32, true},
      {i32, i64, true},
      {i64, i32, false},
      {f32, f64, true},
      {f64, f32, false},
      {{Kind::kDate32}, {Kind::kTimestampNtz}, true},
      {{Kind::kTimestampNtz}, {Kind::kTimestampUtc}, false},
      {i32, f64, true},
      {i64, f64, false},
      {i32, f32, false},
      {i32, text, false},
      {i16, d(5, 0), true},
      {i32, d(12, 2), true},
      {i32, d(11, 2), false},
      {i64, d(19, 0), false},
      {i64, d(20, 0), true},
      {d(10, 2), d(12, 4), true},
      {d(10, 2), d(11, 4), false},
      {d(10, 2), d(12, 1), false},
      {f64, d(38, 0), false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(Fits(row.from, row.to), row.fits)
        << DeltaTypeName(row.from) << " in " << DeltaTypeName(row.to);
  }
}

TEST(PlanTiles, Table) {
  using Windows = std::vector<LsnWindow>;
  const LsnWindow all{L(0), L(90)};
  const struct {
    const char* when;
    std::vector<Tile> tiles;
    Windows windows;
  } kRows[] = {
      {"no changes", {}, {all}},
      {"one tile", {{L(90), 400'000}}, {all}},
      {"equal tiles",
       {{L(30), 60'000}, {L(60), 60'000}, {L(90), 60'000}},
       {{L(0), L(30)}, {L(30), L(60)}, {L(60), L(90)}}},
      {"small ones are merged",
       {{L(20), 30'000}, {L(40), 30'000}, {L(60), 30'000}, {L(90), 30'000}},
       {{L(0), L(40)}, {L(40), L(90)}}},
      {"a small rest goes to the last",
       {{L(30), 60'000}, {L(60), 60'000}, {L(90), 40'000}},
       {{L(0), L(30)}, {L(30), L(90)}}},
      {"one commit across tiles stays whole",
       {{L(50), 60'000}, {L(50), 60'000}, {L(90), 60'000}},
       {{L(0), L(50)}, {L(50), L(90)}}},
      {"an idle tail makes no range",
       {{L(30), 60'000}, {L(60), 60'000}},
       {{L(0), L(30)}, {L(30), L(90)}}},
      {"all in one commit", {{L(7), 60'000}, {L(7), 60'000}}, {all}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanTiles(all, row.tiles), row.windows);
  }
}

TEST(DescribeStall, SaysWhatIsKnown) {
  const struct {
    CaptureHealth health;
    const char* part;
  } kRows[] = {
      {{1'000, false, {}, {}}, "16 minutes: this server has no capture job"},
      {{1'000, true, 22859, 60}, "its last error is 22859"},
      {{1'000, true, 22859, 5'000}, "SQL Server Agent runs"},
      {{1'000, {}, {}, {}}, "which this login may not"},
      {{{}, true, {}, {}}, "nothing that is left"},
  };
  for (const auto& row : kRows) {
    EXPECT_NE(DescribeStall(row.health).find(row.part), std::string::npos)
        << DescribeStall(row.health);
  }
  EXPECT_FALSE(IsStalled(900));
  EXPECT_TRUE(IsStalled(901));
  EXPECT_TRUE(IsStalled(std::nullopt));
}

TEST(SourceMemory, SurvivesItsFile) {
  const SourceMemory memory{"shop", "dbo", "a \"b\"", {{"v1", 5}, {"dbo_Café", 7}}};
  const Result<SourceMemory> read = SourceMemory::Parse(memory.Json());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), memory);
  EXPECT_EQ(memory.Names(), (std::vector<std::string>{"dbo_Café", "v1"}));
  EXPECT_EQ(SourceMemory::Parse("{}").error().id(), ErrorId::kCheckpointUnreadable);
}

TEST(CheckSameSource, TellsAnotherTableFromARenamedOne) {
  const SourceMemory then{"shop", "dbo", "t", {{"v1", 5}}};
  const struct {
    const char* when;
    SourceMemory now;
    const char* option;  // Null: the same.
  } kRows[] = {
      {"as it was", {"shop", "dbo", "t", {{"v1", 5}}}, nullptr},
      {"a new instance of it", {"shop", "dbo", "t", {{"v2", 6}}}, nullptr},
      {"renamed", {"SHOP", "dbo", "t_old", {{"v1", 5}, {"v2", 6}}}, nullptr},
      {"another table", {"shop", "dbo", "u", {{"v1", 6}}}, "captureInstance"},
      {"another schema", {"shop", "hr", "t", {{"w", 5}}}, "captureInstance"},
      {"another database", {"shop2", "dbo", "t", {{"v1", 5}}}, "Database"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    const Status status = CheckSameSource(then, row.now);
    ASSERT_EQ(status.ok(), row.option == nullptr);
    if (!status.ok()) {
      EXPECT_EQ(status.error().id(), ErrorId::kOptionsClash);
      EXPECT_EQ(status.error().Fact("option"), row.option);
    }
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

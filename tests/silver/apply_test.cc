#include "runtime/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "columns/take.h"
#include "lake/delta_lake.h"
#include "lake/memory_lake.h"
#include "lake/rows_for_test.h"
#include "pipeline/tables.h"
#include "runtime/control_table.h"
#include "runtime/optimize.h"
#include "runtime/watched_lake_test.h"

namespace mssql_cdc::runtime {
namespace {

using columns::Kind;
using testing::UnorderedElementsAre;

struct Line {
  std::string instance;
  int lsn = 0;
  int operation = 0;
  std::int64_t id = 0;
  std::string v;
};

std::string LsnText(int number) {
  cdc::Lsn lsn;
  lsn.bytes[9] = static_cast<std::uint8_t>(number);
  return lsn.Text();
}

class ApplyTest : public testing::TestWithParam<bool> {
 protected:
  ApplyTest() : clock_(1'796'000'000'000'000), dice_(1) {
    if (GetParam()) {
      lake_ = std::make_unique<lake::DeltaLake>();
    } else {
      lake_ = std::make_unique<lake::MemoryLake>();
    }
    const auto at = [&](const char* name) {
      return GetParam() ? (folder_.path() / name).string() : std::string(name);
    };
    config_.bronze = "bronze.t";
    config_.bronze_location = at("bronze");
    config_.target = "silver.t";
    config_.target_location = at("silver");
    config_.control_location = at("control");
    config_.plans_location = at("bronze_snapshot_plans");
    config_.instances = {"dbo_t"};
    config_.keys = {"id"};
  }

  void MakeBronze(std::vector<columns::Field> captured = {{"id", {Kind::kInt64}},
                                                          {"v", {Kind::kUtf8}}}) {
    const auto table = pipeline::BronzeTable(captured, true);
    ASSERT_TRUE(lake_
                    ->Create(config_.bronze_location,
                             {table.schema, table.description, table.properties})
                    .ok());
  }

  void Put(const std::vector<Line>& lines,
           const std::vector<columns::Field>& more = {}) {
    auto schema = std::make_shared<columns::Schema>();
    schema->fields = {{"_capture_instance", {Kind::kUtf8}},
                      {"_start_lsn", {Kind::kUtf8}},
                      {"_operation", {Kind::kInt32}},
                      {"_commit_ts", {Kind::kTimestampNtz}},
                      {"id", {Kind::kInt64}},
                      {"v", {Kind::kUtf8}}};
    schema->fields.insert(schema->fields.end(), more.begin(), more.end());
    columns::RecordBatch batch{schema, static_cast<std::int64_t>(lines.size()), {}};
    for (const columns::Field& field : schema->fields) {
      columns::ColumnBuilder out(field.type, batch.row_count);
      for (const Line& line : lines) {
        if (field.name == "_capture_instance") out.AppendBytes(line.instance);
        if (field.name == "_start_lsn") out.AppendBytes(LsnText(line.lsn));
        if (field.name == "_operation") out.AppendInt32(line.operation);
        if (field.name == "_commit_ts") out.AppendInt64(line.lsn);
        if (field.name == "id") out.AppendInt64(line.id);
        if (field.name == "v") out.AppendBytes(line.v);
        if (field.name == "extra") out.AppendInt32(7);
        if (field.name == "_snapshot") out.AppendBytes(snapshot_);
        if (field.name == "_chunk") out.AppendInt32(0);
      }
      batch.columns.push_back(std::make_shared<const columns::Column>(out.Finish()));
    }
    std::vector<columns::RecordBatch> batches;
    batches.push_back(std::move(batch));
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(columns::ReadBatches(schema, std::move(batches)));
    lake::AppendSpec spec;
    spec.merge_schema = true;
    const auto done = lake_->Append(config_.bronze_location, std::move(sources), spec);
    ASSERT_TRUE(done.ok()) << done.error().Text();
  }

  // Rows of chunk 0 of a snapshot.
  void PutChunk(const std::vector<Line>& lines, int snapshot) {
    snapshot_ = LsnText(snapshot);
    Put(lines, {{"_snapshot", {Kind::kUtf8}}, {"_chunk", {Kind::kInt32}}});
  }

  // One row of texts.
  void AppendTexts(const std::string& location, const std::vector<std::string>& names,
                   const std::vector<std::string>& values) {
    auto schema = std::make_shared<columns::Schema>();
    columns::RecordBatch batch{nullptr, 1, {}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      schema->fields.push_back({names[i], {Kind::kUtf8}});
      columns::ColumnBuilder out({Kind::kUtf8}, 1);
      out.AppendBytes(values[i]);
      batch.columns.push_back(std::make_shared<const columns::Column>(out.Finish()));
    }
    batch.schema = schema;
    std::vector<columns::RecordBatch> batches;
    batches.push_back(std::move(batch));
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(columns::ReadBatches(schema, std::move(batches)));
    lake::AppendSpec spec;
    spec.merge_schema = true;
    const auto done = lake_->Append(location, std::move(sources), spec);
    ASSERT_TRUE(done.ok()) << done.error().Text();
  }

  ApplyOutcome Must() {
    const auto outcome = Apply(config_, {*lake_, clock_, dice_});
    if (outcome.ok()) return outcome.value();
    ADD_FAILURE() << outcome.error().Text();
    return {};
  }

  Error Refusal() {
    const auto outcome = Apply(config_, {*lake_, clock_, dice_});
    if (!outcome.ok()) return outcome.error();
    ADD_FAILURE() << "it was applied";
    return Error(ErrorId::kInternalError);
  }

  // Applies; between what it reads of bronze and what it does next, `meanwhile`
  // happens, and from then on its own control table is out of its reach.
  void ApplyAndDieOvertaken(const std::function<void()>& meanwhile) {
    WatchedLake watched(*lake_);
    bool has_read = false;
    bool is_overtaken = false;
    watched.before = [&](std::string_view call, const std::string& location) -> Status {
      if (!is_overtaken && has_read && location != config_.bronze_location) {
        is_overtaken = true;
        meanwhile();
      }
      has_read = has_read || (call == "Read" && location == config_.bronze_location);
      const bool writes = call == "Change" || call == "Append";
      if (is_overtaken && writes && location == config_.control_location) {
        return Error(ErrorId::kLakeUnreachable);
      }
      return Unit{};
    };
    (void)Apply(config_, {watched, clock_, dice_});
    EXPECT_TRUE(is_overtaken);
  }

  std::vector<std::string> Silver() {
    lake::ReadSpec spec;
    spec.columns = {"id", "v"};
    return lake::RowsOf(*lake_, config_.target_location, spec);
  }

  pipeline::ControlRow Control() {
    ControlTable control(*lake_, clock_, dice_, config_.control_location);
    return control.Read(config_.target).value();
  }

  ManualClock clock_;
  Dice dice_;
  lake::TestFolder folder_;
  std::unique_ptr<lake::Lake> lake_;
  SilverConfig config_;
  std::string snapshot_;
};

TEST_P(ApplyTest, WithoutBronzeThereIsNothingToDo) {
  const ApplyOutcome outcome = Must();
  EXPECT_FALSE(outcome.bronze_found);
  EXPECT_FALSE(lake_->State(config_.target_location).value().has_value());
}

TEST_P(ApplyTest, ChangesArriveOnceAndThePositionWithThem) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}, {"dbo_t", 3, 2, 2, "b"}, {"DBO_T", 4, 2, 3, "c"}});
  EXPECT_TRUE(Must().rebuilt);
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c"));
  EXPECT_EQ(Control().applied_lsn, LsnText(4));
  Put({{"dbo_t", 5, 1, 1, "a"}, {"dbo_t", 5, 3, 2, "b"}, {"dbo_t", 5, 4, 2, "B"}});
  const ApplyOutcome outcome = Must();
  EXPECT_FALSE(outcome.rebuilt);
  EXPECT_EQ(outcome.window_row_count, 3);
  EXPECT_EQ(outcome.added_count, 1);
  EXPECT_EQ(outcome.removed_count, 2);
  EXPECT_THAT(Silver(), UnorderedElementsAre("2|B", "3|c"));
  const std::int64_t version = lake_->State(config_.target_location).value()->version;
  Must();
  EXPECT_EQ(lake_->State(config_.target_location).value()->version, version);
}

// The control row stays where somebody removes the table alone.
TEST_P(ApplyTest, ASilverThatIsGoneIsMadeAnewFromAllOfBronze) {
  MakeBronze();
  Put({{"dbo_t", 1, 2, 1, "a"}, {"dbo_t", 2, 2, 2, "b"}});
  Must();
  if (GetParam()) {
    std::filesystem::remove_all(config_.target_location);
  } else {
    static_cast<lake::MemoryLake&>(*lake_).Drop(config_.target_location);
  }
  Put({{"dbo_t", 3, 2, 3, "c"}});
  const ApplyOutcome outcome = Must();
  EXPECT_TRUE(outcome.rebuilt);
  EXPECT_FALSE(outcome.warnings.empty());
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c"));
}

TEST_P(ApplyTest, ANewColumnComesLast) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}});
  Must();
  Put({{"dbo_t", 4, 2, 2, "b"}}, {{"extra", {Kind::kInt32}}});
  Must();
  const auto state = lake_->State(config_.target_location).value();
  EXPECT_EQ(state->schema.fields.back().name, "extra");
  EXPECT_THAT(lake::RowsOf(*lake_, config_.target_location, {{"id", "extra"}}),
              UnorderedElementsAre("1|NULL", "2|7"));
}

TEST_P(ApplyTest, KeysThatBronzeLacksAreRefused) {
  MakeBronze();
  config_.keys = {"ID"};
  const Error other_case = Refusal();
  EXPECT_EQ(other_case.id(), ErrorId::kSilverKeyInvalid);
  EXPECT_EQ(other_case.Fact("column"), "ID");
  config_.keys = {};
  EXPECT_EQ(Refusal().id(), ErrorId::kSilverKeyInvalid);
  EXPECT_FALSE(lake_->State(config_.target_location).value().has_value());
}

TEST_P(ApplyTest, RowsOfAnotherTableAreRefusedBeforeAnythingIsApplied) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}, {"dbo_other", 3, 2, 2, "b"}});
  const Error error = Refusal();
  EXPECT_EQ(error.id(), ErrorId::kRowsOfAnotherInstance);
  EXPECT_EQ(error.Fact("capture_instance"), "dbo_other");
  EXPECT_FALSE(lake_->State(config_.target_location).value().has_value());
}

TEST_P(ApplyTest, TheVerdictFollowsBronzeAndIsHeldWithoutFacts) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}});
  ControlTable control(*lake_, clock_, dice_, config_.control_location);
  cdc::Offset end;
  end.lsn.bytes[9] = 9;
  end.commit_us = std::int64_t{7'200'000'000} + 5;
  ASSERT_EQ(control.Advance(config_.bronze, end, pipeline::Granularity::kHour).value(),
            7'200'000'000);
  EXPECT_FALSE(Must().finalized_until_us.has_value());
  config_.facts_table = "facts";
  config_.facts_location = config_.plans_location + "_of_no_facts";
  EXPECT_EQ(Must().finalized_until_us, 7'200'000'000);
  EXPECT_EQ(Control().end_lsn, end.lsn.Text());
  EXPECT_TRUE(IsFinal(Control(), 7'200'000'000));
  EXPECT_FALSE(IsFinal(Control(), 7'200'000'001));
  // Rows of others, and what others wrote into this one, stay.
  EXPECT_EQ(control.Read(config_.bronze).value().end_lsn, end.lsn.Text());
  EXPECT_EQ(Control().applied_lsn, LsnText(3));
  const auto fresh = control.AskFreshness(config_.target).value();
  EXPECT_EQ(fresh.finalized_until_us, 7'200'000'000);
  EXPECT_FALSE(control.AskFreshness("nobody").value().finalized_until_us.has_value());
}

TEST_P(ApplyTest, WhatAnotherApplyDeletedMeanwhileStaysDeleted) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}});
  Must();
  Put({{"dbo_t", 5, 2, 7, "x"}});
  ApplyAndDieOvertaken([&] {
    Must();
    Put({{"dbo_t", 6, 1, 7, "x"}});
    Must();
  });
  Must();
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a"));
  EXPECT_EQ(Control().applied_lsn, LsnText(6));
}

TEST_P(ApplyTest, AlsoWhatAnotherApplyNeverHad) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}});
  Must();
  Put({{"dbo_t", 5, 2, 7, "x"}});
  ApplyAndDieOvertaken([&] {
    Put({{"dbo_t", 6, 1, 7, "x"}});
    Must();
  });
  Must();
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a"));
}

TEST_P(ApplyTest, AlsoWhereTheOtherApplyMadeTheTable) {
  MakeBronze();
  Put({{"dbo_t", 5, 2, 7, "x"}});
  ApplyAndDieOvertaken([&] {
    Put({{"dbo_t", 6, 1, 7, "x"}});
    Must();
  });
  Must();
  EXPECT_THAT(Silver(), testing::IsEmpty());
}

TEST_P(ApplyTest, AlsoWhereANewColumnIsAddedFirst) {
  MakeBronze();
  Put({{"dbo_t", 3, 2, 1, "a"}});
  Must();
  Put({{"dbo_t", 5, 2, 7, "x"}}, {{"extra", {Kind::kInt32}}});
  ApplyAndDieOvertaken([&] {
    Put({{"dbo_t", 6, 1, 7, "x"}});
    Must();
  });
  Must();
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a"));
}

TEST_P(ApplyTest, RowsOfAFinishedChunkedSnapshotAreNotReadAgain) {
  MakeBronze();
  config_.facts_table = "facts";
  config_.facts_location = config_.plans_location + "_of_facts";
  const auto facts = pipeline::FactsTable();
  ASSERT_TRUE(lake_
                  ->Create(config_.facts_location,
                           {facts.schema, facts.description, facts.properties})
                  .ok());
  const std::vector<std::string> texts = {"target", "event", "max_lsn", "detail"};
  const std::string open = R"({"chunked": true, "keys": ["id"]})";
  for (const std::string event : {"snapshot_open", "bootstrap"}) {
    AppendTexts(
        config_.facts_location, texts,
        {config_.bronze, event, LsnText(5), event == "bootstrap" ? "{}" : open});
  }
  std::vector<Line> lines;
  for (int id = 0; id < 100; ++id) lines.push_back({"dbo_t", 6, 0, id, "chunk"});
  PutChunk(lines, 5);
  EXPECT_TRUE(Must().rebuilt);
  EXPECT_EQ(Silver().size(), 100u);
  // Silver's position is above the rows of the snapshot from the next change on.
  Put({{"dbo_t", 8, 4, 6, "new"}});
  Must();
  Put({{"dbo_t", 9, 4, 7, "new"}});
  WatchedLake watched(*lake_);
  const auto outcome = Apply(config_, {watched, clock_, dice_});
  ASSERT_TRUE(outcome.ok()) << outcome.error().Text();
  EXPECT_EQ(outcome.value().added_count, 1);
  // The change's marks, then the whole of it.
  EXPECT_EQ(watched.row_counts[config_.bronze_location], 2);
}

TEST_P(ApplyTest, OptimizeKeepsAColumnThatIsAddedMeanwhile) {
  MakeBronze();
  for (int lsn = 1; lsn <= 4; ++lsn) {
    Put({{"dbo_t", lsn, 2, lsn, "a"}, {"dbo_t", lsn, 4, 1, "x"}});
    Must();
  }
  WatchedLake watched(*lake_);
  bool is_overtaken = false;
  watched.before = [&](std::string_view call, const std::string&) -> Status {
    // After the schema is read.
    if (call != "Change" || std::exchange(is_overtaken, true)) return Unit{};
    Put({{"dbo_t", 5, 2, 5, "z"}}, {{"extra", {Kind::kInt32}}});
    Must();
    return Unit{};
  };
  const auto outcome = Optimize(watched, config_.target_location, {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().Text();
  EXPECT_THAT(lake::RowsOf(*lake_, config_.target_location, {{"id", "extra"}}),
              UnorderedElementsAre("1|NULL", "2|NULL", "3|NULL", "4|NULL", "5|7"));
}

TEST_P(ApplyTest, OptimizeTakesFewerFilesAfterALoss) {
  MakeBronze();
  for (int lsn = 1; lsn <= 9; ++lsn) {
    Put({{"dbo_t", lsn, 2, lsn, "a"}});
    Must();
  }
  WatchedLake watched(*lake_);
  int lost_count = 0;
  watched.before = [&](std::string_view call, const std::string&) -> Status {
    if (call != "Commit" || ++lost_count > 3) return Unit{};
    Put({{"dbo_t", 9 + lost_count, 2, 9 + lost_count, "a"}});
    Must();
    return Unit{};
  };
  const auto outcome = Optimize(watched, config_.target_location, {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().Text();
  EXPECT_EQ(Silver().size(), 12u);
  if (!GetParam()) return;
  // Smaller steps, and all the way in the end.
  EXPECT_GT(outcome.value().commit_count, 1);
  EXPECT_EQ(outcome.value().file_count_after, 1);
}

TEST_P(ApplyTest, AControlRowKeepsAColumnThatIsAddedMeanwhile) {
  ControlTable plain(*lake_, clock_, dice_, config_.control_location);
  ASSERT_TRUE(plain.Ensure().ok());
  const auto position = [](int lsn) {
    return [lsn](const pipeline::ControlRow& row) {
      pipeline::ControlRow moved = row;
      moved.applied_lsn = LsnText(lsn);
      return std::optional(moved);
    };
  };
  ASSERT_TRUE(plain.Update("silver.t", position(1)).ok());
  WatchedLake watched(*lake_);
  bool is_overtaken = false;
  watched.before = [&](std::string_view call, const std::string& location) -> Status {
    if (call != "Change" || std::exchange(is_overtaken, true)) return Unit{};
    // Another release's writer.
    AppendTexts(location, {"table_name", "applied_lsn", "extra"},
                {"silver.t", LsnText(2), "theirs"});
    lake::ChangeSpec spec;
    TRY_ASSIGN(const auto change, lake_->Change(location, spec));
    TRY_ASSIGN(const auto rows, change->Probe({{"applied_lsn"}}));
    int removed_count = 0;
    while (true) {
      TRY_ASSIGN(const auto batch, rows->Next());
      if (!batch) break;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        if (columns::BytesValue(*batch->columns[0], i) != LsnText(1)) continue;
        const std::int64_t old[] = {
            columns::FixedValue<std::int64_t>(*batch->columns.back(), i)};
        TRY(change->Remove(columns::FixedValue<std::int32_t>(*batch->columns[1], i),
                           old));
        ++removed_count;
      }
    }
    EXPECT_EQ(removed_count, 1);
    TRY(change->Commit(std::nullopt));
    return Unit{};
  };
  ControlTable control(watched, clock_, dice_, config_.control_location);
  const auto updated = control.Update("silver.t", position(3));
  ASSERT_TRUE(updated.ok()) << updated.error().Text();
  EXPECT_THAT(
      lake::RowsOf(*lake_, config_.control_location, {{"applied_lsn", "extra"}}),
      UnorderedElementsAre(LsnText(3) + "|theirs"));
}

TEST_P(ApplyTest, ManyFilesBecomeFewAndTheRowsStay) {
  MakeBronze();
  for (int lsn = 1; lsn <= 12; ++lsn) {
    Put({{"dbo_t", lsn, 2, lsn, "a"}, {"dbo_t", lsn, 4, 1, "x"}});
    Must();
  }
  const std::vector<std::string> before = Silver();
  const auto outcome = Optimize(*lake_, config_.target_location, {});
  ASSERT_TRUE(outcome.ok()) << outcome.error().Text();
  EXPECT_GT(outcome.value().file_count_before, 6);
  EXPECT_EQ(outcome.value().commit_count, 1);
  EXPECT_THAT(Silver(), testing::UnorderedElementsAreArray(before));
  // In memory a batch stays one.
  if (!GetParam()) return;
  EXPECT_EQ(outcome.value().file_count_after, 1);
  EXPECT_EQ(Optimize(*lake_, config_.target_location, {}).value().commit_count, 0);
}

INSTANTIATE_TEST_SUITE_P(Lakes, ApplyTest, testing::Bool(), [](const auto& given) {
  return given.param ? "Delta" : "Memory";
});

}  // namespace
}  // namespace mssql_cdc::runtime

// What lake.h promises of changes of rows, asked of the memory lake and of Delta tables
// with and without deletion vectors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "columns/take.h"
#include "lake/delta_lake.h"
#include "lake/memory_lake.h"
#include "lake/rows_for_test.h"

namespace mssql_cdc::lake {
namespace {

using columns::BatchReader;
using columns::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const columns::Schema kOrders{{{"id", {Kind::kInt64}}, {"name", {Kind::kUtf8}}}};

std::unique_ptr<BatchReader> Orders(std::int64_t first, std::int64_t count,
                                    const std::string& prefix = "n") {
  return ReadRows(
      kOrders, count,
      [=](std::int64_t row, std::size_t column, columns::ColumnBuilder& out) {
        if (column == 0) {
          out.AppendInt64(first + row);
        } else {
          out.AppendBytes(prefix + std::to_string(first + row));
        }
      });
}

struct Place {
  std::int64_t id = 0;
  std::int32_t file = 0;
  std::int64_t row = 0;
};

class ChangeContract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "Memory") {
      lake_ = std::make_unique<MemoryLake>();
      location_ = "memory/orders";
    } else {
      lake_ = std::make_unique<DeltaLake>();
      location_ = (folder_.path() / "orders").string();
    }
    CreateSpec spec{kOrders, "", {}};
    if (GetParam() == "DeltaVectors")
      spec.properties[kDeletionVectorsProperty] = "true";
    ASSERT_TRUE(lake_->Create(location_, spec).ok());
  }

  void Append(std::int64_t first, std::int64_t count) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    sources.push_back(Orders(first, count));
    ASSERT_TRUE(lake_->Append(location_, std::move(sources), {}).ok());
  }

  std::unique_ptr<TableChange> Begin(ChangeKind kind = ChangeKind::kMerge) {
    auto change = lake_->Change(location_, {kind, kOrders.fields});
    if (!change.ok()) ADD_FAILURE() << change.error().Text();
    return change.ok() ? std::move(change).value() : nullptr;
  }

  static std::vector<Place> Probe(TableChange& change, ProbeSpec spec = {{"id"}}) {
    std::vector<Place> places;
    auto rows = change.Probe(spec);
    if (!rows.ok()) {
      ADD_FAILURE() << rows.error().Text();
      return places;
    }
    while (true) {
      const auto batch = rows.value()->Next();
      if (!batch.ok()) ADD_FAILURE() << batch.error().Text();
      if (!batch.ok() || !batch.value()) break;
      EXPECT_EQ(batch.value()->schema->fields.back().name, kRowColumn);
      for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
        const auto& columns = batch.value()->columns;
        places.push_back({columns::FixedValue<std::int64_t>(*columns[0], i),
                          columns::FixedValue<std::int32_t>(*columns[1], i),
                          columns::FixedValue<std::int64_t>(*columns[2], i)});
      }
    }
    std::ranges::sort(places, {}, &Place::id);
    return places;
  }

  static void Remove(TableChange& change, const std::vector<Place>& places,
                     const std::vector<std::int64_t>& ids) {
    for (const Place& place : places) {
      if (std::ranges::find(ids, place.id) == ids.end()) continue;
      const std::int64_t rows[] = {place.row};
      ASSERT_TRUE(change.Remove(place.file, rows).ok());
    }
  }

  static void Add(TableChange& change, std::unique_ptr<BatchReader> rows) {
    std::vector<std::unique_ptr<BatchReader>> sources;
    sources.push_back(std::move(rows));
    const Status added = change.Add(std::move(sources));
    ASSERT_TRUE(added.ok()) << added.error().Text();
  }

  static ChangeResult Commit(TableChange& change) {
    const auto done = change.Commit("{\"what\": \"merge\"}");
    if (!done.ok()) ADD_FAILURE() << done.error().Text();
    return done.ok() ? done.value() : ChangeResult{};
  }

  std::vector<std::string> Rows(const ReadSpec& spec = {}) {
    return RowsOf(*lake_, location_, spec);
  }

  TestFolder folder_;
  std::unique_ptr<Lake> lake_;
  std::string location_;
};

TEST_P(ChangeContract, RowsGoAndComeInOneVersion) {
  Append(1, 3);
  Append(11, 2);
  const auto change = Begin();
  EXPECT_EQ(change->version(), 2);
  EXPECT_EQ(change->files().size(), 2u);
  const std::vector<Place> places = Probe(*change);
  ASSERT_EQ(places.size(), 5u);
  Remove(*change, places, {2, 11});
  Add(*change, Orders(2, 1, "new"));
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "3|n3", "11|n11", "12|n12"));
  const ChangeResult result = Commit(*change);
  EXPECT_TRUE(result.is_committed);
  EXPECT_EQ(result.version, 3);
  EXPECT_EQ(result.added_count, 1);
  EXPECT_EQ(result.removed_count, 2);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|new2", "3|n3", "12|n12"));
  EXPECT_EQ(lake_->RowCount(location_).value(), 4);
  const auto history = lake_->History(location_, 3).value();
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].operation, "MERGE");
  EXPECT_EQ(history[0].user_metadata, "{\"what\": \"merge\"}");
}

TEST_P(ChangeContract, ChangesAddUp) {
  Append(1, 5);
  for (std::int64_t id = 1; id <= 4; ++id) {
    const auto change = Begin();
    Remove(*change, Probe(*change), {id});
    Add(*change, Orders(100 + id, 1));
    EXPECT_EQ(Commit(*change).removed_count, 1);
  }
  EXPECT_THAT(Rows(), UnorderedElementsAre("5|n5", "101|n101", "102|n102", "103|n103",
                                           "104|n104"));
  const auto change = Begin();
  EXPECT_EQ(Probe(*change).size(), 5u);
}

TEST_P(ChangeContract, OnlyDeletionVectorsSpareTheOtherRows) {
  Append(1, 5);
  const auto change = Begin();
  Remove(*change, Probe(*change), {3});
  const ChangeResult result = Commit(*change);
  EXPECT_EQ(result.rewritten_row_count, GetParam() == "DeltaOld" ? 4 : 0);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "4|n4", "5|n5"));
}

TEST_P(ChangeContract, AFileWithoutRowsGoes) {
  Append(1, 2);
  Append(11, 1);
  const auto change = Begin();
  Remove(*change, Probe(*change), {1, 2});
  Remove(*change, Probe(*change), {1});
  EXPECT_EQ(Commit(*change).removed_count, 2);
  EXPECT_EQ(Begin()->files().size(), 1u);
  EXPECT_THAT(Rows(), ElementsAre("11|n11"));
}

TEST_P(ChangeContract, NothingToDoMakesNoCommit) {
  Append(1, 2);
  const auto change = Begin();
  EXPECT_FALSE(Commit(*change).is_committed);
  EXPECT_EQ(lake_->State(location_).value()->version, 1);
}

TEST_P(ChangeContract, NothingToDoIsACommitWhereItIsAskedFor) {
  Append(1, 2);
  ChangeSpec spec;
  spec.commits_nothing = true;
  auto begun = lake_->Change(location_, spec);
  ASSERT_TRUE(begun.ok()) << begun.error().Text();
  const auto other = Begin();
  Remove(*other, Probe(*other), {1});
  EXPECT_TRUE(Commit(*begun.value()).is_committed);
  EXPECT_EQ(lake_->State(location_).value()->version, 2);
  const auto late = other->Commit(std::nullopt);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().id(), ErrorId::kLakeConflict);
  EXPECT_THAT(Rows(), ElementsAre("1|n1", "2|n2"));
  Append(3, 1);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "3|n3"));
}

TEST_P(ChangeContract, AnotherCommitInBetweenIsAConflict) {
  Append(1, 2);
  const auto change = Begin();
  Remove(*change, Probe(*change), {1});
  Append(3, 1);
  const auto done = change->Commit(std::nullopt);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().id(), ErrorId::kLakeConflict);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "3|n3"));
}

TEST_P(ChangeContract, WhatIsNotCommittedLeavesNothing) {
  Append(1, 2);
  {
    const auto change = Begin();
    Remove(*change, Probe(*change), {1});
    Add(*change, Orders(7, 1));
  }
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2"));
  if (GetParam() == "Memory") return;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(location_)) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_P(ChangeContract, AProbeMayBeToldWhereToLook) {
  for (std::int64_t first = 0; first < 100; first += 10) Append(first, 10);
  const auto change = Begin();
  ProbeSpec spec{{"id"}, std::nullopt, ValueRanges{"id", {{12, 14}, {55, 55}}, {}}};
  std::vector<std::int64_t> wanted;
  const std::vector<Place> places = Probe(*change, spec);
  for (const Place& place : places) {
    const bool is_wanted = (place.id >= 12 && place.id <= 14) || place.id == 55;
    if (is_wanted) wanted.push_back(place.id);
  }
  EXPECT_THAT(wanted, ElementsAre(12, 13, 14, 55));
  // The memory lake reads all there is; files say what they hold.
  if (GetParam() != "Memory") {
    EXPECT_EQ(places.size(), 20u);
  }
  // Places are those of a probe of everything.
  for (const Place& all : Probe(*change)) {
    for (const Place& some : places) {
      if (some.id != all.id) continue;
      EXPECT_EQ(some.file, all.file);
      EXPECT_EQ(some.row, all.row);
    }
  }
  spec = {{"id"}, std::vector<std::int32_t>{places.front().file}, std::nullopt};
  EXPECT_EQ(Probe(*change, spec).size(), 10u);
  const ProbeSpec by_text{
      {"id"}, std::nullopt, ValueRanges{"name", {}, {{"n55", "n55"}}}};
  EXPECT_FALSE(Probe(*change, by_text).empty());
}

TEST_P(ChangeContract, ManyRowsKeepTheirPlaces) {
  constexpr std::int64_t kCount = 30'000;
  Append(0, kCount);
  const auto change = Begin();
  std::vector<std::int64_t> odd;
  const std::vector<Place> places = Probe(*change);
  ASSERT_EQ(places.size(), static_cast<std::size_t>(kCount));
  for (const Place& place : places) {
    if (place.id % 2 == 1) odd.push_back(place.row);
  }
  ASSERT_TRUE(change->Remove(places.front().file, odd).ok());
  EXPECT_EQ(Commit(*change).removed_count, kCount / 2);
  const auto next = Begin();
  const std::vector<Place> left = Probe(*next);
  ASSERT_EQ(left.size(), static_cast<std::size_t>(kCount / 2));
  EXPECT_TRUE(std::ranges::all_of(left, [](const Place& p) { return p.id % 2 == 0; }));
}

TEST_P(ChangeContract, AnArrangementIsCalledOptimize) {
  Append(1, 2);
  Append(3, 2);
  const auto change = Begin(ChangeKind::kOptimize);
  Remove(*change, Probe(*change), {1, 2, 3, 4});
  Add(*change, Orders(1, 4));
  EXPECT_TRUE(Commit(*change).is_committed);
  EXPECT_EQ(Begin()->files().size(), 1u);
  EXPECT_EQ(lake_->History(location_, 3).value().front().operation, "OPTIMIZE");
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "2|n2", "3|n3", "4|n4"));
}

TEST_P(ChangeContract, UnknownColumnsAndTypesAreRefused) {
  const auto unknown =
      lake_->Change(location_, {ChangeKind::kMerge, {{"other", {Kind::kInt64}}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().id(), ErrorId::kLakeSchemaMismatch);
  const auto other_type =
      lake_->Change(location_, {ChangeKind::kMerge, {{"id", {Kind::kUtf8}}}});
  ASSERT_FALSE(other_type.ok());
  EXPECT_EQ(other_type.error().id(), ErrorId::kLakeSchemaMismatch);
  const auto probe = Begin()->Probe({{"other"}});
  ASSERT_FALSE(probe.ok());
  EXPECT_EQ(probe.error().id(), ErrorId::kLakeSchemaMismatch);
}

TEST_P(ChangeContract, DeletionVectorsCanBeEnabledLater) {
  Append(1, 3);
  ASSERT_TRUE(lake_->EnableDeletionVectors(location_).ok());
  const std::int64_t version = lake_->State(location_).value()->version;
  ASSERT_TRUE(lake_->EnableDeletionVectors(location_).ok());
  EXPECT_EQ(lake_->State(location_).value()->version, version);
  const auto change = Begin();
  Remove(*change, Probe(*change), {2});
  EXPECT_EQ(Commit(*change).rewritten_row_count, 0);
  EXPECT_THAT(Rows(), UnorderedElementsAre("1|n1", "3|n3"));
}

TEST_P(ChangeContract, AReadCanAskForAnOlderVersionAndForMoreOrLess) {
  Append(1, 2);
  Append(11, 2);
  ReadSpec old;
  old.version = 1;
  EXPECT_THAT(Rows(old), UnorderedElementsAre("1|n1", "2|n2"));
  ReadSpec above;
  above.conditions = {{"name", Condition::Operator::kAbove, "n11"}};
  EXPECT_THAT(Rows(above), UnorderedElementsAre("2|n2", "12|n12"));
  ReadSpec at_least;
  at_least.conditions = {{"name", Condition::Operator::kAtLeast, "n12"}};
  EXPECT_THAT(Rows(at_least), UnorderedElementsAre("2|n2", "12|n12"));
  ReadSpec nothing;
  nothing.conditions = {{"name", Condition::Operator::kAbove, "n2"}};
  EXPECT_THAT(Rows(nothing), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Adapters, ChangeContract,
                         testing::Values("Memory", "DeltaOld", "DeltaVectors"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace mssql_cdc::lake

#include "runtime/control_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "columns/take.h"
#include "lake/delta_lake.h"
#include "lake/rows_for_test.h"
#include "runtime/control_table.h"
#include "runtime/watched_lake_test.h"

namespace mssql_cdc::runtime {
namespace {

class ControlUpdatesTest : public testing::Test {
 protected:
  ControlUpdatesTest() {
    EXPECT_TRUE(ControlTable(delta_, clock_, dice_, location_).Ensure().ok());
  }

  static std::string Name(int number) { return "silver.t" + std::to_string(number); }

  Status Put(ControlUpdates& updates, lake::Lake& lake, int table, int wave) {
    Dice dice(static_cast<std::uint64_t>(table));
    const auto done = updates.Update({lake, clock_, dice, location_}, Name(table),
                                     [&](const pipeline::ControlRow& row) {
                                       pipeline::ControlRow moved = row;
                                       moved.snapshot_wave = wave;
                                       return std::optional(moved);
                                     });
    if (!done.ok()) return done.error();
    EXPECT_EQ(done.value().table_name, Name(table));
    EXPECT_EQ(done.value().snapshot_wave, wave);
    return Unit{};
  }

  std::vector<std::string> Rows() {
    lake::ReadSpec spec;
    spec.columns = {"table_name", "snapshot_wave"};
    return lake::RowsOf(delta_, location_, spec);
  }

  std::int64_t version() { return delta_.State(location_).value()->version; }

  std::size_t file_count() {
    return delta_.Change(location_, {}).value()->files().size();
  }

  ManualClock clock_{1'796'000'000'000'000};
  Dice dice_{1};
  lake::TestFolder folder_;
  const std::string location_ = (folder_.path() / "control").string();
  lake::DeltaLake delta_;
};

TEST_F(ControlUpdatesTest, WhoComesDuringACommitGoesIntoTheNextOne) {
  constexpr int kOthers = 7;
  ControlUpdates updates;
  WatchedLake lake(delta_);
  const std::int64_t before = version();
  std::vector<std::thread> others;
  bool first = true;
  lake.before = [&](std::string_view call, const std::string&) -> Status {
    if (call != "Commit" || !std::exchange(first, false)) return Unit{};
    for (int i = 1; i <= kOthers; ++i) {
      others.emplace_back([&, i] { EXPECT_TRUE(Put(updates, lake, i, i).ok()); });
    }
    while (updates.waiting_count(location_) < kOthers) std::this_thread::yield();
    return Unit{};
  };
  ASSERT_TRUE(Put(updates, lake, 0, 0).ok());
  for (std::thread& other : others) other.join();
  EXPECT_EQ(version(), before + 2);
  std::vector<std::string> expected;
  for (int i = 0; i <= kOthers; ++i) {
    expected.push_back(Name(i) + "|" + std::to_string(i));
  }
  EXPECT_THAT(Rows(), testing::UnorderedElementsAreArray(expected));
}

TEST_F(ControlUpdatesTest, UpdatesOfOneRowInOneCommitFollowEachOther) {
  ControlUpdates updates;
  WatchedLake lake(delta_);
  ASSERT_TRUE(Put(updates, delta_, 1, 10).ok());
  std::vector<std::thread> others;
  bool first = true;
  const ControlUpdates::Change add_one = [](const pipeline::ControlRow& row) {
    pipeline::ControlRow moved = row;
    moved.snapshot_wave = row.snapshot_wave.value_or(0) + 1;
    return std::optional(moved);
  };
  lake.before = [&](std::string_view call, const std::string&) -> Status {
    if (call != "Commit" || !std::exchange(first, false)) return Unit{};
    for (int i = 0; i < 3; ++i) {
      others.emplace_back([&] {
        Dice dice(2);
        EXPECT_TRUE(
            updates.Update({lake, clock_, dice, location_}, Name(1), add_one).ok());
      });
    }
    while (updates.waiting_count(location_) < 3) std::this_thread::yield();
    return Unit{};
  };
  ASSERT_TRUE(updates.Update({lake, clock_, dice_, location_}, Name(1), add_one).ok());
  for (std::thread& other : others) other.join();
  EXPECT_THAT(Rows(), testing::ElementsAre(Name(1) + "|14"));
}

TEST_F(ControlUpdatesTest, AnErrorIsThatOfAllWhoWaitedForTheCommit) {
  ControlUpdates updates;
  WatchedLake lake(delta_);
  std::vector<std::thread> others;
  bool first = true;
  lake.before = [&](std::string_view call, const std::string& location) -> Status {
    if (call != "Commit") return Unit{};
    if (!std::exchange(first, false)) {
      return Error(ErrorId::kLakeUnreachable).With("table", location);
    }
    for (int i = 1; i <= 2; ++i) {
      others.emplace_back([&, i] {
        const Status done = Put(updates, lake, i, i);
        ASSERT_FALSE(done.ok());
        EXPECT_EQ(done.error().id(), ErrorId::kLakeUnreachable);
      });
    }
    while (updates.waiting_count(location_) < 2) std::this_thread::yield();
    return Unit{};
  };
  ASSERT_TRUE(Put(updates, lake, 0, 0).ok());
  for (std::thread& other : others) other.join();
  EXPECT_THAT(Rows(), testing::ElementsAre(Name(0) + "|0"));
}

TEST_F(ControlUpdatesTest, FilesStayFewAndRowsStayAsTheyAre) {
  ControlUpdates updates;
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Put(updates, delta_, i, i).ok());
    expected.push_back(Name(i) + "|" + std::to_string(i));
    ASSERT_LE(file_count(), 18u);
  }
  EXPECT_THAT(Rows(), testing::UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace mssql_cdc::runtime

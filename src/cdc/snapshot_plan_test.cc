#include "cdc/snapshot_plan.h"

#include <gtest/gtest.h>

#include <limits>

namespace mssql_cdc::cdc {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();

TEST(PlanKeyRanges, Table) {
  const std::optional<std::int64_t> open;
  const struct {
    const char* when;
    std::optional<KeyExtent> extent;
    std::int64_t count_max;
    std::vector<KeyRange> ranges;
  } kRows[] = {
      {"no integer key, or no rows", std::nullopt, 4, {{open, open}}},
      {"one key", KeyExtent{7, 7}, 4, {{open, open}}},
      {"one session", KeyExtent{0, 99}, 1, {{open, open}}},
      {"bounds MIN + (MAX - MIN + 1) * i / n",
       KeyExtent{0, 29},
       4,
       {{open, 6}, {6, 14}, {14, 21}, {21, open}}},
      {"fewer keys than sessions", KeyExtent{1, 2}, 8, {{open, 1}, {1, open}}},
      {"the whole of bigint",
       KeyExtent{kLowest, kHighest},
       2,
       {{open, -1}, {-1, open}}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanKeyRanges(row.extent, row.count_max), row.ranges);
  }
}

TEST(PlanKeyRanges, EveryKeyIsInExactlyOneRange) {
  for (std::int64_t min = -5; min <= 3; ++min) {
    for (std::int64_t max = min; max <= 8; ++max) {
      for (std::int64_t count = 1; count <= 6; ++count) {
        const std::vector<KeyRange> ranges = PlanKeyRanges(KeyExtent{min, max}, count);
        ASSERT_LE(static_cast<std::int64_t>(ranges.size()), count);
        for (std::int64_t key = min - 2; key <= max + 2; ++key) {
          int holder_count = 0;
          for (const KeyRange& range : ranges) {
            const bool above = !range.after || key > *range.after;
            const bool below = !range.through || key <= *range.through;
            holder_count += above && below ? 1 : 0;
          }
          ASSERT_EQ(holder_count, 1);
        }
      }
    }
  }
}

TEST(SnapshotLsn, IsTheNewestCommitOrJustBelowAFreshInstance) {
  const Lsn five = Lsn::Parse("5").value();
  const Lsn nine = Lsn::Parse("9").value();
  const Lsn eight = Lsn::Parse("8").value();
  EXPECT_EQ(SnapshotLsn(nine, five), nine);
  EXPECT_EQ(SnapshotLsn(five, nine), eight);
  EXPECT_EQ(SnapshotLsn(std::nullopt, nine), eight);
  EXPECT_EQ(SnapshotLsn(five, std::nullopt), five);
  EXPECT_EQ(SnapshotLsn(std::nullopt, std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace mssql_cdc::cdc

#include "pipeline/compaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mssql_cdc::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Group = std::vector<std::int32_t>;

TEST(Compaction, MergesWhatPays) {
  const CompactionLimits limits{
      .small_size_bytes = 10, .target_size_bytes = 20, .removed_share_max = 0.2};
  EXPECT_THAT(PlanCompaction({}, limits), IsEmpty());
  // One small file alone stays.
  EXPECT_THAT(PlanCompaction({{100, 0, 5}, {100, 0, 50}}, limits), IsEmpty());
  EXPECT_THAT(PlanCompaction({{100, 0, 5}, {100, 0, 50}, {100, 0, 5}}, limits),
              ElementsAre(Group{0, 2}));
  // Many rows gone: alone, too, and where the log does not say of how many.
  EXPECT_THAT(PlanCompaction({{100, 20, 50}, {100, 21, 50}}, limits),
              ElementsAre(Group{1}));
  EXPECT_THAT(PlanCompaction({{std::nullopt, 1, 50}}, limits), ElementsAre(Group{0}));
  // Groups end at the size that is aimed at.
  EXPECT_THAT(
      PlanCompaction({{1, 0, 9}, {1, 0, 9}, {1, 0, 9}, {1, 0, 9}, {1, 0, 9}}, limits),
      ElementsAre(Group{0, 1, 2}, Group{3, 4}));
}

}  // namespace
}  // namespace mssql_cdc::pipeline

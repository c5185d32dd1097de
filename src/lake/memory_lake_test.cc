// What only the memory lake can do: fail on request.

#include "lake/memory_lake.h"

#include <gtest/gtest.h>

#include "lake/rows_for_test.h"

namespace mssql_cdc::lake {
namespace {

using columns::Kind;
using columns::Schema;

const Schema kNumbers{{{"n", {Kind::kInt32}}}};

Result<AppendResult> AppendOne(MemoryLake& lake, std::int64_t txn_version) {
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(
      ReadRows(kNumbers, 1, [](auto, auto, auto& out) { out.AppendInt32(1); }));
  return lake.Append("t", std::move(sources),
                     {Txn{"app", txn_version}, nullptr, false});
}

class MemoryLakeTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(lake_.Create("t", {kNumbers, "", {}}).ok()); }

  MemoryLake lake_{1000};
};

TEST_F(MemoryLakeTest, AConflictChangesNothingAndEnds) {
  lake_.ConflictNext(2);
  EXPECT_EQ(AppendOne(lake_, 1).error().id(), ErrorId::kLakeConflict);
  EXPECT_EQ(lake_.Alter("t", {}, {{"a", "b"}}).error().id(), ErrorId::kLakeConflict);
  EXPECT_EQ(lake_.State("t").value()->version, 0);
  EXPECT_EQ(AppendOne(lake_, 1).value().version, 1);
}

TEST_F(MemoryLakeTest, UnreachableConcernsEveryCall) {
  lake_.UnreachableNext(3);
  EXPECT_EQ(lake_.State("t").error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(lake_.RowCount("t").error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(AppendOne(lake_, 1).error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(lake_.RowCount("t").value(), 0);
}

TEST_F(MemoryLakeTest, ALostReplyLeavesTheCommit) {
  lake_.LoseNextReply();
  EXPECT_EQ(AppendOne(lake_, 1).error().id(), ErrorId::kLakeUnreachable);
  EXPECT_EQ(AppendOne(lake_, 1).value().outcome, AppendOutcome::kAlreadyThere);
  EXPECT_EQ(lake_.RowCount("t").value(), 1);
}

TEST_F(MemoryLakeTest, CommitsAreDatedAsToldAndTablesCanBeDropped) {
  ASSERT_TRUE(AppendOne(lake_, 1).ok());
  EXPECT_EQ(lake_.History("t", 1).value().at(0).timestamp_ms, 1001);
  lake_.Drop("t");
  EXPECT_EQ(lake_.State("t").value(), std::nullopt);
}

}  // namespace
}  // namespace mssql_cdc::lake

#include "extension/spark_lake.h"

#include <gtest/gtest.h>

#include "lake/memory_lake.h"

namespace mssql_cdc::extension {
namespace {

// Fails the test when somebody reads it.
class NeverRead final : public columns::BatchReader {
 public:
  columns::SchemaPtr schema() const override {
    return std::make_shared<const columns::Schema>();
  }
  Result<std::optional<columns::RecordBatch>> Next() override {
    ADD_FAILURE() << "the source was read";
    return std::optional<columns::RecordBatch>();
  }
};

std::vector<std::unique_ptr<columns::BatchReader>> Unread() {
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(std::make_unique<NeverRead>());
  return sources;
}

TEST(SparkLake, LetsSparkWriteAWholeSnapshot) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze", "facts");
  std::string told;
  std::int64_t row_count = 12;
  lake.SetWriteSnapshot([&](const std::string& metadata) -> Result<std::int64_t> {
    told = metadata;
    return row_count;
  });
  lake::AppendSpec spec;
  spec.user_metadata = [] { return std::optional<std::string>("stamp"); };
  const auto written = lake.Append("bronze", Unread(), spec);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(told, "stamp");
  EXPECT_EQ(written.value().row_count, 12);
  EXPECT_EQ(written.value().outcome, lake::AppendOutcome::kCommitted);
  row_count = 0;
  EXPECT_EQ(lake.Append("bronze", Unread(), spec).value().outcome,
            lake::AppendOutcome::kNoRows);
}

TEST(SparkLake, GivesOnWhatSparkSays) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze", "facts");
  lake.SetWriteSnapshot([](const std::string&) -> Result<std::int64_t> {
    return Error(ErrorId::kLakeFailed);
  });
  const auto written = lake.Append("bronze", Unread(), {});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().id(), ErrorId::kLakeFailed);
}

TEST(SparkLake, HidesATargetWhoseSnapshotIsTakenAnew) {
  lake::MemoryLake tables;
  ASSERT_TRUE(tables.Create("bronze", {}).ok());
  SparkLake lake(tables, "bronze", "facts");
  EXPECT_TRUE(lake.State("bronze").value().has_value());
  lake.SetForgetsSnapshots(true);
  EXPECT_FALSE(lake.State("bronze").value().has_value());
}

TEST(SparkLake, LeavesOutFactsOnlyWhenTold) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze", "facts");
  lake.SetSparesFacts(true);
  EXPECT_EQ(lake.Append("facts", Unread(), {}).value().outcome,
            lake::AppendOutcome::kAlreadyThere);
  lake.SetSparesFacts(false);
  EXPECT_FALSE(lake.Append("facts", {}, {}).ok());  // There is no such table.
}

}  // namespace
}  // namespace mssql_cdc::extension

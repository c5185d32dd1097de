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
  SparkLake lake(tables, "bronze");
  std::string told;
  std::int64_t row_count = 12;
  lake.SetWriteSnapshot(
      [&](const std::string& metadata,
          const std::optional<lake::Txn>& txn) -> Result<std::int64_t> {
        told = metadata + (txn ? " " + txn->app_id : "");
        return row_count;
      });
  lake::AppendSpec spec;
  spec.user_metadata = [] { return std::optional<std::string>("stamp"); };
  const auto written = lake.Append("bronze", Unread(), spec);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(told, "stamp");
  EXPECT_EQ(written.value().row_count, 12);
  EXPECT_EQ(written.value().outcome, lake::AppendOutcome::kCommitted);
  spec.txn = lake::Txn{"orders-v1#switch", 3};
  ASSERT_TRUE(lake.Append("bronze", Unread(), spec).ok());
  EXPECT_EQ(told, "stamp orders-v1#switch");
  row_count = 0;
  EXPECT_EQ(lake.Append("bronze", Unread(), spec).value().outcome,
            lake::AppendOutcome::kNoRows);
}

TEST(SparkLake, GivesOnWhatSparkSays) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze");
  lake.SetWriteSnapshot(
      [](const std::string&, const std::optional<lake::Txn>&) -> Result<std::int64_t> {
        return Error(ErrorId::kLakeFailed);
      });
  const auto written = lake.Append("bronze", Unread(), {});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().id(), ErrorId::kLakeFailed);
}

TEST(SparkLake, LeavesOtherTablesToTheOtherLake) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze");
  EXPECT_FALSE(lake.Append("bronze", {}, {}).ok());  // There is no such table.
  lake.SetWriteSnapshot(
      [](const std::string&, const std::optional<lake::Txn>&) -> Result<std::int64_t> {
        ADD_FAILURE() << "Spark was asked";
        return std::int64_t{0};
      });
  EXPECT_FALSE(lake.Append("facts", {}, {}).ok());
}

TEST(SparkLake, KnowsACopyByItsColumns) {
  lake::MemoryLake tables;
  SparkLake lake(tables, "bronze");
  EXPECT_FALSE(lake.State(SparkLake::kCopy).value().has_value());
  lake.SetCopy({{{"id", columns::Type{columns::Kind::kInt32}},
                 {"note", columns::Type{columns::Kind::kUtf8}}}});
  const auto state = lake.State(SparkLake::kCopy);
  ASSERT_TRUE(state.ok() && state.value().has_value());
  EXPECT_EQ(state.value()->schema.fields.size(), 2U);
  lake::ReadSpec spec;
  spec.columns = {"note"};
  auto rows = lake.Read(SparkLake::kCopy, spec);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows.value()->schema()->fields.size(), 1U);
  EXPECT_EQ(rows.value()->schema()->fields[0].name, "note");
  EXPECT_FALSE(rows.value()->Next().value().has_value());
}

}  // namespace
}  // namespace mssql_cdc::extension

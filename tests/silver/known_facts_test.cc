#include "runtime/known_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lake/delta_lake.h"
#include "lake/rows_for_test.h"
#include "pipeline/facts.h"
#include "pipeline/tables.h"
#include "runtime/apply_facts.h"
#include "runtime/watched_lake_test.h"

namespace mssql_cdc::runtime {
namespace {

class KnownFactsTest : public testing::Test {
 protected:
  KnownFactsTest() {
    config_.bronze = "bronze.t";
    config_.facts_table = "facts";
    config_.facts_location = (folder_.path() / "facts").string();
    const pipeline::TableDefinition table = pipeline::FactsTable();
    EXPECT_TRUE(delta_
                    .Create(config_.facts_location,
                            {table.schema, table.description, table.properties})
                    .ok());
  }

  // A commit of one row; of a batch, or of an event.
  void Put(const std::optional<std::string>& event, bool says_so) {
    pipeline::FactsRow row;
    row.app_id = "t";
    row.batch_id = 1;
    row.event = event;
    row.target = config_.bronze;
    row.max_lsn = cdc::Lsn{}.Text();
    std::vector<columns::RecordBatch> batches;
    batches.push_back(pipeline::FactsBatch({row}));
    const columns::SchemaPtr schema = batches[0].schema;
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(columns::ReadBatches(schema, std::move(batches)));
    lake::AppendSpec spec;
    if (says_so) {
      spec.user_metadata = [] {
        return Result<std::optional<std::string>>(
            std::optional<std::string>(kNoEvents));
      };
    }
    ASSERT_TRUE(delta_.Append(config_.facts_location, std::move(sources), spec).ok());
  }

  // How many facts are found, and in how many reads.
  std::pair<std::size_t, int> Ask() {
    WatchedLake lake(delta_);
    int read_count = 0;
    lake.before = [&](std::string_view call, const std::string&) -> Status {
      read_count += call == "Read" ? 1 : 0;
      return Unit{};
    };
    const auto facts = ReadSnapshotFacts(lake, config_, &known_);
    EXPECT_TRUE(facts.ok() && facts.value());
    return {facts.value()->size(), read_count};
  }

  lake::TestFolder folder_;
  lake::DeltaLake delta_;
  SilverConfig config_;
  KnownFacts known_;
};

TEST_F(KnownFactsTest, BatchesAloneAreNotReadAgain) {
  Put("bootstrap", false);
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 1));
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 0));
  Put({}, true);
  Put({}, true);
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 0));
}

TEST_F(KnownFactsTest, AnEventIsSeenWhoeverWroteIt) {
  Put({}, true);
  EXPECT_EQ(Ask(), std::pair(std::size_t{0}, 1));
  Put({}, true);
  Put("snapshot_open", false);
  Put({}, true);
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 1));
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 0));
}

// A table that was made anew, or whose log was cleaned up, has no commits to tell.
TEST_F(KnownFactsTest, AMissingCommitIsNoneThatSaysNothing) {
  Put("bootstrap", false);
  EXPECT_EQ(Ask(), std::pair(std::size_t{1}, 1));
  Put("resnapshot", false);
  const auto version = delta_.State(config_.facts_location).value()->version;
  Put({}, true);
  std::filesystem::remove(std::filesystem::path(config_.facts_location) / "_delta_log" /
                          ("0000000000000000000" + std::to_string(version) + ".json"));
  const auto history = delta_.History(config_.facts_location, version);
  ASSERT_TRUE(history.ok());
  ASSERT_EQ(history.value().size(), 1u);
  const auto facts = ReadSnapshotFacts(delta_, config_, &known_);
  EXPECT_FALSE(facts.ok() && facts.value()->size() == 1);
}

}  // namespace
}  // namespace mssql_cdc::runtime

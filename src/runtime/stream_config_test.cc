#include "runtime/stream_config.h"

#include <gtest/gtest.h>

namespace mssql_cdc::runtime {
namespace {

using Options = std::map<std::string, std::string>;

const Options kNeeded = {{"captureInstance", "dbo_orders"},
                         {"target", "bronze.orders"},
                         {"app_id", "orders-v1"},
                         {"checkpoint", "lake/checkpoints/orders"}};
const Catalog kCatalog = {{"bronze.orders", "lake/bronze/orders"},
                          {"ops.facts", "lake/facts"}};

Options With(Options more) {
  more.insert(kNeeded.begin(), kNeeded.end());
  return more;
}

TEST(ParseStreamOptions, ReadsTheReferencesNamesInAnyCase) {
  const Result<ParsedOptions> parsed =
      ParseStreamOptions(With({{"FACTS_TABLE", "ops.facts"},
                               {"bootstrap", "Yes"},
                               {"maxcommitsperbatch", " 500 "},
                               {"numPartitions", "AUTO"},
                               {"arrowBatchSize", "2000"},
                               {"includeCommandId", "false"},
                               {"isolationLevel", "Snapshot"},
                               {"lockTimeoutMs", "0"},
                               {"trigger", "availableNow"},
                               {"failOnDataLoss", "true"},
                               {"connectionString", "Server=x"},
                               {"maxCommitPerBatch", "1"}}),
                         kCatalog);
  ASSERT_TRUE(parsed.ok()) << parsed.error().Text();
  const StreamConfig& config = parsed.value().config;
  EXPECT_EQ(config.capture_instance, "dbo_orders");
  EXPECT_EQ(config.target, "bronze.orders");
  EXPECT_EQ(config.target_location, "lake/bronze/orders");
  EXPECT_EQ(config.facts_table, "ops.facts");
  EXPECT_EQ(config.facts_location, "lake/facts");
  EXPECT_TRUE(config.bootstrap);
  EXPECT_EQ(config.max_commits_per_batch, 500);
  EXPECT_EQ(config.num_partitions, std::nullopt);
  EXPECT_EQ(config.arrow_batch_size, 2000);
  EXPECT_FALSE(config.include_command_id);
  EXPECT_EQ(config.isolation_level, IsolationLevel::kSnapshot);
  EXPECT_EQ(config.lock_timeout_ms, 0);
  EXPECT_EQ(config.trigger.kind, Trigger::Kind::kAvailableNow);
  EXPECT_EQ(parsed.value().unknown, (std::vector<std::pair<std::string, std::string>>{
                                        {"maxCommitPerBatch", "maxCommitsPerBatch"}}));
}

TEST(ParseStreamOptions, RefusesByName) {
  const struct {
    Options options;
    ErrorId error;
    const char* fact;
    const char* value;
  } kRows[] = {
      {{}, ErrorId::kOptionMissing, "option", "captureInstance"},
      {{{"captureInstance", "x"}, {"target", "/t"}, {"app_id", "a"}},
       ErrorId::kOptionMissing,
       "option",
       "checkpoint"},
      {With({{"maxCommitsPerBatch", "0"}}), ErrorId::kOptionInvalid, "option",
       "maxCommitsPerBatch"},
      {With({{"failOnDataLoss", "ture"}}), ErrorId::kOptionInvalid, "option",
       "failOnDataLoss"},
      {With({{"schemaChangePolicy", "ignore"}}), ErrorId::kOptionInvalid, "option",
       "schemaChangePolicy"},
      {With({{"startingLsn", "0xZZ"}}), ErrorId::kOptionInvalid, "option",
       "startingLsn"},
      {With({{"isolationLevel", "readUncommitted"}}), ErrorId::kOptionInvalid, "option",
       "isolationLevel"},
      {With({{"trigger", "5 lightyears"}}), ErrorId::kOptionInvalid, "option",
       "trigger"},
      {With({{"facts_table", "ops.fact"}}), ErrorId::kOptionInvalid, "nearest",
       "ops.facts"},
      {With({{"bootstrap", "true"}, {"startingLsn", "latest"}}), ErrorId::kOptionsClash,
       "options", "bootstrap, startingLsn"},
      {With({{"Target", "/elsewhere"}}), ErrorId::kOptionsClash, "options",
       "Target, target"},
      {With({{"pollFirstMs", "50"}, {"pollMaxMs", "10"}}), ErrorId::kOptionsClash,
       "options", "pollFirstMs, pollMaxMs"},
      {{{"captureInstance", "x"},
        {"target", "/t"},
        {"app_id", "a"},
        {"checkpoint", "s3://bucket/c"}},
       ErrorId::kOptionInvalid,
       "option",
       "checkpoint"},
      {{{"captureInstance", "a]b"},
        {"target", "/t"},
        {"app_id", "a"},
        {"checkpoint", "c"}},
       ErrorId::kOptionInvalid,
       "option",
       "captureInstance"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.value);
    const Result<ParsedOptions> parsed = ParseStreamOptions(row.options, kCatalog);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().id(), row.error) << parsed.error().Text();
    EXPECT_EQ(parsed.error().Fact(row.fact), row.value) << parsed.error().Text();
  }
}

TEST(ParseTrigger, Table) {
  const struct {
    const char* text;
    std::optional<Trigger> trigger;
  } kRows[] = {
      {"once", Trigger{Trigger::Kind::kOnce, 0}},
      {" AvailableNow ", Trigger{Trigger::Kind::kAvailableNow, 0}},
      {"continuous", Trigger{Trigger::Kind::kContinuous, 0}},
      {"500 ms", Trigger{Trigger::Kind::kInterval, 500}},
      {"5 seconds", Trigger{Trigger::Kind::kInterval, 5'000}},
      {"1 minute", Trigger{Trigger::Kind::kInterval, 60'000}},
      {"2h", Trigger{Trigger::Kind::kInterval, 7'200'000}},
      {"0 seconds", std::nullopt},
      {"seconds", std::nullopt},
      {"5", std::nullopt},
      {"9223372036854775807 hours", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.text);
    const Result<Trigger> trigger = ParseTrigger(row.text);
    ASSERT_EQ(trigger.ok(), row.trigger.has_value());
    if (trigger.ok()) {
      EXPECT_EQ(trigger.value(), *row.trigger);
    }
  }
}

TEST(Locate, PathsAreThemselvesAndNamesAreLookedUp) {
  EXPECT_EQ(Locate(kCatalog, "lake/x").value(), "lake/x");
  EXPECT_EQ(Locate(kCatalog, "s3://b/x").value(), "s3://b/x");
  EXPECT_EQ(Locate(kCatalog, "ops.facts").value(), "lake/facts");
  EXPECT_EQ(Locate(kCatalog, "bronze.order").error().Fact("nearest"), "bronze.orders");
}

}  // namespace
}  // namespace mssql_cdc::runtime

#include "runtime/stream_config.h"

#include <gtest/gtest.h>

#include "cdc/option_table.h"

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
                               {"comment", "1"}}),
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
  EXPECT_EQ(parsed.value().unknown, (std::vector<std::string>{"comment"}));
}

TEST(ParseStreamOptions, RefusesAValueByItsOptionsName) {
  const std::pair<const char*, const char*> kRows[] = {
      {"maxCommitsPerBatch", "0"},
      {"failOnDataLoss", "ture"},
      {"snapshotKeys", "id"},
      {"snapshotKeys", "[]"},
      {"metricsPath", "s3://bucket/m"},
      {"metricsPath", "dbfs:/m"},
      {"schemaChangePolicy", "ignore"},
      {"columns", "id INTEGRAL"},
      {"backend", "mssql-python"},
      {"backend", "arrow-odbc"},
      {"snapshotLsn", "0x1"},
      {"snapshotChunks", "[]"},
      {"on_data_loss", "ignore"},
      {"resnapshot_interval_days", "-1"},
      {"resnapshot_interval_days", "a week"},
      {"snapshot", "partial"},
      {"snapshot_on_switch", "ture"},
      {"retries", "-1"},
      {"silverIntervalMs", "-1"},
      {"startingLsn", "0xZZ"},
      {"isolationLevel", "readUncommitted"},
      {"trigger", "5 lightyears"},
      {"app_id", "a\nb"},
      {"checkpoint", "s3://bucket/c"},
      {"captureInstance", "a]b"},
  };
  for (const auto& [name, value] : kRows) {
    SCOPED_TRACE(name);
    Options options = kNeeded;
    options[name] = value;
    const Result<ParsedOptions> parsed = ParseStreamOptions(options, kCatalog);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().id(), ErrorId::kOptionInvalid) << parsed.error().Text();
    EXPECT_EQ(parsed.error().Fact("option"), name) << parsed.error().Text();
  }
}

TEST(ParseStreamOptions, RefusesWhatDoesNotFitTogether) {
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
      {With({{"boostrap", "true"}}), ErrorId::kOptionUnknown, "nearest", "bootstrap"},
      {With({{"facts_table", "ops.fact"}}), ErrorId::kOptionInvalid, "nearest",
       "ops.facts"},
      {With({{"bootstrap", "true"}, {"startingLsn", "latest"}}), ErrorId::kOptionsClash,
       "options", "bootstrap, startingLsn"},
      {With({{"Target", "/elsewhere"}}), ErrorId::kOptionsClash, "options",
       "Target, target"},
      {With({{"backend", "fake"}}), ErrorId::kOptionMissing, "option", "fakePath"},
      {With({{"pollFirstMs", "50"}, {"pollMaxMs", "10"}}), ErrorId::kOptionsClash,
       "options", "pollFirstMs, pollMaxMs"},
      {With({{"snapshot", "chunked"}}), ErrorId::kOptionMissing, "needed_by",
       "snapshot = chunked"},
      {With({{"on_data_loss", "resnapshot"}, {"facts_table", ""}}),
       ErrorId::kOptionMissing, "needed_by", "on_data_loss = resnapshot"},
      {With({{"on_data_loss", "resnapshot"},
             {"facts_table", "ops.facts"},
             {"failOnDataLoss", "false"}}),
       ErrorId::kOptionsClash, "options", "on_data_loss, failOnDataLoss"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.value);
    const Result<ParsedOptions> parsed = ParseStreamOptions(row.options, kCatalog);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().id(), row.error) << parsed.error().Text();
    EXPECT_EQ(parsed.error().Fact(row.fact), row.value) << parsed.error().Text();
  }
}

TEST(ParseStreamOptions, SnapshotsOfEveryKind) {
  const Result<ParsedOptions> parsed =
      ParseStreamOptions(With({{"facts_table", "ops.facts"},
                               {"on_data_loss", " Resnapshot "},
                               {"resnapshot_interval_days", "0.5"},
                               {"snapshot_on_switch", "yes"},
                               {"snapshot", "Chunked"},
                               {"snapshotKeys", "[\"created_at\"]"}}),
                         kCatalog);
  ASSERT_TRUE(parsed.ok()) << parsed.error().Text();
  const StreamConfig& config = parsed.value().config;
  EXPECT_EQ(config.on_data_loss, OnDataLoss::kResnapshot);
  EXPECT_EQ(config.resnapshot_interval_days, 0.5);
  EXPECT_TRUE(config.snapshot_on_switch);
  EXPECT_EQ(config.snapshot, pipeline::SnapshotMode::kChunked);
  EXPECT_EQ(config.snapshot_keys, std::vector<std::string>{"created_at"});
  const Result<ParsedOptions> by_hand =
      ParseStreamOptions(With({{"snapshotLsn", "0x1"}, {"snapshotChunks", "[]"}}),
                         kCatalog, OptionUse::kSnapshotByHand);
  EXPECT_TRUE(by_hand.ok());
}

// Every parameter of the option table is known, and its default is what leaving it out
// means.
TEST(ParseStreamOptions, KnowsEveryRowOfTheTable) {
  Options defaults = kNeeded;
  for (const cdc::OptionRow& row : cdc::kOptionTable) {
    if (row.default_value == "required" || row.default_value == "none") continue;
    defaults.emplace(row.name, row.default_value);
  }
  defaults.erase("startingLsn");
  const auto given = ParseStreamOptions(defaults, kCatalog);
  const auto left_out = ParseStreamOptions(kNeeded, kCatalog);
  ASSERT_TRUE(given.ok() && left_out.ok());
  EXPECT_TRUE(given.value().unknown.empty());
  const StreamConfig& a = given.value().config;
  const StreamConfig& b = left_out.value().config;
  EXPECT_EQ(a.bootstrap, b.bootstrap);
  EXPECT_EQ(a.trigger, b.trigger);
  EXPECT_EQ(a.poll_first_ms, b.poll_first_ms);
  EXPECT_EQ(a.poll_max_ms, b.poll_max_ms);
  EXPECT_EQ(a.retry_count_max, b.retry_count_max);
}

TEST(CheckLocations, FoldersDoNotLieInEachOther) {
  const struct {
    const char* target;
    const char* facts;
    const char* checkpoint;
    const char* clash;  // The option named, or nullptr.
  } kRows[] = {
      {"/l/bronze", "/l/facts", "/l/checkpoint", nullptr},
      {"/l/bronze", "/l/bronze2", "/l/bronze3", nullptr},
      {"/l/bronze", "/l/facts", "/l/bronze/_checkpoints/a", nullptr},
      {"s3://b/bronze", "s3://b/facts", "/l/checkpoint", nullptr},
      {"/l/bronze", "/l/facts", "/l/bronze/checkpoint", "checkpoint"},
      {"/l/bronze", "/l/facts", "/l/bronze/_delta_log/c", "checkpoint"},
      {"/l/bronze/", "/l/facts", "/l/x/../bronze/c", "checkpoint"},
      {"/l/bronze", "/l/facts", "/l/facts/c", "checkpoint"},
      {"/l/bronze", "/l/facts", "/l/bronze", "checkpoint"},
      {"/l/bronze", "/l/bronze", "/l/c", "facts_table"},
      {"/l/bronze", "/l/bronze/facts", "/l/c", "facts_table"},
      {"/l/c/bronze", "/l/facts", "/l/c", "target"},
      {"file:///l/bronze", "/l/facts", "/l/bronze/c", "checkpoint"},
      {"/l/bronze", "FILE:///l/x/../bronze//", "/l/c", "facts_table"},
      {"file:///l/bronze/", "file:///l/bronze/facts", "/l/c", "facts_table"},
      {"s3://b/bronze/", "s3://b/bronze", "/l/c", "facts_table"},
      {"file:///l/bronze", "file:///l/facts", "/l/checkpoint", nullptr},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(std::string(row.target) + " " + row.facts + " " + row.checkpoint);
    StreamConfig config;
    config.target_location = row.target;
    config.facts_table = config.facts_location = row.facts;
    config.checkpoint = row.checkpoint;
    const Status status = CheckLocations(config);
    ASSERT_EQ(status.ok(), row.clash == nullptr);
    if (status.ok()) continue;
    EXPECT_EQ(status.error().id(), ErrorId::kOptionsClash);
    EXPECT_EQ(status.error().Fact("option"), row.clash) << status.error().Text();
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

#include "cdc/source_options.h"

#include <gtest/gtest.h>

#include <limits>

#include "cdc/option_table.h"
#include "cdc/option_values.h"

namespace mssql_cdc::cdc {
namespace {

using Options = std::map<std::string, std::string>;

Result<ParsedSourceOptions> Parse(Options more) {
  more.emplace("captureInstance", "dbo_orders");
  return ParseSourceOptions(more);
}

TEST(SourceOptions, EveryOneIsReadInAnyCase) {
  const auto parsed = Parse({{"BACKEND", "Fake"},
                             {"fakepath", "/sim"},
                             {"sourcetimezone", "E. South America Standard Time"},
                             {"LockTimeoutMs", "0"},
                             {"columns", "id INT"},
                             {"includecommandid", "No"},
                             {"startingLSN", " 2A000001F00003 "},
                             {"maxcommitsperbatch", "0007"},
                             {"numPartitions", " 1_0 "},
                             {"arrowBatchSize", "+5"},
                             {"failOnDataLoss", "n"},
                             {"schemachangepolicy", " Fail "},
                             {"metricspath", "s3://b/m"},
                             {"snapshotlsn", "0x2A"},
                             {"snapshotchunks", "[]"},
                             {"snapshotkeys", "[\"a\", \"b\"]"},
                             {"isolationlevel", "SNAPSHOT"}});
  ASSERT_TRUE(parsed.ok()) << parsed.error().Text();
  const SourceOptions& options = parsed.value().options;
  EXPECT_EQ(options.capture_instance, "dbo_orders");
  EXPECT_EQ(options.backend, Backend::kFake);
  EXPECT_EQ(options.fake_path, "/sim");
  EXPECT_EQ(options.source_time_zone, "E. South America Standard Time");
  EXPECT_EQ(options.lock_timeout_ms, 0);
  EXPECT_EQ(options.columns, "id INT");
  EXPECT_FALSE(options.include_command_id);
  EXPECT_EQ(options.starting_lsn, "0x0000002A000001F00003");
  EXPECT_TRUE(options.starting_lsn_given);
  EXPECT_EQ(options.max_commits_per_batch, 7);
  EXPECT_EQ(options.num_partitions, 10);
  EXPECT_EQ(options.arrow_batch_size, 5);
  EXPECT_FALSE(options.fail_on_data_loss);
  EXPECT_EQ(options.schema_change_policy, SchemaChangePolicy::kFail);
  EXPECT_EQ(options.metrics_path, "s3://b/m");
  EXPECT_EQ(options.snapshot_lsn, "0x0000000000000000002A");
  EXPECT_EQ(options.snapshot_chunks, "[]");
  EXPECT_EQ(options.snapshot_keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.isolation_level, IsolationLevel::kSnapshot);
  EXPECT_TRUE(parsed.value().others.empty());
}

// What the table calls a default is what leaving the option out means.
TEST(SourceOptions, DefaultsAreThoseOfTheTable) {
  Options defaults;
  for (const OptionRow& row : kOptionTable) {
    if (row.group != OptionGroup::kSource || row.default_value == "required" ||
        row.default_value == "none") {
      continue;
    }
    defaults.emplace(row.name, row.default_value);
  }
  const auto given = Parse(defaults);
  const auto left_out = Parse({});
  ASSERT_TRUE(given.ok() && left_out.ok());
  const SourceOptions& a = given.value().options;
  const SourceOptions& b = left_out.value().options;
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.source_time_zone, b.source_time_zone);
  EXPECT_EQ(a.include_command_id, b.include_command_id);
  EXPECT_EQ(a.starting_lsn, b.starting_lsn);
  EXPECT_EQ(a.num_partitions, b.num_partitions);
  EXPECT_EQ(a.arrow_batch_size, b.arrow_batch_size);
  EXPECT_EQ(a.fail_on_data_loss, b.fail_on_data_loss);
  EXPECT_EQ(a.schema_change_policy, b.schema_change_policy);
  EXPECT_EQ(a.isolation_level, b.isolation_level);
}

TEST(SourceOptions, EveryRowOfTheTableIsKnown) {
  for (const OptionRow& row : kOptionTable) {
    SCOPED_TRACE(row.name);
    if (row.group != OptionGroup::kSource || row.name == "captureInstance") continue;
    const auto parsed = Parse({{std::string(row.name), ""}});
    if (parsed.ok()) {
      EXPECT_TRUE(parsed.value().others.empty());
    } else {
      EXPECT_EQ(parsed.error().id(), ErrorId::kOptionInvalid);
    }
  }
}

// An empty text is no value where a text is wanted, and a wrong one elsewhere.
TEST(SourceOptions, EmptyTexts) {
  for (const char* name :
       {"columns", "startingLsn", "maxCommitsPerBatch", "metricsPath", "snapshotLsn",
        "snapshotChunks", "snapshotKeys", "user", "password", "accessToken",
        "tokenProvider"}) {
    EXPECT_TRUE(Parse({{name, ""}}).ok()) << name;
  }
  for (const char* name : {"numPartitions", "arrowBatchSize", "includeCommandId",
                           "failOnDataLoss", "schemaChangePolicy", "isolationLevel",
                           "lockTimeoutMs", "sourceTimeZone", "backend"}) {
    const auto parsed = Parse({{name, ""}});
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().id(), ErrorId::kOptionInvalid) << name;
    EXPECT_EQ(parsed.error().Fact("option"), name);
  }
  const auto missing = ParseSourceOptions({{"captureInstance", ""}});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().id(), ErrorId::kOptionMissing);
}

TEST(SourceOptions, EachRefusalNamesTheOptionAndWhatItTakes) {
  const struct {
    const char* name;
    const char* value;
  } kRows[] = {
      {"backend", " fake"},
      {"backend", "odbc"},
      {"sourceTimeZone", "UTC'; --"},
      {"lockTimeoutMs", "-1"},
      {"lockTimeoutMs", "1e3"},
      {"includeCommandId", "ture"},
      {"failOnDataLoss", "ture"},
      {"failOnDataLoss", "on"},
      {"startingLsn", "0xZZ"},
      {"startingLsn", "0x123456789012345678901"},
      {"maxCommitsPerBatch", "0"},
      {"maxCommitsPerBatch", "1.0"},
      {"maxCommitsPerBatch", "1__0"},
      {"maxCommitsPerBatch", "_1"},
      {"numPartitions", "0"},
      {"numPartitions", "many"},
      {"arrowBatchSize", "0"},
      {"schemaChangePolicy", "ignore"},
      {"isolationLevel", "readUncommitted"},
      {"metricsPath", "dbfs:/m"},
      {"snapshotLsn", "now"},
      {"snapshotKeys", "a"},
      {"snapshotKeys", "[]"},
      {"snapshotKeys", "[\"\"]"},
      {"snapshotKeys", "[1]"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(std::string(row.name) + " = " + row.value);
    const auto parsed = Parse({{row.name, row.value}});
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(parsed.error().id(), ErrorId::kOptionInvalid);
    EXPECT_EQ(parsed.error().Fact("option"), row.name);
    EXPECT_EQ(parsed.error().Fact("value"), row.value);
    EXPECT_EQ(parsed.error().Fact("allowed"), FindOption(row.name)->choices);
  }
}

TEST(SourceOptions, CaptureInstanceNames) {
  for (const char* name : {"dbo_Café", "a b", "$x", "\xE2\x80\x99"}) {
    EXPECT_TRUE(ParseSourceOptions({{"captureInstance", name}}).ok()) << name;
  }
  for (const std::string& name :
       {std::string("a]b"), std::string("a\nb"), std::string(101, 'x')}) {
    const auto parsed = ParseSourceOptions({{"captureInstance", name}});
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().id(), ErrorId::kOptionInvalid);
  }
}

TEST(SourceOptions, OneOptionInTwoSpellings) {
  const auto parsed = Parse({{"numPartitions", "1"}, {"numpartitions", "2"}});
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().id(), ErrorId::kOptionsClash);
}

TEST(SourceOptions, TheNearestKnownName) {
  const struct {
    const char* name;
    const char* nearest;
  } kRows[] = {
      {"boostrap", "bootstrap"},
      {"maxCommitPerBatch", "maxCommitsPerBatch"},
      {"capture_instance", "captureInstance"},
      {"appid", "app_id"},
      {"factsTable", "facts_table"},
      {"pasword", "password"},
      {"conection_string", "connectionString"},
      {"starting", ""},
      {"comment", ""},
      {"x", ""},
      {"", ""},
  };
  for (const auto& row : kRows) EXPECT_EQ(NearestOption(row.name), row.nearest);
}

TEST(OptionValues, IntegersAreReadAsPythonReadsThem) {
  const auto read = [](const char* text) {
    return ParseIntegerOption("retries", text, -9);
  };
  EXPECT_EQ(read(" 0007 ").value(), 7);
  EXPECT_EQ(read("1_000").value(), 1000);
  EXPECT_EQ(read("-3").value(), -3);
  EXPECT_EQ(read("99999999999999999999").value(),
            std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", "+", "-", "1.", "0x10", "1 0", "_1", "1_", "-10", "٣"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

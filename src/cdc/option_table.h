// Every option and parameter there is, as data: what docs/options.md lists, what a
// misspelt name is compared with, and what an error says an option takes.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace mssql_cdc::cdc {

enum class OptionGroup : std::uint8_t {
  kSource,  // Of spark.readStream too; every reader knows these names.
  kStream,  // What to_delta() takes as parameters.
  kLocal,   // Of this program's own runs.
};

struct OptionRow {
  std::string_view name;
  OptionGroup group;
  std::string_view default_value;  // As it would be given; "required", or "none".
  std::string_view choices;
};

// tools/tidy.py compares the rows with docs/options.md.
inline constexpr std::array kOptionTable = {
    OptionRow{"captureInstance", OptionGroup::kSource, "required",
              "a name of 1 to 100 characters, no ] and no control character"},
    OptionRow{"connectionString", OptionGroup::kSource, "required",
              "keyword=value pairs separated by ;"},
    OptionRow{"user", OptionGroup::kSource, "none", "a login's name or client id"},
    OptionRow{"password", OptionGroup::kSource, "none", "a secret"},
    OptionRow{"accessToken", OptionGroup::kSource, "none", "a secret"},
    OptionRow{"tokenProvider", OptionGroup::kSource, "none",
              "command:a shell command, or file:a path"},
    OptionRow{"backend", OptionGroup::kSource, "native",
              "native, fake, mssql-python or arrow-odbc"},
    OptionRow{"connectTimeout", OptionGroup::kSource, "30",
              "seconds, an integer from 0"},
    OptionRow{"lockTimeoutMs", OptionGroup::kSource, "none",
              "milliseconds, an integer from 0"},
    OptionRow{"sourceTimeZone", OptionGroup::kSource, "auto",
              "auto, UTC or a Windows time zone's name"},
    OptionRow{"fakePath", OptionGroup::kSource, "none", "a directory"},
    OptionRow{"columns", OptionGroup::kSource, "none",
              "Spark DDL such as id INT, name STRING"},
    OptionRow{"includeCommandId", OptionGroup::kSource, "true",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"startingLsn", OptionGroup::kSource, "earliest",
              "earliest, latest or an LSN"},
    OptionRow{"maxCommitsPerBatch", OptionGroup::kSource, "none",
              "an integer from 1; leave it out to read all there is"},
    OptionRow{"numPartitions", OptionGroup::kSource, "auto",
              "auto or an integer from 1"},
    OptionRow{"arrowBatchSize", OptionGroup::kSource, "10000", "an integer from 1"},
    OptionRow{"failOnDataLoss", OptionGroup::kSource, "true",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"schemaChangePolicy", OptionGroup::kSource, "classify",
              "classify or fail"},
    OptionRow{"metricsPath", OptionGroup::kSource, "none",
              "a directory, or a file://, s3://, gs://, abfss:// or hdfs:// URI"},
    OptionRow{"snapshotLsn", OptionGroup::kSource, "none", "an LSN"},
    OptionRow{"snapshotChunks", OptionGroup::kSource, "none",
              "a JSON list of [chunk, lo, hi]"},
    OptionRow{"snapshotKeys", OptionGroup::kSource, "none",
              "a JSON list of column names such as [\"created_at\"]"},
    OptionRow{"isolationLevel", OptionGroup::kSource, "readCommitted",
              "readCommitted or snapshot"},
    OptionRow{"target", OptionGroup::kStream, "required",
              "a name of the catalog, or a path"},
    OptionRow{"app_id", OptionGroup::kStream, "required",
              "a name without control characters"},
    OptionRow{"checkpoint", OptionGroup::kStream, "required",
              "a directory of this machine, outside the tables"},
    OptionRow{"facts_table", OptionGroup::kStream, "none",
              "a name of the catalog, or a path"},
    OptionRow{"bootstrap", OptionGroup::kStream, "false",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"on_data_loss", OptionGroup::kStream, "fail", "fail or resnapshot"},
    OptionRow{"resnapshot_interval_days", OptionGroup::kStream, "7",
              "days, a number from 0"},
    OptionRow{"snapshot_on_switch", OptionGroup::kStream, "false",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"snapshot", OptionGroup::kStream, "full", "full or chunked"},
    OptionRow{"trigger", OptionGroup::kStream, "continuous",
              "once, availableNow, continuous, or an interval such as 5 seconds"},
    OptionRow{"control_table", OptionGroup::kStream, "none",
              "a name of the catalog, or a path"},
    OptionRow{"keys", OptionGroup::kStream, "none",
              "column names separated by commas, or a JSON list of them"},
    OptionRow{"granularity", OptionGroup::kStream, "hour", "minute, hour or day"},
    OptionRow{"silver", OptionGroup::kLocal, "none",
              "a name of the catalog, or a path"},
    OptionRow{"silverIntervalMs", OptionGroup::kLocal, "1000", "an integer from 0"},
    OptionRow{"deletionVectors", OptionGroup::kLocal, "true",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"captureInstances", OptionGroup::kLocal, "none",
              "names and patterns separated by commas, or a list of them"},
    OptionRow{"changedColumns", OptionGroup::kLocal, "false",
              "true, 1, yes, y, false, 0, no or n"},
    OptionRow{"unchangedLob", OptionGroup::kLocal, "null", "null, previous or listed"},
    OptionRow{"pollFirstMs", OptionGroup::kLocal, "10", "an integer from 1"},
    OptionRow{"pollMaxMs", OptionGroup::kLocal, "2000", "an integer from 1"},
    OptionRow{"retries", OptionGroup::kLocal, "3", "an integer from 0"},
};

// The row of `name` in any case, or nullptr.
const OptionRow* FindOption(std::string_view name);

// The known name that `name` is probably meant to be; empty if none is near.
std::string NearestOption(std::string_view name);

}  // namespace mssql_cdc::cdc

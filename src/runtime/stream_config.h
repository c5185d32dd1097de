// What one stream is told: the reference's option names, parsed and checked.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/read_plan.h"

namespace mssql_cdc::runtime {

// When the next batch begins, and when a run ends by itself.
struct Trigger {
  enum class Kind : std::uint8_t {
    kOnce,          // One batch with what is there, then the run ends.
    kAvailableNow,  // Everything that was there when the run began, then the run ends.
    kInterval,      // A batch every interval_ms, until stopped.
    kContinuous,    // As fast as changes come, until stopped; polling backs off when
                    // idle.
  };
  Kind kind = Kind::kContinuous;
  std::int64_t interval_ms = 0;  // Of kInterval.

  bool operator==(const Trigger&) const = default;
};

// "once", "availableNow", "continuous", or an interval such as "500 ms", "5 seconds",
// "1 minute", "2 hours" (Spark's processingTime). Errors: OptionInvalid.
Result<Trigger> ParseTrigger(std::string_view text);

enum class IsolationLevel : std::uint8_t { kReadCommitted, kSnapshot };

struct StreamConfig {
  std::string capture_instance;  // captureInstance, as the user spelled it.
  std::string target;            // As given: the key that facts rows carry.
  std::string target_location;   // Where `target` is: a path or URL.
  std::string app_id;
  std::string checkpoint;                  // A directory of this machine.
  std::optional<std::string> facts_table;  // As given.
  std::string facts_location;              // Where `facts_table` is, if there is one.
  bool bootstrap = false;
  Trigger trigger;

  std::string starting_lsn = "earliest";  // "earliest", "latest" or an LSN.
  std::optional<std::int64_t> max_commits_per_batch;
  std::optional<std::int64_t> num_partitions;  // Absent: one per CPU.
  std::int64_t arrow_batch_size = 10'000;
  bool include_command_id = true;
  std::string source_time_zone = "auto";
  std::optional<std::int64_t> lock_timeout_ms;  // Of reads of the source table.
  IsolationLevel isolation_level = IsolationLevel::kReadCommitted;
  bool fail_on_data_loss = true;
  cdc::SchemaChangePolicy schema_change_policy = cdc::SchemaChangePolicy::kClassify;

  // How an idle continuous stream polls: from poll_first_ms, doubling up to
  // poll_max_ms.
  std::int64_t poll_first_ms = 10;
  std::int64_t poll_max_ms = 2'000;
  // How often a step that failed with remedy retry is tried again before the run ends.
  std::int64_t retry_count_max = 3;
  std::int64_t retry_wait_first_ms = 2'000;
};

// Name = location of tables: the config file's [catalog].
using Catalog = std::map<std::string, std::string>;

// Where the table `reference` is: a path (anything with / or :) is itself, a name is
// looked up. Errors: OptionInvalid for a name the catalog lacks, with the nearest one.
Result<std::string> Locate(const Catalog& catalog, const std::string& reference);

struct ParsedOptions {
  StreamConfig config;
  // Names nobody reads, as spelled; a warning is due, with the nearest known name.
  std::vector<std::pair<std::string, std::string>> unknown;
};

// Reads a stream's options: captureInstance target app_id checkpoint facts_table
// bootstrap trigger startingLsn maxCommitsPerBatch numPartitions arrowBatchSize
// includeCommandId sourceTimeZone lockTimeoutMs isolationLevel failOnDataLoss
// schemaChangePolicy pollFirstMs pollMaxMs retries. Names match ignoring case. The
// connection's options (connectionString, user, password, connectTimeout, ...) are
// accepted and left to the caller.
//
// Errors: OptionMissing, OptionInvalid, OptionsClash (facts option, value).
Result<ParsedOptions> ParseStreamOptions(
    const std::map<std::string, std::string>& options, const Catalog& catalog);

}  // namespace mssql_cdc::runtime

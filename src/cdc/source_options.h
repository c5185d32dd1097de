// The source options of a stream, parsed: what every reader of change data is told,
// here and in Spark. How it connects is not part of it.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::cdc {

enum class Backend : std::uint8_t { kNative, kFake, kMssqlPython, kArrowOdbc };
enum class IsolationLevel : std::uint8_t { kReadCommitted, kSnapshot };
enum class SchemaChangePolicy : std::uint8_t { kClassify, kFail };

// Members have the defaults of the option table.
struct SourceOptions {
  std::string capture_instance;  // As the user spelled it.
  Backend backend = Backend::kNative;
  std::string fake_path;
  std::string columns;                    // Spark DDL; empty: what is captured.
  std::string source_time_zone = "auto";  // "auto" or a name safe in a statement.
  std::string starting_lsn = "earliest";  // "earliest", "latest" or an LSN's text.
  bool starting_lsn_given = false;
  std::optional<std::int64_t> max_commits_per_batch;
  std::optional<std::int64_t> num_partitions;  // Absent: auto, one per CPU.
  std::int64_t arrow_batch_size = 10'000;
  bool include_command_id = true;
  bool fail_on_data_loss = true;
  SchemaChangePolicy schema_change_policy = SchemaChangePolicy::kClassify;
  std::string metrics_path;                     // Empty: none.
  std::optional<std::int64_t> lock_timeout_ms;  // Of reads of the source table.
  IsolationLevel isolation_level = IsolationLevel::kReadCommitted;
  std::string snapshot_lsn;
  std::string snapshot_chunks;
  std::vector<std::string> snapshot_keys;
};

struct ParsedSourceOptions {
  SourceOptions options;
  // Names that are no source options, as spelled, with the nearest known name or "".
  std::vector<std::pair<std::string, std::string>> others;
};

// Reads the source options among `options`, names in any case. The connection's own
// (connectionString, user, password, accessToken, tokenProvider, connectTimeout) are
// accepted and left to whoever connects. An empty text counts as not given where the
// option is a text, and is invalid where it is a number or a choice.
//
// Errors: OptionMissing without captureInstance; OptionInvalid (facts option, value,
// allowed); OptionsClash for one option in two spellings.
Result<ParsedSourceOptions> ParseSourceOptions(
    const std::map<std::string, std::string>& options);

}  // namespace mssql_cdc::cdc

// What one stream is told: the reference's option names, parsed and checked.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/source_options.h"
#include "cdc/update_mask.h"
#include "pipeline/control.h"
#include "pipeline/snapshot_events.h"

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

using cdc::IsolationLevel;

// What happens when changes were removed before they were read.
enum class OnDataLoss : std::uint8_t {
  kFail,
  kResnapshot,  // A new snapshot is taken before the next run's first batch.
};

// Everything one stream is told: the source options, and what this program does with
// the rows.
struct StreamConfig : cdc::SourceOptions {
  std::string target;           // As given: the key that facts rows carry.
  std::string target_location;  // Where `target` is: a path or URL.
  std::string app_id;
  std::string checkpoint;                  // A directory of this machine.
  std::optional<std::string> facts_table;  // As given.
  std::string facts_location;              // Where `facts_table` is, if there is one.
  bool bootstrap = false;
  OnDataLoss on_data_loss = OnDataLoss::kFail;
  double resnapshot_interval_days = 7;
  bool snapshot_on_switch = false;
  pipeline::SnapshotMode snapshot = pipeline::SnapshotMode::kFull;
  Trigger trigger;

  std::optional<std::string> control_table;  // As given.
  std::string control_location;              // Where it is, if there is one.
  std::optional<std::string> silver;         // As given: the key of its control row.
  std::string silver_location;
  std::vector<std::string> silver_keys;  // Empty: those of the source's unique index.
  pipeline::Granularity granularity = pipeline::Granularity::kHour;
  std::int64_t silver_interval_ms = 1'000;
  bool deletion_vectors = true;
  bool changed_columns = false;
  cdc::UnchangedLob unchanged_lob = cdc::UnchangedLob::kNull;

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

// Where the table `reference` is: as the catalog says, else a path (anything with / or
// :) is itself. So a lake that was moved keeps the names its facts know. Errors:
// OptionInvalid for a name the catalog lacks, with the nearest one.
Result<std::string> Locate(const Catalog& catalog, const std::string& reference);

struct ParsedOptions {
  StreamConfig config;
  // Names nobody knows and that are near to none; a warning is due.
  std::vector<std::string> unknown;
};

// What the options are read for: snapshotLsn and snapshotChunks are refused but for a
// snapshot by hand.
enum class OptionUse : std::uint8_t { kStream, kSnapshotByHand };

// Reads what one [[stream]] of a pipeline file may set: every row of the option table.
// Names match ignoring case.
//
// Errors: OptionMissing, OptionInvalid, OptionsClash (facts option, value);
// OptionUnknown for a name that is near to a known one (fact nearest), since a misspelt
// option would be left out unseen.
Result<ParsedOptions> ParseStreamOptions(
    const std::map<std::string, std::string>& options, const Catalog& catalog,
    OptionUse use = OptionUse::kStream);

// Whether what is told of snapshots goes together. Errors: OptionsClash; OptionMissing
// (facts_table).
Status CheckSnapshots(const StreamConfig& config);

// Whether two locations of one stream may be what they are: a table's folder must not
// hold the checkpoint or another table, nor lie in one of them, but for a checkpoint
// below a folder that Delta leaves alone (its name begins with _). Locations are
// absolute. Errors: OptionsClash.
Status CheckLocations(const StreamConfig& config);

}  // namespace mssql_cdc::runtime

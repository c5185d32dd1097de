// Every T-SQL text the product sends, one function each.
//
// Ordinary T-SQL without hints, temporary tables or writes. Values travel as
// parameters; identifiers are quoted; numbers are literals. Several questions share one
// request, and their answers come as result sets in the order the comments give. Commit
// times come as datetime on the server's clock, or, where `zone` is given, as UTC by
// that zone's rules.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sqlserver/session.h"

namespace mssql_cdc::sqlserver {

// A binary(10).
using LsnBytes = std::array<std::uint8_t, 10>;

// "[name]" with every ] doubled.
std::string QuoteName(std::string_view name);
// "cdc.[name_CT]".
std::string ChangeTableName(std::string_view capture_instance);

// One row: major_version int, engine_edition int, offset_minutes int.
Request AskServerClock();
// One row: zone nvarchar. Only where the server has CURRENT_TIMEZONE_ID().
Request AskServerZone();
// One row per capture instance the login may read:
// sys.sp_cdc_help_change_data_capture's columns. Error 22901: CDC is not enabled.
Request ListInstances();
// Three sets: sys.sp_cdc_get_captured_columns; name, column_id, is_computed of the
// source table's columns; name of the change table's columns.
Request ListColumns(std::string_view capture_instance, std::string_view source_schema,
                    std::string_view source_table);
// At most one row: wait_ms bigint, how long this session's answers waited for the
// client.
Request AskNetworkWait();

struct PollQuestion {
  std::string source_schema;
  std::string source_table;
  std::vector<std::string> capture_instances;  // Whose DDL is asked for.
  LsnBytes after{};
  // The end of a batch of so many commits is asked for, too.
  std::optional<std::int64_t> commit_count_max;
  std::optional<LsnBytes> through_max;
  // Whether there are so many changes is asked of this instance.
  std::string counted_instance;
  std::optional<std::int64_t> row_count_max;
  std::optional<std::string> zone;
};
// Two sets, whatever the server holds: lsn, commit_time, age_seconds of the newest
// commit (no row before the first); oldest_lsn of the mapping, position_time (of
// `after`), offset_minutes (one row). Only where there is a commit above `after`, then:
// the table's instances (as ListInstances), the DDL history of each of
// capture_instances (sys.sp_cdc_get_ddl_history), with row_count_max row_count (one
// row, no more than it), with commit_count_max lsn, commit_time of the last of the
// first so many commits. In that order, so that what a commit brought is seen with it.
Request Poll(const PollQuestion& question);

struct WatchQuestion {
  struct Table {
    std::vector<std::string> capture_instances;
    LsnBytes after{};
  };
  std::vector<Table> tables;  // Not empty, at most kWatchedTableCountMax.
};
inline constexpr std::size_t kWatchedTableCountMax = 1000;
// Two sets: lsn, age_seconds of the newest commit (no row before the first); one row
// with a column t0, t1, ... int for each table: 1 where one of its instances has
// changes above `after`, else 0.
Request WatchChanges(const WatchQuestion& question);

struct SelectedColumn {
  std::string name;
  // The T-SQL type that the server converts to; empty: as it is.
  std::string cast_to = {};
};
// The column in a select list; `prefix` is "" or the table's alias with a dot.
std::string Selected(const SelectedColumn& column, std::string_view prefix);

struct ChangesQuestion {
  std::string capture_instance;
  LsnBytes after{};
  LsnBytes through{};
  bool command_id = true;
  std::vector<SelectedColumn> columns;
  std::optional<std::string> zone;
  bool network_wait = false;
  bool update_mask = false;
};
// Set 1: start_lsn, seqval, operation, command_id (if asked for), commit_time, then the
// columns and the update mask (if asked for), in the change table's own total order.
// Sets 2 to 4, which see what happened meanwhile: min_lsn (one row); commit_time of
// min_lsn (at most one); lsn, commit_time of the newest commit (at most one). Set 5
// with network_wait: as AskNetworkWait.
Request ReadChanges(const ChangesQuestion& question);

struct TilesQuestion {
  std::string capture_instance;
  LsnBytes after{};
  LsnBytes through{};
  std::int64_t tile_count = 1;
};
// A row for each of `tile_count` runs of as many changes, in LSN order (fewer if there
// are fewer changes): last_lsn, row_count bigint. Neighbours may share a commit.
Request AskTiles(const TilesQuestion& question);

// At most one row: lsn, commit_time of the newest commit.
Request AskNewestCommit(const std::optional<std::string>& zone);
// At most one row: commit_time of exactly this commit.
Request AskCommitTime(const LsnBytes& lsn, const std::optional<std::string>& zone);
// At most one row: commit_time of the last commit at or below this LSN.
Request AskCommitTimeAtOrBelow(const LsnBytes& lsn,
                               const std::optional<std::string>& zone);
// One row: min_lsn.
Request AskMinLsn(std::string_view capture_instance);

// Why nothing is captured; each is one set and may be refused, since logins that read
// changes need not see it. The jobs of this database: job_type.
Request AskCaptureJobs();
// The capture's newest error, at most one row: error_number, age_seconds.
Request AskCaptureErrors();

struct SourceSettings {
  std::optional<std::int64_t> lock_timeout_ms;
  bool snapshot_isolation = false;
};
// What goes before a read of the source table, and what undoes it: the session is used
// again for reads that must not inherit it.
std::string SettingsBefore(const SourceSettings& settings);
std::string SettingsAfter(const SourceSettings& settings);

// One row: min_key, max_key bigint, NULL for a table without rows.
Request AskKeyExtent(std::string_view schema, std::string_view table,
                     std::string_view key, const SourceSettings& settings);

// One row: row_count bigint.
Request CountRows(std::string_view schema, std::string_view table,
                  const SourceSettings& settings);

struct SnapshotQuestion {
  std::string schema;
  std::string table;
  std::vector<SelectedColumn> columns;
  std::string key;  // With a bound below.
  std::optional<std::int64_t> after;
  std::optional<std::int64_t>
      through;  // Open above without; open below takes NULL too.
  SourceSettings settings;
};
// One set: the columns of the rows whose key lies above `after`, up to and including
// `through`, in no order. Requires at least one column.
Request ReadSnapshot(const SnapshotQuestion& question);

}  // namespace mssql_cdc::sqlserver

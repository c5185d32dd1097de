// What a run needs to know about its source, asked once when the run begins.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/batch_plan.h"
#include "cdc/capture_health.h"
#include "cdc/capture_instance.h"
#include "cdc/column_union.h"
#include "cdc/commit_clock.h"
#include "cdc/read_plan.h"
#include "cdc/source_memory.h"
#include "cdc/tiles.h"
#include "cdc/type_map.h"
#include "runtime/stream_config.h"
#include "sqlserver/session.h"

namespace mssql_cdc::runtime {

struct Source {
  std::string database;
  // The one the configured name means, or the newest if that is gone: names the table.
  cdc::CaptureInstance instance;
  // Of the same table, oldest first, as they were when last asked for.
  std::vector<cdc::InstanceFacts> instances;
  // Lower-case names of all of them, and the configured one.
  std::vector<std::string> names;
  cdc::ColumnPlan columns;
  cdc::CommitClock clock;
  bool clock_is_assumed = false;  // Only the current offset is known, not the zone.
  bool network_wait = false;      // The server tells how long it waited for the client.
  // The unique index, if it is one integer column that the table still has.
  std::optional<std::string> range_key;

  // What option columns declares, one for each of `columns`; empty without it.
  std::vector<columns::Field> declared;

  // As they are read.
  std::vector<columns::Field> fields() const;
  // As they are written.
  std::vector<columns::Field> target_fields() const {
    return declared.empty() ? fields() : declared;
  }
  const cdc::CaptureInstance& oldest() const {
    return instances.front().columns.instance;
  }
  // Absent: capture has reached no instance.
  std::optional<cdc::Lsn> newest_start() const;
  cdc::InstanceFamily family() const;
  cdc::SourceMemory memory() const { return cdc::Remember(database, family()); }
};

// `memory` is what earlier runs knew. Errors: CdcNotEnabled (fact database),
// CaptureInstanceNotFound, ColumnNotReadable, PermissionDenied, SchemaChanged,
// OptionsClash (another source than the memory's), OptionInvalid (sourceTimeZone), the
// session's.
Result<Source> AskSource(sqlserver::Session& session, const StreamConfig& config,
                         const std::optional<cdc::SourceMemory>& memory);

// Asks again which instances the table has, in place of `source.instances`; what is
// known of one that is still there stays. The written columns stay as well.
Status AskInstancesAgain(sqlserver::Session& session, const StreamConfig& config,
                         const std::optional<cdc::SourceMemory>& memory,
                         Source& source);

// Asks again what instance `index` captures.
Status AskColumnsAgain(sqlserver::Session& session, const StreamConfig& config,
                       std::size_t index, Source& source);

struct PollAnswer {
  std::optional<cdc::Offset> server_max;
  std::optional<cdc::Lsn> server_oldest;
  std::optional<std::int64_t> position_commit_us;
  std::optional<std::int64_t> age_seconds;  // Of server_max.
  // The rest is there only if a commit lies above the position.
  bool has_more = false;
  bool instances_are_known = false;  // They are those of the source, or are put there.
  std::int64_t row_count = 0;        // Changes above it, up to kManyRowCount.
  std::optional<cdc::Offset> limited_end;
  double rtt_ms = 0;
};

// So many changes are read in more than one range.
inline constexpr std::int64_t kManyRowCount = 2 * cdc::kTileRowCountMin;

struct PollLimits {
  std::optional<std::int64_t> commit_count_max;
  std::optional<cdc::Lsn> through_max;
  bool counts_rows = false;
};

// One round trip: what planning the next batch needs to know. What it shows of the
// source's instances and their DDL goes into `source`, and where the clock is a fixed
// offset, it follows the server's current one.
Result<PollAnswer> AskPoll(sqlserver::Session& session, Clock& clock, Source& source,
                           const cdc::Lsn& after, const PollLimits& limits);

// How the window of a piece can be cut into ranges of as many changes.
Result<std::vector<cdc::Tile>> AskTiles(sqlserver::Session& session,
                                        const std::string& capture_instance,
                                        const cdc::LsnWindow& window,
                                        std::int64_t tile_count);

// Why nothing is captured, as far as the login may see it.
Result<cdc::CaptureHealth> AskCaptureHealth(
    sqlserver::Session& session, const std::optional<std::int64_t>& age_seconds);

// Fills in the commit times of events.
Status AskEventTimes(sqlserver::Session& session, const Source& source,
                     std::vector<cdc::SourceEvent>& events);

// `lsn` with its commit time, if it is a commit.
Result<cdc::Offset> AskOffset(sqlserver::Session& session, const Source& source,
                              const cdc::Lsn& lsn);

// The newest commit.
Result<std::optional<cdc::Offset>> AskNewest(sqlserver::Session& session,
                                             const Source& source);

// Where a stream without a checkpoint starts: option startingLsn. Errors:
// CaptureHasNotRun.
Result<cdc::Offset> AskStart(sqlserver::Session& session, const Source& source,
                             const std::string& starting_lsn);

// How long the session's answers have waited for this client.
Result<std::optional<std::int64_t>> AskNetworkWaitMs(sqlserver::Session& session,
                                                     const Source& source);

}  // namespace mssql_cdc::runtime

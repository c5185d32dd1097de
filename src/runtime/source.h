// What a run needs to know about its source, asked once when the run begins.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/batch_plan.h"
#include "cdc/capture_instance.h"
#include "cdc/commit_clock.h"
#include "cdc/type_map.h"
#include "runtime/stream_config.h"
#include "sqlserver/session.h"

namespace mssql_cdc::runtime {

struct Source {
  cdc::CaptureInstance instance;
  // Names of every instance of the same table, and the configured one.
  std::vector<std::string> family;
  cdc::ColumnPlan columns;
  std::vector<std::string> change_table_columns;
  cdc::CommitClock clock;
  bool clock_is_assumed = false;  // Only the current offset is known, not the zone.
  bool network_wait = false;      // The server tells how long it waited for the client.
  // The key's name if the table can be cut into ranges: one integer column it still
  // has.
  std::optional<std::string> range_key;

  std::vector<columns::Field> fields() const;
};

// Errors: CdcNotEnabled (fact database), CaptureInstanceNotFound, ColumnNotReadable,
// PermissionDenied, OptionInvalid (sourceTimeZone), the session's.
Result<Source> AskSource(sqlserver::Session& session, const StreamConfig& config);

struct PollAnswer {
  std::optional<cdc::Offset> server_max;
  std::optional<cdc::Lsn> instance_min;
  std::optional<cdc::Offset> limited_end;
  double rtt_ms = 0;
};

// One round trip: what planning the next batch needs to know. Where the clock is a
// fixed offset, `source.clock` follows the server's current one.
Result<PollAnswer> AskPoll(sqlserver::Session& session, Clock& clock, Source& source,
                           const cdc::Lsn& after,
                           const std::optional<std::int64_t>& commit_count_max,
                           const std::optional<cdc::Lsn>& through_max);

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

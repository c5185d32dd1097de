// Compares a silver table with its source: counts first, then rows, and tells what
// differs; and puts right what does.
//
// Nothing is written to the server, nothing is locked: what changes meanwhile is found
// in bronze and in the change tables, and counts as in flight.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "columns/batch.h"
#include "lake/lake.h"
#include "pipeline/reconcile.h"
#include "runtime/session_pool.h"
#include "runtime/silver_config.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct ReconcileOptions {
  std::int64_t bucket_rows = 1'000'000;
  double sample = 0.01;  // Of the buckets that match, how many are compared row by row.
  std::string report_location;  // Empty: no report table.
  // Rows of the source are held in groups of about so many bytes; silver is read once
  // a group.
  std::size_t held_size_bytes_max = std::size_t{192} << 20;
  // Where something is wrong, capture is waited for so long, so that commits that it
  // had not read yet are not told as wrong.
  std::int64_t capture_wait_ms_max = 0;
};

struct ReconcileParts {
  lake::Lake& lake;
  SessionSource& sessions;
  Clock& clock;
  Dice& dice;
};

struct ReconcileOutcome {
  std::string run_id;
  std::int64_t silver_version = 0;
  std::optional<std::string> silver_lsn;
  std::optional<std::string> source_lsn;
  std::vector<pipeline::Bucket> buckets;
  std::vector<pipeline::Finding> findings;  // Of chunks, then of keys.
  std::int64_t match = 0;
  std::int64_t in_flight = 0;
  std::int64_t mismatch = 0;
  std::int64_t hashed = 0;  // Ranges compared row by row.
  std::int64_t groups = 0;  // Held one after the other.
  std::map<std::string, std::int64_t> failures;
  std::vector<std::string> left_out;  // Columns that were not compared.
  // False: it was waited for and did not pass the moment at which the source was read.
  // What is wrong may then be a commit that it has not read yet.
  bool capture_has_passed = true;
  // False: the login is not shown the capture job's scans. Capture then shows where it
  // is by its next entry, on a server where nothing happens every five minutes.
  bool scans_are_shown = true;
  // A snapshot in chunks that silver does not have all of: what it lacks, or has of
  // before, may be of chunks to come.
  std::optional<std::string> open_snapshot_lsn;
  std::int64_t elapsed_ms = 0;
  columns::RecordBatch report;  // The rows of a report table.

  // What is in flight is no difference.
  bool is_equal() const {
    return mismatch == 0 && failures.size() == failures.count("IN_FLIGHT");
  }
  // Whether what differs may go away by itself: it is to be compared again.
  bool may_pass() const {
    return !is_equal() && (!capture_has_passed || open_snapshot_lsn);
  }
};

// Errors: OptionInvalid for limits outside of their range; SilverKeyInvalid;
// PositionAheadOfServer and SourceForked where the source was restored to an earlier
// point, and is no source of this silver any more; the session's; the lake's, also
// without silver or its control table.
Result<ReconcileOutcome> Reconcile(const StreamConfig& config,
                                   const SilverConfig& silver,
                                   const ReconcileOptions& options,
                                   const ReconcileParts& parts);

// For each key that a comparison found wrong, the source's row into bronze, stamped
// with an LSN that the stream has read up to and silver has not applied, and from there
// into silver. Waits some seconds for such an LSN, and takes another one when silver is
// kept up to date meanwhile and passes it. Returns the number of rows written. Errors:
// RepairNotYet when that does not help, and while a snapshot in chunks is open;
// DataLoss where the stream cannot go on; as Apply.
Result<std::int64_t> Repair(const StreamConfig& config, const SilverConfig& silver,
                            const ReconcileOutcome& found, const ReconcileParts& parts);

}  // namespace mssql_cdc::runtime

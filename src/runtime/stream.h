// One stream: a capture instance into a bronze table, exactly once, from a full
// snapshot onward.
//
// A stream owns its checkpoint (a second owner is refused) and can be killed at any
// moment: the next run finishes what was begun, to the same rows. It decides nothing
// itself: cdc and pipeline plan, this carries out, in this order for each batch:
// offsets/N, bronze commit, facts commit, commits/N.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lake/lake.h"
#include "runtime/change_watch.h"
#include "runtime/session_pool.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct SnapshotProgress {
  std::int64_t row_count = 0;  // So far, over all ranges.
  std::int64_t size_bytes = 0;
  std::int64_t range_count = 1;
  std::int64_t range_done_count = 0;
  std::int64_t elapsed_ms = 0;
};

struct SnapshotSummary {
  std::string lsn;
  std::string commit_ts;                  // Empty: unknown.
  std::optional<std::int64_t> row_count;  // Absent: found in the target, nothing read.
  std::int64_t elapsed_ms = 0;
};

struct BatchSummary {
  std::int64_t batch_id = 0;
  bool replayed = false;  // Begun by an earlier run, or already in the tables.
  std::int64_t row_count = 0;
  std::int64_t inserts = 0;
  std::int64_t updates = 0;
  std::int64_t deletes = 0;
  std::string through_lsn;
  std::string through_commit_ts;  // Empty: unknown.
  std::int64_t size_bytes = 0;
  double read_seconds = 0;
  std::int64_t elapsed_ms = 0;  // From planning to commits/N.
  std::optional<double> capture_lag_seconds;
  std::optional<double> ingestion_lag_seconds;
  std::optional<double> retention_headroom_hours;
  std::int64_t target_version = 0;  // The table version that holds the rows.
};

struct IdleSummary {
  std::string lsn;  // The position: everything up to here is in the target.
  std::string commit_ts;
  std::int64_t wait_ms = 0;  // Until the next poll.
  // Why nothing comes, where that is not because nothing happens: the capture job, or a
  // start that the server has not reached.
  std::string stall = {};
};

// How a run ended that ends by itself.
struct RunSummary {
  std::string lsn;  // Everything up to here is in the target.
  std::string commit_ts;
  std::int64_t batch_count = 0;
  std::string stall = {};  // As IdleSummary's.
};

// Hears what a stream does. Calls come from the thread that runs the stream, but for
// OnSnapshotProgress, which also comes from threads that read. Must not call back.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  virtual void OnSnapshotStart(std::int64_t range_count) { (void)range_count; }
  virtual void OnSnapshotProgress(const SnapshotProgress& progress) { (void)progress; }
  // A chunked snapshot is open: it is read by a backfill, beside the stream.
  virtual void OnSnapshotOpened(const SnapshotSummary& summary) { (void)summary; }
  virtual void OnSnapshotDone(const SnapshotSummary& summary) { (void)summary; }
  virtual void OnBatchDone(const BatchSummary& summary) { (void)summary; }
  virtual void OnIdle(const IdleSummary& summary) { (void)summary; }
  virtual void OnRunDone(const RunSummary& summary) { (void)summary; }
  virtual void OnWarning(const std::string& text) { (void)text; }
  // A step failed and is tried again after wait_ms.
  virtual void OnRetry(const Error& error, std::int64_t attempt, std::int64_t wait_ms) {
    (void)error, (void)attempt, (void)wait_ms;
  }
};

// What `mssql-cdc check` shows: facts and intention, nothing was written.
struct CheckReport {
  std::string server;  // "Microsoft SQL Server 16.0.4185"
  std::string database;
  bool encrypted = false;
  std::string capture_instance;  // As the server spells it.
  std::string source_table;      // "dbo.orders"
  std::vector<std::string> key_columns;
  std::vector<std::pair<std::string, std::string>> columns;  // Name, Delta type.
  std::vector<std::string> computed_columns;                 // Left out.
  bool command_id = true;
  std::string clock;  // "UTC", "UTC-03:00", or a zone's name.
  std::optional<std::string> min_lsn;
  std::optional<std::string> max_lsn;
  std::optional<std::string> position;         // Of the checkpoint; absent: a new one.
  std::optional<std::int64_t> target_version;  // Absent: the table would be created.
  std::string intention;                 // One sentence: what `run` would do first.
  std::vector<std::string> silver_keys;  // Where there is a silver.
  // What silver or the verdicts would stop at, while the stream goes on.
  std::optional<Error> silver_problem;
};

// What a stream works with; all borrowed, all outlive it.
struct StreamParts {
  SessionSource* sessions = nullptr;
  lake::Lake* lake = nullptr;  // Shared by streams: wrap it in a SerializedLake.
  Clock* clock = nullptr;
  StreamObserver* observer = nullptr;  // May be absent.
  std::uint64_t seed = 0;              // Of the retries' jitter.
  // Of streams that share one server; all or none. `sessions` is not used then.
  SessionPool* pool = nullptr;
  ChangeWatch* watch = nullptr;
  WorkPermits* permits = nullptr;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Takes the checkpoint. Connects to nothing yet. Errors: CheckpointInUse (facts
  // checkpoint, pid), CheckpointUnreadable, FileFailed.
  static Result<std::unique_ptr<Stream>> Open(const StreamConfig& config,
                                              const StreamParts& parts);

  // Runs until the trigger's end, Stop, or an error that retrying does not cure.
  // Errors: Stopped only if Stop came before a bootstrap was complete; those of
  // Session, Lake and checkpoint; SnapshotModeLocked, DataLoss, SchemaChanged,
  // CaptureInstanceNotFound, CdcNotEnabled, PositionAheadOfServer, SourceForked,
  // CheckpointRewound.
  virtual Status Run() = 0;

  // Ends Run soon: between batches, or by giving up the one being read (the next run
  // reads it again). From any thread, but not from a signal handler.
  virtual void Stop() = 0;

  // Requests sent to the server so far.
  virtual std::int64_t request_count() const = 0;
};

// Connects and says what a run would do. Takes no checkpoint and writes nothing.
// Errors: what a run would stop at before its first batch is read, but for
// CheckpointInUse.
Result<CheckReport> CheckStream(const StreamConfig& config, const StreamParts& parts);

}  // namespace mssql_cdc::runtime

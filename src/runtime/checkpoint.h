// A stream's position on disk, in Spark's layout, so that Spark can go on from it and
// this program from Spark's.
//
//   metadata                         {"id": uuid}
//   offsets/N                        v1, batch metadata with conf, the batch's end
//   commits/N                        v1, {"nextBatchWatermarkMs":0}
//   _mssql_cdc_lock                  flock of the process that owns it
//   _mssql_cdc_initial_offset.json   where batch 0 began; ours alone
//   _mssql_cdc_generation.json       live generation, kept by whoever takes
//   re-snapshots _generations/<n>/                the same layout for generation n
//
// A batch is begun by offsets/N and done with commits/N. Every write is durable when
// its call returns.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "cdc/offset.h"
#include "pipeline/recovery.h"
#include "runtime/files.h"

namespace mssql_cdc::runtime {

// What a checkpoint says, without owning it.
struct CheckpointState {
  std::int64_t generation = 0;
  pipeline::GenerationState generation_state;  // The file; empty without one.
  std::string directory;                       // Of the live generation.
  // Where batch 0 begins; absent until it is decided.
  std::optional<cdc::Offset> initial;
  // End of the last batch that is done.
  std::optional<cdc::Offset> committed;
  std::optional<std::int64_t> committed_batch_id;
  // A batch that was begun and not done.
  std::optional<cdc::Offset> pending;
  std::string conf;  // JSON object of the newest offsets file; empty: none.

  std::int64_t next_batch_id() const { return committed_batch_id.value_or(-1) + 1; }
  // Everything up to here is in the target; absent while nothing was decided.
  std::optional<cdc::Offset> position() const {
    return committed ? committed : initial;
  }
};

// Reads it; no checkpoint at all is a state without anything. Errors:
// CheckpointUnreadable (facts path, reason): another log version than v1, a batch begun
// beyond the next one, a file that cannot be understood; FileFailed.
Result<CheckpointState> ReadCheckpoint(const std::string& checkpoint);

class Checkpoint {
 public:
  // Takes the lock, makes what is missing, reads the state. Errors: CheckpointInUse and
  // those of ReadCheckpoint.
  static Result<Checkpoint> Open(const std::string& checkpoint);

  const CheckpointState& state() const { return state_; }

  const pipeline::GenerationState& generation_state() const {
    return state_.generation_state;
  }

  // Writes the generation's file and goes on as it says. Errors: as ReadCheckpoint.
  Status SetGeneration(const pipeline::GenerationState& state);
  // Decides where batch 0 begins. Requires that nothing was decided before.
  Status SetInitial(const cdc::Offset& initial);
  // Begins the next batch. Requires that none is pending. Errors: CheckpointInUse if
  // somebody else began it.
  Status Begin(const cdc::Offset& end, std::int64_t now_utc_ms);
  // Ends the pending batch and drops files of batches long done.
  Status Commit();
  // Reads the state again: after an error it is not known how far a write came. Errors:
  // those of ReadCheckpoint; CheckpointRewound if it is behind what this object knows
  // (removed, or its volume went), and the state stays as it was.
  Status Reload();

 private:
  // Of the live generation.
  Status MakeFolders() const;

  Checkpoint(std::string checkpoint, FileLock lock, CheckpointState state)
      : checkpoint_(std::move(checkpoint)),
        lock_(std::move(lock)),
        state_(std::move(state)) {}

  std::string checkpoint_;
  FileLock lock_;
  CheckpointState state_;
};

// The content of offsets/N: `conf` as the last file had it, with
// spark.sql.shuffle.partitions, without which Spark 4.2 fails on a pending batch.
std::string OffsetsFile(const std::string& conf, const cdc::Offset& end,
                        std::int64_t now_utc_ms);

}  // namespace mssql_cdc::runtime

// Takes a new snapshot when changes were removed before they were read (on_data_loss =
// resnapshot).

#pragma once

#include <optional>

#include "base/error.h"
#include "pipeline/recovery.h"
#include "runtime/checkpoint.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

// What RecoverFromLoss would begin with; nullopt: the stream can go on where it was.
// Writes nothing. Errors: DataLoss if it happened too soon again.
Result<std::optional<pipeline::Recovery>> FindLoss(RunContext& context,
                                                   sqlserver::Session& session,
                                                   const CheckpointState& state);

// Looks whether the stream can go on where it was; if it cannot, takes or opens a
// snapshot and moves `checkpoint` to the next generation. True: it was moved. Killed
// between any two steps and rerun, it ends the same.
//
// Errors: DataLoss if it happened too soon again, or if the snapshot itself outlived
// the retention; SnapshotModeLocked, those of TakeWholeSnapshot and OpenChunked;
// FileFailed.
Result<bool> RecoverFromLoss(RunContext& context, sqlserver::Session& session,
                             Checkpoint& checkpoint);

// After a batch that read past the beginning of a newer capture instance: rows that did
// not change since have its columns only from a snapshot. `at` is where it begins.
Status SnapshotAfterSwitch(RunContext& context, sqlserver::Session& session,
                           std::int64_t generation, std::int64_t batch_id,
                           const cdc::Offset& at);

}  // namespace mssql_cdc::runtime

// Reads the whole table into the target, in one commit.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "pipeline/facts.h"
#include "reader/snapshot_reader.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

struct WholeRequest {
  // What its facts rows say: sink, kind, generation and gap. The rest is filled in.
  pipeline::SnapshotRun run;
  bool writes_open_row = true;  // Before the table is read.
  // By hand: another stamp than the newest commit, and only these chunks, each row
  // marked with its own (option snapshotChunks; empty: all rows).
  std::optional<cdc::Lsn> stamp = std::nullopt;
  std::string chunks = {};
  // Of the commit in the target, where the caller looks for it before asking again.
  std::optional<lake::Txn> txn = std::nullopt;
};

// How the table is read for a snapshot with this stamp: one plan for each range, or of
// `chunks` (option snapshotChunks) for each chunk. Errors: OptionInvalid
// (snapshotChunks, snapshotKeys); the session's.
Result<std::vector<reader::SnapshotPlan>> PlanTableReads(RunContext& context,
                                                         sqlserver::Session& session,
                                                         const cdc::Offset& stamp,
                                                         const std::string& chunks);

// Notes the stamp, reads the table in ranges at the same time and appends it. Returns
// what its `bootstrap` or `resnapshot` row has to say; that row is the caller's.
// Errors: CaptureHasNotRun, Stopped; the source's, the lake's.
Result<pipeline::SnapshotRun> TakeWholeSnapshot(RunContext& context,
                                                WholeRequest request);

}  // namespace mssql_cdc::runtime

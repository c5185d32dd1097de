// `mssql-cdc backfill`, `snapshot` and `seed`: what fills a target besides its stream.

#pragma once

#include <optional>
#include <string>

#include "cli/pipeline.h"
#include "runtime/backfill.h"
#include "runtime/snapshot_calls.h"

namespace mssql_cdc::cli {

struct SnapshotArguments {
  PipelineArguments pipeline;
  std::optional<std::string> app_id;  // Of the stream; absent: the file has only one.
};

// Reads open chunked snapshots: of one stream, or of every one whose file says
// snapshot = "chunked". Returns 0 when all are done, 75 while one goes on (call again),
// else the exit code of the first failure.
int RunBackfill(const SnapshotArguments& arguments,
                const runtime::BackfillOptions& options);

// Takes a snapshot, or finds the one that is there. Returns the exit code.
int RunSnapshot(const SnapshotArguments& arguments, bool resnapshot);

// Puts a copy of the table in the place of a snapshot. Returns the exit code.
int RunSeed(const SnapshotArguments& arguments, const runtime::SeedOptions& options);

}  // namespace mssql_cdc::cli

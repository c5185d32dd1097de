// Snapshots without a stream: one taken by hand, and a copy put in the place of one.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cdc/offset.h"
#include "runtime/stream.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct SeedOptions {
  std::string copy_location;  // A Delta table.
  std::string as_of;          // An LSN or a time: every commit up to it is in the copy.
  bool allow_missing_columns = false;
  bool reseed = false;  // Also where the target has an older snapshot.
};

class SnapshotCall {
 public:
  virtual ~SnapshotCall() = default;
  // Borrows what is in `parts`. Connects to nothing yet. Takes no checkpoint.
  static std::unique_ptr<SnapshotCall> Make(const StreamConfig& config,
                                            const StreamParts& parts);

  // Appends the table's current rows, or with `resnapshot` false finds the newest
  // snapshot that is there, whole or chunked. Options snapshotLsn and snapshotChunks
  // make it a snapshot by hand: stamped with that LSN, of these chunks only.
  // Errors: SnapshotModeLocked while a chunked snapshot of the stream is open (with a
  // facts table); CaptureHasNotRun; the source's, the lake's.
  virtual Result<SnapshotSummary> Take(bool resnapshot) = 0;

  // Appends the copy as snapshot rows in one commit, and its `bootstrap` row in the
  // facts; a rerun finds it. A call that fails adds no rows.
  // Errors: SnapshotModeLocked while any snapshot of the stream is open; those of
  // pipeline::ParseAsOf and PlanSeed; LakeSchemaMismatch (fact columns) for captured
  // columns that the copy lacks, or has with a type that has no cast;
  // ValueNotConvertible.
  virtual Result<SnapshotSummary> Seed(const SeedOptions& options) = 0;

  // Ends a call soon. From any thread.
  virtual void Stop() = 0;
};

}  // namespace mssql_cdc::runtime

// Loads the table before the first batch, once; in chunked mode, only opens a snapshot
// that is read beside the stream.

#pragma once

#include "base/error.h"
#include "cdc/offset.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

// Finds the table's snapshot in the target, or takes or opens one, and records it in
// the facts. Returns where the stream starts. Killed between any two steps and rerun,
// it ends the same: one snapshot in the target, one `bootstrap` row.
//
// Errors: CaptureHasNotRun, Stopped, those of OpenChunked; the source's, the lake's.
Result<cdc::Offset> Bootstrap(RunContext& context);

// Whether a run that takes snapshots in the configured mode may begin. Errors:
// SnapshotModeLocked.
Status CheckSnapshotMode(RunContext& context);

// Whether the facts table shows that Bootstrap was completed for this stream.
Result<bool> BootstrapIsRecorded(RunContext& context);

}  // namespace mssql_cdc::runtime

// Opens a chunked snapshot: its S is recorded before anything of the table is read, and
// the stream goes on from S at once.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "cdc/offset.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

struct OpenRequest {
  std::string sink_id;
  std::string kind = "bootstrap";
  std::int64_t generation = 0;
  std::optional<std::int64_t> lost_from_us;
  std::optional<std::int64_t> lost_to_us;
  // After a switch of capture instances: the batch that met it, and where the newer one
  // begins, which is S.
  std::optional<std::int64_t> switch_batch_id;
  std::optional<cdc::Offset> at;
};

// Writes the plans table's row, then the facts row, and returns the S that is stored:
// another run's, where that came first. Errors: SnapshotModeLocked if the stored one is
// not chunked; CaptureHasNotRun, OptionInvalid (snapshotKeys); the source's, the
// lake's.
Result<cdc::Offset> OpenChunked(RunContext& context, sqlserver::Session& session,
                                const OpenRequest& request);

}  // namespace mssql_cdc::runtime

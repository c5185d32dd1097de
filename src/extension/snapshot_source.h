// Plans a read of the whole table: its stamp, and ranges for as many tasks.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "extension/source_context.h"
#include "reader/snapshot_reader.h"

namespace mssql_cdc::extension {

// One range, as it travels to the process that reads it.
struct SnapshotTask {
  reader::SnapshotPlan plan;             // But for its limits.
  std::vector<columns::Field> declared;  // By option columns; empty without it.

  std::string Json() const;
  // Reads Json()'s text. Errors: InternalError.
  static Result<SnapshotTask> Parse(std::string_view json);
};

struct PlannedSnapshot {
  cdc::Offset stamp;
  std::vector<std::string> tasks;  // JSON.
};

// The stamp is option snapshotLsn, or the newest commit before anything is read.
// Errors: OptionInvalid for bounds in snapshotChunks that are no keys and columns in
// snapshotKeys that cannot be; CaptureHasNotRun; AskSource's, the session's.
Result<PlannedSnapshot> PlanSnapshot(const Options& options, const Access& access);

}  // namespace mssql_cdc::extension

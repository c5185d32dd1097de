// Looks at the tables that a run would write. Writes nothing.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "columns/schema.h"
#include "lake/lake.h"
#include "runtime/silver_config.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

// The table's version, absent without one, and whether its folder can be written to or
// made, where that is on this machine. Errors: the lake's; FileFailed, FileRefused.
Status CheckTable(lake::Lake& lake, const std::string& location,
                  std::optional<std::int64_t>& version);

// What keeping silver and the verdicts would stop at before a row is applied. `bronze`
// are the target's columns, as they are or would be made; `has_snapshot_to_come`: the
// stream takes or opens one first. Errors: SilverKeyInvalid, SnapshotUnexplained,
// PlansRowMissing; LakeTableUnsupported and LakeSchemaMismatch for a control table that
// is none; those of CheckTable.
Status CheckSilver(lake::Lake& lake, Clock& clock, const StreamConfig& config,
                   const SilverConfig& silver, const columns::Schema& bronze,
                   bool has_snapshot_to_come);

}  // namespace mssql_cdc::runtime

// The tables of a stream, made or migrated before anything is written to them.

#pragma once

#include <optional>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/snapshot_events.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

// Makes or migrates target and facts. Where the target's type of a column holds all
// values of the source's, as after a column was narrowed, rows are written in it from
// here on. Errors: LakeTableUnsupported, the lake's. `target` is what the target is
// now; absent: missing.
Status PrepareTables(RunContext& context,
                     const std::optional<lake::TableState>& target);
// The same, which looks first.
Status PrepareTables(RunContext& context);
// The same of the target alone.
Status PrepareTarget(RunContext& context,
                     const std::optional<lake::TableState>& target);

// By the instances of `source`, as they were when last asked for. Borrows it.
pipeline::IsLost IsLostIn(const Source& source);

}  // namespace mssql_cdc::runtime

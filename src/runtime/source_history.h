// Tells that a source went back: the database was restored to an earlier point, or
// failed over to a copy that lacks the end.

#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cdc/batch_plan.h"
#include "cdc/lsn.h"

namespace mssql_cdc::runtime {

// Errors: PositionAheadOfServer, SourceForked, where that is what the plan says.
Status CheckHistory(const cdc::BatchPlan& plan, const std::string& capture_instance);

// `applied` is in silver, so the server had it once. Errors: PositionAheadOfServer
// unless it has got there, or an instance begins above it.
Status CheckWasReached(const cdc::Lsn& applied,
                       const std::optional<cdc::Offset>& server_max,
                       const std::optional<cdc::Lsn>& newest_start,
                       const std::string& capture_instance);

}  // namespace mssql_cdc::runtime

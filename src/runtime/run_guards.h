// What stops a run that goes on from a checkpoint: asked by the run itself, by who
// wants to know beforehand, and by who waits for it.

#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "cdc/read_plan.h"
#include "cdc/source_memory.h"
#include "runtime/checkpoint.h"
#include "runtime/run_context.h"
#include "runtime/source.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

// Whether a target that is not there was never filled: one that went away would be made
// anew and go on without its past, unseen. Errors: TargetLost (facts target, location,
// position).
Status CheckTargetWasEmpty(RunContext& context, const CheckpointState& state);

// How `window` is read, of which nothing is read yet. Errors: those of cdc::PlanReads.
Result<cdc::ReadPlan> PlanReadsOf(const StreamConfig& config, const Source& source,
                                  const std::optional<cdc::SourceMemory>& memory,
                                  const cdc::LsnWindow& window,
                                  const std::optional<std::int64_t>& after_commit_us);

// Whether what comes just above `position` is still there, or may be skipped. Errors:
// DataLoss, as a run from there ends with.
Status CheckNothingIsGone(const StreamConfig& config, const Source& source,
                          const std::optional<cdc::SourceMemory>& memory,
                          const cdc::Offset& position);

}  // namespace mssql_cdc::runtime

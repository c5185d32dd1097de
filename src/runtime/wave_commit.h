// One wave of a chunked snapshot into the target, and its rows into plans table and
// facts. Whatever an earlier attempt at the same wave left is found instead of being
// written twice.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "pipeline/chunked_snapshot.h"
#include "runtime/run_context.h"
#include "runtime/wave_reader.h"

namespace mssql_cdc::runtime {

struct WaveCommit {
  std::int64_t wave = 0;
  std::int64_t started_at_us = 0;
  WavePlan plan;
  std::vector<ChunkRead> reads;
};

struct WaveOutcome {
  pipeline::WaveRecord record;  // As it is in the target.
  cdc::Offset stamp;
  std::optional<cdc::Offset> high;  // Commit time of the record's newest high_lsn.
  bool was_read = true;             // By this attempt.
};

// Reads the wave and appends it in one commit, unless it is there. `plan` is the whole
// plan, for a wave that must be rebuilt from the target's rows. `gate` is asked before
// the commit. Errors: TargetLost (facts target, wave, lsn) if the target says that it
// has the wave, but has neither its commit nor rows of it.
Result<WaveOutcome> AppendWave(RunContext& context, const pipeline::ChunkedState& state,
                               const pipeline::ChunkPlan& plan, WaveCommit& wave,
                               const WaveProgress& progress,
                               const std::function<Status()>& gate);

struct WaveFacts {
  pipeline::OpenedSnapshot opened;
  bool is_whole_in_facts = false;
  WaveOutcome outcome;
  std::int64_t started_at_us = 0;
  std::int64_t duration_ms = 0;
};
// The plans table's rows, then the facts'.
Status WriteWaveFacts(RunContext& context, const WaveFacts& facts);

}  // namespace mssql_cdc::runtime

// The chunks of one wave, read at the same time by so many connections, each of which
// reads its share one chunk after the other.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cdc/offset.h"
#include "pipeline/chunked_snapshot.h"
#include "runtime/run_context.h"
#include "runtime/table_keys.h"

namespace mssql_cdc::runtime {

struct ChunkRead {
  pipeline::Chunk chunk;
  std::int64_t row_count = 0;
  std::int64_t size_bytes = 0;
  std::int64_t read_ns = 0;
};

struct WavePlan {
  cdc::Lsn snapshot;
  cdc::Offset stamp;
  TableKeys keys;
  sqlserver::SourceSettings settings;
  std::int64_t parallel_count = 1;
};

// Heard from several threads: rows and bytes of a batch; (0, 0): a chunk was read.
using WaveProgress = std::function<void(std::int64_t, std::int64_t)>;

// One reader for each connection; the p-th reads chunks p, p + parallel_count, ... of
// `reads`, which it fills in. The last thing each does is to ask `gate`, whose error
// becomes its own. Borrows `context` and `reads`.
std::vector<std::unique_ptr<columns::BatchReader>> ReadWaveChunks(
    RunContext& context, const WavePlan& plan, std::vector<ChunkRead>& reads,
    const WaveProgress& progress, const std::function<Status()>& gate);

}  // namespace mssql_cdc::runtime

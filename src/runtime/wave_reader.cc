#include "runtime/wave_reader.h"

#include <algorithm>
#include <utility>

#include "reader/snapshot_reader.h"

namespace mssql_cdc::runtime {
namespace {

struct LaneChunk {
  std::unique_ptr<columns::BatchReader> reader;
  ChunkRead* read = nullptr;
};

class Lane final : public columns::BatchReader {
 public:
  Lane(std::vector<LaneChunk> chunks, Clock& clock, std::function<Status()> gate)
      : chunks_(std::move(chunks)),
        clock_(clock),
        gate_(std::move(gate)),
        schema_(chunks_.front().reader->schema()) {}

  columns::SchemaPtr schema() const override { return schema_; }

  Result<std::optional<columns::RecordBatch>> Next() override {
    for (; next_ < chunks_.size(); ++next_) {
      LaneChunk& chunk = chunks_[next_];
      const std::int64_t begin_ns = clock_.MonotonicNs();
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, chunk.reader->Next());
      chunk.read->read_ns += clock_.MonotonicNs() - begin_ns;
      if (batch) {
        chunk.read->row_count += batch->row_count;
        chunk.read->size_bytes += static_cast<std::int64_t>(batch->SizeBytes());
        return batch;
      }
      chunk.reader.reset();
    }
    TRY(gate_());
    return std::optional<columns::RecordBatch>();
  }

 private:
  std::vector<LaneChunk> chunks_;
  Clock& clock_;
  std::function<Status()> gate_;
  columns::SchemaPtr schema_;
  std::size_t next_ = 0;
};

std::unique_ptr<columns::BatchReader> ReadOneChunk(RunContext& context,
                                                   const WavePlan& plan,
                                                   const pipeline::Chunk& chunk,
                                                   const WaveProgress& progress) {
  const cdc::CaptureInstance& instance = context.source.instance;
  reader::SnapshotPlan one;
  one.capture_instance = context.config.capture_instance;
  one.source_schema = instance.source_schema;
  one.source_table = instance.source_table;
  one.columns = context.source.columns.columns;
  one.command_id = context.config.include_command_id;
  one.stamp = plan.stamp;
  one.settings = plan.settings;
  one.limits = context.Limits(plan.parallel_count);
  one.keyed = reader::KeyedSpan{KeyColumnsOf(plan.keys), SpanOf(chunk.range)};
  one.chunk = reader::ChunkMark{static_cast<std::int32_t>(chunk.chunk), plan.snapshot};
  return context.AsWritten(std::make_unique<reader::SnapshotReader>(
      std::move(one), LendFrom(context.pool), context.stop, progress));
}

}  // namespace

std::vector<std::unique_ptr<columns::BatchReader>> ReadWaveChunks(
    RunContext& context, const WavePlan& plan, std::vector<ChunkRead>& reads,
    const WaveProgress& progress, const std::function<Status()>& gate) {
  std::vector<std::unique_ptr<columns::BatchReader>> lanes;
  const auto lane_count = std::min<std::size_t>(
      static_cast<std::size_t>(plan.parallel_count), reads.size());
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    std::vector<LaneChunk> chunks;
    for (std::size_t i = lane; i < reads.size(); i += lane_count) {
      chunks.push_back(
          {ReadOneChunk(context, plan, reads[i].chunk, progress), &reads[i]});
    }
    lanes.push_back(std::make_unique<Lane>(std::move(chunks), context.clock, gate));
  }
  return lanes;
}

}  // namespace mssql_cdc::runtime

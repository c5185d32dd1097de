#include "runtime/whole_snapshot.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "cdc/snapshot_plan.h"
#include "reader/snapshot_reader.h"
#include "runtime/ask.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"
#include "runtime/table_keys.h"

namespace mssql_cdc::runtime {
namespace {

// Adds up what the ranges read, from their threads.
class ProgressSum {
 public:
  ProgressSum(StreamObserver& observer, Clock& clock, std::int64_t range_count)
      : observer_(observer), clock_(clock), begin_ns_(clock.MonotonicNs()) {
    sum_.range_count = range_count;
  }

  void Add(std::int64_t row_count, std::int64_t size_bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sum_.row_count += row_count;
    sum_.size_bytes += size_bytes;
    if (row_count == 0) ++sum_.range_done_count;
    sum_.elapsed_ms = (clock_.MonotonicNs() - begin_ns_) / 1'000'000;
    observer_.OnSnapshotProgress(sum_);
  }

 private:
  StreamObserver& observer_;
  Clock& clock_;
  const std::int64_t begin_ns_;
  std::mutex mutex_;
  SnapshotProgress sum_;
};

// Several readers of one schema, one after the other.
class InTurn final : public columns::BatchReader {
 public:
  explicit InTurn(std::vector<std::unique_ptr<columns::BatchReader>> readers)
      : readers_(std::move(readers)), schema_(readers_.front()->schema()) {}

  columns::SchemaPtr schema() const override { return schema_; }

  Result<std::optional<columns::RecordBatch>> Next() override {
    for (; next_ < readers_.size(); ++next_) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, readers_[next_]->Next());
      if (batch) return batch;
      readers_[next_].reset();
    }
    return std::optional<columns::RecordBatch>();
  }

 private:
  std::vector<std::unique_ptr<columns::BatchReader>> readers_;
  columns::SchemaPtr schema_;
  std::size_t next_ = 0;
};

// No more than `count` readers: the p-th reads ranges p, p + count, ... in turn.
std::vector<std::unique_ptr<columns::BatchReader>> InLanes(
    std::vector<std::unique_ptr<columns::BatchReader>> readers, std::int64_t count) {
  const std::size_t lane_count =
      std::min(readers.size(), static_cast<std::size_t>(count));
  if (lane_count == readers.size()) return readers;
  std::vector<std::unique_ptr<columns::BatchReader>> lanes;
  for (std::size_t lane = 0; lane < lane_count; ++lane) {
    std::vector<std::unique_ptr<columns::BatchReader>> chosen;
    for (std::size_t i = lane; i < readers.size(); i += lane_count) {
      chosen.push_back(std::move(readers[i]));
    }
    lanes.push_back(std::make_unique<InTurn>(std::move(chosen)));
  }
  return lanes;
}

std::int64_t ReaderCountMax(const StreamConfig& config) {
  const std::int64_t cpu_count =
      std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  return config.num_partitions.value_or(cpu_count);
}

// One part of the table: of one integer key, or of any other, or all of it.
struct TableRange {
  cdc::KeyRange range;
  std::optional<reader::KeyedSpan> keyed;
  std::optional<std::int64_t> chunk = std::nullopt;  // Of a snapshot by hand.
};

struct TableRanges {
  std::string key;  // Of ranges of one integer key.
  std::vector<TableRange> ranges;
};

// Uniform ranges: cheap to find, uneven where keys are.
Result<TableRanges> CutUniformly(RunContext& context, sqlserver::Session& session,
                                 const sqlserver::SourceSettings& settings,
                                 const std::string& key, std::int64_t range_count_max) {
  const cdc::CaptureInstance& instance = context.source.instance;
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session,
                 sqlserver::AskKeyExtent(instance.source_schema, instance.source_table,
                                         key, settings),
                 1));
  std::optional<cdc::KeyExtent> extent;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
    TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
    if (min && max) extent = cdc::KeyExtent{*min, *max};
  }
  TableRanges cut{key, {}};
  for (const cdc::KeyRange& range : cdc::PlanKeyRanges(extent, range_count_max)) {
    cut.ranges.push_back({range, std::nullopt});
  }
  return cut;
}

Result<TableRanges> PlanRanges(RunContext& context, sqlserver::Session& session,
                               const sqlserver::SourceSettings& settings) {
  const std::int64_t range_count_max = ReaderCountMax(context.config);
  const bool by_index = context.config.snapshot_keys.empty();
  TableRanges all{"", {TableRange{}}};
  if (range_count_max == 1 && by_index) return all;
  if (by_index && context.source.range_key) {
    return CutUniformly(context, session, settings, *context.source.range_key,
                        range_count_max);
  }
  TRY_ASSIGN(const TableKeys keys, AskTableKeys(context, session));
  if (range_count_max == 1 || keys.types.empty()) return all;
  if (keys.IsOneInteger()) {
    return CutUniformly(context, session, settings, keys.types[0].column,
                        range_count_max);
  }
  TRY_ASSIGN(const std::vector<pipeline::KeyRange> ranges,
             AskKeyRanges(context, session, keys, range_count_max, settings));
  TableRanges cut;
  for (const pipeline::KeyRange& range : ranges) {
    cut.ranges.push_back({{}, reader::KeyedSpan{KeyColumnsOf(keys), SpanOf(range)}});
  }
  return cut;
}

Result<TableRanges> RangesByHand(RunContext& context, sqlserver::Session& session,
                                 const std::string& option) {
  TRY_ASSIGN(const TableKeys keys, AskTableKeys(context, session));
  TRY_ASSIGN(const std::vector<pipeline::Chunk> chunks,
             pipeline::ParseChunksOption(option, keys.names.size()));
  TableRanges cut;
  for (const pipeline::Chunk& chunk : chunks) {
    if (keys.types.empty() && (chunk.range.lo || chunk.range.hi)) {
      return Error(ErrorId::kOptionInvalid)
          .With("option", "snapshotChunks")
          .With("reason", "the table has no key whose bounds can be bound");
    }
    for (const std::optional<pipeline::Key>& bound : {chunk.range.lo, chunk.range.hi}) {
      if (!bound || pipeline::IsOfTypes(*bound, keys.types)) continue;
      return Error(ErrorId::kOptionInvalid)
          .With("option", "snapshotChunks")
          .With("chunk", std::to_string(chunk.chunk))
          .With("reason", "a bound of a whole-number key is no whole number");
    }
    cut.ranges.push_back(
        {{}, reader::KeyedSpan{KeyColumnsOf(keys), SpanOf(chunk.range)}, chunk.chunk});
  }
  return cut;
}

Result<cdc::Offset> StampOf(RunContext& context, sqlserver::Session& session,
                            const std::optional<cdc::Lsn>& by_hand) {
  if (by_hand) return AskOffset(session, context.source, *by_hand);
  return AskStamp(context, session);
}

reader::SnapshotPlan PlanRead(const RunContext& context, const cdc::Offset& stamp,
                              const TableRanges& cut, const TableRange& range,
                              const sqlserver::SourceSettings& settings) {
  reader::SnapshotPlan plan;
  plan.capture_instance = context.config.capture_instance;
  plan.source_schema = context.source.instance.source_schema;
  plan.source_table = context.source.instance.source_table;
  plan.columns = context.source.columns.columns;
  plan.command_id = context.config.include_command_id;
  plan.key = cut.key;
  plan.range = range.range;
  plan.keyed = range.keyed;
  if (range.chunk) {
    plan.chunk = reader::ChunkMark{static_cast<std::int32_t>(*range.chunk), stamp.lsn};
  }
  plan.stamp = stamp;
  plan.settings = settings;
  plan.limits = context.Limits(std::min(ReaderCountMax(context.config),
                                        static_cast<std::int64_t>(cut.ranges.size())));
  return plan;
}

}  // namespace

Result<std::vector<reader::SnapshotPlan>> PlanTableReads(RunContext& context,
                                                         sqlserver::Session& session,
                                                         const cdc::Offset& stamp,
                                                         const std::string& chunks) {
  const StreamConfig& config = context.config;
  const sqlserver::SourceSettings settings{
      config.lock_timeout_ms, config.isolation_level == IsolationLevel::kSnapshot};
  TableRanges cut;
  if (chunks.empty()) {
    TRY_ASSIGN(cut, PlanRanges(context, session, settings));
  } else {
    TRY_ASSIGN(cut, RangesByHand(context, session, chunks));
  }
  std::vector<reader::SnapshotPlan> plans;
  for (const TableRange& range : cut.ranges) {
    plans.push_back(PlanRead(context, stamp, cut, range, settings));
  }
  return plans;
}

Result<pipeline::SnapshotRun> TakeWholeSnapshot(RunContext& context,
                                                WholeRequest request) {
  const StreamConfig& config = context.config;
  pipeline::SnapshotRun run = std::move(request.run);
  run.target = config.target;
  std::vector<reader::SnapshotPlan> plans;
  {
    TRY_ASSIGN(const SessionPool::Lease session, context.pool.Acquire());
    TRY_ASSIGN(run.stamp, StampOf(context, *session, request.stamp));
    TRY_ASSIGN(plans, PlanTableReads(context, *session, run.stamp, request.chunks));
  }
  run.written_at_us = context.clock.NowUtcUs();
  if (request.writes_open_row) {
    TRY(AppendFacts(context, {pipeline::SnapshotOpenFacts(run)}, std::nullopt));
  }

  const auto range_count = static_cast<std::int64_t>(plans.size());
  context.observer.OnSnapshotStart(range_count);
  ProgressSum progress(context.observer, context.clock, range_count);
  run.started_at_us = context.clock.NowUtcUs();
  const std::int64_t begin_ns = context.clock.MonotonicNs();
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  for (reader::SnapshotPlan& plan : plans) {
    sources.push_back(context.AsWritten(std::make_unique<reader::SnapshotReader>(
        std::move(plan), LendFrom(context.pool), context.stop,
        [&progress](std::int64_t rows, std::int64_t bytes) {
          progress.Add(rows, bytes);
        })));
  }
  lake::AppendSpec spec;
  spec.merge_schema = true;
  spec.txn = request.txn;
  const std::string metadata =
      pipeline::SnapshotMetadata(config.capture_instance, run.stamp);
  // Chunks by hand are no snapshot of the table.
  if (request.chunks.empty()) {
    spec.user_metadata = [&metadata] { return std::optional<std::string>(metadata); };
  }
  TRY_ASSIGN(
      const lake::AppendResult appended,
      context.lake.Append(config.target_location,
                          InLanes(std::move(sources), ReaderCountMax(config)), spec));
  run.rows = appended.row_count;
  run.duration_ms = (context.clock.MonotonicNs() - begin_ns) / 1'000'000;
  run.written_at_us = context.clock.NowUtcUs();
  return run;
}

}  // namespace mssql_cdc::runtime

#include "runtime/bootstrap.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/case_fold.h"
#include "cdc/cells.h"
#include "cdc/snapshot_plan.h"
#include "pipeline/bootstrap.h"
#include "pipeline/facts.h"
#include "reader/snapshot_reader.h"
#include "runtime/ask.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::runtime {
namespace {

bool IsInFamily(const RunContext& context, std::string_view instance) {
  const std::vector<std::string>& names = context.source.names;
  return std::find(names.begin(), names.end(), LowerCase(instance)) != names.end();
}

// The newest whole snapshot by the target's rows: for when its commit has left the log.
Result<std::optional<cdc::Offset>> FindByRows(RunContext& context) {
  lake::ReadSpec spec;
  spec.columns = {"_capture_instance", "_operation", "_start_lsn", "_commit_ts",
                  "_chunk"};
  spec.conditions = {{"_snapshot", lake::Condition::Operator::kIsNotNull, ""}};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             context.lake.Read(context.config.target_location, spec));
  std::optional<cdc::Offset> found;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return found;
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const cdc::RowView row(*batch, i);
      TRY_ASSIGN(const std::optional<std::int64_t> operation,
                 row.Integer("_operation"));
      TRY_ASSIGN(const std::optional<std::int64_t> chunk, row.Integer("_chunk"));
      TRY_ASSIGN(const std::optional<std::string> lsn_text, row.Text("_start_lsn"));
      TRY_ASSIGN(const std::optional<std::string> instance,
                 row.Text("_capture_instance"));
      if (operation != 0 || chunk || !lsn_text || !instance) continue;
      if (!IsInFamily(context, *instance)) continue;
      TRY_ASSIGN(const cdc::Lsn lsn, cdc::Lsn::Parse(*lsn_text));
      TRY_ASSIGN(const std::optional<std::int64_t> time, row.Integer("_commit_ts"));
      found = pipeline::NewerStamp(found, cdc::Offset{lsn, time});
    }
  }
}

Result<std::optional<cdc::Offset>> FindInTarget(RunContext& context) {
  const std::string& target = context.config.target_location;
  TRY_ASSIGN(const std::optional<lake::TableState> state, context.lake.State(target));
  if (!state) return std::optional<cdc::Offset>();
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             context.lake.History(target, 0));
  std::optional<cdc::Offset> found;
  for (const lake::CommitInfo& commit : commits) {
    if (!commit.user_metadata) continue;
    const auto parsed = pipeline::ParseSnapshotMetadata(*commit.user_metadata);
    if (!parsed || !IsInFamily(context, parsed->capture_instance)) continue;
    found = pipeline::NewerStamp(found, parsed->stamp);
  }
  const bool log_is_whole = !commits.empty() && commits.front().version == 0;
  if (found || log_is_whole) return found;
  return FindByRows(context);
}

Result<std::vector<pipeline::SnapshotEvent>> ReadEvents(RunContext& context) {
  std::vector<pipeline::SnapshotEvent> events;
  if (!context.config.facts_table) return events;
  lake::ReadSpec spec;
  spec.columns = {"event", "app_id", "rows", "max_lsn", "max_commit_ts", "detail"};
  spec.conditions = {
      {"event", lake::Condition::Operator::kIsNotNull, ""},
      {"target", lake::Condition::Operator::kEqual, context.config.target}};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             context.lake.Read(context.config.facts_location, spec));
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return events;
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const cdc::RowView row(*batch, i);
      pipeline::SnapshotEvent event;
      TRY_ASSIGN(const std::optional<std::string> name, row.Text("event"));
      TRY_ASSIGN(const std::optional<std::string> app_id, row.Text("app_id"));
      TRY_ASSIGN(const std::optional<std::string> lsn, row.Text("max_lsn"));
      TRY_ASSIGN(const std::optional<std::string> detail, row.Text("detail"));
      TRY_ASSIGN(event.rows, row.Integer("rows"));
      TRY_ASSIGN(event.commit_us, row.Integer("max_commit_ts"));
      if (!name || !app_id || !lsn) continue;
      TRY_ASSIGN(event.lsn, cdc::Lsn::Parse(*lsn));
      event.event = *name;
      event.app_id = *app_id;
      event.detail = detail.value_or("");
      events.push_back(std::move(event));
    }
  }
}

Status WriteFacts(RunContext& context, const pipeline::FactsRow& row,
                  const std::optional<lake::Txn>& txn) {
  if (!context.config.facts_table) return Unit{};
  columns::RecordBatch batch = pipeline::FactsBatch({row});
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  const columns::SchemaPtr schema = batch.schema;
  std::vector<columns::RecordBatch> batches;
  batches.push_back(std::move(batch));
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.txn = txn;
  TRY(context.lake.Append(context.config.facts_location, std::move(sources), spec));
  return Unit{};
}

Status RecordBootstrap(RunContext& context, const pipeline::SnapshotRun& run) {
  return WriteFacts(context, pipeline::BootstrapFacts(run),
                    lake::Txn{context.config.app_id + "#events", 0});
}

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

// Asks the pool when the range's read begins, and gives back when it ends.
reader::LendSession LendFrom(SessionPool& pool) {
  return [&pool]() -> Result<reader::LentSession> {
    TRY_ASSIGN(SessionPool::Lease lease, pool.Acquire());
    auto kept = std::make_shared<SessionPool::Lease>(std::move(lease));
    sqlserver::Session* session = &**kept;
    return reader::LentSession(session,
                               [kept](sqlserver::Session*) mutable { kept.reset(); });
  };
}

Result<std::vector<cdc::KeyRange>> PlanRanges(
    RunContext& context, sqlserver::Session& session,
    const sqlserver::SourceSettings& settings) {
  const std::int64_t cpu_count =
      std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t range_count_max =
      context.config.num_partitions.value_or(cpu_count);
  const Source& source = context.source;
  if (range_count_max == 1 || !source.range_key) {
    return cdc::PlanKeyRanges(std::nullopt, 1);
  }
  sqlserver::SourceSettings probe = settings;
  probe.snapshot_isolation = false;
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session,
                 sqlserver::AskKeyExtent(source.instance.source_schema,
                                         source.instance.source_table,
                                         *source.range_key, probe),
                 1));
  std::optional<cdc::KeyExtent> extent;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
    TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
    if (min && max) extent = cdc::KeyExtent{*min, *max};
  }
  return cdc::PlanKeyRanges(extent, range_count_max);
}

Result<cdc::Offset> ChooseStamp(RunContext& context, sqlserver::Session& session) {
  const Source& source = context.source;
  TRY_ASSIGN(const std::optional<cdc::Offset> newest, AskNewest(session, source));
  const std::optional<cdc::Lsn> lsn = cdc::SnapshotLsn(
      newest ? std::optional(newest->lsn) : std::nullopt, source.oldest().start_lsn);
  if (!lsn) {
    return Error(ErrorId::kCaptureHasNotRun)
        .With("capture_instance", source.instance.name);
  }
  if (newest && newest->lsn == *lsn) return *newest;
  return AskOffset(session, source, *lsn);
}

// Reads the table and appends it in one commit; the stamp is noted before the read.
Result<cdc::Offset> TakeWholeSnapshot(RunContext& context) {
  const StreamConfig& config = context.config;
  pipeline::SnapshotRun run;
  run.app_id = config.app_id;
  run.target = config.target;
  const sqlserver::SourceSettings settings{
      config.lock_timeout_ms, config.isolation_level == IsolationLevel::kSnapshot};
  std::vector<cdc::KeyRange> ranges;
  {
    TRY_ASSIGN(const SessionPool::Lease session, context.pool.Acquire());
    TRY_ASSIGN(run.stamp, ChooseStamp(context, *session));
    TRY_ASSIGN(ranges, PlanRanges(context, *session, settings));
  }
  run.written_at_us = context.clock.NowUtcUs();
  TRY(WriteFacts(context, pipeline::SnapshotOpenFacts(run), std::nullopt));

  const auto range_count = static_cast<std::int64_t>(ranges.size());
  context.observer.OnSnapshotStart(range_count);
  ProgressSum progress(context.observer, context.clock, range_count);
  run.started_at_us = context.clock.NowUtcUs();
  const std::int64_t begin_ns = context.clock.MonotonicNs();
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  for (const cdc::KeyRange& range : ranges) {
    reader::SnapshotPlan plan{config.capture_instance,
                              context.source.instance.source_schema,
                              context.source.instance.source_table,
                              context.source.columns.columns,
                              config.include_command_id,
                              context.source.range_key.value_or(""),
                              range,
                              run.stamp,
                              settings,
                              context.Limits(range_count)};
    sources.push_back(context.AsWritten(std::make_unique<reader::SnapshotReader>(
        std::move(plan), LendFrom(context.pool), context.stop,
        [&progress](std::int64_t rows, std::int64_t bytes) {
          progress.Add(rows, bytes);
        })));
  }
  lake::AppendSpec spec;
  spec.merge_schema = true;
  const std::string metadata =
      pipeline::SnapshotMetadata(config.capture_instance, run.stamp);
  spec.user_metadata = [&metadata] { return std::optional<std::string>(metadata); };
  TRY_ASSIGN(const lake::AppendResult appended,
             context.lake.Append(config.target_location, std::move(sources), spec));
  run.rows = appended.row_count;
  run.duration_ms = (context.clock.MonotonicNs() - begin_ns) / 1'000'000;
  run.written_at_us = context.clock.NowUtcUs();
  TRY(RecordBootstrap(context, run));
  context.observer.OnSnapshotDone({run.stamp.lsn.Text(),
                                   cdc::CommitText(run.stamp.commit_us), run.rows,
                                   *run.duration_ms});
  return run.stamp;
}

// The snapshot is there already: only its `bootstrap` row may be missing.
Result<cdc::Offset> UseSnapshotInTarget(RunContext& context, const cdc::Offset& stamp) {
  pipeline::SnapshotRun run;
  run.app_id = context.config.app_id;
  run.target = context.config.target;
  run.stamp = stamp;
  run.written_at_us = context.clock.NowUtcUs();
  TRY(RecordBootstrap(context, run));
  context.observer.OnSnapshotDone(
      {stamp.lsn.Text(), cdc::CommitText(stamp.commit_us), std::nullopt, 0});
  return stamp;
}

}  // namespace

Result<cdc::Offset> Bootstrap(RunContext& context) {
  pipeline::BootstrapFactsGathered facts;
  facts.app_id = context.config.app_id;
  TRY_ASSIGN(facts.in_target, FindInTarget(context));
  TRY_ASSIGN(facts.events, ReadEvents(context));
  TRY_ASSIGN(const pipeline::BootstrapPlan plan, pipeline::PlanBootstrap(facts));
  if (const auto* found = std::get_if<pipeline::StartFromTarget>(&plan)) {
    return UseSnapshotInTarget(context, found->stamp);
  }
  if (const auto* known = std::get_if<pipeline::StartFromFacts>(&plan)) {
    return known->stamp;
  }
  return TakeWholeSnapshot(context);
}

Result<bool> BootstrapIsRecorded(RunContext& context) {
  if (!context.config.facts_table) return false;
  TRY_ASSIGN(const std::optional<std::int64_t> version,
             context.lake.LastTxn(context.config.facts_location,
                                  context.config.app_id + "#events"));
  return version.has_value();
}

}  // namespace mssql_cdc::runtime

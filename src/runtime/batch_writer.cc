#include "runtime/batch_writer.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cdc/cells.h"
#include "cdc/find_name.h"
#include "runtime/known_facts.h"
#include "runtime/read_sums.h"

namespace mssql_cdc::runtime {
namespace {

// As bronze spells them: `columns` may name a column in another case.
void SpellAs(const std::vector<columns::Field>& declared,
             std::vector<cdc::MaskColumn>& columns) {
  for (cdc::MaskColumn& column : columns) {
    const auto found = cdc::FindName(declared, column.name, &columns::Field::name);
    if (found != declared.end()) column.name = found->name;
  }
}

// What all ranges of a batch together read.
pipeline::BatchCounts CountsOf(const std::vector<RangeRead>& reads) {
  pipeline::BatchCounts sum;
  for (const RangeRead& read : reads) AddCounts(read.counts, sum);
  return sum;
}

// What reading showed: sums, and of what the server said after it the newest.
pipeline::ReadMetrics MetricsOf(const BatchTask& task,
                                const std::vector<RangeRead>& reads) {
  pipeline::ReadMetrics metrics;
  metrics.end = task.end;
  metrics.rtt_ms = task.rtt_ms;
  for (const RangeRead& read : reads) AddMetrics(read.counts, read.after, metrics);
  return metrics;
}

}  // namespace

BatchWriter::BatchWriter(RunContext& context, CheckpointNotes notes)
    : context_(context), notes_(std::move(notes)) {
  NameMetrics();
}

void BatchWriter::MoveTo(CheckpointNotes notes) {
  notes_ = std::move(notes);
  tables_known_ = false;
  NameMetrics();
}

void BatchWriter::NameMetrics() {
  if (context_.config.metrics_path.empty()) return;
  metrics_files_.emplace(context_.config.metrics_path, context_.sink_id);
}

reader::ChangePlan BatchWriter::PlanRange(const BatchTask& task,
                                          const cdc::ReadPiece& range) const {
  const Source& source = context_.source;
  const cdc::InstanceColumns& from = source.instances[range.instance_index].columns;
  reader::ChangePlan plan;
  plan.capture_instance = from.instance.name;
  plan.columns = source.fields();
  plan.reads = cdc::PlanColumnReads(plan.columns, from.captured);
  plan.command_id = context_.config.include_command_id;
  if (context_.config.changed_columns ||
      context_.config.unchanged_lob != cdc::UnchangedLob::kNull) {
    plan.mask.columns = cdc::PlanMask(source.fields(), from.captured);
    SpellAs(source.declared, plan.mask.columns);
    plan.mask.unchanged_lob = context_.config.unchanged_lob;
  }
  plan.window = range.window;
  plan.batch_id = static_cast<std::int32_t>(task.batch_id);
  plan.clock = source.clock;
  const auto range_count = static_cast<std::int64_t>(task.ranges.size());
  plan.limits = context_.Limits(range_count);
  // The session's counter from before the batch is known of one session only.
  plan.network_wait = source.network_wait && range_count == 1;
  plan.fail_on_data_loss = context_.config.fail_on_data_loss;
  return plan;
}

Status BatchWriter::Watch(sqlserver::Session& session) {
  TRY_ASSIGN(network_wait_ms_, AskNetworkWaitMs(session, context_.source));
  return Unit{};
}

Result<pipeline::SinkWork> BatchWriter::Look(std::int64_t batch_id,
                                             const cdc::Offset& end) {
  if (tables_known_) return pipeline::SinkWork::kEverything;
  pipeline::SinkFacts facts;
  facts.batch_id = batch_id;
  TRY_ASSIGN(facts.bronze_txn,
             context_.lake.LastTxn(context_.config.target_location, context_.sink_id));
  facts.has_facts_table = context_.config.facts_table.has_value();
  if (facts.has_facts_table) {
    TRY_ASSIGN(facts.facts_txn, context_.lake.LastTxn(context_.config.facts_location,
                                                      context_.sink_id + "#facts"));
  }
  TRY_ASSIGN(const pipeline::SinkWork work, pipeline::PlanSink(facts));
  if (work == pipeline::SinkWork::kNothing && facts.has_facts_table) {
    TRY(CheckRecordedEnd(batch_id, end));
  }
  return work;
}

Result<BatchOutcome> BatchWriter::Write(pipeline::SinkWork work, BatchTask& task,
                                        sqlserver::Session& session) {
  tables_known_ = false;  // Until the batch is through.
  if (task.batch_id > std::numeric_limits<std::int32_t>::max()) {
    return Error(ErrorId::kInternalError).With("reason", "batch ids ran out");
  }
  const std::int64_t started_at_us = context_.clock.NowUtcUs();
  BatchOutcome outcome;
  switch (work) {
    case pipeline::SinkWork::kEverything: {
      TRY_ASSIGN(outcome, ReadAndAppend(task, session, started_at_us));
      TRY(WriteFacts(task, outcome.facts));
      break;
    }
    case pipeline::SinkWork::kFacts: {
      TRY_ASSIGN(outcome, Recount(task, session, started_at_us));
      TRY(WriteFacts(task, outcome.facts));
      break;
    }
    case pipeline::SinkWork::kNothing:
      outcome.replayed = true;
      break;
  }
  tables_known_ = true;
  DropKeptMetrics();
  return outcome;
}

// The rows are in the target: what the facts say of them, as far as it is still known.
Result<BatchOutcome> BatchWriter::Recount(const BatchTask& task,
                                          sqlserver::Session& session,
                                          std::int64_t started_at_us) {
  TRY_ASSIGN(const pipeline::BatchCounts counts, CountsOfCommit(task, session));
  std::optional<pipeline::ReadMetrics> metrics;
  if (task.window) {
    metrics.emplace();
    metrics->end = task.end;
    metrics->rtt_ms = task.rtt_ms;
    FoldKeptMetrics(task, *metrics);
  }
  BatchOutcome outcome;
  outcome.replayed = true;
  outcome.facts =
      pipeline::BatchFacts({context_.sink_id, context_.config.target, task.batch_id,
                            started_at_us, 0, context_.clock.NowUtcUs()},
                           counts, metrics);
  return outcome;
}

Status BatchWriter::CheckIsNew(std::int64_t batch_id) {
  if (tables_known_ || context_.config.facts_table) return Unit{};
  TRY_ASSIGN(const std::optional<std::int64_t> recorded,
             context_.lake.LastTxn(context_.config.target_location, context_.sink_id));
  if (!recorded || *recorded < batch_id) return Unit{};
  return Error(ErrorId::kCheckpointRewound)
      .With("batch_id", std::to_string(batch_id))
      .With("recorded", std::to_string(*recorded));
}

// A batch that the tables already hold must be of this target and end where theirs
// ended. Otherwise this is another batch under the same number, which a checkpoint
// deleted after its first batch produces, or a second stream with this app_id, and
// skipping it would lose its changes.
Status BatchWriter::CheckRecordedEnd(std::int64_t batch_id, const cdc::Offset& end) {
  lake::ReadSpec spec;
  spec.columns = {"batch_id", "target", "end_lsn"};
  spec.conditions = {{"app_id", lake::Condition::Operator::kEqual, context_.sink_id},
                     {"event", lake::Condition::Operator::kIsNull, ""}};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             context_.lake.Read(context_.config.facts_location, spec));
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return Unit{};
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const cdc::RowView row(*batch, i);
      TRY_ASSIGN(const std::optional<std::int64_t> recorded_id,
                 row.Integer("batch_id"));
      if (recorded_id != batch_id) continue;
      TRY_ASSIGN(const std::optional<std::string> target, row.Text("target"));
      if (target && *target != context_.config.target) {
        return Error(ErrorId::kOptionsClash)
            .With("option", "app_id")
            .With("value", context_.config.app_id)
            .With("with", "the stream into " + *target);
      }
      TRY_ASSIGN(const std::optional<std::string> recorded_end, row.Text("end_lsn"));
      if (!recorded_end || *recorded_end == end.lsn.Text()) continue;
      return Error(ErrorId::kCheckpointRewound)
          .With("batch_id", std::to_string(batch_id))
          .With("end", end.lsn.Text())
          .With("recorded_end", *recorded_end);
    }
  }
}

Status BatchWriter::NotePossibleLoss(const std::vector<RangeRead>& reads,
                                     BatchTask& task, sqlserver::Session& session) {
  std::vector<cdc::SourceEvent> losses;
  for (const RangeRead& read : reads) {
    if (!read.after || !read.after->may_lack_rows || !read.after->instance_min) {
      continue;
    }
    losses.push_back(cdc::PossibleLoss(read.plan.capture_instance, read.plan.window,
                                       *read.after->instance_min,
                                       task.after_commit_us));
    context_.observer.OnWarning("changes above " + read.plan.window.after.Text() +
                                " of capture instance " + read.plan.capture_instance +
                                " may be lost: cleanup passed them while they were "
                                "read");
  }
  if (losses.empty()) return Unit{};
  if (session.clean()) TRY(AskEventTimes(session, context_.source, losses));
  for (cdc::SourceEvent& loss : losses) task.note.events.push_back(std::move(loss));
  return notes_.WriteNote(task.note);
}

Result<BatchOutcome> BatchWriter::ReadAndAppend(BatchTask& task,
                                                sqlserver::Session& session,
                                                std::int64_t started_at_us) {
  BatchOutcome outcome;
  const std::int64_t begin_ns = context_.clock.MonotonicNs();
  pipeline::BatchCounts counts;
  std::vector<RangeRead> reads(task.ranges.size());
  if (!reads.empty()) {
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      reads[i].plan = PlanRange(task, task.ranges[i]);
      sources.push_back(context_.AsWritten(
          ReadRange(context_, reads[i], i == 0 ? &session : nullptr)));
    }
    lake::AppendSpec spec;
    spec.txn = lake::Txn{context_.sink_id, task.batch_id};
    spec.merge_schema = true;
    spec.user_metadata = [&]() -> Result<std::optional<std::string>> {
      TRY(NotePossibleLoss(reads, task, session));
      KeepMetrics(task, reads);
      return std::optional<std::string>(
          pipeline::BatchMetadata(CountsOf(reads), task.batch_id, context_.sink_id));
    };
    TRY_ASSIGN(const lake::AppendResult appended,
               context_.lake.Append(context_.config.target_location, std::move(sources),
                                    spec));
    outcome.target_version = appended.version;
    if (appended.outcome == lake::AppendOutcome::kAlreadyThere) {
      outcome.replayed = true;
      TRY_ASSIGN(counts, CountsOfCommit(task, session));
    } else {
      counts = CountsOf(reads);
    }
  }
  const std::int64_t duration_ms =
      (context_.clock.MonotonicNs() - begin_ns + 500'000) / 1'000'000;
  std::optional<pipeline::ReadMetrics> metrics;
  if (task.window) {
    metrics = MetricsOf(task, reads);
    outcome.size_bytes = metrics->size_bytes;
    metrics->observed_at_us = context_.clock.NowUtcUs();
    if (reads.size() == 1 && reads[0].after) {
      const std::optional<std::int64_t> wait_ms = reads[0].after->network_wait_ms;
      if (wait_ms && network_wait_ms_) {
        metrics->network_wait_ms = *wait_ms - *network_wait_ms_;
      }
      network_wait_ms_ = wait_ms;
    }
  }
  outcome.facts =
      pipeline::BatchFacts({context_.sink_id, context_.config.target, task.batch_id,
                            started_at_us, duration_ms, context_.clock.NowUtcUs()},
                           counts, metrics);
  return outcome;
}

void BatchWriter::KeepMetrics(const BatchTask& task,
                              const std::vector<RangeRead>& reads) {
  if (!metrics_files_) return;
  Status kept = Unit{};
  for (const RangeRead& read : reads) {
    RangeMetrics range;
    range.window = read.plan.window;
    range.row_count = read.counts.row_count;
    range.size_bytes = read.counts.size_bytes;
    range.read_seconds = static_cast<double>(read.counts.read_ns) / 1e9;
    range.rtt_ms = task.rtt_ms;
    if (read.after) {
      if (read.after->network_wait_ms && network_wait_ms_) {
        range.network_wait_ms = *read.after->network_wait_ms - *network_wait_ms_;
      }
      range.retention_watermark_us = read.after->instance_min_commit_us;
      if (read.after->newest) {
        range.source_max_commit_us = read.after->newest->commit_us;
      }
    }
    if (kept.ok()) kept = metrics_files_->WriteRange(range);
  }
  for (const cdc::SourceEvent& event : task.note.events) {
    if (kept.ok()) kept = metrics_files_->WriteEvent(event);
  }
  WarnOfMetrics(kept);
}

void BatchWriter::FoldKeptMetrics(const BatchTask& task,
                                  pipeline::ReadMetrics& metrics) {
  if (!metrics_files_) return;
  const auto kept = metrics_files_->ReadRanges(*task.window);
  if (!kept.ok()) return WarnOfMetrics(kept.error());
  for (const RangeMetrics& range : kept.value()) {
    metrics.read_seconds += range.read_seconds;
    metrics.size_bytes += range.size_bytes;
    if (range.network_wait_ms) {
      metrics.network_wait_ms =
          metrics.network_wait_ms.value_or(0) + *range.network_wait_ms;
    }
    metrics.retention_watermark_us =
        std::max(metrics.retention_watermark_us, range.retention_watermark_us);
    metrics.source_max_commit_us =
        std::max(metrics.source_max_commit_us, range.source_max_commit_us);
  }
}

void BatchWriter::DropKeptMetrics() {
  if (metrics_files_) WarnOfMetrics(metrics_files_->RemoveAll());
}

void BatchWriter::WarnOfMetrics(const Status& status) {
  if (!status.ok()) {
    context_.observer.OnWarning("metricsPath is not kept: " + status.error().Text());
  }
}

// What the batch wrote, from the commit that holds it, else from the source again.
Result<pipeline::BatchCounts> BatchWriter::CountsOfCommit(const BatchTask& task,
                                                          sqlserver::Session& session) {
  if (!task.window) return pipeline::BatchCounts{};
  const std::string& target = context_.config.target_location;
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             context_.lake.History(target, 0));
  for (auto commit = commits.rbegin(); commit != commits.rend(); ++commit) {
    if (!commit->user_metadata) continue;
    const auto parsed = pipeline::ParseBatchMetadata(*commit->user_metadata);
    if (!parsed || parsed->app_id != context_.sink_id) continue;
    if (parsed->batch_id == task.batch_id && parsed->counts) return *parsed->counts;
  }
  std::vector<RangeRead> reads;
  for (const cdc::ReadPiece& range :
       cdc::CutAtInstances(context_.source.family().instances, *task.window)) {
    RangeRead& read = reads.emplace_back();
    read.plan = PlanRange(task, range);
    read.plan.fail_on_data_loss = false;
    read.plan.network_wait = false;
    const auto rows = ReadRange(context_, read, &session);
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
    }
  }
  return CountsOf(reads);
}

Status BatchWriter::WriteFacts(const BatchTask& task, const pipeline::FactsRow& row) {
  if (!context_.config.facts_table) return Unit{};
  std::vector<pipeline::FactsRow> rows = {row};
  rows[0].detail = pipeline::WarningsDetail(task.note.warnings);
  const pipeline::BatchRun run{
      context_.sink_id,         context_.config.target, task.batch_id, 0, 0,
      context_.clock.NowUtcUs()};
  for (const cdc::SourceEvent& event : task.note.events) {
    rows.push_back(pipeline::EventFacts(run, event));
  }
  std::vector<columns::RecordBatch> batches;
  batches.push_back(pipeline::FactsBatch(rows));
  const columns::SchemaPtr schema = batches[0].schema;
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.txn = lake::Txn{context_.sink_id + "#facts", task.batch_id};
  if (rows.size() == 1) {
    spec.user_metadata = [] {
      return Result<std::optional<std::string>>(std::optional<std::string>(kNoEvents));
    };
  }
  TRY(context_.lake.Append(context_.config.facts_location, std::move(sources), spec));
  return Unit{};
}

}  // namespace mssql_cdc::runtime

#include "runtime/batch_writer.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "cdc/cells.h"
#include "reader/change_reader.h"

namespace mssql_cdc::runtime {
namespace {

// Lets the lake own a reader whose counts are still needed after the append.
class KeptReader final : public columns::BatchReader {
 public:
  explicit KeptReader(std::shared_ptr<reader::ChangeReader> inner)
      : inner_(std::move(inner)) {}
  columns::SchemaPtr schema() const override { return inner_->schema(); }
  Result<std::optional<columns::RecordBatch>> Next() override { return inner_->Next(); }

 private:
  std::shared_ptr<reader::ChangeReader> inner_;
};

pipeline::BatchCounts CountsOf(const reader::ChangeCounts& counts) {
  return {counts.row_count,     counts.min_lsn, counts.max_lsn, counts.min_commit_us,
          counts.max_commit_us, counts.deletes, counts.inserts, counts.updates};
}

Result<std::shared_ptr<reader::ChangeReader>> MakeReader(RunContext& context,
                                                         const BatchTask& task,
                                                         sqlserver::Session& session) {
  if (task.batch_id > std::numeric_limits<std::int32_t>::max()) {
    return Error(ErrorId::kInternalError).With("reason", "batch ids ran out");
  }
  reader::ChangePlan plan{context.source.instance.name,
                          context.source.fields(),
                          context.config.include_command_id,
                          *task.window,
                          static_cast<std::int32_t>(task.batch_id),
                          context.source.clock,
                          context.Limits(1),
                          context.source.network_wait};
  return std::make_shared<reader::ChangeReader>(std::move(plan), session, context.clock,
                                                context.stop);
}

}  // namespace

Status BatchWriter::Watch(sqlserver::Session& session) {
  TRY_ASSIGN(network_wait_ms_, AskNetworkWaitMs(session, context_.source));
  return Unit{};
}

Result<BatchOutcome> BatchWriter::Write(const BatchTask& task,
                                        sqlserver::Session& session) {
  pipeline::SinkWork work = pipeline::SinkWork::kEverything;
  if (!tables_known_) {
    TRY_ASSIGN(work, PlanWork(task.batch_id, task.end));
  }
  tables_known_ = false;  // Until the batch is through.
  const std::int64_t started_at_us = context_.clock.NowUtcUs();
  BatchOutcome outcome;
  switch (work) {
    case pipeline::SinkWork::kEverything: {
      TRY_ASSIGN(outcome, ReadAndAppend(task, session, started_at_us));
      TRY(WriteFacts(task, outcome.facts));
      break;
    }
    case pipeline::SinkWork::kFacts: {
      TRY_ASSIGN(const pipeline::BatchCounts counts, CountsOfCommit(task, session));
      std::optional<pipeline::ReadMetrics> metrics;
      if (task.window) {
        metrics.emplace();
        metrics->end = task.end;
        metrics->rtt_ms = task.rtt_ms;
      }
      outcome.replayed = true;
      outcome.facts =
          pipeline::BatchFacts({context_.sink_id, context_.config.target, task.batch_id,
                                started_at_us, 0, context_.clock.NowUtcUs()},
                               counts, metrics);
      TRY(WriteFacts(task, outcome.facts));
      break;
    }
    case pipeline::SinkWork::kNothing:
      outcome.replayed = true;
      break;
  }
  tables_known_ = true;
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

Result<pipeline::SinkWork> BatchWriter::PlanWork(std::int64_t batch_id,
                                                 const cdc::Offset& end) {
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

Result<BatchOutcome> BatchWriter::ReadAndAppend(const BatchTask& task,
                                                sqlserver::Session& session,
                                                std::int64_t started_at_us) {
  BatchOutcome outcome;
  const std::int64_t begin_ns = context_.clock.MonotonicNs();
  pipeline::BatchCounts counts;
  std::optional<pipeline::ReadMetrics> metrics;
  std::shared_ptr<reader::ChangeReader> changes;
  if (task.window) {
    TRY_ASSIGN(changes, MakeReader(context_, task, session));
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    sources.push_back(std::make_unique<KeptReader>(changes));
    lake::AppendSpec spec;
    spec.txn = lake::Txn{context_.sink_id, task.batch_id};
    spec.merge_schema = true;
    spec.user_metadata = [&] {
      return std::optional<std::string>(pipeline::BatchMetadata(
          CountsOf(changes->counts()), task.batch_id, context_.sink_id));
    };
    TRY_ASSIGN(const lake::AppendResult appended,
               context_.lake.Append(context_.config.target_location, std::move(sources),
                                    spec));
    outcome.target_version = appended.version;
    if (appended.outcome == lake::AppendOutcome::kAlreadyThere) {
      outcome.replayed = true;
      TRY_ASSIGN(counts, CountsOfCommit(task, session));
    } else {
      counts = CountsOf(changes->counts());
    }
    metrics.emplace();
    metrics->end = task.end;
    metrics->rtt_ms = task.rtt_ms;
    metrics->read_seconds = static_cast<double>(changes->counts().read_ns) / 1e9;
    metrics->size_bytes = changes->counts().size_bytes;
    outcome.size_bytes = metrics->size_bytes;
  }
  const std::int64_t duration_ms =
      (context_.clock.MonotonicNs() - begin_ns + 500'000) / 1'000'000;
  if (changes && changes->after_read()) {
    const reader::AfterRead& after = *changes->after_read();
    metrics->retention_watermark_us = after.instance_min_commit_us;
    metrics->observed_at_us = context_.clock.NowUtcUs();
    if (after.newest) metrics->source_max_commit_us = after.newest->commit_us;
    if (after.network_wait_ms && network_wait_ms_) {
      metrics->network_wait_ms = *after.network_wait_ms - *network_wait_ms_;
    }
    network_wait_ms_ = after.network_wait_ms;
  }
  outcome.facts =
      pipeline::BatchFacts({context_.sink_id, context_.config.target, task.batch_id,
                            started_at_us, duration_ms, context_.clock.NowUtcUs()},
                           counts, metrics);
  return outcome;
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
  TRY_ASSIGN(const std::shared_ptr<reader::ChangeReader> changes,
             MakeReader(context_, task, session));
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, changes->Next());
    if (!batch) return CountsOf(changes->counts());
  }
}

Status BatchWriter::WriteFacts(const BatchTask& task, const pipeline::FactsRow& row) {
  if (!context_.config.facts_table) return Unit{};
  std::vector<columns::RecordBatch> batches;
  batches.push_back(pipeline::FactsBatch({row}));
  const columns::SchemaPtr schema = batches[0].schema;
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.txn = lake::Txn{context_.sink_id + "#facts", task.batch_id};
  TRY(context_.lake.Append(context_.config.facts_location, std::move(sources), spec));
  return Unit{};
}

}  // namespace mssql_cdc::runtime

#include "extension/stream_driver.h"

#include <algorithm>
#include <utility>

#include "cdc/read_plan.h"
#include "pipeline/source_events.h"
#include "pipeline/tables.h"
#include "runtime/batch_writer.h"
#include "runtime/bootstrap.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::extension {

using runtime::CheckpointState;
using runtime::SessionPool;

StreamDriver::StreamDriver(const StreamPlace& place)
    : lake_(tables_, place.target_location, place.facts_location) {}

Result<std::unique_ptr<StreamDriver>> StreamDriver::Open(const Options& options,
                                                         const TokenCall& token_call,
                                                         const StreamPlace& place) {
  std::unique_ptr<StreamDriver> driver(new StreamDriver(place));
  TRY_ASSIGN(driver->context_,
             SourceContext::Open(options, token_call, &driver->lake_));
  runtime::StreamConfig& config = driver->context_->config();
  config.target = place.target;
  config.target_location = place.target_location;
  config.app_id = place.app_id;
  config.checkpoint = place.checkpoint;
  if (!place.facts_table.empty()) config.facts_table = place.facts_table;
  config.facts_location = place.facts_location;
  config.bootstrap = place.bootstrap;
  driver->context_->run().sink_id = place.app_id;
  if (config.bootstrap && config.starting_lsn_given) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "bootstrap, startingLsn")
        .With("reason", "a bootstrap starts at its snapshot");
  }
  if (!config.checkpoint.empty()) TRY(runtime::CheckLocations(config));
  return driver;
}

Result<std::unique_ptr<StreamDriver>> StreamDriver::OpenSink(const StreamPlace& place) {
  // A login to nowhere: nothing of a sink connects.
  const Options nowhere = {{"captureInstance", "sink"},
                           {"connectionString", "Server=localhost;Database=none"},
                           {"user", "none"},
                           {"password", "none"}};
  return Open(nowhere, TokenCall(), place);
}

Result<pipeline::TableDefinition> StreamDriver::TargetDefinition() {
  using Definition = pipeline::TableDefinition;
  return context_->WithRetries<Definition>([this]() -> Result<Definition> {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(context_->KnowSource(*session, std::nullopt));
    return pipeline::BronzeTable(context_->run().source.target_fields(),
                                 context_->config().include_command_id);
  });
}

Result<PreparedStream> StreamDriver::Prepare(
    const SparkLake::WriteSnapshot& write_snapshot) {
  lake_.SetWriteSnapshot(write_snapshot);
  return context_->WithRetries<PreparedStream>([this] { return PrepareOnce(); });
}

Result<PreparedStream> StreamDriver::PrepareOnce() {
  const runtime::StreamConfig& config = context_->config();
  std::optional<runtime::Checkpoint> checkpoint;
  CheckpointState state;
  if (!config.checkpoint.empty()) {
    // Its lock goes with this function: Spark has none, and whoever begins a batch
    // first keeps the other out.
    TRY_ASSIGN(checkpoint, runtime::Checkpoint::Open(config.checkpoint));
    state = checkpoint->state();
  }
  PreparedStream prepared;
  prepared.directory = state.directory;
  prepared.sink_id = config.app_id;
  if (state.generation != 0)
    prepared.sink_id += ".g" + std::to_string(state.generation);
  context_->run().sink_id = prepared.sink_id;

  std::optional<cdc::SourceMemory> memory;
  const runtime::CheckpointNotes notes(state.directory);
  if (checkpoint) {
    TRY_ASSIGN(memory, notes.ReadMemory());
  }
  {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(context_->KnowSource(*session, memory));
  }
  TRY(CheckTargetIsThere(state));
  TRY(EnsureTables());
  if (checkpoint && !memory) {
    TRY(notes.WriteMemory(context_->run().source.memory()));
  }
  TRY_ASSIGN(prepared.initial, DecideStart(state));
  if (checkpoint && prepared.initial && !state.position()) {
    TRY(checkpoint->SetInitial(*prepared.initial));
  }
  return prepared;
}

Status StreamDriver::EnsureTables() {
  const runtime::StreamConfig& config = context_->config();
  TRY(runtime::EnsureTable(lake_, config.target_location, pipeline::TableKind::kBronze,
                           pipeline::BronzeTable(context_->run().source.target_fields(),
                                                 config.include_command_id)));
  if (!config.facts_table) return Unit{};
  return runtime::EnsureTable(lake_, config.facts_location, pipeline::TableKind::kFacts,
                              pipeline::FactsTable());
}

// A target that went away would be made anew and go on without its past, unseen.
Status StreamDriver::CheckTargetIsThere(const CheckpointState& state) {
  if (!state.committed_batch_id) return Unit{};
  const runtime::StreamConfig& config = context_->config();
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             lake_.State(config.target_location));
  if (target) return Unit{};
  return Error(ErrorId::kTargetLost)
      .With("target", config.target)
      .With("location", config.target_location)
      .With("position", state.position()->lsn.Text());
}

Result<std::optional<cdc::Offset>> StreamDriver::DecideStart(
    const CheckpointState& state) {
  std::optional<cdc::Offset> initial = state.initial;
  if (state.generation != 0) return initial;
  const bool is_new = !state.position();
  if (context_->config().bootstrap) {
    if (!is_new) {
      TRY_ASSIGN(const bool recorded, runtime::BootstrapIsRecorded(context_->run()));
      if (recorded) return initial;
    }
    TRY_ASSIGN(const cdc::Offset stamp, runtime::Bootstrap(context_->run()));
    if (is_new) initial = stamp;
    return initial;
  }
  if (!is_new) return initial;
  TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
  TRY_ASSIGN(initial, runtime::AskStart(*session, context_->run().source,
                                        context_->config().starting_lsn));
  return initial;
}

Result<cdc::Offset> StreamDriver::Snapshot(
    const SparkLake::WriteSnapshot& write_snapshot, bool again) {
  lake_.SetWriteSnapshot(write_snapshot);
  lake_.SetSparesFacts(true);
  return context_->WithRetries<cdc::Offset>([&]() -> Result<cdc::Offset> {
    {
      TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
      TRY(context_->KnowSource(*session, std::nullopt));
    }
    lake_.SetForgetsSnapshots(false);
    TRY(EnsureTables());
    lake_.SetForgetsSnapshots(again);
    return runtime::Bootstrap(context_->run());
  });
}

Result<pipeline::SinkWork> StreamDriver::Look(
    std::int64_t batch_id, const std::optional<BatchSummary>& summary) {
  runtime::BatchWriter writer(context_->run(), runtime::CheckpointNotes(""));
  if (!summary) {
    pipeline::SinkFacts facts;
    facts.batch_id = batch_id;
    const runtime::StreamConfig& config = context_->config();
    TRY_ASSIGN(facts.bronze_txn, lake_.LastTxn(config.target_location, sink_id()));
    facts.has_facts_table = config.facts_table.has_value();
    if (facts.has_facts_table) {
      TRY_ASSIGN(facts.facts_txn,
                 lake_.LastTxn(config.facts_location, sink_id() + "#facts"));
    }
    return pipeline::PlanSink(facts);
  }
  return writer.Look(batch_id, summary->end);
}

Result<lake::AppendOutcome> StreamDriver::Append(
    std::int64_t batch_id, ArrowArrayStream* rows,
    const std::optional<pipeline::BatchCounts>& counts) {
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  TRY_ASSIGN(std::unique_ptr<columns::BatchReader> reader, columns::ImportStream(rows));
  sources.push_back(std::move(reader));
  lake::AppendSpec spec;
  spec.txn = lake::Txn{sink_id(), batch_id};
  spec.merge_schema = true;
  const std::string metadata = pipeline::BatchMetadata(counts, batch_id, sink_id());
  spec.user_metadata = [&metadata] { return std::optional<std::string>(metadata); };
  TRY_ASSIGN(
      const lake::AppendResult appended,
      lake_.Append(context_->config().target_location, std::move(sources), spec));
  return appended.outcome;
}

Result<std::optional<pipeline::BatchCounts>> StreamDriver::CountsInLog(
    std::int64_t batch_id) {
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             lake_.History(context_->config().target_location, 0));
  for (auto commit = commits.rbegin(); commit != commits.rend(); ++commit) {
    if (!commit->user_metadata) continue;
    const auto parsed = pipeline::ParseBatchMetadata(*commit->user_metadata);
    if (!parsed || parsed->app_id != sink_id() || parsed->batch_id != batch_id)
      continue;
    return parsed->counts;
  }
  return std::optional<pipeline::BatchCounts>();
}

namespace {

std::optional<pipeline::ReadMetrics> MetricsOf(
    const StreamDriver::BatchRecord& record) {
  if (!record.summary || record.summary->windows.empty()) return std::nullopt;
  pipeline::ReadMetrics metrics;
  metrics.end = record.summary->end;
  metrics.rtt_ms = record.summary->rtt_ms;
  for (const ReadReport& read : record.reads) {
    metrics.read_seconds += static_cast<double>(read.counts.read_ns) / 1e9;
    metrics.size_bytes += read.counts.size_bytes;
    if (!read.after) continue;
    metrics.retention_watermark_us =
        std::max(metrics.retention_watermark_us, read.after->instance_min_commit_us);
    if (read.after->newest) {
      metrics.source_max_commit_us =
          std::max(metrics.source_max_commit_us, read.after->newest->commit_us);
    }
  }
  return metrics;
}

}  // namespace

pipeline::BatchCounts SumCounts(const std::vector<ReadReport>& reads) {
  pipeline::BatchCounts sum;
  for (const ReadReport& read : reads) {
    const reader::ChangeCounts& counts = read.counts;
    sum.rows += counts.row_count;
    sum.deletes += counts.deletes;
    sum.inserts += counts.inserts;
    sum.updates += counts.updates;
    if (counts.row_count == 0) continue;
    if (!sum.min_lsn) sum.min_lsn = counts.min_lsn;
    sum.max_lsn = counts.max_lsn;
    sum.min_commit_us = sum.min_commit_us
                            ? std::min(sum.min_commit_us, counts.min_commit_us)
                            : counts.min_commit_us;
    sum.max_commit_us = std::max(sum.max_commit_us, counts.max_commit_us);
  }
  return sum;
}

Status StreamDriver::AddLosses(const BatchRecord& record, pipeline::BatchNote& note) {
  std::vector<cdc::SourceEvent> losses;
  for (const ReadReport& read : record.reads) {
    if (!read.after || !read.after->may_lack_rows || !read.after->instance_min)
      continue;
    losses.push_back(cdc::PossibleLoss(read.capture_instance, read.window,
                                       *read.after->instance_min,
                                       record.summary->start.commit_us));
  }
  if (losses.empty()) return Unit{};
  if (context_->knows_source()) {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(runtime::AskEventTimes(*session, context_->run().source, losses));
  }
  for (cdc::SourceEvent& loss : losses) note.events.push_back(std::move(loss));
  return Unit{};
}

Status StreamDriver::Record(const BatchRecord& record) {
  const runtime::StreamConfig& config = context_->config();
  if (!config.facts_table) return Unit{};
  std::optional<pipeline::ReadMetrics> metrics = MetricsOf(record);
  if (metrics) metrics->observed_at_us = context_->clock().NowUtcUs();
  const pipeline::BatchRun run{sink_id(),          config.target,
                               record.batch_id,    record.started_at_us,
                               record.duration_ms, context_->clock().NowUtcUs()};
  pipeline::BatchNote note;
  if (record.summary) note = record.summary->note;
  TRY(AddLosses(record, note));
  std::vector<pipeline::FactsRow> rows = {
      pipeline::BatchFacts(run, record.counts, metrics)};
  rows[0].detail = pipeline::WarningsDetail(note.warnings);
  for (const cdc::SourceEvent& event : note.events) {
    rows.push_back(pipeline::EventFacts(run, event));
  }
  std::vector<columns::RecordBatch> batches;
  batches.push_back(pipeline::FactsBatch(rows));
  const columns::SchemaPtr schema = batches[0].schema;
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.txn = lake::Txn{sink_id() + "#facts", record.batch_id};
  TRY(lake_.Append(config.facts_location, std::move(sources), spec));
  return Unit{};
}

}  // namespace mssql_cdc::extension

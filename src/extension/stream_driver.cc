#include "extension/stream_driver.h"

#include <utility>

#include "cdc/read_plan.h"
#include "pipeline/bootstrap.h"
#include "pipeline/snapshot_events.h"
#include "pipeline/source_events.h"
#include "pipeline/tables.h"
#include "runtime/batch_writer.h"
#include "runtime/bootstrap.h"
#include "runtime/prepare_tables.h"
#include "runtime/read_sums.h"
#include "runtime/recovery.h"
#include "runtime/snapshot_tables.h"

namespace mssql_cdc::extension {

using runtime::CheckpointState;
using runtime::SessionPool;

StreamDriver::StreamDriver(const StreamPlace& place)
    : lake_(tables_, place.target_location) {}

namespace {

void Place(const StreamPlace& place, runtime::StreamConfig& config) {
  config.target = place.target;
  config.target_location = place.target_location;
  config.app_id = place.app_id;
  config.checkpoint = place.checkpoint;
  if (!place.facts_table.empty()) config.facts_table = place.facts_table;
  config.facts_location = place.facts_location;
  config.bootstrap = place.bootstrap;
  config.on_data_loss = place.on_data_loss;
  config.resnapshot_interval_days = place.resnapshot_interval_days;
  config.snapshot_on_switch = place.snapshot_on_switch;
  config.snapshot = place.snapshot;
}

}  // namespace

Result<std::unique_ptr<StreamDriver>> StreamDriver::Open(const Options& options,
                                                         const Access& access,
                                                         const StreamPlace& place) {
  std::unique_ptr<StreamDriver> driver(new StreamDriver(place));
  TRY_ASSIGN(driver->context_, SourceContext::Open(options, access, &driver->lake_));
  runtime::StreamConfig& config = driver->context_->config();
  Place(place, config);
  driver->context_->run().sink_id = place.app_id;
  TRY(runtime::CheckSnapshots(config));
  if (!config.checkpoint.empty()) TRY(runtime::CheckLocations(config));
  return driver;
}

Result<std::unique_ptr<StreamDriver>> StreamDriver::OpenSink(const StreamPlace& place) {
  // A login to nowhere: nothing of a sink connects.
  const Options nowhere = {{"captureInstance", "sink"},
                           {"connectionString", "Server=localhost;Database=none"},
                           {"user", "none"},
                           {"password", "none"}};
  return Open(nowhere, Access(), place);
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

Status StreamDriver::PrepareSource(const runtime::CheckpointNotes& notes,
                                   bool has_notes) {
  std::optional<cdc::SourceMemory> memory;
  if (has_notes) {
    TRY_ASSIGN(memory, notes.ReadMemory());
  }
  TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
  return context_->KnowSource(*session, memory);
}

Status StreamDriver::Recover(runtime::Checkpoint* checkpoint) {
  const runtime::StreamConfig& config = context_->config();
  if (config.on_data_loss != runtime::OnDataLoss::kResnapshot) return Unit{};
  if (checkpoint == nullptr) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "on_data_loss, checkpoint")
        .With("reason",
              "a new snapshot needs a checkpoint in a folder of this machine");
  }
  TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
  TRY(runtime::RecoverFromLoss(context_->run(), *session, *checkpoint));
  return Unit{};
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
  runtime::RunContext& run = context_->run();
  run.sink_id = pipeline::SinkIdOf(config.app_id, state.generation);
  TRY(PrepareSource(runtime::CheckpointNotes(state.directory), checkpoint.has_value()));
  TRY(CheckTargetIsThere(state));
  TRY(runtime::PrepareTables(run));
  TRY(runtime::CheckSnapshotMode(run));
  TRY(Recover(checkpoint ? &*checkpoint : nullptr));
  if (checkpoint) {
    state = checkpoint->state();
    run.sink_id = pipeline::SinkIdOf(config.app_id, state.generation);
    // Before the first row is in the target: it is this table's from then on.
    const runtime::CheckpointNotes notes(state.directory);
    TRY_ASSIGN(const std::optional<cdc::SourceMemory> memory, notes.ReadMemory());
    if (!memory) TRY(notes.WriteMemory(run.source.memory()));
  }
  PreparedStream prepared;
  TRY_ASSIGN(prepared.initial, DecideStart(state));
  if (checkpoint && prepared.initial && !state.position()) {
    TRY(checkpoint->SetInitial(*prepared.initial));
  }
  generation_ = state.generation;
  directory_ = state.directory;
  prepared.directory = state.directory;
  prepared.sink_id = run.sink_id;
  return prepared;
}

// A target that went away would be made anew and go on without its past, unseen. One
// that is not there yet is no loss: the existing package makes it with its first rows.
Status StreamDriver::CheckTargetIsThere(const CheckpointState& state) {
  if (!state.committed_batch_id) return Unit{};
  const runtime::StreamConfig& config = context_->config();
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             lake_.State(config.target_location));
  if (target) return Unit{};
  TRY_ASSIGN(const bool had_rows, runtime::RowsAreRecorded(context_->run(), true));
  if (!had_rows) return Unit{};
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

std::unique_ptr<runtime::SnapshotCall> StreamDriver::MakeCall() {
  return runtime::SnapshotCall::Make(context_->config(),
                                     {.sessions = &context_->sessions(),
                                      .lake = &lake_,
                                      .clock = &context_->clock(),
                                      .observer = &context_->warnings()});
}

Result<runtime::SnapshotSummary> StreamDriver::Snapshot(
    const SparkLake::WriteSnapshot& write_snapshot, bool again) {
  lake_.SetWriteSnapshot(write_snapshot);
  return context_->WithRetries<runtime::SnapshotSummary>(
      [&] { return MakeCall()->Take(again); });
}

Result<runtime::SnapshotSummary> StreamDriver::Seed(
    const SparkLake::WriteSnapshot& write_copy, columns::Schema copy,
    runtime::SeedOptions options) {
  lake_.SetWriteSnapshot(write_copy);
  lake_.SetCopy(std::move(copy));
  options.copy_location = SparkLake::kCopy;
  return context_->WithRetries<runtime::SnapshotSummary>(
      [&] { return MakeCall()->Seed(options); });
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
      tables_.Append(context_->config().target_location, std::move(sources), spec));
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
    runtime::AddMetrics(read.counts, read.after, metrics);
  }
  return metrics;
}

}  // namespace

pipeline::BatchCounts SumCounts(const std::vector<ReadReport>& reads) {
  pipeline::BatchCounts sum;
  for (const ReadReport& read : reads) runtime::AddCounts(read.counts, sum);
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
  return runtime::AppendFacts(context_->run(), rows,
                              lake::Txn{sink_id() + "#facts", record.batch_id});
}

Status StreamDriver::FinishBatch(std::int64_t batch_id, const BatchSummary& summary) {
  if (!context_->config().snapshot_on_switch) return Unit{};
  std::optional<cdc::Offset> at;
  for (const cdc::SourceEvent& event : summary.note.events) {
    if (event.kind != cdc::SourceEvent::Kind::kInstanceSwitched) continue;
    at = pipeline::NewerStamp(at, event.at);
  }
  if (!at) return Unit{};
  // The planner, in a process of its own, knows the newer instance; this one may not.
  context_->ForgetSource();
  TRY(PrepareSource(runtime::CheckpointNotes(directory_), !directory_.empty()));
  TRY(runtime::PrepareTables(context_->run()));
  TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
  return runtime::SnapshotAfterSwitch(context_->run(), *session, generation_, batch_id,
                                      *at);
}

}  // namespace mssql_cdc::extension

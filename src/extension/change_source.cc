#include "extension/change_source.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "cdc/output_columns.h"
#include "extension/change_task.h"
#include "runtime/checkpoint.h"
#include "runtime/files.h"

namespace mssql_cdc::extension {

using runtime::CheckpointState;
using runtime::PlannedBatch;
using runtime::SessionPool;

ChangeSource::ChangeSource(std::unique_ptr<SourceContext> context, std::string notes)
    : context_(std::move(context)), notes_(std::move(notes)) {}

ChangeSource::~ChangeSource() {
  std::error_code ignored;
  if (!scratch_.empty()) std::filesystem::remove_all(scratch_, ignored);
}

Result<std::unique_ptr<ChangeSource>> ChangeSource::Open(const Options& options,
                                                         const Access& access,
                                                         const std::string& notes) {
  TRY_ASSIGN(std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, access, nullptr));
  std::unique_ptr<ChangeSource> source(new ChangeSource(std::move(context), notes));
  std::string folder = notes;
  if (folder.empty()) {
    source->scratch_ = std::filesystem::temp_directory_path().string() +
                       "/mssql-cdc-planner-" + runtime::NewUuid();
    folder = source->scratch_;
  }
  TRY(runtime::MakeDirectories(folder));
  source->writer_ = std::make_unique<runtime::BatchWriter>(
      source->context_->run(), runtime::CheckpointNotes(folder));
  source->planner_ = std::make_unique<runtime::BatchPlanner>(
      source->context_->run(), *source->writer_, runtime::CheckpointNotes(folder));
  return source;
}

Status ChangeSource::Prepare(sqlserver::Session& session) {
  if (prepared_) return Unit{};
  TRY(planner_->Load());
  TRY(context_->KnowSource(session, planner_->memory()));
  const runtime::Source& source = context_->run().source;
  const auto warn = [this](std::string text) {
    context_->warnings().OnWarning(text);
    planner_->Warn(std::move(text));
  };
  for (const std::string& name : source.columns.computed) {
    warn("column " + name + " is computed and " +
         (source.declared.empty() ? "left out" : "NULL in every row"));
  }
  if (source.clock_is_assumed) {
    warn("the server's time zone is not known; its current offset (" +
         source.clock.Text() + ") is taken for every commit: set sourceTimeZone");
  }
  prepared_ = true;
  return Unit{};
}

Result<columns::Schema> ChangeSource::Schema() {
  return context_->WithRetries<columns::Schema>([this]() -> Result<columns::Schema> {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(Prepare(*session));
    columns::Schema schema = cdc::OutputSchema(context_->run().source.target_fields(),
                                               context_->config().include_command_id);
    schema.fields.resize(schema.fields.size() - cdc::SinkColumns().size());
    return schema;
  });
}

Result<cdc::Offset> ChangeSource::InitialOffset() {
  return context_->WithRetries<cdc::Offset>([this]() -> Result<cdc::Offset> {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(Prepare(*session));
    return runtime::AskStart(*session, context_->run().source,
                             context_->config().starting_lsn);
  });
}

Status ChangeSource::FreezeEnd() {
  TRY_ASSIGN(frozen_end_, NewestOffset());
  if (!frozen_end_) frozen_end_ = cdc::Offset{};  // Nothing is captured: no batch.
  return Unit{};
}

Result<std::optional<cdc::Offset>> ChangeSource::NewestOffset() {
  using Newest = std::optional<cdc::Offset>;
  return context_->WithRetries<Newest>([this]() -> Result<Newest> {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(Prepare(*session));
    return runtime::AskNewest(*session, context_->run().source);
  });
}

Result<cdc::Offset> ChangeSource::LatestOffset(const cdc::Offset& start) {
  kept_.reset();
  TRY_ASSIGN(PlannedBatch batch, PlanBatch(start, std::nullopt));
  if (batch.wait) return start;
  const cdc::Offset end = batch.task.end;
  kept_ = Kept{start, end, std::move(batch)};
  return end;
}

Result<PlannedReads> ChangeSource::Plan(const cdc::Offset& start,
                                        const cdc::Offset& end) {
  if (!kept_ || kept_->start != start || kept_->end != end) {
    if (end.lsn <= start.lsn) {
      PlannedBatch nothing;
      nothing.task.end = end;
      kept_ = Kept{start, end, std::move(nothing)};
    } else {
      TRY_ASSIGN(PlannedBatch batch, PlanBatch(start, end));
      kept_ = Kept{start, end, std::move(batch)};
    }
  }
  return Describe(*kept_);
}

Result<PlannedBatch> ChangeSource::PlanBatch(const cdc::Offset& start,
                                             const std::optional<cdc::Offset>& end) {
  CheckpointState state;
  if (!notes_.empty()) {
    // Which batch it is: what is noted of one must not be taken for another's.
    TRY_ASSIGN(const CheckpointState seen, runtime::ReadCheckpoint(notes_));
    state.committed_batch_id = seen.committed_batch_id;
  }
  (state.committed_batch_id ? state.committed : state.initial) = start;
  state.pending = end;
  return context_->WithRetries<PlannedBatch>([&]() -> Result<PlannedBatch> {
    TRY_ASSIGN(const SessionPool::Lease session, context_->pool().Acquire());
    TRY(Prepare(*session));
    TRY(planner_->RememberSource());
    return planner_->Plan(*session, state, frozen_end_);
  });
}

PlannedReads ChangeSource::Describe(const Kept& kept) const {
  const runtime::BatchTask& task = kept.batch.task;
  BatchSummary summary{kept.start,           kept.end, task.rtt_ms,
                       kept.batch.row_count, {},       task.note};
  PlannedReads reads;
  for (const cdc::ReadPiece& range : task.ranges) {
    summary.windows.push_back(range.window);
    const ChangeTask change{writer_->PlanRange(task, range),
                            context_->run().source.declared};
    reads.tasks.push_back(change.Json());
  }
  reads.summary = summary.Json();
  return reads;
}

Status ChangeSource::Commit(const cdc::Offset& end) {
  if (!kept_ || kept_->end != end) return Unit{};
  const runtime::BatchTask task = std::move(kept_->batch.task);
  kept_.reset();
  return planner_->Done(task);
}

}  // namespace mssql_cdc::extension

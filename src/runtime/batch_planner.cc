#include "runtime/batch_planner.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "cdc/capture_health.h"
#include "cdc/tiles.h"
#include "runtime/run_guards.h"
#include "runtime/source.h"
#include "runtime/source_history.h"

namespace mssql_cdc::runtime {
namespace {

// "Invalid object name": a change table or cdc.lsn_time_mapping went; "Object does not
// exist or access is denied": so did an instance.
bool SaysSomethingIsGone(const Error& error) {
  const std::optional<std::string_view> number = error.Fact("number");
  return number == "208" || number == "22981";
}

std::int64_t PartitionCount(const StreamConfig& config) {
  const std::int64_t cpu_count =
      std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  return config.num_partitions.value_or(cpu_count);
}

}  // namespace

Status BatchPlanner::Load() {
  TRY_ASSIGN(memory_, notes_.ReadMemory());
  return Unit{};
}

Status BatchPlanner::RememberSource() {
  if (memory_) return Unit{};
  const cdc::SourceMemory memory = context_.source.memory();
  TRY(notes_.WriteMemory(memory));
  memory_ = memory;
  return Unit{};
}

Result<PlannedBatch> BatchPlanner::Plan(sqlserver::Session& session,
                                        const CheckpointState& state,
                                        const std::optional<cdc::Offset>& frozen_end) {
  cdc::BatchFacts facts;
  facts.position = *state.position();
  facts.frozen_end = frozen_end;
  PollLimits limits;
  if (frozen_end) limits.through_max = frozen_end->lsn;
  if (!state.pending) limits.commit_count_max = context_.config.max_commits_per_batch;
  limits.counts_rows = PartitionCount(context_.config) > 1 ||
                       context_.config.trigger.kind == Trigger::Kind::kContinuous;
  TRY_ASSIGN(const PollAnswer answer, Poll(session, facts.position.lsn, limits));
  facts.server_max = answer.server_max;
  newest_.reset();
  if (answer.server_max) newest_ = answer.server_max->lsn;
  facts.server_oldest = answer.server_oldest;
  facts.position_commit_us = answer.position_commit_us;
  facts.limited_end = answer.limited_end;
  facts.newest_start = context_.source.newest_start();

  PlannedBatch planned;
  planned.is_replay = state.pending.has_value();
  planned.row_count = answer.row_count;
  BatchTask& task = planned.task;
  task.batch_id = state.next_batch_id();
  task.rtt_ms = answer.rtt_ms;
  task.after_commit_us = facts.position.commit_us;
  task.note.batch_id = task.batch_id;
  const cdc::BatchPlan plan = planned.is_replay ? cdc::PlanReplay(facts, *state.pending)
                                                : cdc::PlanBatch(facts);
  TRY_ASSIGN(task.window, WindowOf(plan, planned));
  WatchPosition(facts, planned.wait);
  TRY(WatchCapture(session, answer.age_seconds, planned.wait.has_value()));
  if (planned.wait) return planned;
  if (planned.is_replay) task.end = *state.pending;
  if (!planned.is_replay) TRY(writer_.CheckIsNew(task.batch_id));
  TRY_ASSIGN(planned.work, writer_.Look(task.batch_id, task.end));
  const bool reads = task.window && planned.work == pipeline::SinkWork::kEverything;
  if (reads) TRY(PlanReads(session, planned, answer.row_count));
  planned.only_moves = reads && !planned.is_replay && limits.counts_rows &&
                       answer.row_count == 0 && task.ranges.size() == 1 &&
                       task.note.events.empty() && warnings_.empty();
  TRY(Note(planned));
  return planned;
}

Result<std::optional<cdc::LsnWindow>> BatchPlanner::WindowOf(
    const cdc::BatchPlan& plan, PlannedBatch& planned) const {
  TRY(CheckHistory(plan, context_.source.instance.name));
  if (const auto* wait = std::get_if<cdc::Wait>(&plan)) planned.wait = *wait;
  const auto* read = std::get_if<cdc::ReadChanges>(&plan);
  if (read == nullptr) return std::optional<cdc::LsnWindow>();
  planned.task.end = {read->window.through, read->commit_us};
  return std::optional<cdc::LsnWindow>(read->window);
}

Result<PollAnswer> BatchPlanner::Poll(sqlserver::Session& session,
                                      const cdc::Lsn& after, const PollLimits& limits) {
  // The second time knows the instances that the first found to have changed.
  for (int attempt = 0;; ++attempt) {
    Result<PollAnswer> answer =
        AskPoll(session, context_.clock, context_.source, after, limits);
    const bool is_old =
        answer.ok() ? answer.value().has_more && !answer.value().instances_are_known
                    : SaysSomethingIsGone(answer.error()) && session.clean();
    if (!is_old || attempt > 0) return answer;
    TRY(AskInstancesAgain(session, context_.config, memory_, context_.source));
  }
}

Status BatchPlanner::PlanReads(sqlserver::Session& session, PlannedBatch& planned,
                               std::int64_t row_count) {
  BatchTask& task = planned.task;
  Source& source = context_.source;
  // A replay of what is the newest: the poll had nothing to tell of the instances.
  if (row_count == 0 && planned.is_replay) {
    TRY(AskInstancesAgain(session, context_.config, memory_, source));
  }
  TRY(RefreshColumns(session, *task.window));
  TRY_ASSIGN(cdc::ReadPlan plan, PlanReadsOf(context_.config, source, memory_,
                                             *task.window, task.after_commit_us));
  TRY(AskEventTimes(session, source, plan.events));
  task.note.events = std::move(plan.events);
  for (std::string& warning : plan.warnings) {
    context_.observer.OnWarning(warning);
    warnings_.push_back(std::move(warning));
  }
  task.ranges = std::move(plan.pieces);
  for (const cdc::ReadPiece& piece : task.ranges) {
    source.instances[piece.instance_index].is_checked = true;
  }
  const bool in_tiles =
      row_count >= kManyRowCount && PartitionCount(context_.config) > 1;
  if (in_tiles) TRY(CutIntoTiles(session, task));
  return Unit{};
}

// DDL that came since an instance's columns were asked for may have changed them, also
// DDL above the window: the change table has one type for all its rows.
Status BatchPlanner::RefreshColumns(sqlserver::Session& session,
                                    const cdc::LsnWindow& window) {
  Source& source = context_.source;
  for (const cdc::ReadPiece& piece :
       cdc::CutAtInstances(source.family().instances, window)) {
    const std::size_t index = piece.instance_index;
    std::optional<cdc::Lsn> newest;
    if (!source.instances[index].ddl.empty()) {
      newest = source.instances[index].ddl.back().lsn;
    }
    const std::string& name = source.instances[index].columns.instance.name;
    const auto known = columns_as_of_.find(name);
    const bool is_new =
        known == columns_as_of_.end() ? newest.has_value() : known->second != newest;
    if (is_new) TRY(AskColumnsAgain(session, context_.config, index, source));
    columns_as_of_[name] = newest;
  }
  return Unit{};
}

Status BatchPlanner::CutIntoTiles(sqlserver::Session& session, BatchTask& task) const {
  std::vector<cdc::ReadPiece> ranges;
  for (const cdc::ReadPiece& piece : task.ranges) {
    const Source& source = context_.source;
    TRY_ASSIGN(
        const std::vector<cdc::Tile> tiles,
        AskTiles(session, source.instances[piece.instance_index].columns.instance.name,
                 piece.window, PartitionCount(context_.config)));
    for (const cdc::LsnWindow& window : cdc::PlanTiles(piece.window, tiles)) {
      ranges.push_back({piece.instance_index, window});
    }
  }
  task.ranges = std::move(ranges);
  return Unit{};
}

// An earlier attempt at this batch may have seen what can no longer be seen.
Status BatchPlanner::Note(PlannedBatch& planned) {
  BatchTask& task = planned.task;
  if (task.window) task.note.warnings = warnings_;
  if (planned.is_replay) {
    TRY_ASSIGN(const std::optional<pipeline::BatchNote> earlier,
               notes_.ReadNote(task.batch_id));
    if (earlier) task.note = pipeline::Merge(*earlier, std::move(task.note));
  }
  if (planned.work != pipeline::SinkWork::kEverything) return Unit{};
  const cdc::SourceMemory memory = context_.source.memory();
  if (memory_ != memory) {
    TRY(notes_.WriteMemory(memory));
    memory_ = memory;
  }
  if (task.note.events.empty()) return Unit{};
  return notes_.WriteNote(task.note);
}

Status BatchPlanner::Done(const BatchTask& task) {
  if (task.window) warnings_.clear();
  // Only events are written down.
  return task.note.events.empty() ? Status(Unit{}) : notes_.RemoveNote();
}

// Once: it stays so until the server gets there.
void BatchPlanner::WatchPosition(const cdc::BatchFacts& facts,
                                 const std::optional<cdc::Wait>& wait) {
  const bool is_unreached =
      wait && wait->reason == cdc::Wait::Reason::kPositionUnreached;
  if (!is_unreached) {
    unreached_.clear();
    return;
  }
  if (!unreached_.empty()) return;
  unreached_ =
      "the stream begins at " + facts.position.lsn.Text() +
      " (startingLsn), and the server has captured no further than " +
      facts.server_max->lsn.Text() +
      ": nothing is read before it gets there, and no change up to there ever; "
      "the checkpoint keeps this position, so another startingLsn needs another "
      "checkpoint";
  context_.observer.OnWarning(unreached_);
  Warn(unreached_);
}

Status BatchPlanner::WatchCapture(sqlserver::Session& session,
                                  const std::optional<std::int64_t>& age_seconds,
                                  bool waits) {
  const bool is_stalled = cdc::IsStalled(age_seconds);
  if (!is_stalled && !stall_.empty()) {
    context_.observer.OnWarning("the capture job writes again");
  }
  // What is there is read first, however old it is.
  if (!is_stalled || !waits) {
    stall_.clear();
    return Unit{};
  }
  if (!stall_.empty()) return Unit{};
  TRY_ASSIGN(const cdc::CaptureHealth health, AskCaptureHealth(session, age_seconds));
  stall_ = cdc::DescribeStall(health);
  context_.observer.OnWarning(stall_);
  Warn(stall_);
  return Unit{};
}

}  // namespace mssql_cdc::runtime

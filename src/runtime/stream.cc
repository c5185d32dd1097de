#include "runtime/stream.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/dice.h"
#include "pipeline/bootstrap.h"
#include "runtime/batch_planner.h"
#include "runtime/batch_writer.h"
#include "runtime/bootstrap.h"
#include "runtime/checkpoint.h"
#include "runtime/prepare_tables.h"
#include "runtime/recovery.h"
#include "runtime/run_context.h"
#include "runtime/run_guards.h"

namespace mssql_cdc::runtime {
namespace {

// A position that other tables' commits moved is written down this often. Where many
// streams share one process, their moves would be most of what it does.
constexpr std::int64_t kMoveNs = 10'000'000'000;
constexpr std::int64_t kMoveOfManyNs = 60'000'000'000;

StreamObserver& SilentObserver() {
  static StreamObserver observer;
  return observer;
}

// Nothing new was read because there is nothing, or a batch was done, or the run's end
// is reached.
enum class StepResult : std::uint8_t { kBatch, kReplayedBatch, kIdle, kEnd };

class StreamImpl final : public Stream {
 public:
  StreamImpl(const StreamConfig& config, const StreamParts& parts,
             Checkpoint checkpoint)
      : config_(config),
        clock_(*parts.clock),
        observer_(parts.observer != nullptr ? *parts.observer : SilentObserver()),
        dice_(parts.seed),
        own_pool_(parts.pool != nullptr
                      ? nullptr
                      : std::make_unique<SessionPool>(*parts.sessions)),
        pool_(parts.pool != nullptr ? *parts.pool : *own_pool_),
        watch_(parts.watch),
        permits_(parts.permits),
        checkpoint_(std::move(checkpoint)),
        context_{config_, *parts.lake, clock_, observer_, pool_, stop_, SinkId(), {}},
        writer_(context_, CheckpointNotes(checkpoint_.state().directory)),
        planner_(context_, writer_, CheckpointNotes(checkpoint_.state().directory)) {}

  Status Run() override;
  void Stop() override {
    stop_ = true;
    pool_.Stop();
    if (watch_ != nullptr) watch_->Stop();
  }
  std::int64_t request_count() const override { return pool_.request_count(); }

 private:
  std::string SinkId() const {
    return pipeline::SinkIdOf(config_.app_id, checkpoint_.state().generation);
  }
  bool EndsByItself() const {
    return config_.trigger.kind == Trigger::Kind::kOnce ||
           config_.trigger.kind == Trigger::Kind::kAvailableNow;
  }

  std::int64_t move_ns() const { return watch_ != nullptr ? kMoveOfManyNs : kMoveNs; }

  Status Prepare();
  Status KnowSourceAnew();
  Status KnowSource();
  Status Recover();
  Status SnapshotIfSwitched(const BatchTask& task);
  Status DecideStart();
  Status Connect();
  void Rest();
  void AwaitNews();
  Status Loop();
  Result<StepResult> Step();
  Result<StepResult> TryStep();
  Result<StepResult> Wait(const cdc::Wait& wait) const;
  bool MayPutOff(std::int64_t now_ns) const;
  Status RunBatch(PlannedBatch& planned, std::int64_t begin_ns);
  void ReportBatch(const BatchTask& task, const BatchOutcome& outcome,
                   std::int64_t begin_ns);
  void ReportEnd();
  void Idle(std::int64_t wait_ms);
  void SleepMs(std::int64_t duration_ms);

  // Runs `step` until it works; gives up on errors that retrying does not cure, and
  // after so many retries. Everything that may be half done is looked up anew before a
  // retry.
  template <typename T, typename F>
  Result<T> WithRetries(F step);
  Status ForgetEverything();

  const StreamConfig config_;
  Clock& clock_;
  StreamObserver& observer_;
  Dice dice_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<SessionPool> own_pool_;  // Absent: it is shared.
  SessionPool& pool_;
  ChangeWatch* const watch_;
  WorkPermits* const permits_;
  Checkpoint checkpoint_;
  RunContext context_;
  BatchWriter writer_;
  BatchPlanner planner_;
  WorkPermits::Permit permit_;  // Held while it works, where there are permits.
  SessionPool::Lease session_;  // Plans and reads batches.
  bool source_known_ = false;
  bool prepared_ = false;
  std::optional<cdc::Offset> frozen_end_;
  std::int64_t idle_wait_ms_ = 0;
  std::optional<std::int64_t> moved_ns_;  // When the last batch began.
  std::int64_t batch_count_ = 0;
};

Status StreamImpl::Run() {
  Status status = WithRetries<Unit>([this] { return Prepare(); });
  if (status.ok()) status = Loop();
  Rest();
  // Sessions that are shared stop with the first of their streams.
  const bool is_stopped =
      stop_ || (!status.ok() && status.error().id() == ErrorId::kStopped);
  if (status.ok() || !is_stopped) return status;
  if (prepared_) return Unit{};  // Whatever was cut short.
  return Error(ErrorId::kStopped);
}

// Lets others work, where sessions are shared.
void StreamImpl::Rest() {
  if (session_) session_.network_wait_ms = writer_.network_wait_ms();
  session_ = {};
  permit_ = {};
}

Status StreamImpl::Connect() {
  if (permits_ != nullptr && !permit_) permit_ = permits_->Take();
  if (session_) return Unit{};
  TRY_ASSIGN(session_, pool_.Acquire());
  if (source_known_ && session_.network_wait_ms) {
    writer_.Watch(*session_.network_wait_ms);
    return Unit{};
  }
  if (source_known_) return writer_.Watch(*session_);
  TRY(KnowSource());
  source_known_ = true;
  context_.source.network_wait = true;
  if (writer_.Watch(*session_).ok()) return Unit{};
  // The server does not show it to this login. That session may not be clean.
  context_.source.network_wait = false;
  session_ = {};
  TRY_ASSIGN(session_, pool_.Acquire());
  return writer_.Watch(*session_);
}

Status StreamImpl::KnowSource() {
  TRY(planner_.Load());
  TRY_ASSIGN(context_.source, AskSource(*session_, config_, planner_.memory()));
  const auto warn = [this](std::string text) {
    observer_.OnWarning(text);
    planner_.Warn(std::move(text));
  };
  for (const std::string& name : context_.source.columns.computed) {
    warn("column " + name + " is computed and " +
         (context_.source.declared.empty() ? "left out" : "NULL in every row"));
  }
  if (context_.source.clock_is_assumed) {
    warn("the server's time zone is not known; its current offset (" +
         context_.source.clock.Text() +
         ") is taken for every commit: set sourceTimeZone");
  }
  return Unit{};
}

// As a new run would: a newer capture instance has columns that this one began without.
Status StreamImpl::KnowSourceAnew() {
  source_known_ = false;
  planner_.ForgetColumns();
  TRY(ForgetEverything());
  TRY(Connect());
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context_.lake.State(config_.target_location));
  return PrepareTables(context_, target);
}

Status StreamImpl::Recover() {
  if (config_.on_data_loss != OnDataLoss::kResnapshot) return Unit{};
  TRY_ASSIGN(const bool moved, RecoverFromLoss(context_, *session_, checkpoint_));
  if (!moved) return Unit{};
  context_.sink_id = SinkId();
  const CheckpointNotes notes(checkpoint_.state().directory);
  writer_.MoveTo(notes);
  planner_.MoveTo(notes);
  return Unit{};
}

Status StreamImpl::Prepare() {
  TRY(Connect());
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context_.lake.State(config_.target_location));
  if (!target) TRY(CheckTargetWasEmpty(context_, checkpoint_.state()));
  TRY(PrepareTables(context_, target));
  TRY(CheckSnapshotMode(context_));
  TRY(Recover());
  // Before the first row is in the target: it is this table's from then on.
  TRY(planner_.RememberSource());
  TRY(DecideStart());
  if (config_.trigger.kind == Trigger::Kind::kAvailableNow) {
    TRY_ASSIGN(frozen_end_, AskNewest(*session_, context_.source));
    if (!frozen_end_) frozen_end_ = checkpoint_.state().position();
  }
  prepared_ = true;
  return Unit{};
}

Status StreamImpl::DecideStart() {
  const CheckpointState& state = checkpoint_.state();
  if (state.generation != 0) return Unit{};
  const bool is_new = !state.position();
  if (config_.bootstrap) {
    if (!is_new) {
      TRY_ASSIGN(const bool recorded, BootstrapIsRecorded(context_));
      if (recorded) return Unit{};
    }
    TRY_ASSIGN(const cdc::Offset stamp, Bootstrap(context_));
    return is_new ? checkpoint_.SetInitial(stamp) : Status(Unit{});
  }
  if (!is_new) return Unit{};
  TRY_ASSIGN(const cdc::Offset start,
             AskStart(*session_, context_.source, config_.starting_lsn));
  return checkpoint_.SetInitial(start);
}

Status StreamImpl::Loop() {
  while (!stop_) {
    const std::int64_t begin_ns = clock_.MonotonicNs();
    TRY_ASSIGN(const StepResult result,
               WithRetries<StepResult>([this] { return Step(); }));
    if (permits_ != nullptr) Rest();
    switch (result) {
      case StepResult::kEnd:
        ReportEnd();
        return Unit{};
      case StepResult::kReplayedBatch:
        idle_wait_ms_ = 0;
        break;  // What the last run began does not count as this run's batch.
      case StepResult::kBatch:
        idle_wait_ms_ = 0;
        if (config_.trigger.kind == Trigger::Kind::kOnce) {
          ReportEnd();
          return Unit{};
        }
        break;
      case StepResult::kIdle:
        if (config_.trigger.kind == Trigger::Kind::kInterval) break;
        if (watch_ != nullptr) {
          AwaitNews();
          break;
        }
        idle_wait_ms_ =
            std::clamp(idle_wait_ms_ * 2, config_.poll_first_ms, config_.poll_max_ms);
        Idle(idle_wait_ms_);
        break;
    }
    if (config_.trigger.kind == Trigger::Kind::kInterval &&
        result != StepResult::kReplayedBatch) {
      const std::int64_t elapsed_ms = (clock_.MonotonicNs() - begin_ns) / 1'000'000;
      Idle(std::max<std::int64_t>(0, config_.trigger.interval_ms - elapsed_ms));
    }
  }
  return Unit{};
}

Result<StepResult> StreamImpl::Step() {
  Result<StepResult> result = TryStep();
  if (result.ok() || result.error().id() != ErrorId::kSchemaChanged) return result;
  const Error& error = result.error();
  if (error.Fact("found") && !error.Fact("first_lsn")) {
    // Found by the read itself: the capture job altered the change table after the
    // batch was planned. Planned again, it is classified.
    planner_.ForgetColumns();
    TRY(ForgetEverything());
  } else if (error.Fact("changes") && error.Fact("first_lsn")) {
    TRY(KnowSourceAnew());
  } else {
    return result;
  }
  return TryStep();
}

Result<StepResult> StreamImpl::TryStep() {
  TRY(Connect());
  const std::int64_t begin_ns = clock_.MonotonicNs();
  TRY_ASSIGN(PlannedBatch planned,
             planner_.Plan(*session_, checkpoint_.state(), frozen_end_));
  if (planned.wait) return Wait(*planned.wait);
  if (planned.only_moves && MayPutOff(begin_ns)) return StepResult::kIdle;
  if (!planned.is_replay) {
    TRY(checkpoint_.Begin(planned.task.end, clock_.NowUtcUs() / 1000));
  }
  TRY(RunBatch(planned, begin_ns));
  moved_ns_ = begin_ns;
  return planned.is_replay ? StepResult::kReplayedBatch : StepResult::kBatch;
}

// Other tables' commits move the position too. A batch for each would fill the lake
// with commits that hold nothing.
bool StreamImpl::MayPutOff(std::int64_t now_ns) const {
  return config_.trigger.kind == Trigger::Kind::kContinuous && moved_ns_ &&
         now_ns - *moved_ns_ < move_ns();
}

Result<StepResult> StreamImpl::Wait(const cdc::Wait& wait) const {
  if (wait.reason == cdc::Wait::Reason::kFrozenEndReached || EndsByItself()) {
    return StepResult::kEnd;
  }
  return StepResult::kIdle;
}

Status StreamImpl::RunBatch(PlannedBatch& planned, std::int64_t begin_ns) {
  TRY_ASSIGN(const BatchOutcome outcome,
             writer_.Write(planned.work, planned.task, *session_));
  TRY(SnapshotIfSwitched(planned.task));
  TRY(checkpoint_.Commit());
  TRY(planner_.Done(planned.task));
  ReportBatch(planned.task, outcome, begin_ns);
  return Unit{};
}

Status StreamImpl::SnapshotIfSwitched(const BatchTask& task) {
  if (!config_.snapshot_on_switch) return Unit{};
  std::optional<cdc::Offset> at;
  for (const cdc::SourceEvent& event : task.note.events) {
    if (event.kind != cdc::SourceEvent::Kind::kInstanceSwitched) continue;
    at = pipeline::NewerStamp(at, event.at);
  }
  if (!at) return Unit{};
  return SnapshotAfterSwitch(context_, *session_, checkpoint_.state().generation,
                             task.batch_id, *at);
}

void StreamImpl::ReportBatch(const BatchTask& task, const BatchOutcome& outcome,
                             std::int64_t begin_ns) {
  const pipeline::FactsRow& facts = outcome.facts;
  BatchSummary summary;
  summary.batch_id = task.batch_id;
  summary.replayed = outcome.replayed;
  summary.row_count = facts.rows.value_or(0);
  summary.inserts = facts.inserts.value_or(0);
  summary.updates = facts.updates.value_or(0);
  summary.deletes = facts.deletes.value_or(0);
  summary.through_lsn = task.end.lsn.Text();
  summary.through_commit_ts = cdc::CommitText(task.end.commit_us);
  summary.size_bytes = outcome.size_bytes;
  summary.read_seconds = facts.read_seconds.value_or(0);
  summary.elapsed_ms = (clock_.MonotonicNs() - begin_ns) / 1'000'000;
  summary.capture_lag_seconds = facts.capture_lag_seconds;
  summary.ingestion_lag_seconds = facts.ingestion_lag_seconds;
  summary.retention_headroom_hours = facts.retention_headroom_hours;
  summary.target_version = outcome.target_version;
  ++batch_count_;
  observer_.OnBatchDone(summary);
}

void StreamImpl::ReportEnd() {
  const cdc::Offset position = *checkpoint_.state().position();
  observer_.OnRunDone({position.lsn.Text(), cdc::CommitText(position.commit_us),
                       batch_count_, planner_.stall()});
}

void StreamImpl::Idle(std::int64_t wait_ms) {
  const cdc::Offset position = *checkpoint_.state().position();
  observer_.OnIdle({position.lsn.Text(), cdc::CommitText(position.commit_us), wait_ms,
                    planner_.stall()});
  SleepMs(wait_ms);
}

// Instead of polling, where the idle streams of a database share one statement.
void StreamImpl::AwaitNews() {
  const cdc::Offset position = *checkpoint_.state().position();
  observer_.OnIdle({position.lsn.Text(), cdc::CommitText(position.commit_us),
                    config_.poll_max_ms, planner_.stall()});
  ChangeWatch::Interest interest;
  for (const cdc::InstanceFacts& each : context_.source.instances) {
    interest.capture_instances.push_back(each.columns.instance.name);
  }
  interest.after = std::max(planner_.newest().value_or(position.lsn), position.lsn);
  interest.move_at_ns = moved_ns_.value_or(clock_.MonotonicNs()) + move_ns();
  interest.knows_stall = !planner_.stall().empty();
  watch_->Wait(interest);
}

void StreamImpl::SleepMs(std::int64_t duration_ms) {
  constexpr std::int64_t kSliceMs = 50;  // How soon Stop is noticed.
  for (std::int64_t left = duration_ms; left > 0 && !stop_; left -= kSliceMs) {
    clock_.SleepMs(std::min(left, kSliceMs));
  }
}

template <typename T, typename F>
Result<T> StreamImpl::WithRetries(F step) {
  for (std::int64_t attempt = 1;; ++attempt) {
    Result<T> result = step();
    if (result.ok() || stop_) return result;
    const Error& error = result.error();
    const bool waits_for_capture =
        error.id() == ErrorId::kCaptureHasNotRun && !EndsByItself();
    if (error.remedy() != Remedy::kRetry || error.id() == ErrorId::kStopped ||
        (attempt > config_.retry_count_max && !waits_for_capture)) {
      return result;
    }
    const std::int64_t doublings = std::min<std::int64_t>(attempt - 1, 5);
    const auto wait_ms = static_cast<std::int64_t>(
        static_cast<double>(config_.retry_wait_first_ms << doublings) *
        (0.5 + dice_.Fraction() / 2));
    observer_.OnRetry(error, attempt, wait_ms);
    session_ = {};
    permit_ = {};
    SleepMs(wait_ms);
    if (stop_) return result;
    TRY(ForgetEverything());
  }
}

Status StreamImpl::ForgetEverything() {
  session_ = {};
  pool_.DropIdle();
  writer_.Forget();
  return checkpoint_.Reload();
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::Open(const StreamConfig& config,
                                             const StreamParts& parts) {
  TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::Open(config.checkpoint));
  return std::unique_ptr<Stream>(
      std::make_unique<StreamImpl>(config, parts, std::move(checkpoint)));
}

}  // namespace mssql_cdc::runtime

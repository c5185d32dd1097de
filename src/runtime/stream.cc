#include "runtime/stream.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>

#include "base/dice.h"
#include "runtime/batch_writer.h"
#include "runtime/bootstrap.h"
#include "runtime/checkpoint.h"
#include "runtime/ensure_table.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {
namespace {

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
        pool_(*parts.sessions),
        checkpoint_(std::move(checkpoint)),
        context_{config_, *parts.lake, clock_, observer_, pool_, stop_, SinkId(), {}},
        writer_(context_) {}

  Status Run() override;
  void Stop() override {
    stop_ = true;
    pool_.Stop();
  }
  std::int64_t request_count() const override { return pool_.request_count(); }

 private:
  std::string SinkId() const {
    const std::int64_t generation = checkpoint_.state().generation;
    return generation == 0 ? config_.app_id
                           : config_.app_id + ".g" + std::to_string(generation);
  }
  bool EndsByItself() const {
    return config_.trigger.kind == Trigger::Kind::kOnce ||
           config_.trigger.kind == Trigger::Kind::kAvailableNow;
  }

  Status Prepare();
  Status CheckTargetIsThere();
  Status DecideStart();
  Status Connect();
  Status Loop();
  Result<StepResult> Step();
  Result<StepResult> Wait(const cdc::Wait& wait) const;
  Status RunBatch(const BatchTask& task, std::int64_t begin_ns);
  Error ReportGap(const cdc::ReportGap& gap) const;
  Error ReportFork(const cdc::ReportFork& fork) const;
  Error ExplainMissingInstance();
  void ReportBatch(const BatchTask& task, const BatchOutcome& outcome,
                   std::int64_t begin_ns);
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
  SessionPool pool_;
  Checkpoint checkpoint_;
  RunContext context_;
  BatchWriter writer_;
  SessionPool::Lease session_;  // Plans and reads batches.
  bool source_known_ = false;
  bool prepared_ = false;
  std::optional<cdc::Offset> frozen_end_;
  std::int64_t idle_wait_ms_ = 0;
};

Status StreamImpl::Run() {
  Status status = WithRetries<Unit>([this] { return Prepare(); });
  if (status.ok()) status = Loop();
  session_ = {};
  if (!status.ok() && stop_ && prepared_) return Unit{};  // Whatever was cut short.
  if (!status.ok() && stop_) return Error(ErrorId::kStopped);
  return status;
}

Status StreamImpl::Connect() {
  if (session_) return Unit{};
  TRY_ASSIGN(session_, pool_.Acquire());
  if (!source_known_) {
    TRY_ASSIGN(context_.source, AskSource(*session_, config_));
    source_known_ = true;
    for (const std::string& name : context_.source.columns.computed) {
      observer_.OnWarning("column " + name + " is computed and left out");
    }
    if (context_.source.clock_is_assumed) {
      observer_.OnWarning("the server's time zone is not known; its current offset (" +
                          context_.source.clock.Text() +
                          ") is taken for every commit: set sourceTimeZone");
    }
    context_.source.network_wait = true;
    if (writer_.Watch(*session_).ok()) return Unit{};
    // The server does not show it to this login. That session may not be clean.
    context_.source.network_wait = false;
    session_ = {};
    TRY_ASSIGN(session_, pool_.Acquire());
  }
  return writer_.Watch(*session_);
}

Status StreamImpl::Prepare() {
  TRY(Connect());
  lake::Lake& lake = context_.lake;
  TRY(CheckTargetIsThere());
  TRY(EnsureTable(
      lake, config_.target_location, pipeline::TableKind::kBronze,
      pipeline::BronzeTable(context_.source.fields(), config_.include_command_id)));
  if (config_.facts_table) {
    TRY(EnsureTable(lake, config_.facts_location, pipeline::TableKind::kFacts,
                    pipeline::FactsTable()));
  }
  TRY(DecideStart());
  if (config_.trigger.kind == Trigger::Kind::kAvailableNow) {
    TRY_ASSIGN(frozen_end_, AskNewest(*session_, context_.source));
    if (!frozen_end_) frozen_end_ = checkpoint_.state().position();
  }
  prepared_ = true;
  return Unit{};
}

// A target that went away would be made anew and go on without its past, unseen.
Status StreamImpl::CheckTargetIsThere() {
  const CheckpointState& state = checkpoint_.state();
  if (!state.position()) return Unit{};
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context_.lake.State(config_.target_location));
  if (target) return Unit{};
  bool had_rows = state.committed_batch_id.has_value();
  if (!had_rows && config_.bootstrap) {
    TRY_ASSIGN(had_rows, BootstrapIsRecorded(context_));
  }
  if (!had_rows) return Unit{};
  return Error(ErrorId::kTargetLost)
      .With("target", config_.target)
      .With("location", config_.target_location)
      .With("position", state.position()->lsn.Text());
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
    switch (result) {
      case StepResult::kEnd:
        return Unit{};
      case StepResult::kReplayedBatch:
        idle_wait_ms_ = 0;
        break;  // What the last run began does not count as this run's batch.
      case StepResult::kBatch:
        idle_wait_ms_ = 0;
        if (config_.trigger.kind == Trigger::Kind::kOnce) return Unit{};
        break;
      case StepResult::kIdle:
        if (config_.trigger.kind == Trigger::Kind::kInterval) break;
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
  TRY(Connect());
  const std::int64_t begin_ns = clock_.MonotonicNs();
  const CheckpointState& state = checkpoint_.state();
  cdc::BatchFacts facts;
  facts.position = *state.position();
  facts.frozen_end = frozen_end_;
  std::optional<cdc::Lsn> through_max;
  if (frozen_end_) through_max = frozen_end_->lsn;
  std::optional<std::int64_t> commit_count_max = config_.max_commits_per_batch;
  if (state.pending) commit_count_max.reset();
  Result<PollAnswer> answer =
      AskPoll(*session_, clock_, context_.source, facts.position.lsn, commit_count_max,
              through_max);
  if (!answer.ok()) {
    // "Invalid object name": cdc.lsn_time_mapping, which goes when CDC is disabled.
    if (answer.error().Fact("number") == "208") return ExplainMissingInstance();
    return std::move(answer).error();
  }
  facts.server_max = answer.value().server_max;
  facts.instance_min = answer.value().instance_min;
  facts.limited_end = answer.value().limited_end;

  BatchTask task;
  task.batch_id = state.next_batch_id();
  task.rtt_ms = answer.value().rtt_ms;
  const bool is_replay = state.pending.has_value();
  const cdc::BatchPlan plan =
      is_replay ? cdc::PlanReplay(facts, *state.pending) : cdc::PlanBatch(facts);
  if (const auto* wait = std::get_if<cdc::Wait>(&plan)) return Wait(*wait);
  if (const auto* gap = std::get_if<cdc::ReportGap>(&plan)) return ReportGap(*gap);
  if (const auto* fork = std::get_if<cdc::ReportFork>(&plan)) return ReportFork(*fork);
  if (std::holds_alternative<cdc::ReportMissingInstance>(plan)) {
    return ExplainMissingInstance();
  }
  if (const auto* read = std::get_if<cdc::ReadChanges>(&plan)) {
    task.window = read->window;
    task.end = {read->window.through, read->commit_us};
  }
  if (is_replay) {
    task.end = *state.pending;
  } else {
    TRY(writer_.CheckIsNew(task.batch_id));
    TRY(checkpoint_.Begin(task.end, clock_.NowUtcUs() / 1000));
  }
  TRY(RunBatch(task, begin_ns));
  return is_replay ? StepResult::kReplayedBatch : StepResult::kBatch;
}

Result<StepResult> StreamImpl::Wait(const cdc::Wait& wait) const {
  if (wait.reason == cdc::Wait::Reason::kFrozenEndReached || EndsByItself()) {
    return StepResult::kEnd;
  }
  return StepResult::kIdle;
}

Status StreamImpl::RunBatch(const BatchTask& task, std::int64_t begin_ns) {
  TRY_ASSIGN(const BatchOutcome outcome, writer_.Write(task, *session_));
  TRY(checkpoint_.Commit());
  ReportBatch(task, outcome, begin_ns);
  return Unit{};
}

Error StreamImpl::ReportGap(const cdc::ReportGap& gap) const {
  return Error(ErrorId::kDataLoss)
      .With("capture_instance", context_.source.instance.name)
      .With("position", gap.position.Text())
      .With("first_readable", gap.first_readable.Text())
      .With("cause", "purged by CDC cleanup");
}

Error StreamImpl::ReportFork(const cdc::ReportFork& fork) const {
  return Error(ErrorId::kPositionAheadOfServer)
      .With("capture_instance", context_.source.instance.name)
      .With("position", fork.position.Text())
      .With("server_max", fork.server_max.Text());
}

// The instance was readable when the run began. Asks what became of it.
Error StreamImpl::ExplainMissingInstance() {
  session_ = {};
  pool_.DropIdle();
  Result<SessionPool::Lease> session = pool_.Acquire();
  if (!session.ok()) return std::move(session).error();
  const Result<Source> source = AskSource(*session.value(), config_);
  if (!source.ok()) return source.error();
  return Error(ErrorId::kCaptureHasNotRun)
      .With("capture_instance", source.value().instance.name);
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
  observer_.OnBatchDone(summary);
}

void StreamImpl::Idle(std::int64_t wait_ms) {
  const cdc::Offset position = *checkpoint_.state().position();
  observer_.OnIdle({position.lsn.Text(), cdc::CommitText(position.commit_us), wait_ms});
  SleepMs(wait_ms);
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
    if (error.remedy() != Remedy::kRetry ||
        (attempt > config_.retry_count_max && !waits_for_capture)) {
      return result;
    }
    const std::int64_t doublings = std::min<std::int64_t>(attempt - 1, 5);
    const auto wait_ms = static_cast<std::int64_t>(
        static_cast<double>(config_.retry_wait_first_ms << doublings) *
        (0.5 + dice_.Fraction() / 2));
    observer_.OnRetry(error, attempt, wait_ms);
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

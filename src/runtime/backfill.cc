#include "runtime/backfill.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/case_fold.h"
#include "pipeline/tables.h"
#include "runtime/background.h"
#include "runtime/ensure_table.h"
#include "runtime/prepare_tables.h"
#include "runtime/run_context.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"
#include "runtime/table_keys.h"
#include "runtime/wave_commit.h"
#include "runtime/wave_reader.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::int64_t kChunkRowsDefault = 1'000'000;

BackfillObserver& SilentObserver() {
  static BackfillObserver observer;
  return observer;
}
StreamObserver& SilentStreamObserver() {
  static StreamObserver observer;
  return observer;
}

class BackfillImpl final : public Backfill {
 public:
  BackfillImpl(const StreamConfig& config, const BackfillOptions& options,
               const StreamParts& parts, BackfillObserver* observer)
      : config_(config),
        options_(options),
        clock_(*parts.clock),
        observer_(observer != nullptr ? *observer : SilentObserver()),
        pool_(*parts.sessions),
        context_{config_, *parts.lake, clock_,         SilentStreamObserver(),
                 pool_,   stop_,       config_.app_id, {}} {
    settings_.lock_timeout_ms = config_.lock_timeout_ms;
    settings_.snapshot_isolation =
        options_.isolation.value_or(config_.isolation_level) ==
        IsolationLevel::kSnapshot;
  }

  Result<BackfillStatus> Run() override;
  void Stop() override {
    stop_ = true;
    pool_.Stop();
  }
  std::int64_t request_count() const override { return pool_.request_count(); }

 private:
  Result<BackfillStatus> RunToBound();
  Result<BackfillStatus> Loop();
  Status Load(const pipeline::OpenedSnapshot& opened,
              const std::vector<pipeline::SnapshotEvent>& events);
  Status CheckTargetIsThere() const;
  Status CheckKeys() const;
  Result<std::optional<BackfillStatus>> PauseForHeadroom();
  Status MakePlan();
  Status ReadOneWave(const pipeline::ReadWave& step);
  Status CheckBounds(const pipeline::KeyRange& range) const;
  Result<std::vector<pipeline::Chunk>> ChunksOf(const pipeline::ReadWave& step,
                                                const pipeline::ChunkPlan& plan) const;
  Result<pipeline::ChunkPlan> PlanOfWave();
  Result<cdc::Offset> StampOfWave();
  Status Complete();
  void Advance(const pipeline::WaveRecord& record, std::int64_t duration_ms,
               bool was_read);

  bool BudgetIsUp() const;
  std::optional<double> LeftSeconds() const;
  double ElapsedSeconds() const {
    return static_cast<double>(clock_.MonotonicNs() - begin_ns_) / 1e9;
  }
  std::int64_t ParallelCount() const {
    return config_.num_partitions.value_or(
        std::max<std::int64_t>(1, std::thread::hardware_concurrency()));
  }
  BackfillStatus StatusOf(BackfillStatus::State state, std::string reason = {}) const;
  BackfillProgress ProgressNow() const;

  const StreamConfig config_;
  const BackfillOptions options_;
  Clock& clock_;
  BackfillObserver& observer_;
  std::atomic<bool> stop_{false};
  SessionPool pool_;
  RunContext context_;
  sqlserver::SourceSettings settings_;
  TableKeys keys_;
  pipeline::ChunkedState state_;
  std::int64_t begin_ns_ = 0;
  std::int64_t wave_count_ = 0;  // Of this call.
  std::atomic<std::int64_t> row_count_{0};
  std::atomic<std::int64_t> size_bytes_{0};
  std::optional<double> headroom_hours_;
  std::optional<double> round_seconds_;
  Background committing_;  // The facts of the last wave. Goes first.
};

Result<BackfillStatus> BackfillImpl::Run() {
  Result<BackfillStatus> status = RunToBound();
  const Status committed = committing_.Wait();
  if (!status.ok() && stop_) return StatusOf(BackfillStatus::State::kRunning);
  if (status.ok() && !committed.ok()) return committed.error();
  return status;
}

Result<BackfillStatus> BackfillImpl::RunToBound() {
  if (!config_.facts_table) {
    return Error(ErrorId::kOptionMissing).With("option", "facts_table");
  }
  begin_ns_ = clock_.MonotonicNs();
  TRY(EnsureTable(context_.lake, config_.facts_location, pipeline::TableKind::kFacts,
                  pipeline::FactsTable()));
  {
    TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
    TRY_ASSIGN(context_.source, AskSource(*session, config_, std::nullopt));
  }
  TRY_ASSIGN(const std::vector<pipeline::SnapshotEvent> events,
             ReadSnapshotEvents(context_));
  TRY(pipeline::CheckModeLock(events, config_.app_id, pipeline::SnapshotMode::kChunked,
                              IsLostIn(context_.source)));
  const std::optional<pipeline::OpenedSnapshot> opened =
      pipeline::NewestChunked(events, config_.app_id);
  if (!opened) {
    BackfillStatus status;
    status.state = BackfillStatus::State::kNoSnapshot;
    status.reason =
        "no chunked snapshot of " + config_.target + " was opened by " +
        config_.app_id +
        ": the stream opens it when it runs with bootstrap = true and snapshot = "
        "\"chunked\" (mssql-cdc run)";
    return status;
  }
  TRY(Load(*opened, events));
  TRY(CheckTargetIsThere());
  TRY(PrepareTables(context_));
  return Loop();
}

Status BackfillImpl::Load(const pipeline::OpenedSnapshot& opened,
                          const std::vector<pipeline::SnapshotEvent>& events) {
  context_.sink_id = opened.sink_id;
  if (opened.is_complete) {
    state_.opened = opened;
    state_.done_count = pipeline::DoneChunkCount(opened, events);
    return Unit{};
  }
  TRY_ASSIGN(
      const std::vector<pipeline::PlansRow> rows,
      ReadPlans(context_.lake, PlansLocation(context_.config), opened.stamp.lsn));
  TRY_ASSIGN(state_, pipeline::ReadChunkedState(
                         opened, events, rows, pipeline::PlansTableOf(config_.target)));
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  TRY_ASSIGN(keys_, AskTableKeys(context_, *session));
  TRY(CheckKeys());
  if (state_.plan && options_.chunk_rows &&
      *options_.chunk_rows != state_.plan->chunk_rows) {
    observer_.OnWarning("chunk_rows is ignored: the snapshot was planned with " +
                        std::to_string(state_.plan->chunk_rows));
  }
  if (state_.last_wave_ms && state_.last_wave_chunk_count > 0) {
    const double rounds =
        std::max(1.0, static_cast<double>(state_.last_wave_chunk_count) /
                          static_cast<double>(ParallelCount()));
    round_seconds_ = static_cast<double>(*state_.last_wave_ms) / 1000 / rounds;
  }
  return Unit{};
}

// A target that went away would be made anew and completed without its first waves.
Status BackfillImpl::CheckTargetIsThere() const {
  if (state_.row_count == 0) return Unit{};
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context_.lake.State(config_.target_location));
  if (target) return Unit{};
  return Error(ErrorId::kTargetLost)
      .With("target", config_.target)
      .With("location", config_.target_location)
      .With("lsn", state_.opened.stamp.lsn.Text());
}

// The chunks are ranges of the keys that were recorded, whatever is configured now.
Status BackfillImpl::CheckKeys() const {
  const std::vector<std::string>& recorded = state_.open.keys;
  const bool is_same = std::ranges::equal(
      recorded, keys_.names,
      [](const auto& a, const auto& b) { return EqualsIgnoringCase(a, b); });
  const bool needs_bounds =
      std::holds_alternative<pipeline::IntegerExtent>(state_.open.extent) ||
      std::get<pipeline::SeekExtent>(state_.open.extent).max.has_value();
  if (is_same && (!needs_bounds || !keys_.types.empty())) return Unit{};
  const auto joined = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  if (is_same) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "columns")
        .With("columns", joined(recorded))
        .With("allowed",
              "what reads the columns that the open snapshot is cut on, as types that "
              "a bound can be bound as")
        .With("lsn", state_.opened.stamp.lsn.Text());
  }
  return Error(ErrorId::kOptionsClash)
      .With("option", "snapshotKeys")
      .With("value", joined(keys_.names))
      .With("with", "the open snapshot's columns")
      .With("columns", joined(recorded))
      .With("lsn", state_.opened.stamp.lsn.Text());
}

Result<BackfillStatus> BackfillImpl::Loop() {
  while (true) {
    const pipeline::ChunkedStep step = pipeline::NextStep(state_);
    if (std::holds_alternative<pipeline::NothingLeft>(step)) {
      return StatusOf(BackfillStatus::State::kDone);
    }
    if (std::holds_alternative<pipeline::WriteCompletion>(step)) {
      TRY(committing_.Wait());
      TRY(Complete());
      return StatusOf(BackfillStatus::State::kDone);
    }
    if (stop_ || BudgetIsUp()) return StatusOf(BackfillStatus::State::kRunning);
    TRY_ASSIGN(std::optional<BackfillStatus> pause, PauseForHeadroom());
    if (pause) return *std::move(pause);
    if (std::holds_alternative<pipeline::MakePlan>(step)) {
      TRY(MakePlan());
    } else {
      TRY(ReadOneWave(std::get<pipeline::ReadWave>(step)));
    }
  }
}

bool BackfillImpl::BudgetIsUp() const {
  if (options_.max_waves && wave_count_ >= *options_.max_waves) return true;
  const std::optional<double> left = LeftSeconds();
  return left && *left <= 0;
}

std::optional<double> BackfillImpl::LeftSeconds() const {
  if (!options_.max_seconds) return std::nullopt;
  return *options_.max_seconds - ElapsedSeconds();
}

Result<std::optional<BackfillStatus>> BackfillImpl::PauseForHeadroom() {
  if (!options_.min_headroom_hours) return std::optional<BackfillStatus>();
  TRY_ASSIGN(headroom_hours_, StreamHeadroomHours(context_, state_.opened.sink_id));
  if (!headroom_hours_) {
    return std::optional(
        StatusOf(BackfillStatus::State::kWaitingMetrics,
                 "the stream has written no retention headroom yet: is it running?"));
  }
  if (*headroom_hours_ >= *options_.min_headroom_hours) {
    return std::optional<BackfillStatus>();
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "the stream's retention headroom is %.2f hours, below the %.2f asked "
                "for",
                *headroom_hours_, *options_.min_headroom_hours);
  return std::optional(StatusOf(BackfillStatus::State::kWaitingHeadroom, text));
}

Status BackfillImpl::MakePlan() {
  const cdc::Lsn snapshot = state_.opened.stamp.lsn;
  pipeline::SnapshotRun run;
  run.app_id = state_.opened.sink_id;
  run.target = config_.target;
  run.stamp = state_.opened.stamp;
  run.started_at_us = clock_.NowUtcUs();
  const std::int64_t begin_ns = clock_.MonotonicNs();
  pipeline::ChunkPlan plan;
  {
    TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
    TRY_ASSIGN(
        plan, AskChunkPlan(context_, *session, keys_, state_.open.extent,
                           options_.chunk_rows.value_or(kChunkRowsDefault), settings_));
  }
  run.duration_ms = (clock_.MonotonicNs() - begin_ns) / 1'000'000;
  run.written_at_us = clock_.NowUtcUs();
  pipeline::DetailTexts texts = pipeline::PlanTexts(snapshot, state_.open, plan);
  const lake::Txn txn{pipeline::PlanTxn(config_.app_id, snapshot), 0};
  if (!state_.is_whole_in_facts) {
    TRY(AppendPlans(context_, snapshot, run.app_id, {{"snapshot_plan", texts.whole}},
                    txn));
    // That of an attempt that was stopped here stays; the facts tell of the same one.
    TRY_ASSIGN(const std::vector<pipeline::PlansRow> rows,
               ReadPlans(context_.lake, PlansLocation(context_.config), snapshot));
    TRY_ASSIGN(const std::optional<pipeline::ChunkPlan> stored,
               pipeline::StoredPlan(rows, run.app_id, keys_.names.size()));
    if (stored) texts = pipeline::PlanTexts(snapshot, state_.open, *stored);
  }
  run.detail = state_.is_whole_in_facts ? texts.whole : texts.detail;
  TRY(AppendFacts(context_, {pipeline::SnapshotPlanFacts(run)}, txn));
  // Another caller's, if that came first.
  TRY_ASSIGN(const std::vector<pipeline::SnapshotEvent> events,
             ReadSnapshotEvents(context_));
  TRY_ASSIGN(const std::vector<pipeline::PlansRow> rows,
             ReadPlans(context_.lake, PlansLocation(context_.config), snapshot));
  TRY_ASSIGN(state_,
             pipeline::ReadChunkedState(state_.opened, events, rows,
                                        pipeline::PlansTableOf(config_.target)));
  if (!state_.plan) {
    return Error(ErrorId::kSnapshotPlanLost)
        .With("table", config_.facts_table.value_or(""))
        .With("event", "snapshot_plan")
        .With("lsn", snapshot.Text());
  }
  observer_.OnPlanned(snapshot.Text(),
                      static_cast<std::int64_t>(state_.plan->chunks.size()));
  return Unit{};
}

Result<cdc::Offset> BackfillImpl::StampOfWave() {
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  TRY_ASSIGN(const cdc::Offset stamp, AskStamp(context_, *session));
  if (stamp.lsn >= state_.opened.stamp.lsn) return stamp;
  return Error(ErrorId::kPositionAheadOfServer)
      .With("capture_instance", context_.source.instance.name)
      .With("position", state_.opened.stamp.lsn.Text())
      .With("server_max", stamp.lsn.Text())
      .With("cause",
            "the snapshot was opened on another database, or on the primary "
            "of this secondary");
}

// The last chunk of a plan of seeks ends at the first key above the largest one, which
// is looked for again while there is none, so that rows inserted meanwhile stay the
// stream's.
Result<pipeline::ChunkPlan> BackfillImpl::PlanOfWave() {
  pipeline::ChunkPlan plan = *state_.plan;
  const auto* extent = std::get_if<pipeline::SeekExtent>(&state_.open.extent);
  if (extent == nullptr || !extent->max || plan.chunks.back().hi) return plan;
  TRY(CheckBounds({extent->max, std::nullopt}));
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  TRY_ASSIGN(plan.chunks.back().hi,
             AskKeyAbove(context_, *session, keys_, *extent->max, settings_));
  return plan;
}

// The plans table is written by whoever may write bronze.
Status BackfillImpl::CheckBounds(const pipeline::KeyRange& range) const {
  for (const std::optional<pipeline::Key>& bound : {range.lo, range.hi}) {
    if (!bound || pipeline::IsOfTypes(*bound, keys_.types)) continue;
    return Error(ErrorId::kCheckpointUnreadable)
        .With("table", PlansLocation(config_))
        .With("lsn", state_.opened.stamp.lsn.Text())
        .With("reason", "a chunk's bound is not of its key's type");
  }
  return Unit{};
}

Result<std::vector<pipeline::Chunk>> BackfillImpl::ChunksOf(
    const pipeline::ReadWave& step, const pipeline::ChunkPlan& plan) const {
  if (!step.noted.empty()) return step.noted;
  const auto total = static_cast<std::int64_t>(plan.chunks.size());
  const std::int64_t count = pipeline::ChunkCountOf(
      {ParallelCount(), round_seconds_, options_.target_wave_seconds, LeftSeconds()},
      total - state_.next_chunk);
  return pipeline::TakeChunks(plan, state_.next_chunk, count);
}

Status BackfillImpl::ReadOneWave(const pipeline::ReadWave& step) {
  TRY_ASSIGN(const cdc::Offset stamp, StampOfWave());
  TRY_ASSIGN(const pipeline::ChunkPlan plan, PlanOfWave());
  TRY_ASSIGN(std::vector<pipeline::Chunk> chunks, ChunksOf(step, plan));
  for (const pipeline::Chunk& chunk : chunks) {
    TRY(CheckBounds(chunk.range));
  }
  WaveCommit wave;
  wave.wave = step.wave;
  wave.started_at_us = clock_.NowUtcUs();
  for (pipeline::Chunk& chunk : chunks) wave.reads.push_back({std::move(chunk)});
  wave.plan = {state_.opened.stamp.lsn, stamp, keys_, settings_, ParallelCount()};
  const std::int64_t begin_ns = clock_.MonotonicNs();
  const WaveProgress progress = [this](std::int64_t rows, std::int64_t bytes) {
    row_count_ += rows;
    size_bytes_ += bytes;
    observer_.OnProgress(ProgressNow());
  };
  TRY_ASSIGN(WaveOutcome outcome, AppendWave(context_, state_, plan, wave, progress,
                                             [this] { return committing_.Wait(); }));
  TRY(committing_.Wait());  // Where nothing was read, nobody has waited.
  const std::int64_t duration_ms = (clock_.MonotonicNs() - begin_ns) / 1'000'000;
  Advance(outcome.record, duration_ms, outcome.was_read);
  ++wave_count_;
  const WaveFacts facts{state_.opened, state_.is_whole_in_facts, std::move(outcome),
                        wave.started_at_us, duration_ms};
  committing_.Start([this, facts] { return WriteWaveFacts(context_, facts); });
  observer_.OnWaveDone(ProgressNow());
  return Unit{};
}

void BackfillImpl::Advance(const pipeline::WaveRecord& record, std::int64_t duration_ms,
                           bool was_read) {
  state_.noted.clear();
  state_.last_wave = record.wave;
  state_.last_stamp = std::max(state_.last_stamp, std::optional(record.stamp));
  for (const pipeline::DoneChunk& done : record.chunks) {
    ++state_.done_count;
    state_.row_count += done.rows.value_or(0);
    state_.next_chunk = std::max(state_.next_chunk, done.chunk.chunk + 1);
    state_.last_chunk_is_done |= done.chunk.is_last;
  }
  if (!was_read || record.chunks.empty()) return;
  const auto chunk_count = static_cast<std::int64_t>(record.chunks.size());
  const std::int64_t rounds = (chunk_count + ParallelCount() - 1) / ParallelCount();
  round_seconds_ =
      static_cast<double>(duration_ms) / 1000 / static_cast<double>(rounds);
}

Status BackfillImpl::Complete() {
  const pipeline::OpenedSnapshot& opened = state_.opened;
  pipeline::SnapshotRun run;
  run.app_id = opened.sink_id;
  run.target = config_.target;
  run.stamp = opened.stamp;
  run.rows = state_.row_count;
  run.kind = opened.detail.kind;
  run.written_at_us = clock_.NowUtcUs();
  run.started_at_us = opened.opened_at_us;
  if (opened.opened_at_us) {
    run.duration_ms = (run.written_at_us - *opened.opened_at_us) / 1000;
  }
  run.lost_from_us = opened.detail.lost_from_us;
  run.lost_to_us = opened.detail.lost_to_us;
  run.detail =
      pipeline::CompletionText(opened.stamp.lsn, state_.done_count, state_.row_count,
                               state_.last_stamp.value_or(opened.stamp.lsn));
  const lake::Txn txn =
      opened.detail.switch_batch_id
          ? lake::Txn{pipeline::SwitchDoneTxn(config_.app_id, opened.stamp.lsn), 0}
          : lake::Txn{config_.app_id + "#events", opened.detail.generation};
  return AppendFacts(context_, {pipeline::BootstrapFacts(run)}, txn);
}

BackfillStatus BackfillImpl::StatusOf(BackfillStatus::State state,
                                      std::string reason) const {
  BackfillStatus status;
  status.state = state;
  status.reason = std::move(reason);
  if (!state_.opened.sink_id.empty()) status.snapshot = state_.opened.stamp.lsn;
  status.chunks_done = state_.done_count;
  if (state_.plan) {
    status.chunks_total = static_cast<std::int64_t>(state_.plan->chunks.size());
  }
  if (state_.opened.is_complete) status.chunks_total = status.chunks_done;
  return status;
}

BackfillProgress BackfillImpl::ProgressNow() const {
  BackfillProgress progress;
  progress.lsn = state_.opened.stamp.lsn.Text();
  progress.wave = state_.last_wave.value_or(-1) + 1;
  progress.chunks_done = state_.done_count;
  if (state_.plan) {
    progress.chunks_total = static_cast<std::int64_t>(state_.plan->chunks.size());
  }
  progress.row_count = row_count_;
  progress.size_bytes = size_bytes_;
  progress.elapsed_ms = static_cast<std::int64_t>(ElapsedSeconds() * 1000);
  progress.headroom_hours = headroom_hours_;
  return progress;
}

}  // namespace

const char* NameOf(BackfillStatus::State state) {
  switch (state) {
    case BackfillStatus::State::kDone:
      return "done";
    case BackfillStatus::State::kRunning:
      return "running";
    case BackfillStatus::State::kWaitingHeadroom:
      return "waiting_headroom";
    case BackfillStatus::State::kWaitingMetrics:
      return "waiting_metrics";
    case BackfillStatus::State::kNoSnapshot:
      return "no_snapshot";
  }
  return "";
}

std::unique_ptr<Backfill> Backfill::Make(const StreamConfig& config,
                                         const BackfillOptions& options,
                                         const StreamParts& parts,
                                         BackfillObserver* observer) {
  return std::make_unique<BackfillImpl>(config, options, parts, observer);
}

}  // namespace mssql_cdc::runtime

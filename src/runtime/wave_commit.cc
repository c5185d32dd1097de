#include "runtime/wave_commit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "pipeline/facts.h"
#include "runtime/files.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"

namespace mssql_cdc::runtime {
namespace {

// 32 hexadecimal digits.
std::string NewAttempt() {
  std::string text = NewUuid();
  std::erase(text, '-');
  return text;
}

pipeline::DoneChunk DoneOf(const ChunkRead& read) {
  pipeline::DoneChunk done;
  done.chunk = read.chunk;
  done.rows = read.row_count;
  done.read_seconds = static_cast<double>(read.read_ns) / 1e9;
  done.read_mb = pipeline::RoundTo(static_cast<double>(read.size_bytes) / 1e6, 6);
  return done;
}

// What the server's newest commit is, as far as it can be asked; the rows are read.
std::optional<cdc::Offset> NewestNow(RunContext& context) {
  Result<SessionPool::Lease> session = context.pool.Acquire();
  if (!session.ok()) return std::nullopt;
  const auto newest = AskNewest(*session.value(), context.source);
  return newest.ok() ? newest.value() : std::nullopt;
}

// The commit of an earlier attempt, by its metadata.
Result<std::optional<pipeline::WaveRecord>> FindCommit(
    RunContext& context, const pipeline::ChunkedState& state,
    const std::string& txn_app_id, std::int64_t wave) {
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             context.lake.History(context.config.target_location, 0));
  for (auto commit = commits.rbegin(); commit != commits.rend(); ++commit) {
    if (!commit->user_metadata) continue;
    std::optional<pipeline::WaveRecord> record =
        pipeline::ParseWave(*commit->user_metadata, state.open.keys.size());
    if (record && record->txn_app_id == txn_app_id && record->wave == wave) {
      return record;
    }
  }
  return std::optional<pipeline::WaveRecord>();
}

Error WaveLost(const RunContext& context, const pipeline::ChunkedState& state,
               std::int64_t wave) {
  return Error(ErrorId::kTargetLost)
      .With("target", context.config.target)
      .With("location", context.config.target_location)
      .With("lsn", state.opened.stamp.lsn.Text())
      .With("wave", std::to_string(wave));
}

// A wave that is in the target: from its commit, else from its rows.
Result<pipeline::WaveRecord> FindWave(RunContext& context,
                                      const pipeline::ChunkedState& state,
                                      const pipeline::ChunkPlan& plan,
                                      const std::string& txn_app_id,
                                      std::int64_t wave) {
  const cdc::Lsn& snapshot = state.opened.stamp.lsn;
  TRY_ASSIGN(std::optional<pipeline::WaveRecord> found,
             FindCommit(context, state, txn_app_id, wave));
  const bool is_counted =
      found && std::ranges::all_of(found->chunks, [](const pipeline::DoneChunk& done) {
        return done.rows.has_value();
      });
  if (is_counted) return *std::move(found);
  TRY_ASSIGN(const auto row_counts,
             CountChunkRows(context, snapshot, state.next_chunk));
  if (found) {
    for (pipeline::DoneChunk& done : found->chunks) {
      const auto counted = std::ranges::find(
          row_counts, done.chunk.chunk, &std::pair<std::int64_t, std::int64_t>::first);
      done.rows = counted == row_counts.end() ? 0 : counted->second;
    }
    return *std::move(found);
  }
  TRY_ASSIGN(const std::optional<cdc::Lsn> stamp,
             LowestStamp(context, snapshot, state.next_chunk));
  pipeline::WaveRecord record;
  record.txn_app_id = txn_app_id;
  record.wave = wave;
  record.chunks = pipeline::RebuildChunks(plan, state.next_chunk, row_counts);
  if (!stamp || record.chunks.empty()) return WaveLost(context, state, wave);
  record.stamp = *stamp;
  for (pipeline::DoneChunk& done : record.chunks) done.high_lsn = *stamp;
  return record;
}

// The commit times that the facts need of a wave that was found.
Status AskTimes(RunContext& context, WaveOutcome& outcome) {
  TRY_ASSIGN(const SessionPool::Lease session, context.pool.Acquire());
  TRY_ASSIGN(outcome.stamp, AskOffset(*session, context.source, outcome.record.stamp));
  std::optional<cdc::Lsn> high;
  for (const pipeline::DoneChunk& done : outcome.record.chunks) {
    high = std::max(high, done.high_lsn);
  }
  if (!high) return Unit{};
  TRY_ASSIGN(outcome.high, AskOffset(*session, context.source, *high));
  return Unit{};
}

}  // namespace

Result<WaveOutcome> AppendWave(RunContext& context, const pipeline::ChunkedState& state,
                               const pipeline::ChunkPlan& plan, WaveCommit& wave,
                               const WaveProgress& progress,
                               const std::function<Status()>& gate) {
  WaveOutcome outcome;
  outcome.stamp = wave.plan.stamp;
  pipeline::WaveRecord& record = outcome.record;
  record.txn_app_id = pipeline::WaveTxn(context.config.app_id, state.opened.stamp.lsn);
  record.wave = wave.wave;
  record.stamp = wave.plan.stamp.lsn;
  record.attempt = NewAttempt();
  record.capture_instance = context.config.capture_instance;
  const auto fill_in = [&] {
    outcome.high = NewestNow(context);
    record.chunks.clear();
    for (const ChunkRead& read : wave.reads) {
      pipeline::DoneChunk done = DoneOf(read);
      if (outcome.high) done.high_lsn = outcome.high->lsn;
      record.chunks.push_back(std::move(done));
    }
  };
  lake::AppendSpec spec;
  spec.txn = lake::Txn{record.txn_app_id, wave.wave};
  spec.merge_schema = true;
  spec.user_metadata = [&] {
    fill_in();
    return std::optional<std::string>(pipeline::WaveText(record));
  };
  TRY_ASSIGN(const lake::AppendResult appended,
             context.lake.Append(
                 context.config.target_location,
                 ReadWaveChunks(context, wave.plan, wave.reads, progress, gate), spec));
  switch (appended.outcome) {
    case lake::AppendOutcome::kCommitted:
      break;
    case lake::AppendOutcome::kNoRows:
      fill_in();
      break;
    case lake::AppendOutcome::kAlreadyThere: {
      TRY_ASSIGN(record, FindWave(context, state, plan, record.txn_app_id, wave.wave));
      outcome.was_read = false;
      TRY(AskTimes(context, outcome));
      break;
    }
  }
  return outcome;
}

Status WriteWaveFacts(RunContext& context, const WaveFacts& facts) {
  const cdc::Lsn& snapshot = facts.opened.stamp.lsn;
  const pipeline::WaveRecord& record = facts.outcome.record;
  std::vector<pipeline::PlansRow> plan_rows;
  std::vector<pipeline::FactsRow> facts_rows;
  for (const pipeline::DoneChunk& done : record.chunks) {
    const pipeline::DetailTexts texts =
        pipeline::ChunkTexts(snapshot, record.wave, done.chunk);
    plan_rows.push_back({"snapshot_chunk", texts.whole});
    pipeline::ChunkRun run;
    run.app_id = facts.opened.sink_id;
    run.target = context.config.target;
    run.stamp = facts.outcome.stamp;
    if (done.high_lsn) {
      run.high = cdc::Offset{*done.high_lsn, std::nullopt};
      if (facts.outcome.high && facts.outcome.high->lsn == *done.high_lsn) {
        run.high = facts.outcome.high;
      }
    }
    run.rows = done.rows;
    run.started_at_us = facts.started_at_us;
    run.duration_ms = facts.duration_ms;
    run.read_seconds = done.read_seconds;
    run.read_mb = done.read_mb;
    run.detail = facts.is_whole_in_facts ? texts.whole : texts.detail;
    run.written_at_us = context.clock.NowUtcUs();
    facts_rows.push_back(pipeline::SnapshotChunkFacts(run));
  }
  const lake::Txn txn{pipeline::ChunksTxn(context.config.app_id, snapshot),
                      record.wave};
  if (!facts.is_whole_in_facts) {
    TRY(AppendPlans(context, snapshot, facts.opened.sink_id, plan_rows, txn));
  }
  return AppendFacts(context, facts_rows, txn);
}

}  // namespace mssql_cdc::runtime

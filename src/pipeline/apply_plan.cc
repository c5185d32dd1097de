#include "pipeline/apply_plan.h"

#include <algorithm>

namespace mssql_cdc::pipeline {
namespace {

using cdc::Lsn;
using MaybeLsn = std::optional<Lsn>;

// An absent one is below all others, as std::optional orders.
MaybeLsn Max(const MaybeLsn& a, const MaybeLsn& b) { return std::max(a, b); }

Error Unexplained(const ApplyFacts& facts) {
  Error error(ErrorId::kSnapshotUnexplained);
  error.Add("bronze", facts.bronze);
  if (!facts.has_facts) {
    error.Add("reason",
              "facts_table is not given or not there, and no newer whole snapshot is");
    return error;
  }
  std::string targets;
  for (const std::string& target : facts.facts_targets) {
    if (!targets.empty()) targets += ", ";
    targets += target;
  }
  error.Add("reason",
            "the facts table has no snapshot_open row for this table, and no newer "
            "whole snapshot is there");
  error.Add("targets", targets.empty() ? "none" : targets);
  return error;
}

std::vector<SnapshotChunk> NewChunks(const OpenSnapshot& open, std::int64_t after) {
  std::vector<SnapshotChunk> chunks;
  for (const SnapshotChunk& chunk : open.chunks) {
    if (chunk.wave > after) chunks.push_back(chunk);
  }
  return chunks;
}

Lsn LowestStamp(const std::vector<SnapshotChunk>& chunks) {
  Lsn lowest = chunks.front().stamp;
  for (const SnapshotChunk& chunk : chunks) lowest = std::min(lowest, chunk.stamp);
  return lowest;
}

}  // namespace

Result<ApplyWindow> PlanApply(const ApplyFacts& facts) {
  const SilverPosition& at = facts.position;
  if (facts.has_chunk_rows && (!facts.has_facts || !facts.open)) {
    return Unexplained(facts);
  }
  ApplyWindow window;
  const MaybeLsn completion = facts.completion_is_gone ? MaybeLsn() : facts.completion;
  window.snapshot = Max(Max(completion, at.rebuilt_from), facts.whole);
  if (facts.open &&
      MaybeLsn(facts.open->lsn) > Max(window.snapshot, facts.completion)) {
    window.open = facts.open;
  }
  window.is_before_snapshot =
      facts.completion_is_gone && !window.snapshot && !window.open;
  const bool is_new = !at.applied && !at.open_snapshot;
  const bool snapshot_is_new = window.snapshot > at.rebuilt_from;
  window.rebuild = is_new || snapshot_is_new;
  if (window.rebuild && window.snapshot) {
    window.changes_above = window.snapshot;
    window.snapshot_rows = window.snapshot;
  } else if (!window.rebuild && at.applied) {
    window.changes_above = at.applied;
  }
  if (window.open) {
    const bool goes_on = !window.rebuild && at.open_snapshot == window.open->lsn;
    window.chunks = NewChunks(*window.open, goes_on ? at.wave.value_or(-1) : -1);
    if (!window.chunks.empty()) {
      // Above the snapshot itself: a stamp is never below it.
      const Lsn next = window.open->lsn.Next().value_or(window.open->lsn);
      window.echo_from = std::max(LowestStamp(window.chunks), next);
    }
  }
  return window;
}

std::optional<ApplyWindow::Bound> ApplyWindow::LowerBound() const {
  if (!changes_above) return std::nullopt;
  Bound bound{*changes_above, !snapshot_rows};
  if (chunks.empty()) return bound;
  const Lsn lowest = LowestStamp(chunks);
  if (lowest <= bound.lsn) bound = Bound{lowest, false};
  return bound;
}

RowRole RoleOf(const ApplyWindow& window, const RowMark& row) {
  if (row.is_change()) {
    if (!window.changes_above || row.lsn > *window.changes_above) return RowRole::kBase;
    if (window.echo_from && row.lsn >= *window.echo_from) return RowRole::kEcho;
    return RowRole::kNone;
  }
  if (window.snapshot_rows && row.snapshot.value_or(row.lsn) == *window.snapshot_rows) {
    return RowRole::kBase;
  }
  if (!window.open || !row.chunk || row.snapshot != window.open->lsn) {
    return RowRole::kNone;
  }
  const bool is_new = std::any_of(
      window.chunks.begin(), window.chunks.end(),
      [&](const SnapshotChunk& chunk) { return chunk.number == *row.chunk; });
  return is_new ? RowRole::kChunk : RowRole::kNone;
}

SilverPosition PositionAfter(const ApplyWindow& window, const SilverPosition& before,
                             const std::optional<Lsn>& top) {
  SilverPosition after;
  after.applied = Max(Max(before.applied, window.snapshot), top);
  after.rebuilt_from = window.rebuild ? window.snapshot : before.rebuilt_from;
  if (!window.open) return after;
  after.open_snapshot = window.open->lsn;
  const bool goes_on = !window.rebuild && before.open_snapshot == window.open->lsn;
  if (goes_on) after.wave = before.wave;
  for (const SnapshotChunk& chunk : window.chunks) {
    after.wave = std::max(after.wave, std::optional(chunk.wave));
  }
  return after;
}

}  // namespace mssql_cdc::pipeline

#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace mssql_cdc::cli {
namespace {

using Field = Output::Field;

Field Number(std::string name, std::int64_t value) {
  return {std::move(name), std::to_string(value), false};
}
Field Number(std::string name, const std::optional<double>& value) {
  return {std::move(name), value ? fmt::format("{}", *value) : "null", false};
}

std::int64_t RowsPerSecond(const runtime::SnapshotProgress& progress) {
  return progress.row_count * 1000 / std::max<std::int64_t>(1, progress.elapsed_ms);
}

// All ranges are read at once, so the count says something only once one is through.
std::string RangesText(const runtime::SnapshotProgress& progress) {
  if (progress.range_done_count == 0) return "";
  return fmt::format(", {} of {} ranges done", progress.range_done_count,
                     progress.range_count);
}

std::string At(const std::string& lsn, const std::string& commit_ts) {
  return commit_ts.empty() ? lsn : fmt::format("{} ({})", lsn, commit_ts);
}

}  // namespace

void Progress::OnSnapshotStart(std::int64_t range_count) {
  output_.Event(name_, "snapshot_start",
                fmt::format("snapshot: reading the table in {} range{}", range_count,
                            range_count == 1 ? "" : "s"),
                {Number("ranges", range_count)});
}

void Progress::OnSnapshotProgress(const runtime::SnapshotProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = clock_.MonotonicNs();
    if (now - last_progress_ns_ < 1'000'000'000) return;
    last_progress_ns_ = now;
  }
  output_.Event(
      name_, "snapshot_progress",
      fmt::format("snapshot: {} rows, {}, {} rows/s, {}{}", Grouped(progress.row_count),
                  SizeText(progress.size_bytes), Grouped(RowsPerSecond(progress)),
                  Duration(progress.elapsed_ms), RangesText(progress)),
      {Number("rows", progress.row_count), Number("bytes", progress.size_bytes),
       Number("ranges_done", progress.range_done_count),
       Number("ranges", progress.range_count),
       Number("elapsed_ms", progress.elapsed_ms)});
}

void Progress::OnSnapshotOpened(const runtime::SnapshotSummary& summary) {
  output_.Event(
      name_, "snapshot_opened",
      fmt::format("snapshot: opened at {}; mssql-cdc backfill reads it in chunks",
                  At(summary.lsn, summary.commit_ts)),
      {Field{"lsn", summary.lsn}, Field{"commit_ts", summary.commit_ts}});
}

void Progress::OnSnapshotDone(const runtime::SnapshotSummary& summary) {
  const std::string text =
      summary.row_count
          ? fmt::format("snapshot: {} rows at {} in {}", Grouped(*summary.row_count),
                        At(summary.lsn, summary.commit_ts),
                        Duration(summary.elapsed_ms))
          : fmt::format("snapshot: already in the target, at {}",
                        At(summary.lsn, summary.commit_ts));
  Field rows{"rows", "null", false};
  if (summary.row_count) rows = Number("rows", *summary.row_count);
  output_.Event(name_, "snapshot_done", text,
                {rows, Field{"lsn", summary.lsn}, Field{"commit_ts", summary.commit_ts},
                 Number("elapsed_ms", summary.elapsed_ms)});
}

void Progress::OnBatchDone(const runtime::BatchSummary& summary) {
  const std::string lag =
      summary.ingestion_lag_seconds
          ? fmt::format(", {:.1f} s behind the capture", *summary.ingestion_lag_seconds)
          : "";
  output_.Event(
      name_, "batch_done",
      fmt::format("batch {}{}: {} rows (+{} ~{} -{}) through {} in {}{}",
                  summary.batch_id, summary.replayed ? " (replayed)" : "",
                  Grouped(summary.row_count), summary.inserts, summary.updates,
                  summary.deletes, At(summary.through_lsn, summary.through_commit_ts),
                  Duration(summary.elapsed_ms), lag),
      {Number("batch_id", summary.batch_id),
       {"replayed", summary.replayed ? "true" : "false", false},
       Number("rows", summary.row_count),
       Number("inserts", summary.inserts),
       Number("updates", summary.updates),
       Number("deletes", summary.deletes),
       {"through_lsn", summary.through_lsn},
       {"through_commit_ts", summary.through_commit_ts},
       Number("bytes", summary.size_bytes),
       Number("read_seconds", std::optional(summary.read_seconds)),
       Number("elapsed_ms", summary.elapsed_ms),
       Number("capture_lag_seconds", summary.capture_lag_seconds),
       Number("ingestion_lag_seconds", summary.ingestion_lag_seconds),
       Number("retention_headroom_hours", summary.retention_headroom_hours),
       Number("target_version", summary.target_version)});
}

void Progress::OnIdle(const runtime::IdleSummary& summary) {
  // Polling backs off: a wait this long means that nothing came for some seconds.
  constexpr std::int64_t kQuietWaitMs = 1000;
  if (summary.wait_ms < kQuietWaitMs) return;
  {
    const std::lock_guard lock(mutex_);
    if (idle_lsn_ == summary.lsn + summary.stall) return;
    idle_lsn_ = summary.lsn + summary.stall;
  }
  if (!summary.stall.empty()) {
    output_.Event(name_, "stalled",
                  fmt::format("waiting at {}: {}", At(summary.lsn, summary.commit_ts),
                              summary.stall),
                  {Field{"lsn", summary.lsn}, Field{"commit_ts", summary.commit_ts},
                   Field{"cause", summary.stall}});
    return;
  }
  output_.Event(name_, "idle",
                fmt::format("up to date at {}", At(summary.lsn, summary.commit_ts)),
                {Field{"lsn", summary.lsn}, Field{"commit_ts", summary.commit_ts}});
}

void Progress::OnRunDone(const runtime::RunSummary& summary) {
  const std::string at = At(summary.lsn, summary.commit_ts);
  const bool waits = summary.batch_count == 0 && !summary.stall.empty();
  output_.Event(
      name_, "run_done",
      waits ? fmt::format("nothing read: waiting at {}: {}", at, summary.stall)
      : summary.batch_count == 0
          ? fmt::format("nothing new: up to date at {}", at)
          : fmt::format("done: {} batch{}, up to date at {}", summary.batch_count,
                        summary.batch_count == 1 ? "" : "es", at),
      {Number("batches", summary.batch_count), Field{"lsn", summary.lsn},
       Field{"commit_ts", summary.commit_ts}, Field{"cause", summary.stall}});
}

void Progress::OnWarning(const std::string& text) { output_.Warning(name_, text); }

void Progress::OnRetry(const Error& error, std::int64_t attempt, std::int64_t wait_ms) {
  output_.Warning(name_, fmt::format("{}; attempt {} in {}", error.Text(), attempt + 1,
                                     Duration(wait_ms)));
}

}  // namespace mssql_cdc::cli

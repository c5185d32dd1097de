#include "runtime/silver_keeper.h"

#include <chrono>
#include <utility>

#include "base/text.h"
#include "cdc/lsn.h"
#include "runtime/control_table.h"
#include "runtime/silver_source.h"

namespace mssql_cdc::runtime {

SilverKeeper::SilverKeeper(const StreamConfig& config, const Parts& parts)
    : config_(config), parts_(parts), dice_(parts.seed) {}

SilverKeeper::~SilverKeeper() {
  if (thread_.joinable()) (void)Finish();
}

void SilverKeeper::Start() {
  if (!config_.control_table || thread_.joinable()) return;
  // Bronze may hold what an earlier run did not come to apply.
  is_noted_ = has_rows_ = true;
  thread_ = std::thread([this] { Work(); });
}

Status SilverKeeper::Finish() {
  if (!thread_.joinable()) return Unit{};
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
  if (failure_) return *failure_;
  return Unit{};
}

void SilverKeeper::OnSnapshotStart(std::int64_t range_count) {
  parts_.inner.OnSnapshotStart(range_count);
}
void SilverKeeper::OnSnapshotProgress(const SnapshotProgress& progress) {
  parts_.inner.OnSnapshotProgress(progress);
}
void SilverKeeper::OnSnapshotOpened(const SnapshotSummary& summary) {
  parts_.inner.OnSnapshotOpened(summary);
}

void SilverKeeper::OnSnapshotDone(const SnapshotSummary& summary) {
  parts_.inner.OnSnapshotDone(summary);
  Note("", "", true);
}
void SilverKeeper::OnBatchDone(const BatchSummary& summary) {
  parts_.inner.OnBatchDone(summary);
  Note(summary.through_lsn, summary.through_commit_ts, summary.row_count != 0);
}
void SilverKeeper::OnIdle(const IdleSummary& summary) {
  parts_.inner.OnIdle(summary);
  Note(summary.lsn, summary.commit_ts, false);
}
void SilverKeeper::OnRunDone(const RunSummary& summary) {
  parts_.inner.OnRunDone(summary);
  Note(summary.lsn, summary.commit_ts, false);
}
void SilverKeeper::OnWarning(const std::string& text) { parts_.inner.OnWarning(text); }
void SilverKeeper::OnRetry(const Error& error, std::int64_t attempt,
                           std::int64_t wait_ms) {
  parts_.inner.OnRetry(error, attempt, wait_ms);
}

void SilverKeeper::Note(const std::string& lsn, const std::string& commit_ts,
                        bool has_rows) {
  const std::lock_guard lock(mutex_);
  has_begun_ = true;
  bool is_news = has_rows;
  if (!lsn.empty()) {
    const Result<cdc::Lsn> parsed = cdc::Lsn::Parse(lsn);
    if (parsed.ok() && (!end_ || end_->lsn != parsed.value())) {
      end_ = cdc::Offset{parsed.value(), ParseIsoUs(commit_ts)};
      is_news = true;
    }
  }
  has_rows_ = has_rows_ || has_rows;
  if (!is_news) return;
  is_noted_ = true;
  changed_.notify_all();
}

bool SilverKeeper::IsForNow(const Error& error, bool has_begun) const {
  const bool takes_snapshots =
      config_.bootstrap || config_.on_data_loss == OnDataLoss::kResnapshot;
  return error.id() == ErrorId::kSnapshotUnexplained && takes_snapshots && !has_begun;
}

void SilverKeeper::Work() {
  std::int64_t attempt = 0;
  while (true) {
    std::optional<cdc::Offset> end;
    bool has_rows = false;
    bool is_last = false;
    bool has_begun = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_noted_ || is_ending_; });
      if (!is_noted_) break;
      is_noted_ = false;
      end = end_;
      has_rows = std::exchange(has_rows_, false);
      is_last = is_ending_;
      has_begun = has_begun_;
    }
    const Status done = Round(end, has_rows);
    for_now_.reset();
    if (!done.ok() && IsForNow(done.error(), has_begun)) {
      for_now_ = done.error();
      const std::lock_guard lock(mutex_);
      has_rows_ = true;
      continue;
    }
    if (!done.ok()) {
      const bool may_help = done.error().remedy() == Remedy::kRetry;
      if (!may_help || attempt >= config_.retry_count_max) return Fail(done.error());
      ++attempt;
      parts_.inner.OnRetry(done.error(), attempt, config_.retry_wait_first_ms);
      const std::lock_guard lock(mutex_);
      is_noted_ = has_rows_ = true;
    } else {
      attempt = 0;
    }
    if (is_last) continue;
    std::unique_lock lock(mutex_);
    const std::int64_t wait_ms =
        done.ok() ? config_.silver_interval_ms : config_.retry_wait_first_ms;
    changed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                      [this] { return is_ending_; });
  }
  if (for_now_) Fail(*for_now_);
}

void SilverKeeper::Fail(const Error& error) {
  failure_ = error;
  parts_.told.OnSilverFailed(error);
}

Status SilverKeeper::Round(const std::optional<cdc::Offset>& end, bool has_rows) {
  if (end && end->commit_us) {
    const std::int64_t candidate_us =
        pipeline::Truncate(*end->commit_us, config_.granularity);
    if (!advanced_us_ || candidate_us > *advanced_us_) {
      ControlTable control(parts_.lake, parts_.clock, dice_, config_.control_location,
                           parts_.control);
      TRY(control.Advance(config_.target, end, config_.granularity));
      advanced_us_ = candidate_us;
      // Silver's verdict follows that of bronze.
      has_rows = true;
    }
  }
  if (!config_.silver || !has_rows) return Unit{};
  WorkPermits::Permit permit;
  if (parts_.permits != nullptr) permit = parts_.permits->Take();
  return ApplyOnce();
}

Status SilverKeeper::ApplyOnce() {
  for (int attempt = 0;; ++attempt) {
    if (!silver_) {
      TRY_ASSIGN(silver_, AskSilver(config_, parts_.sessions));
    }
    const Result<ApplyOutcome> outcome =
        Apply(*silver_, {parts_.lake, parts_.clock, dice_, parts_.control, &known_});
    if (outcome.ok()) {
      // The stream has not made it yet.
      if (!outcome.value().bronze_found) return Unit{};
      for (const std::string& warning : outcome.value().warnings) Tell(warning);
      parts_.told.OnApplyDone(outcome.value());
      return Unit{};
    }
    // The table may have an instance that it had not when it was asked.
    const bool is_foreign =
        outcome.error().id() == ErrorId::kRowsOfAnotherInstance && attempt == 0;
    if (!is_foreign) return outcome.error();
    silver_.reset();
  }
}

void SilverKeeper::Tell(const std::string& text) {
  if (std::exchange(warned_, text) != text) parts_.inner.OnWarning(text);
}

}  // namespace mssql_cdc::runtime

#include "runtime/change_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cdc/capture_health.h"
#include "cdc/cells.h"
#include "runtime/ask.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kWaitMaxNs = 300'000 * kNsPerMs;

}  // namespace

bool ChangeWatch::IsNews(const Interest& interest, const Told& told,
                         std::int64_t now_ns) {
  const bool has_moved = told.newest && interest.after < *told.newest;
  const std::int64_t grace_ns = told.others_have ? kMoveGraceNs : 0;
  return told.has_changes || (has_moved && now_ns >= interest.move_at_ns + grace_ns) ||
         (has_moved && interest.knows_stall) ||
         (told.is_stalled && !interest.knows_stall);
}

void ChangeWatch::Wait(const Interest& interest) {
  std::unique_lock lock(mutex_);
  if (stopped_) return;
  const auto waiter = waiters_.emplace(waiters_.end(), interest, clock_.MonotonicNs());
  waiter->woken.wait(lock, [&] { return stopped_ || waiter->has_news; });
  waiters_.erase(waiter);
}

void ChangeWatch::Run(std::int64_t first_ms, std::int64_t max_ms) {
  std::int64_t wait_ms = first_ms;
  while (true) {
    const bool had_changes = Round();
    wait_ms = had_changes ? first_ms : std::min(wait_ms * 2, max_ms);
    std::unique_lock lock(mutex_);
    stopping_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                       [this] { return stopped_; });
    if (stopped_) break;
  }
  session_ = {};
}

bool ChangeWatch::Round() {
  std::vector<Waiter*> asked;
  std::vector<Interest> interests;
  {
    const std::lock_guard lock(mutex_);
    for (Waiter& waiter : waiters_) {
      if (waiter.has_news) continue;
      asked.push_back(&waiter);
      interests.push_back(waiter.interest);
    }
  }
  bool had_changes = false;
  for (std::size_t i = 0; i < asked.size(); i += sqlserver::kWatchedTableCountMax) {
    const std::size_t end =
        std::min(asked.size(), i + sqlserver::kWatchedTableCountMax);
    const Result<Answer> answer =
        Ask({interests.begin() + static_cast<std::ptrdiff_t>(i),
             interests.begin() + static_cast<std::ptrdiff_t>(end)});
    if (!answer.ok()) session_ = {};
    Wake(answer, {asked.begin() + static_cast<std::ptrdiff_t>(i),
                  asked.begin() + static_cast<std::ptrdiff_t>(end)});
    had_changes = had_changes ||
                  (answer.ok() && std::ranges::find(answer.value().has_changes, true) !=
                                      answer.value().has_changes.end());
  }
  return had_changes;
}

Result<ChangeWatch::Answer> ChangeWatch::Ask(const std::vector<Interest>& interests) {
  if (!session_) {
    TRY_ASSIGN(session_, pool_.Acquire());
  }
  sqlserver::WatchQuestion question;
  for (const Interest& interest : interests) {
    question.tables.push_back({interest.capture_instances, interest.after.bytes});
  }
  {
    const std::lock_guard lock(mutex_);
    ++statement_count_;
  }
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             runtime::Ask(*session_, sqlserver::WatchChanges(question), 2));
  Answer answer;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(answer.newest, row->LsnOf("lsn"));
    TRY_ASSIGN(answer.age_seconds, row->Integer("age_seconds"));
  }
  const std::optional<cdc::RowView> row = sets[1].FirstRow();
  for (std::size_t i = 0; i < interests.size(); ++i) {
    std::optional<std::int64_t> has;
    if (row) {
      TRY_ASSIGN(has, row->Integer("t" + std::to_string(i)));
    }
    answer.has_changes.push_back(has.value_or(1) != 0);
  }
  return answer;
}

// `asked` are still there: only this wakes a waiter, but for Stop.
void ChangeWatch::Wake(const Result<Answer>& answer,
                       const std::vector<Waiter*>& asked) {
  const std::int64_t now_ns = clock_.MonotonicNs();
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  Told told;
  if (answer.ok()) {
    told.newest = answer.value().newest;
    told.is_stalled = cdc::IsStalled(answer.value().age_seconds);
    told.others_have = std::ranges::count(answer.value().has_changes, true) > 0;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    bool has_news = !answer.ok() || now_ns - asked[i]->since_ns >= kWaitMaxNs;
    if (answer.ok()) {
      told.has_changes = answer.value().has_changes[i];
      has_news = has_news || IsNews(asked[i]->interest, told, now_ns);
    }
    if (!has_news) continue;
    asked[i]->has_news = true;
    asked[i]->woken.notify_one();
  }
}

void ChangeWatch::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  stopping_.notify_all();
  for (Waiter& waiter : waiters_) waiter.woken.notify_one();
}

std::int64_t ChangeWatch::statement_count() const {
  const std::lock_guard lock(mutex_);
  return statement_count_;
}

std::int64_t ChangeWatch::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count(waiters_, false, &Waiter::has_news);
}

void WorkPermits::Permit::GiveBack() {
  if (from_ == nullptr) return;
  {
    const std::lock_guard lock(from_->mutex_);
    ++from_->free_;
  }
  std::exchange(from_, nullptr)->freed_.notify_one();
}

WorkPermits::Permit WorkPermits::Take() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [this] { return free_ > 0; });
  --free_;
  return Permit(this);
}

}  // namespace mssql_cdc::runtime

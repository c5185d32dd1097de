#include "runtime/session_pool.h"

#include <algorithm>
#include <utility>

namespace mssql_cdc::runtime {

Result<std::unique_ptr<sqlserver::Session>> ServerSessions::Open() {
  if (!tokens_) return sqlserver::Session::Open(options_, dialer_, clock_);
  sqlserver::ConnectOptions options = options_;
  const std::int64_t limit_ms = options.connect_timeout_ms;
  const std::int64_t begin_ns = clock_.MonotonicNs();
  TRY_ASSIGN(options.access_token, tokens_->Get(limit_ms));
  if (limit_ms != 0) {
    options.connect_timeout_ms =
        limit_ms - (clock_.MonotonicNs() - begin_ns) / 1'000'000;
    if (options.connect_timeout_ms <= 0) {
      return Error(ErrorId::kTokenUnavailable)
          .With("reason",
                "getting a token took all the time that connectTimeout gives");
    }
  }
  return sqlserver::Session::Open(options, dialer_, clock_);
}

void SessionPool::Lease::Return() {
  if (session_) {
    pool_->TakeBack({std::move(session_), std::exchange(network_wait_ms, {})});
  }
}

Result<SessionPool::Lease> SessionPool::Acquire() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return Error(ErrorId::kStopped);
    if (!idle_.empty()) {
      Kept kept = std::move(idle_.back());
      idle_.pop_back();
      leased_.push_back(kept.session.get());
      return Lease(this, std::move(kept.session), kept.network_wait_ms);
    }
  }
  TRY_ASSIGN(std::unique_ptr<sqlserver::Session> session, source_.Open());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return Error(ErrorId::kStopped);
  ++open_count_;
  leased_.push_back(session.get());
  return Lease(this, std::move(session));
}

void SessionPool::TakeBack(Kept kept) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sqlserver::Session* session = kept.session.get();
  std::erase(leased_, session);
  request_count_ += session->request_count() -
                    std::exchange(counted_[session], session->request_count());
  if (session->clean() && !stopped_) {
    idle_.push_back(std::move(kept));
    return;
  }
  counted_.erase(session);
  session->Close();
}

void SessionPool::DropIdle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Kept& kept : idle_) counted_.erase(kept.session.get());
  idle_.clear();
}

void SessionPool::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  for (sqlserver::Session* session : leased_) session->Cancel();
}

std::int64_t SessionPool::open_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_count_;
}

std::int64_t SessionPool::request_count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::int64_t count = request_count_;
  for (sqlserver::Session* session : leased_) {
    const auto counted = counted_.find(session);
    count +=
        session->request_count() - (counted == counted_.end() ? 0 : counted->second);
  }
  return count;
}

}  // namespace mssql_cdc::runtime

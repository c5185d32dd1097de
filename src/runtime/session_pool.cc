#include "runtime/session_pool.h"

#include <algorithm>
#include <utility>

namespace mssql_cdc::runtime {

void SessionPool::Lease::Return() {
  if (session_) pool_->TakeBack(std::move(session_));
}

Result<SessionPool::Lease> SessionPool::Acquire() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return Error(ErrorId::kStopped);
    if (!idle_.empty()) {
      std::unique_ptr<sqlserver::Session> session = std::move(idle_.back());
      idle_.pop_back();
      leased_.push_back(session.get());
      return Lease(this, std::move(session));
    }
  }
  TRY_ASSIGN(std::unique_ptr<sqlserver::Session> session, source_.Open());
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return Error(ErrorId::kStopped);
  ++open_count_;
  leased_.push_back(session.get());
  return Lease(this, std::move(session));
}

void SessionPool::TakeBack(std::unique_ptr<sqlserver::Session> session) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(leased_, session.get());
  request_count_ += session->request_count() -
                    std::exchange(counted_[session.get()], session->request_count());
  if (session->clean() && !stopped_) {
    idle_.push_back(std::move(session));
    return;
  }
  counted_.erase(session.get());
  session->Close();
}

void SessionPool::DropIdle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& session : idle_) counted_.erase(session.get());
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

// Sessions that are kept and handed out again.
//
// A lease returns its session when it goes. A session that is not clean is closed
// instead.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/transport.h"
#include "runtime/token_source.h"
#include "sqlserver/session.h"
#include "sqlserver/session_source.h"

namespace mssql_cdc::runtime {

using sqlserver::SessionSource;

// Opens sessions with one set of connection options, each with a token of its own where
// one is needed.
class ServerSessions final : public SessionSource {
 public:
  // Borrows `dialer` and `clock`.
  ServerSessions(sqlserver::ConnectOptions options, net::Dialer& dialer, Clock& clock,
                 std::shared_ptr<TokenSource> tokens = nullptr)
      : options_(std::move(options)),
        tokens_(std::move(tokens)),
        dialer_(dialer),
        clock_(clock) {}
  // The token and the login together take no longer than connect_timeout_ms.
  Result<std::unique_ptr<sqlserver::Session>> Open() override;

 private:
  sqlserver::ConnectOptions options_;
  std::shared_ptr<TokenSource> tokens_;
  net::Dialer& dialer_;
  Clock& clock_;
};

class SessionPool {
 public:
  class Lease {
   public:
    Lease() = default;
    Lease(SessionPool* pool, std::unique_ptr<sqlserver::Session> session,
          std::optional<std::int64_t> wait_ms = std::nullopt)
        : network_wait_ms(wait_ms), pool_(pool), session_(std::move(session)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      Return();
      network_wait_ms = other.network_wait_ms;
      pool_ = other.pool_;
      session_ = std::move(other.session_);
      return *this;
    }
    ~Lease() { Return(); }

    sqlserver::Session& operator*() const { return *session_; }
    sqlserver::Session* operator->() const { return session_.get(); }
    explicit operator bool() const { return session_ != nullptr; }
    void Return();

    // Where the session's wait counter stood when it was given back, if whoever had it
    // last knew; goes back with it.
    std::optional<std::int64_t> network_wait_ms;

   private:
    SessionPool* pool_ = nullptr;
    std::unique_ptr<sqlserver::Session> session_;
  };

  // Borrows `source`. Must outlive its leases.
  explicit SessionPool(SessionSource& source) : source_(source) {}

  // A kept session, or a new one. Errors: those of SessionSource::Open, Stopped.
  Result<Lease> Acquire();
  // Closes the kept ones: after an error that may have hit them all.
  void DropIdle();
  // Asks the server to stop what every leased session runs, and refuses new leases.
  void Stop();
  // Logins made so far.
  std::int64_t open_count() const;
  // Requests sent so far, over all sessions.
  std::int64_t request_count() const;

 private:
  struct Kept {
    std::unique_ptr<sqlserver::Session> session;
    std::optional<std::int64_t> network_wait_ms;
  };
  void TakeBack(Kept kept);

  SessionSource& source_;
  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::int64_t open_count_ = 0;
  std::vector<Kept> idle_;
  std::vector<sqlserver::Session*> leased_;
  std::int64_t request_count_ = 0;  // Of sessions that were handed back.
  std::map<sqlserver::Session*, std::int64_t> counted_;
};

}  // namespace mssql_cdc::runtime

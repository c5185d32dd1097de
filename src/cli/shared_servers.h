// The streams of a pipeline file by the server they read: those with the same
// connection and login share sessions, the number that work at once, and the poll.

#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/secret.h"
#include "runtime/change_watch.h"
#include "runtime/session_pool.h"
#include "runtime/stream.h"

namespace mssql_cdc::cli {

// How many streams of one server work at once.
inline constexpr std::int64_t kStreamsAtWorkMax = 8;

class SharedServers {
 public:
  // Borrows `clock`.
  explicit SharedServers(Clock& clock) : clock_(clock) {}
  // Ends the polls; the streams have ended before.
  ~SharedServers();
  SharedServers(const SharedServers&) = delete;
  SharedServers& operator=(const SharedServers&) = delete;

  // Puts what a stream shares into its parts. `login` is all of its connection options
  // and secrets; an empty one shares nothing. `sessions` opens sessions with them.
  void Join(const Secret& login, std::unique_ptr<runtime::SessionSource> sessions,
            runtime::StreamParts& parts);
  // Begins the polls. `first_ms` and `max_ms` as pollFirstMs and pollMaxMs.
  void Start(std::int64_t first_ms, std::int64_t max_ms);

 private:
  struct Server {
    Server(const Secret& login_, std::unique_ptr<runtime::SessionSource> sessions_,
           Clock& clock)
        : login(login_),
          sessions(std::move(sessions_)),
          pool(*sessions),
          watch(pool, clock),
          permits(kStreamsAtWorkMax) {}
    Secret login;
    std::unique_ptr<runtime::SessionSource> sessions;
    runtime::SessionPool pool;
    runtime::ChangeWatch watch;
    runtime::WorkPermits permits;
    std::thread thread;
  };

  Clock& clock_;
  std::list<Server> servers_;
};

}  // namespace mssql_cdc::cli

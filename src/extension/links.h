// Sessions with SQL Server that a process keeps from one task to the next.
//
// A Spark worker is reused for many tasks and a planner lives as long as its query:
// with a pool that outlives both, only the first of them logs in.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "net/tcp.h"
#include "runtime/session_pool.h"
#include "sqlserver/session.h"

namespace mssql_cdc::extension {

// As Spark hands them over: names in any case.
using Options = std::map<std::string, std::string>;

// What only the caller can give, called from any thread; each may be absent.
struct Access {
  // An access token for a new connection.
  std::function<Result<Secret>()> token;
  // A session by another client than ours (option backend).
  std::function<Result<std::unique_ptr<sqlserver::Session>>()> connect;
};

// What the sessions of one login need. Lives until the process ends.
struct Link {
  SystemClock clock;
  net::TcpDialer dialer{clock};
  std::unique_ptr<runtime::SessionSource> sessions;
  std::unique_ptr<runtime::SessionPool> pool;
};

// The link for the connection options among `options`, every credential included, in
// this very process: one that forked gets links of its own, and leaves its parent's
// sessions alone. Errors: those of runtime::ParseConnection. Threads: any.
Result<Link*> LinkOf(const Options& options, const Access& access);

// The value of `name` in any case; "" counts as not given.
std::optional<std::string> FindOptionText(const Options& options,
                                          std::string_view name);

}  // namespace mssql_cdc::extension

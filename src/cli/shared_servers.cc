#include "cli/shared_servers.h"

#include <algorithm>
#include <utility>

namespace mssql_cdc::cli {

SharedServers::~SharedServers() {
  for (Server& server : servers_) {
    server.watch.Stop();
    if (server.thread.joinable()) server.thread.join();
  }
}

void SharedServers::Join(const Secret& login,
                         std::unique_ptr<runtime::SessionSource> sessions,
                         runtime::StreamParts& parts) {
  auto server = std::ranges::find_if(servers_, [&](const Server& known) {
    return !login.empty() && known.login.Reveal() == login.Reveal();
  });
  if (server == servers_.end()) {
    server = servers_.emplace(servers_.end(), login, std::move(sessions), clock_);
  }
  parts.sessions = server->sessions.get();
  parts.pool = &server->pool;
  parts.permits = &server->permits;
  // A backend that is no server has nothing to ask for several tables at once.
  if (!login.empty()) parts.watch = &server->watch;
}

void SharedServers::Start(std::int64_t first_ms, std::int64_t max_ms) {
  for (Server& server : servers_) {
    if (server.login.empty()) continue;
    server.thread = std::thread(
        [&watch = server.watch, first_ms, max_ms] { watch.Run(first_ms, max_ms); });
  }
}

}  // namespace mssql_cdc::cli

// A simulated server in this process: engine, TDS server and the administrator's shell.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "cli/simulator_shell.h"
#include "sim/wire/server.h"

namespace mssql_cdc::cli {

struct HostOptions {
  std::string state_dir;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free.
  std::uint64_t seed = 1;
  std::int64_t capture_interval_ms = 0;
  std::int64_t max_text_repl_size_bytes = 65536;
  Secret password;  // Of sa.
};

struct SimulatorHost {
  std::shared_ptr<sim::Engine> engine;
  std::unique_ptr<sim::wire::Server> server;
  std::unique_ptr<SimulatorShell> shell;
  bool is_new = false;  // The state directory was empty.

  // Errors: SimulatorFailed, FileFailed, ConnectFailed.
  static Result<SimulatorHost> Start(const HostOptions& options);
};

}  // namespace mssql_cdc::cli

// A simulated server in this process: engine, TDS server and the administrator's shell.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "cli/simulator_shell.h"
#include "sim/engine/engine.h"
#include "sim/wire/server.h"

namespace mssql_cdc::cli {

struct HostOptions {
  std::string state_dir;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free.
  std::uint64_t seed = 1;
  std::int64_t capture_interval_ms = 0;
  std::int64_t max_text_repl_size_bytes = 65536;
  std::size_t kept_rows_megabytes = 2048;
  int release = 2022;
  std::string time_zone;
  std::optional<std::int64_t> start_utc_us;  // Present: the clock is moved by hand.
  bool azure = false;
  std::string default_database;  // Empty: master.
  std::optional<std::uint64_t> fault_seed;
  Secret password;  // Of sa.
};

struct SimulatorHost {
  std::shared_ptr<sim::SimEngine> engine;
  std::unique_ptr<sim::wire::Server> server;
  std::unique_ptr<SimulatorShell> shell;
  bool is_new = false;  // The state directory was empty.

  // Errors: OptionInvalid (a port in use too: the state is not touched then),
  // SimulatorFailed, FileFailed.
  static Result<SimulatorHost> Start(const HostOptions& options);
};

}  // namespace mssql_cdc::cli

// `mssql-cdc simulate`: the simulated SQL Server as a program.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mssql_cdc::cli {

struct SimulateArguments {
  std::string state_dir;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 1433;
  std::uint64_t seed = 1;
  std::optional<std::string> init_file;
  bool shop = false;
  std::int64_t capture_interval_ms = 0;
  std::int64_t max_text_repl_size_bytes = 65536;
  int release = 2022;
  std::string time_zone;             // Of AT TIME ZONE's names; empty: UTC.
  std::optional<std::string> clock;  // ISO, UTC: moves only when told to.
  bool azure = false;
  std::optional<std::string> fake_directory;
  std::optional<std::uint64_t> fault_seed;
};

// The environment variable with the password of the administrator sa. Without it the
// server makes one up and prints it.
inline constexpr char kSimulatorPasswordVariable[] = "MSSQL_CDC_SIM_PASSWORD";

// Serves until SIGINT or SIGTERM. Prints "listening on HOST:PORT" once it accepts
// connections, before that the certificate authority's file. Returns the exit code.
int Simulate(const SimulateArguments& arguments);

}  // namespace mssql_cdc::cli

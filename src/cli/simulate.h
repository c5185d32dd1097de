// `mssql-cdc simulate`: the simulated SQL Server as a program.

#pragma once

#include <optional>
#include <string>

#include "cli/simulator_host.h"

namespace mssql_cdc::cli {

struct SimulateArguments {
  HostOptions host;                  // But for the password and the clock's start.
  std::optional<std::string> clock;  // ISO, UTC: moves only when told to.
  // What a new state is filled with.
  bool shop = false;
  std::optional<std::string> init_file;
  std::optional<std::string> fake_directory;

  SimulateArguments() { host.port = 1433; }
};

// The environment variable with the password of the administrator sa. Without it the
// server makes one up and prints it.
inline constexpr char kSimulatorPasswordVariable[] = "MSSQL_CDC_SIM_PASSWORD";

// Serves until SIGINT or SIGTERM. Prints "listening on HOST:PORT" once it accepts
// connections, before that the certificate authority's file. Returns the exit code.
int Simulate(const SimulateArguments& arguments);

}  // namespace mssql_cdc::cli

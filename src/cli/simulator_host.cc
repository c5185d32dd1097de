#include "cli/simulator_host.h"

#include <filesystem>
#include <system_error>

#include "net/tcp.h"

namespace mssql_cdc::cli {
namespace {

// Looks whether the port can be had before the state is touched: a new state stays new
// when it cannot.
Status RequirePort(const HostOptions& options) {
  const auto listener = net::TcpListener::Listen(options.bind, options.port);
  if (listener.ok()) return Unit{};
  const std::string reason(listener.error().Fact("reason").value_or("unknown"));
  return Error(ErrorId::kOptionInvalid)
      .With("option", "--port")
      .With("value", std::to_string(options.port))
      .With("address", options.bind)
      .With("reason", reason)
      .With("allowed", "a port that nobody listens on; 0 takes any that is free");
}

}  // namespace

Result<SimulatorHost> SimulatorHost::Start(const HostOptions& options) {
  TRY(RequirePort(options));
  std::error_code failed;
  std::filesystem::create_directories(options.state_dir, failed);
  if (failed) {
    return Error(ErrorId::kFileFailed)
        .With("file", options.state_dir)
        .With("problem", failed.message());
  }
  SimulatorHost host;
  host.is_new = std::filesystem::is_empty(options.state_dir, failed);

  sim::EngineOptions engine_options;
  engine_options.state_directory = options.state_dir;
  engine_options.seed = options.seed;
  engine_options.capture_interval_ms = options.capture_interval_ms;
  engine_options.max_text_repl_size_bytes = options.max_text_repl_size_bytes;
  engine_options.kept_rows_size_bytes_max = options.kept_rows_megabytes << 20;
  const auto version = sim::VersionOfRelease(options.release);
  if (!version) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "--release")
        .With("value", std::to_string(options.release))
        .With("allowed", "2016, 2017, 2019, 2022");
  }
  engine_options.version = *version;
  engine_options.time_zone = options.time_zone;
  engine_options.start_utc_us = options.start_utc_us;
  engine_options.azure = options.azure;
  engine_options.default_database = options.default_database;
  engine_options.logins.push_back({.name = "sa",
                                   .password = options.password,
                                   .admin = true,
                                   .default_database = ""});
  TRY_ASSIGN(host.engine, sim::SimEngine::Open(std::move(engine_options)));

  sim::wire::ServerOptions server_options;
  server_options.bind_address = options.bind;
  server_options.port = options.port;
  server_options.fault_seed = options.fault_seed;
  server_options.certificate_directory = options.state_dir + "/certificates";
  TRY_ASSIGN(host.server,
             sim::wire::Server::Start(std::move(server_options), host.engine));

  TRY_ASSIGN(SimulatorShell shell,
             SimulatorShell::Open(host.engine, "sa", options.password.Reveal()));
  host.shell = std::make_unique<SimulatorShell>(std::move(shell));
  return host;
}

}  // namespace mssql_cdc::cli

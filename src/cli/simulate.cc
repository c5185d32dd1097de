#include "cli/simulate.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <random>

#include "base/clock.h"
#include "base/text.h"
#include "cli/config.h"
#include "cli/output.h"
#include "sim/engine/import_fake.h"
#include "sim/engine/shop.h"

namespace mssql_cdc::cli {
namespace {

// Where --import-fake puts its history.
constexpr char kFakeDatabase[] = "fake";

// A password nobody could guess, for a server that was given none.
std::string MadeUpPassword() {
  std::random_device random;
  return fmt::format("Sim-{:08x}{:08x}", random(), random());
}

Status FillNewState(const SimulateArguments& arguments, SimulatorHost& host) {
  if (arguments.shop) TRY(host.shell->RunScript(sim::ShopScript()));
  if (arguments.init_file) {
    TRY_ASSIGN(const std::string script,
               RealSurroundings().read_file(*arguments.init_file));
    TRY(host.shell->RunScript(script));
  }
  if (arguments.fake_directory) {
    TRY(sim::ImportFake(*host.engine, kFakeDatabase, *arguments.fake_directory));
  }
  return Unit{};
}

Result<HostOptions> OptionsOf(const SimulateArguments& arguments) {
  HostOptions options = arguments.host;
  if (!arguments.clock) return options;
  options.start_utc_us = ParseIsoUs(*arguments.clock);
  if (options.start_utc_us) return options;
  return Error(ErrorId::kOptionInvalid)
      .With("option", "--clock")
      .With("value", *arguments.clock)
      .With("allowed", "a time such as 2026-11-20T08:00:00");
}

// The options that only a new state heeds, as they were given.
std::string FillingOptions(const SimulateArguments& arguments) {
  std::string given;
  const auto add = [&](bool is_given, const char* option) {
    if (is_given) given += (given.empty() ? "" : ", ") + std::string(option);
  };
  add(arguments.shop, "--shop");
  add(arguments.init_file.has_value(), "--init");
  add(arguments.fake_directory.has_value(), "--import-fake");
  return given;
}

void WaitForStop() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  int signal = 0;
  sigwait(&stop, &signal);
}

void BlockStopSignals() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

}  // namespace

int Simulate(const SimulateArguments& arguments) {
  SystemClock clock;
  Output output(LogForm::kText, clock);
  BlockStopSignals();
  const auto given = RealSurroundings().environment(kSimulatorPasswordVariable);
  const std::string password = given ? *given : MadeUpPassword();
  Result<HostOptions> options = OptionsOf(arguments);
  if (!options.ok()) {
    output.Failure("", options.error());
    return ExitCodeOf(options.error());
  }
  options.value().password = Secret(password);
  auto host = SimulatorHost::Start(options.value());
  if (!host.ok()) {
    output.Failure("", host.error());
    return ExitCodeOf(host.error());
  }
  if (host.value().is_new) {
    const Status filled = FillNewState(arguments, host.value());
    if (!filled.ok()) {
      output.Failure("", filled.error());
      return ExitCodeOf(filled.error());
    }
  } else if (const std::string unused = FillingOptions(arguments); !unused.empty()) {
    output.Warning("", unused + " did nothing: " + arguments.host.state_dir +
                           " has a state already; for a new one, give another folder "
                           "or remove this one");
  }
  if (!given) {
    std::printf("login sa, password %s (or set %s)\n", password.c_str(),
                kSimulatorPasswordVariable);
  }
  std::printf("certificate authority: %s/certificates/ca.pem\n",
              arguments.host.state_dir.c_str());
  std::printf("listening on %s:%u\n", arguments.host.bind.c_str(),
              static_cast<unsigned>(host.value().server->port()));
  std::fflush(stdout);
  WaitForStop();
  host.value().server->Stop();
  return 0;
}

}  // namespace mssql_cdc::cli

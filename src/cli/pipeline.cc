#include "cli/pipeline.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "cli/prepare.h"
#include "cli/progress.h"
#include "cli/shared_servers.h"
#include "cli/silver.h"
#include "cli/stop_signals.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/serialized_lake.h"
#include "runtime/session_pool.h"
#include "runtime/silver_keeper.h"
#include "runtime/stream.h"

namespace mssql_cdc::cli {
namespace {

constexpr std::size_t kFewStreams = 8;
// An apply may take hundreds of MB.
constexpr std::int64_t kAppliesAtOnceMax = 4;

// One stream with everything it borrows, in the order that destruction needs.
struct Running {
  std::unique_ptr<runtime::SessionSource> sessions;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<SilverProgress> silver;
  std::unique_ptr<runtime::SilverKeeper> keeper;
  std::unique_ptr<runtime::Stream> stream;
  std::thread thread;
  std::optional<Error> failure;
};

// What all streams of a run share.
struct Borrowed {
  Output& output;
  Clock& clock;
  net::Dialer& dialer;
  lake::Lake& lake;
  lake::Lake& lake_of_silver;
  runtime::ControlUpdates& control;
  runtime::WorkPermits& applies;
  SharedServers* servers;  // Absent of a stream that is alone.
};

Status OpenStream(const Prepared& from, const Borrowed& shared, std::uint64_t seed,
                  Running& to) {
  to.sessions = SessionsOf(from, shared.dialer, shared.clock);
  to.progress =
      std::make_unique<Progress>(from.config.app_id, shared.output, shared.clock);
  to.silver = std::make_unique<SilverProgress>(from.config, shared.output);
  to.keeper = std::make_unique<runtime::SilverKeeper>(
      from.config, runtime::SilverKeeper::Parts{.lake = shared.lake_of_silver,
                                                .sessions = *to.sessions,
                                                .clock = shared.clock,
                                                .inner = *to.progress,
                                                .told = *to.silver,
                                                .seed = seed,
                                                .control = &shared.control,
                                                .permits = &shared.applies});
  runtime::StreamParts parts{.sessions = to.sessions.get(),
                             .lake = &shared.lake,
                             .clock = &shared.clock,
                             .observer = to.keeper.get(),
                             .seed = seed};
  if (shared.servers != nullptr) {
    shared.servers->Join(from.login, SessionsOf(from, shared.dialer, shared.clock),
                         parts);
  }
  TRY_ASSIGN(to.stream, runtime::Stream::Open(from.config, parts));
  return Unit{};
}

// Opens every stream; one that fails is told and left out.
std::vector<Running> OpenStreams(const std::vector<Prepared>& prepared,
                                 const Borrowed& shared) {
  std::vector<Running> streams(prepared.size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const auto seed = static_cast<std::uint64_t>(shared.clock.NowUtcUs()) + i;
    const Status opened = OpenStream(prepared[i], shared, seed, streams[i]);
    if (opened.ok()) continue;
    shared.output.Failure(prepared[i].config.app_id, opened.error());
    streams[i].failure = opened.error();
  }
  return streams;
}

// Runs each in a thread of its own to its end. Returns the exit code.
int RunToEnd(const std::vector<Prepared>& prepared, std::vector<Running>& streams,
             Output& output) {
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].stream) continue;
    streams[i].thread = std::thread([&, i] {
      Running& running = streams[i];
      running.keeper->Start();
      const Status status = running.stream->Run();
      const Status silver = running.keeper->Finish();
      if (!status.ok()) {
        output.Failure(prepared[i].config.app_id, status.error());
        running.failure = status.error();
      } else if (!silver.ok()) {
        // It was told of when it happened.
        running.failure = silver.error();
      }
    });
  }
  int exit_code = 0;
  for (Running& running : streams) {
    if (running.thread.joinable()) running.thread.join();
    if (running.failure && exit_code == 0) exit_code = ExitCodeOf(*running.failure);
  }
  return exit_code;
}

}  // namespace

int RunPipeline(const PipelineArguments& arguments) {
  SystemClock clock;
  Output output(arguments.log, clock);
  auto prepared = Prepare(arguments, output, clock);
  if (!prepared.ok()) {
    output.Failure("", prepared.error());
    return ExitCodeOf(prepared.error());
  }

  // As many heaps as threads would each keep what its busiest batch needed.
  if (prepared.value().size() > kFewStreams) (void)mallopt(M_ARENA_MAX, 2);
  StopSignals signals;
  (void)signal(SIGPIPE, SIG_IGN);
  output.AtClosedPipe([] { (void)kill(getpid(), SIGHUP); });
  net::TcpDialer dialer(clock);
  lake::DeltaLake delta;
  runtime::SerializedLake lake(delta);
  // Silver's own, so that reading bronze never waits for a batch that is being written.
  lake::DeltaLake delta_of_silver;
  runtime::SerializedLake lake_of_silver(delta_of_silver);
  SharedServers servers(clock);
  runtime::ControlUpdates control;
  runtime::WorkPermits applies(kAppliesAtOnceMax);
  const Borrowed borrowed{
      output,         clock,
      dialer,         lake,
      lake_of_silver, control,
      applies,        prepared.value().size() > 1 ? &servers : nullptr,
  };
  std::vector<Running> streams = OpenStreams(prepared.value(), borrowed);
  const runtime::StreamConfig& first = prepared.value().front().config;
  servers.Start(first.poll_first_ms, first.poll_max_ms);
  signals.Watch([&streams] {
    for (Running& running : streams) {
      if (running.stream) running.stream->Stop();
    }
  });
  return RunToEnd(prepared.value(), streams, output);
}

namespace {

void ShowReport(const runtime::StreamConfig& config, const runtime::CheckReport& report,
                Output& output) {
  std::string columns;
  for (const auto& [name, type] : report.columns) {
    columns += fmt::format("\n    {} {}", name, type);
  }
  const std::string position = report.position.value_or("none: a new checkpoint");
  const std::string target =
      report.target_version
          ? fmt::format("{} (version {})", config.target, *report.target_version)
          : fmt::format("{} (would be created)", config.target);
  const std::string silver =
      config.silver ? fmt::format("\n  silver: {}, key ({})", *config.silver,
                                  fmt::join(report.silver_keys, ", "))
                    : std::string();
  output.Event(
      config.app_id, "check",
      fmt::format("{}\n  server: {}, database {}, {}\n  source: {} as {}, key ({})\n"
                  "  server clock: {}\n  changes held: {} to {}\n  position: {}\n"
                  "  target: {}{}\n  columns:{}",
                  report.intention, report.server, report.database,
                  report.encrypted ? "encrypted" : "NOT encrypted", report.source_table,
                  report.capture_instance, fmt::join(report.key_columns, ", "),
                  report.clock, report.min_lsn.value_or("none"),
                  report.max_lsn.value_or("none"), position, target, silver, columns),
      {{"server", report.server},
       {"database", report.database},
       {"encrypted", report.encrypted ? "true" : "false", false},
       {"capture_instance", report.capture_instance},
       {"source_table", report.source_table},
       {"clock", report.clock},
       {"min_lsn", report.min_lsn.value_or("")},
       {"max_lsn", report.max_lsn.value_or("")},
       {"position", report.position.value_or("")},
       {"intention", report.intention}});
}

}  // namespace

int CheckPipeline(const PipelineArguments& arguments) {
  SystemClock clock;
  Output output(arguments.log, clock);
  auto prepared = Prepare(arguments, output, clock);
  if (!prepared.ok()) {
    output.Failure("", prepared.error());
    return ExitCodeOf(prepared.error());
  }
  net::TcpDialer dialer(clock);
  lake::DeltaLake lake;
  int exit_code = 0;
  for (const Prepared& stream : prepared.value()) {
    const auto sessions = SessionsOf(stream, dialer, clock);
    Progress progress(stream.config.app_id, output, clock);
    const auto report = runtime::CheckStream(stream.config, {.sessions = sessions.get(),
                                                             .lake = &lake,
                                                             .clock = &clock,
                                                             .observer = &progress});
    std::optional<Error> problem;
    if (report.ok()) {
      ShowReport(stream.config, report.value(), output);
      problem = report.value().silver_problem;
      if (problem) output.Failure(stream.config.app_id + " (silver)", *problem);
    } else {
      problem = report.error();
      output.Failure(stream.config.app_id, *problem);
    }
    if (problem && exit_code == 0) exit_code = ExitCodeOf(*problem);
  }
  return exit_code;
}

}  // namespace mssql_cdc::cli

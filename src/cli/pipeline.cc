#include "cli/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "cli/config.h"
#include "cli/progress.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/connection.h"
#include "runtime/serialized_lake.h"
#include "runtime/session_pool.h"
#include "runtime/stream.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::cli {
namespace {

struct Prepared {
  runtime::StreamConfig config;
  runtime::Connection connect;
};

std::string FolderOf(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

Result<Prepared> PrepareStream(const PipelineFile& file, const StreamSettings& settings,
                               const PipelineArguments& arguments, Output& output,
                               Clock& clock) {
  TRY_ASSIGN(runtime::ParsedOptions parsed,
             runtime::ParseStreamOptions(settings.options, file.catalog));
  if (!parsed.unknown.empty()) {
    output.Warning(parsed.config.app_id,
                   fmt::format("unknown options are ignored: {} (docs/options.md)",
                               fmt::join(parsed.unknown, ", ")));
  }
  TRY_ASSIGN(runtime::Connection connect,
             runtime::ParseConnection(settings.options, settings.password,
                                      settings.access_token, clock));
  Prepared prepared{std::move(parsed.config), std::move(connect)};
  runtime::StreamConfig& config = prepared.config;
  const std::string base = FolderOf(arguments.file);
  config.target_location = Absolute(config.target_location, base);
  config.facts_location = Absolute(config.facts_location, base);
  config.checkpoint = Absolute(config.checkpoint, base);
  TRY(runtime::CheckLocations(config));
  if (arguments.trigger) {
    TRY_ASSIGN(config.trigger, runtime::ParseTrigger(*arguments.trigger));
  }
  return prepared;
}

// Two streams of one file must not share a checkpoint, nor an app_id in one table:
// their batches would be taken for each other's.
Status CheckDistinct(const std::vector<Prepared>& streams) {
  std::set<std::string> checkpoints;
  std::set<std::string> writers;
  for (const Prepared& stream : streams) {
    const runtime::StreamConfig& config = stream.config;
    if (!checkpoints.insert(config.checkpoint).second) {
      return Error(ErrorId::kOptionsClash)
          .With("option", "checkpoint")
          .With("value", config.checkpoint)
          .With("with", "another stream's");
    }
    for (const std::string& table : {config.target_location, config.facts_location}) {
      if (table.empty()) continue;
      if (writers.insert(config.app_id + '\n' + table).second) continue;
      return Error(ErrorId::kOptionsClash)
          .With("option", "app_id")
          .With("value", config.app_id)
          .With("with", "another stream's in the same table")
          .With("table", table);
    }
  }
  return Unit{};
}

Result<std::vector<Prepared>> Prepare(const PipelineArguments& arguments,
                                      Output& output, Clock& clock) {
  const Surroundings surroundings = RealSurroundings();
  const auto text = surroundings.read_file(arguments.file);
  if (!text.ok()) {
    return Error(ErrorId::kConfigUnreadable)
        .With("file", arguments.file)
        .With("problem", "the file cannot be read");
  }
  TRY_ASSIGN(PipelineFile file, ParsePipeline(text.value(), arguments.file,
                                              FolderOf(arguments.file), surroundings));
  for (const std::string& warning : file.warnings) output.Warning("", warning);
  std::vector<Prepared> prepared;
  for (const StreamSettings& settings : file.streams) {
    TRY_ASSIGN(Prepared stream,
               PrepareStream(file, settings, arguments, output, clock));
    if (stream.connect.options.trust_server_certificate &&
        stream.connect.options.encrypt != sqlserver::Encrypt::kStrict) {
      output.Warning(stream.config.app_id,
                     "TrustServerCertificate is on: the server's certificate is not "
                     "verified");
    }
    prepared.push_back(std::move(stream));
  }
  TRY(CheckDistinct(prepared));
  return prepared;
}

// One stream with everything it borrows, in the order that destruction needs.
struct Running {
  std::unique_ptr<runtime::ServerSessions> sessions;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<runtime::Stream> stream;
  std::thread thread;
  std::optional<Error> failure;
};

// Blocks SIGINT and SIGTERM in every thread made from now on and waits for them in one
// of its own; the first one stops the streams.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  void Watch(std::function<void()> stop) {
    thread_ = std::thread([this, stop = std::move(stop)] {
      int signal = 0;
      sigwait(&set_, &signal);
      if (signal != SIGUSR2) stop();
    });
  }
  ~StopSignals() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }

 private:
  sigset_t set_;
  std::thread thread_;
};

}  // namespace

int RunPipeline(const PipelineArguments& arguments) {
  SystemClock clock;
  Output output(arguments.log, clock);
  auto prepared = Prepare(arguments, output, clock);
  if (!prepared.ok()) {
    output.Failure("", prepared.error());
    return ExitCodeOf(prepared.error());
  }

  StopSignals signals;
  net::TcpDialer dialer(clock);
  lake::DeltaLake delta;
  runtime::SerializedLake lake(delta);
  std::vector<Running> streams(prepared.value().size());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const Prepared& from = prepared.value()[i];
    Running& to = streams[i];
    to.sessions = std::make_unique<runtime::ServerSessions>(
        from.connect.options, dialer, clock, from.connect.tokens);
    to.progress = std::make_unique<Progress>(from.config.app_id, output, clock);
    const runtime::StreamParts parts{
        .sessions = to.sessions.get(),
        .lake = &lake,
        .clock = &clock,
        .observer = to.progress.get(),
        .seed = static_cast<std::uint64_t>(clock.NowUtcUs()) + i};
    auto opened = runtime::Stream::Open(from.config, parts);
    if (!opened.ok()) {
      output.Failure(from.config.app_id, opened.error());
      return ExitCodeOf(opened.error());
    }
    to.stream = std::move(opened).value();
  }
  signals.Watch([&streams] {
    for (Running& running : streams) running.stream->Stop();
  });
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].thread = std::thread([&, i] {
      const Status status = streams[i].stream->Run();
      if (status.ok()) return;
      output.Failure(prepared.value()[i].config.app_id, status.error());
      streams[i].failure = status.error();
    });
  }
  int exit_code = 0;
  for (Running& running : streams) {
    running.thread.join();
    if (running.failure && exit_code == 0) exit_code = ExitCodeOf(*running.failure);
  }
  return exit_code;
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
  output.Event(
      config.app_id, "check",
      fmt::format("{}\n  server: {}, database {}, {}\n  source: {} as {}, key ({})\n"
                  "  server clock: {}\n  changes held: {} to {}\n  position: {}\n"
                  "  target: {}\n  columns:{}",
                  report.intention, report.server, report.database,
                  report.encrypted ? "encrypted" : "NOT encrypted", report.source_table,
                  report.capture_instance, fmt::join(report.key_columns, ", "),
                  report.clock, report.min_lsn.value_or("none"),
                  report.max_lsn.value_or("none"), position, target, columns),
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
    runtime::ServerSessions sessions(stream.connect.options, dialer, clock,
                                     stream.connect.tokens);
    Progress progress(stream.config.app_id, output, clock);
    const auto report = runtime::CheckStream(
        stream.config,
        {.sessions = &sessions, .lake = &lake, .clock = &clock, .observer = &progress});
    if (report.ok()) {
      ShowReport(stream.config, report.value(), output);
      continue;
    }
    output.Failure(stream.config.app_id, report.error());
    if (exit_code == 0) exit_code = ExitCodeOf(report.error());
  }
  return exit_code;
}

}  // namespace mssql_cdc::cli

#include "cli/prepare.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "cli/config.h"
#include "cli/fan_out.h"
#include "fake/fake_session.h"
#include "net/tcp.h"
#include "runtime/instances.h"
#include "runtime/locations.h"

namespace mssql_cdc::cli {
namespace {

Secret LoginOf(const StreamSettings& settings) {
  std::map<std::string, std::string> parts;
  for (const char* name :
       {"connectionString", "user", "tokenProvider", "connectTimeout"}) {
    for (const auto& [key, value] : settings.options) {
      if (EqualsIgnoringAsciiCase(key, name)) parts[name] = value;
    }
  }
  std::string all;
  for (const auto& [name, value] : parts) all += name + '=' + value + '\0';
  for (const auto& secret : {settings.password, settings.access_token}) {
    if (secret) all += secret->Reveal();
    all += '\0';
  }
  return Secret(std::move(all));
}

std::string FolderOf(const std::string& file) {
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

Result<Prepared> PrepareStream(const PipelineFile& file, const StreamSettings& settings,
                               const PipelineArguments& arguments, CallKind kind,
                               Output& output, Clock& clock) {
  TRY_ASSIGN(runtime::ParsedOptions parsed,
             runtime::ParseStreamOptions(settings.options, file.catalog,
                                         kind == CallKind::kSnapshot
                                             ? runtime::OptionUse::kSnapshotByHand
                                             : runtime::OptionUse::kStream));
  if (!parsed.unknown.empty()) {
    output.Warning(parsed.config.app_id,
                   fmt::format("unknown options are ignored: {} (docs/options.md)",
                               fmt::join(parsed.unknown, ", ")));
  }
  Prepared prepared{std::move(parsed.config), {}, {}};
  runtime::StreamConfig& config = prepared.config;
  const std::string base = FolderOf(arguments.file);
  if (config.backend == cdc::Backend::kFake) {
    config.fake_path = Absolute(config.fake_path, base);
  } else {
    TRY_ASSIGN(prepared.connect,
               runtime::ParseConnection(settings.options, settings.password,
                                        settings.access_token, clock));
    prepared.login = LoginOf(settings);
  }
  config.target_location = Absolute(config.target_location, base);
  config.facts_location = Absolute(config.facts_location, base);
  config.checkpoint = Absolute(config.checkpoint, base);
  config.metrics_path = Absolute(config.metrics_path, base);
  config.control_location = Absolute(config.control_location, base);
  config.silver_location = Absolute(config.silver_location, base);
  TRY(runtime::CheckLocations(config));
  if (arguments.trigger) {
    TRY_ASSIGN(config.trigger, runtime::ParseTrigger(*arguments.trigger));
  }
  return prepared;
}

// Two streams of one file must not share a checkpoint, nor an app_id in one table:
// their batches would be taken for each other's. Nor may one write into another's
// folders.
Status CheckDistinct(const std::vector<Prepared>& streams) {
  std::set<std::string> checkpoints;
  std::set<std::string> silvers;
  std::set<std::string> writers;
  for (const Prepared& stream : streams) {
    const runtime::StreamConfig& config = stream.config;
    if (!checkpoints.insert(config.checkpoint).second) {
      return Error(ErrorId::kOptionsClash)
          .With("option", "checkpoint")
          .With("value", config.checkpoint)
          .With("with", "another stream's");
    }
    if (config.silver && !silvers.insert(config.silver_location).second) {
      return Error(ErrorId::kOptionsClash)
          .With("option", "silver")
          .With("value", *config.silver)
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
  std::vector<const runtime::StreamConfig*> configs;
  for (const Prepared& stream : streams) configs.push_back(&stream.config);
  return runtime::CheckApart(configs);
}

}  // namespace

std::unique_ptr<runtime::SessionSource> SessionsOf(const Prepared& stream,
                                                   net::Dialer& dialer, Clock& clock) {
  if (stream.config.backend == cdc::Backend::kFake) {
    return std::make_unique<fake::FakeSessions>(stream.config.fake_path);
  }
  return std::make_unique<runtime::ServerSessions>(stream.connect.options, dialer,
                                                   clock, stream.connect.tokens);
}

Result<std::vector<Prepared>> Prepare(const PipelineArguments& arguments,
                                      Output& output, Clock& clock, CallKind kind) {
  const Surroundings surroundings = RealSurroundings();
  const auto text = surroundings.read_file(arguments.file);
  if (!text.ok()) {
    return Error(ErrorId::kConfigUnreadable)
        .With("file", arguments.file)
        .With("problem", "the file cannot be read");
  }
  TRY_ASSIGN(PipelineFile file, ParsePipeline(text.value(), arguments.file,
                                              FolderOf(arguments.file), surroundings));
  const auto list =
      [&](const StreamSettings& settings) -> Result<std::vector<cdc::CaptureInstance>> {
    TRY_ASSIGN(const Prepared stream,
               PrepareStream(file, settings, arguments, kind, output, clock));
    net::TcpDialer dialer(clock);
    const auto sessions = SessionsOf(stream, dialer, clock);
    TRY_ASSIGN(const std::unique_ptr<sqlserver::Session> session, sessions->Open());
    return runtime::AskInstances(*session);
  };
  TRY(ExpandStreams(file, list));
  for (const std::string& warning : file.warnings) output.Warning("", warning);
  std::vector<Prepared> prepared;
  for (const StreamSettings& settings : file.streams) {
    TRY_ASSIGN(Prepared stream,
               PrepareStream(file, settings, arguments, kind, output, clock));
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

}  // namespace mssql_cdc::cli

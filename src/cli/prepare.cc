#include "cli/prepare.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "cli/config.h"

namespace mssql_cdc::cli {
namespace {

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
  TRY_ASSIGN(runtime::Connection connect,
             runtime::ParseConnection(settings.options, settings.password,
                                      settings.access_token, clock));
  Prepared prepared{std::move(parsed.config), std::move(connect)};
  runtime::StreamConfig& config = prepared.config;
  const std::string base = FolderOf(arguments.file);
  config.target_location = Absolute(config.target_location, base);
  config.facts_location = Absolute(config.facts_location, base);
  config.checkpoint = Absolute(config.checkpoint, base);
  config.control_location = Absolute(config.control_location, base);
  config.silver_location = Absolute(config.silver_location, base);
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
  return Unit{};
}

}  // namespace

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

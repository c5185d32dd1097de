#include <utility>

#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/files.h"
#include "runtime/source.h"
#include "runtime/stream.h"

namespace mssql_cdc::runtime {
namespace {

// What `run` would do first.
std::string IntentionOf(const StreamConfig& config, const CheckpointState& state) {
  if (state.pending) {
    return "finish batch " + std::to_string(state.next_batch_id()) +
           ", which an earlier run began, then read on";
  }
  if (state.position()) return "read the commits above " + state.position()->lsn.Text();
  if (config.bootstrap && config.snapshot == pipeline::SnapshotMode::kChunked) {
    return "open a chunked snapshot, then read the commits above it";
  }
  if (config.bootstrap) return "load the whole table, then read the commits above it";
  if (config.starting_lsn == "earliest") {
    return "read from the oldest change that the server still holds";
  }
  if (config.starting_lsn == "latest") return "read commits that come from now on";
  return "read the commits above " + config.starting_lsn;
}

void DescribeSource(const Source& source, bool command_id, CheckReport& report) {
  report.capture_instance = source.instance.name;
  report.source_table =
      source.instance.source_schema + "." + source.instance.source_table;
  report.key_columns = source.instance.key_columns;
  for (const columns::Field& field : source.target_fields()) {
    report.columns.emplace_back(field.name, columns::DeltaTypeName(field.type));
  }
  report.computed_columns = source.columns.computed;
  report.command_id = command_id;
  report.clock = source.clock.Text();
}

// Whether the folder of a table on this machine can be written to or made.
Status CheckTable(lake::Lake& lake, const std::string& location,
                  std::optional<std::int64_t>& version) {
  TRY_ASSIGN(const std::optional<lake::TableState> table, lake.State(location));
  if (table) version = table->version;
  constexpr std::string_view kFileUrl = "file://";
  std::string folder = location;
  if (folder.starts_with(kFileUrl)) folder.erase(0, kFileUrl.size());
  if (folder.find("://") != std::string::npos) return Unit{};
  TRY(CheckWritable(folder));
  return CheckWritable(folder + "/_delta_log");
}

Status CheckPlaces(const StreamConfig& config, lake::Lake& lake, CheckReport& report) {
  TRY(CheckTable(lake, config.target_location, report.target_version));
  if (config.facts_table) {
    std::optional<std::int64_t> facts_version;
    TRY(CheckTable(lake, config.facts_location, facts_version));
  }
  TRY(CheckWritable(config.checkpoint));
  TRY(CheckWritable(config.checkpoint + "/offsets"));
  return CheckWritable(config.checkpoint + "/commits");
}

}  // namespace

Result<CheckReport> CheckStream(const StreamConfig& config, const StreamParts& parts) {
  TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config.checkpoint));
  TRY_ASSIGN(const std::unique_ptr<sqlserver::Session> session, parts.sessions->Open());
  CheckReport report;
  const sqlserver::ServerFacts& server = session->facts();
  report.server = server.product + " " + std::to_string(server.major_version) + "." +
                  std::to_string(server.minor_version) + "." +
                  std::to_string(server.build);
  report.database = server.database;
  report.encrypted = server.encrypted;

  TRY_ASSIGN(const std::optional<cdc::SourceMemory> memory,
             CheckpointNotes(state.directory).ReadMemory());
  TRY_ASSIGN(Source source, AskSource(*session, config, memory));
  DescribeSource(source, config.include_command_id, report);
  const cdc::Offset position = state.position().value_or(cdc::Offset{});
  TRY_ASSIGN(const PollAnswer answer,
             AskPoll(*session, *parts.clock, source, position.lsn, {}));
  if (source.oldest().start_lsn) report.min_lsn = source.oldest().start_lsn->Text();
  if (answer.server_max) report.max_lsn = answer.server_max->lsn.Text();
  if (state.position()) report.position = position.lsn.Text();
  TRY(CheckPlaces(config, *parts.lake, report));
  report.intention = IntentionOf(config, state);
  return report;
}

}  // namespace mssql_cdc::runtime

#include "runtime/check_tables.h"

#include "base/dice.h"
#include "pipeline/apply_plan.h"
#include "pipeline/tables.h"
#include "runtime/apply_facts.h"
#include "runtime/control_table.h"
#include "runtime/files.h"
#include "runtime/silver_keys.h"

namespace mssql_cdc::runtime {
namespace {

// As EnsureTable would find it, and another program's that it would not write.
Result<std::optional<lake::TableState>> LookAt(lake::Lake& lake,
                                               const std::string& location,
                                               pipeline::TableKind kind) {
  std::optional<std::int64_t> version;
  TRY(CheckTable(lake, location, version));
  TRY_ASSIGN(std::optional<lake::TableState> state, lake.State(location));
  if (state) TRY(pipeline::PlanMigration(kind, state->properties, state->schema));
  return state;
}

Status CheckWindow(lake::Lake& lake, const SilverConfig& silver,
                   const pipeline::SilverPosition& position,
                   bool has_snapshot_to_come) {
  TRY_ASSIGN(const std::optional<lake::TableState> bronze,
             lake.State(silver.bronze_location));
  if (!bronze) return Unit{};
  std::vector<std::string> warnings;
  TRY_ASSIGN(pipeline::ApplyFacts facts, GatherFacts(lake, silver, position, warnings));
  if (has_snapshot_to_come) return Unit{};
  TRY(GatherBronze(lake, silver, *bronze, facts));
  TRY(pipeline::PlanApply(facts));
  return Unit{};
}

}  // namespace

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

Status CheckSilver(lake::Lake& lake, Clock& clock, const StreamConfig& config,
                   const SilverConfig& silver, const columns::Schema& bronze,
                   bool has_snapshot_to_come) {
  if (!config.control_table) return Unit{};
  TRY_ASSIGN(const std::optional<lake::TableState> control,
             LookAt(lake, config.control_location, pipeline::TableKind::kControl));
  pipeline::ControlRow row;
  if (control) {
    Dice dice(0);
    ControlTable table(lake, clock, dice, config.control_location);
    TRY_ASSIGN(row, table.Read(config.silver.value_or(config.target)));
  }
  if (!config.silver) return Unit{};
  TRY(CheckSilverKeys(silver.bronze, silver.keys, pipeline::SilverColumns(bronze)));
  TRY_ASSIGN(const std::optional<lake::TableState> there,
             LookAt(lake, config.silver_location, pipeline::TableKind::kSilver));
  pipeline::SilverPosition position;
  if (there) {
    TRY_ASSIGN(position, row.Position());
  }
  return CheckWindow(lake, silver, position, has_snapshot_to_come);
}

}  // namespace mssql_cdc::runtime

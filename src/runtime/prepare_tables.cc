#include "runtime/prepare_tables.h"

#include <string>
#include <vector>

#include "base/case_fold.h"
#include "base/dice.h"
#include "cdc/type_fit.h"
#include "pipeline/control.h"
#include "pipeline/tables.h"
#include "runtime/control_table.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {
namespace {

void AdoptTypesOf(const lake::TableState& target, Source& source) {
  if (!source.declared.empty()) return;  // The types are the user's.
  for (cdc::ReadColumn& column : source.columns.columns) {
    for (const columns::Field& field : target.schema.fields) {
      if (!EqualsIgnoringCase(field.name, column.field.name)) continue;
      if (field.type == column.field.type) continue;
      if (!cdc::Fits(column.field.type, field.type)) continue;
      column.field.type = field.type;
      column.is_widened = true;
    }
  }
}

// A verdict on a table that is gone would hold of the one that is made in its place,
// which is empty until its snapshot is there. What cannot be read as a control table is
// silver's to tell of.
Status ForgetGone(const RunContext& context) {
  const StreamConfig& config = context.config;
  if (!config.control_table) return Unit{};
  TRY_ASSIGN(const std::optional<lake::TableState> there,
             context.lake.State(config.control_location));
  if (!there) return Unit{};
  Dice dice(static_cast<std::uint64_t>(context.clock.NowUtcUs()));
  ControlTable control(context.lake, context.clock, dice, config.control_location);
  std::vector<std::string> gone = {config.target};
  if (config.silver) {
    TRY_ASSIGN(const std::optional<lake::TableState> silver,
               context.lake.State(config.silver_location));
    if (!silver) gone.push_back(*config.silver);
  }
  for (const std::string& table : gone) {
    const Result<pipeline::ControlRow> done =
        control.Update(table, pipeline::Forgotten);
    if (!done.ok() && done.error().remedy() == Remedy::kRetry) return done.error();
  }
  return Unit{};
}

}  // namespace

Status PrepareTarget(RunContext& context,
                     const std::optional<lake::TableState>& target) {
  if (!target) TRY(ForgetGone(context));
  TRY(EnsureTable(context.lake, context.config.target_location, target,
                  pipeline::TableKind::kBronze,
                  pipeline::BronzeTable(context.source.target_fields(),
                                        context.config.include_command_id)));
  if (target) AdoptTypesOf(*target, context.source);
  return Unit{};
}

Status PrepareTables(RunContext& context,
                     const std::optional<lake::TableState>& target) {
  const StreamConfig& config = context.config;
  TRY(PrepareTarget(context, target));
  if (config.facts_table) {
    TRY(EnsureTable(context.lake, config.facts_location, pipeline::TableKind::kFacts,
                    pipeline::FactsTable()));
  }
  return Unit{};
}

Status PrepareTables(RunContext& context) {
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context.lake.State(context.config.target_location));
  return PrepareTables(context, target);
}

pipeline::IsLost IsLostIn(const Source& source) {
  return [&source](const cdc::Lsn& lsn) {
    return cdc::LostUpTo(source.family().instances, lsn).has_value();
  };
}

}  // namespace mssql_cdc::runtime

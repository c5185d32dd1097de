#include "runtime/prepare_tables.h"

#include "base/case_fold.h"
#include "cdc/type_fit.h"
#include "pipeline/tables.h"
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

}  // namespace

Status PrepareTarget(RunContext& context,
                     const std::optional<lake::TableState>& target) {
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

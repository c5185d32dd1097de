#include "runtime/prepare_tables.h"

#include "base/case_fold.h"
#include "cdc/type_fit.h"
#include "pipeline/tables.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {
namespace {

Status AdoptTargetTypes(RunContext& context) {
  if (!context.source.declared.empty()) return Unit{};  // The types are the user's.
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context.lake.State(context.config.target_location));
  if (!target) return Unit{};
  for (cdc::ReadColumn& column : context.source.columns.columns) {
    for (const columns::Field& field : target->schema.fields) {
      if (!EqualsIgnoringCase(field.name, column.field.name)) continue;
      if (cdc::Fits(column.field.type, field.type)) column.field.type = field.type;
    }
  }
  return Unit{};
}

}  // namespace

Status PrepareTables(RunContext& context) {
  const StreamConfig& config = context.config;
  TRY(EnsureTable(context.lake, config.target_location, pipeline::TableKind::kBronze,
                  pipeline::BronzeTable(context.source.target_fields(),
                                        config.include_command_id)));
  if (config.facts_table) {
    TRY(EnsureTable(context.lake, config.facts_location, pipeline::TableKind::kFacts,
                    pipeline::FactsTable()));
  }
  return AdoptTargetTypes(context);
}

pipeline::IsLost IsLostIn(const Source& source) {
  return [&source](const cdc::Lsn& lsn) {
    return cdc::LostUpTo(source.family().instances, lsn).has_value();
  };
}

}  // namespace mssql_cdc::runtime

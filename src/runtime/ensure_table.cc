#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {

Status EnsureTable(lake::Lake& lake, const std::string& location,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition) {
  TRY_ASSIGN(const std::optional<lake::TableState> state, lake.State(location));
  return EnsureTable(lake, location, state, kind, definition);
}

Status EnsureTable(lake::Lake& lake, const std::string& location,
                   const std::optional<lake::TableState>& state,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition) {
  if (!state) {
    return lake.Create(
        location, {definition.schema, definition.description, definition.properties});
  }
  TRY_ASSIGN(const std::optional<pipeline::Migration> migration,
             pipeline::PlanMigration(kind, state->properties, state->schema));
  if (!migration) return Unit{};
  return lake.Alter(location, migration->add, migration->properties);
}

}  // namespace mssql_cdc::runtime

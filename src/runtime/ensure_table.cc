#include "runtime/ensure_table.h"

#include <optional>

namespace mssql_cdc::runtime {

Status EnsureTable(lake::Lake& lake, const std::string& location,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition) {
  TRY_ASSIGN(const std::optional<lake::TableState> state, lake.State(location));
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

// The tables this product keeps: their columns, comments, properties and versions.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/schema.h"

namespace mssql_cdc::pipeline {

enum class TableKind : std::uint8_t {
  kBronze,   // The target: the append-only log of changes.
  kFacts,    // One row per micro-batch, snapshot and source event.
  kPlans,    // What chunked snapshots plan, beside their target.
  kControl,  // Until when tables are complete, and where silver stands.
  kSilver,   // One row a key: the newest image.
  kReport,   // What comparisons of silver and source found.
};

inline constexpr std::string_view kVersionProperty = "mssql_cdc.schema_version";
inline constexpr std::string_view kMinVersionProperty = "mssql_cdc.min_version";

// How many migrations of `kind` exist; new tables are born with all of them.
std::int64_t SchemaVersion(TableKind kind);

struct TableDefinition {
  columns::Schema schema;
  std::string description;
  std::map<std::string, std::string> properties;
};

TableDefinition BronzeTable(const std::vector<columns::Field>& captured,
                            bool command_id);
TableDefinition FactsTable();
TableDefinition PlansTable();
TableDefinition ControlTable();
// `captured` as SilverColumns gives them.
TableDefinition SilverTable(const std::vector<columns::Field>& captured);
TableDefinition ReportTable();

// The columns of bronze that silver has: the captured ones, in bronze's order.
std::vector<columns::Field> SilverColumns(const columns::Schema& bronze);

// The plans table of `target`: trailing slashes go, the suffix stays inside a closing
// backtick.
std::string PlansTableOf(std::string_view target);

// What an existing table lacks.
struct Migration {
  std::vector<columns::Field> add;
  std::map<std::string, std::string> properties;
};

// What to do to a table of `kind` with these properties and columns: nullopt if
// nothing. A table at a higher version is left alone. Errors: LakeTableUnsupported when
// it demands a writer that knows more migrations, or its version is no number.
Result<std::optional<Migration>> PlanMigration(
    TableKind kind, const std::map<std::string, std::string>& properties,
    const columns::Schema& schema);

}  // namespace mssql_cdc::pipeline

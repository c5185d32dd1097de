// Brings a table to the form this release writes.

#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/tables.h"

namespace mssql_cdc::runtime {

// Creates the table if it is missing, migrates it if it is older; a newer one is
// written as it is. Harmless when repeated or cut short. Errors: LakeTableUnsupported,
// the lake's. `state` is what the table is now; absent: missing.
Status EnsureTable(lake::Lake& lake, const std::string& location,
                   const std::optional<lake::TableState>& state,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition);
// The same, which looks first.
Status EnsureTable(lake::Lake& lake, const std::string& location,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition);

}  // namespace mssql_cdc::runtime

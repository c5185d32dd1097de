// Brings a table to the form this release writes.

#pragma once

#include <string>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/tables.h"

namespace mssql_cdc::runtime {

// Creates the table if it is missing, migrates it if it is older; a newer one is
// written as it is. Harmless when repeated or cut short. Errors: LakeTableUnsupported,
// the lake's.
Status EnsureTable(lake::Lake& lake, const std::string& location,
                   pipeline::TableKind kind,
                   const pipeline::TableDefinition& definition);

}  // namespace mssql_cdc::runtime

// Rows of batches in memory: arranged to other columns, filtered, copied.

#pragma once

#include <vector>

#include "columns/batch.h"
#include "lake/lake.h"

namespace mssql_cdc::lake {

// The rows of `batch` that meet `conditions`, with the columns of `schema`; those the
// batch lacks are NULL. nullopt if no row is left. Names match ignoring case.
std::optional<columns::RecordBatch> SelectRows(
    const columns::RecordBatch& batch, const columns::SchemaPtr& schema,
    const std::vector<Condition>& conditions);

}  // namespace mssql_cdc::lake

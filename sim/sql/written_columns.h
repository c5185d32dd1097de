// The columns that INSERT, UPDATE and MERGE name.

#pragma once

#include <cstddef>
#include <string>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

// The position of a column; raises 207.
std::size_t ColumnIndex(const TableSource& source, const std::string& name,
                        Environment& environment);
// Raises 271 or 272 for a column that nobody may write.
void CheckAssignable(const ColumnInfo& column);

}  // namespace mssql_cdc::sim

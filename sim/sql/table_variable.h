// DECLARE @t TABLE (...): rows in memory, as long as the batch runs. Transactions do
// not touch it, as in SQL Server.

#pragma once

#include <memory>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

// Raises what CREATE TABLE would about types. PRIMARY KEY and UNIQUE are checked
// (2627); CHECK is refused.
std::shared_ptr<TableSource> MakeTableVariable(const ast::CreateTable& definition,
                                               Environment& environment);

}  // namespace mssql_cdc::sim

// What WITH (...) behind a table means to the engine.

#pragma once

#include <string>
#include <vector>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

// `hints` in upper case. NOLOCK and READUNCOMMITTED wait for no lock;
// TABLOCKX, and XLOCK with TABLOCK, take one.
Access ReadAccess(const std::vector<std::string>& hints);

}  // namespace mssql_cdc::sim

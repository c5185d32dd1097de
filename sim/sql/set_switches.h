// SET options that are on or off.

#pragma once

#include <string>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

// `name` and `value` in upper case. Raises 195 for a name that is none of them, 102 for
// a value other than ON and OFF.
void SetSwitch(SessionSettings& settings, const std::string& name,
               const std::string& value);

}  // namespace mssql_cdc::sim

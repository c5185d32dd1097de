// Rules on built-in functions that their own code does not look at: since which release
// they are there, and which types of arguments they refuse.

#pragma once

#include <span>
#include <string>

#include "sim/sql/binder.h"

namespace mssql_cdc::sim {

// Whether the server's release has the function (upper case): 195 where it has not.
bool IsOfRelease(const std::string& function, Environment& environment);
// Raises 8116 or 9810.
void CheckArgumentTypes(const std::string& function, const ast::Call& call,
                        std::span<const Bound> arguments);

}  // namespace mssql_cdc::sim

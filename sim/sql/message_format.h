// The text of a RAISERROR: a pattern with places for values.

#pragma once

#include <string>
#include <vector>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

// `pattern` with its %d, %s, %i, %u, %x, %X, %o replaced by the values in order. Raises
// 2787.
std::string FormattedMessage(const std::string& pattern,
                             const std::vector<TypedValue>& values);

}  // namespace mssql_cdc::sim

#include "sim/sql/table_hints.h"

#include <algorithm>

namespace mssql_cdc::sim {

Access ReadAccess(const std::vector<std::string>& hints) {
  const auto has = [&](const char* wanted) {
    return std::find(hints.begin(), hints.end(), wanted) != hints.end();
  };
  if (has("NOLOCK") || has("READUNCOMMITTED")) return Access::kPeek;
  if (has("TABLOCKX") || (has("TABLOCK") && has("XLOCK"))) return Access::kLock;
  return Access::kSelect;
}

}  // namespace mssql_cdc::sim

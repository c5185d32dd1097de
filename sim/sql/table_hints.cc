#include "sim/sql/table_hints.h"

namespace mssql_cdc::sim {

Access ReadAccess(const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) {
    if (hint == "NOLOCK" || hint == "READUNCOMMITTED") return Access::kPeek;
  }
  return Access::kSelect;
}

}  // namespace mssql_cdc::sim

#include "sim/sql/identifier.h"

#include "base/text.h"
#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

bool IsCaseSensitive(std::string_view database_collation) {
  const std::string lower = LowerAscii(database_collation);
  return lower.find("_cs") != std::string::npos ||
         lower.find("_bin") != std::string::npos;
}

bool SameIdentifier(std::string_view a, std::string_view b, const Environment& in) {
  return a == b ||
         (EqualsIgnoringAsciiCase(a, b) && !IsCaseSensitive(in.database_collation()));
}

}  // namespace mssql_cdc::sim

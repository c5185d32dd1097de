#include "cdc/option_table.h"

#include <algorithm>

#include "base/near_names.h"
#include "base/text.h"

namespace mssql_cdc::cdc {
const OptionRow* FindOption(std::string_view name) {
  const auto* row = std::find_if(
      kOptionTable.begin(), kOptionTable.end(),
      [&](const OptionRow& r) { return EqualsIgnoringAsciiCase(r.name, name); });
  return row == kOptionTable.end() ? nullptr : row;
}

std::string NearestOption(std::string_view name) {
  NearNames names(name);
  for (const OptionRow& row : kOptionTable) names.Offer(row.name);
  return names.Nearest();
}

}  // namespace mssql_cdc::cdc

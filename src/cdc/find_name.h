// How a written or configured name finds a column or an instance: the exact one before
// one in another case.

#pragma once

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/case_fold.h"

namespace mssql_cdc::cdc {

// The place in `range` whose name, as `name_of` gives it, is `wanted`, else the first
// one equal to it ignoring case, else the end.
template <typename Range, typename NameOf>
auto FindName(Range& range, std::string_view wanted, NameOf name_of) {
  const auto found = std::ranges::find_if(range, [&](const auto& each) {
    return std::string_view(std::invoke(name_of, each)) == wanted;
  });
  if (found != range.end()) return found;
  return std::ranges::find_if(range, [&](const auto& each) {
    return EqualsIgnoringCase(std::invoke(name_of, each), wanted);
  });
}

}  // namespace mssql_cdc::cdc

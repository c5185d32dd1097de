#include "cdc/option_table.h"

#include <algorithm>

#include "base/text.h"

namespace mssql_cdc::cdc {
namespace {

std::string LettersOf(std::string_view name) {
  std::string letters = LowerAscii(name);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-' || c == ' '; });
  return letters;
}

}  // namespace

const OptionRow* FindOption(std::string_view name) {
  const auto* row = std::find_if(
      kOptionTable.begin(), kOptionTable.end(),
      [&](const OptionRow& r) { return EqualsIgnoringAsciiCase(r.name, name); });
  return row == kOptionTable.end() ? nullptr : row;
}

std::string NearestOption(std::string_view name) {
  const std::string letters = LettersOf(name);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, letters.size() / 3) + 1;
  for (const OptionRow& row : kOptionTable) {
    const std::size_t distance = EditDistance(LettersOf(row.name), letters);
    // A short name is not near to another one that it shares hardly a letter with.
    if (distance < best_distance && distance * 2 <= row.name.size()) {
      best_distance = distance;
      best = row.name;
    }
  }
  return std::string(best);
}

}  // namespace mssql_cdc::cdc

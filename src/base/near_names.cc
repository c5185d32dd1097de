#include "base/near_names.h"

#include <algorithm>

#include "base/case_fold.h"
#include "base/text.h"

namespace mssql_cdc {
namespace {

std::string LettersOf(std::string_view name) {
  std::string letters = LowerCase(name);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-' || c == ' '; });
  return letters;
}

}  // namespace

NearNames::NearNames(std::string_view wanted) : letters_(LettersOf(wanted)) {}

void NearNames::Offer(std::string_view name) {
  const std::size_t distance_max = std::max<std::size_t>(2, letters_.size() / 3);
  const std::string letters = LettersOf(name);
  const std::size_t distance = EditDistance(letters, letters_);
  // A short name is not near to another one that it shares hardly a letter with.
  if (distance > distance_max || distance * 2 > letters.size()) return;
  near_.emplace_back(distance, name);
}

std::vector<std::string> NearNames::Best(std::size_t count_max) const {
  std::vector<std::pair<std::size_t, std::string>> ranked = near_;
  std::ranges::sort(ranked);
  std::vector<std::string> names;
  for (auto& [distance, name] : ranked) {
    if (names.size() < count_max) names.push_back(std::move(name));
  }
  return names;
}

std::string NearNames::Nearest() const {
  const std::vector<std::string> best = Best(1);
  return best.empty() ? "" : best[0];
}

}  // namespace mssql_cdc

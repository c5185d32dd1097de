// "Did you mean": which of the names that are offered a mistyped one may have been
// meant to be. Case, _, - and blanks do not count.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mssql_cdc {

class NearNames {
 public:
  explicit NearNames(std::string_view wanted);
  void Offer(std::string_view name);
  // Takes a name whose nearness is known by other means.
  void Take(std::string_view name) { near_.emplace_back(0, name); }
  // The nearest first, those as near by name; none if no name is near.
  std::vector<std::string> Best(std::size_t count_max) const;
  // The nearest, or "".
  std::string Nearest() const;

 private:
  std::string letters_;
  std::vector<std::pair<std::size_t, std::string>> near_;
};

}  // namespace mssql_cdc

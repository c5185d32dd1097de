#include "runtime/silver_keys.h"

#include <algorithm>

namespace mssql_cdc::runtime {

Status CheckSilverKeys(const std::string& bronze, const std::vector<std::string>& keys,
                       const std::vector<columns::Field>& captured) {
  Error error(ErrorId::kSilverKeyInvalid);
  error.Add("bronze", bronze);
  if (keys.empty()) {
    error.Add(
        "reason",
        "no key columns are given (keys), and no unique index of the source is known");
    return error;
  }
  for (const std::string& key : keys) {
    const bool is_there =
        std::any_of(captured.begin(), captured.end(),
                    [&](const columns::Field& field) { return field.name == key; });
    if (is_there) continue;
    error.Add("column", key);
    std::string columns;
    for (const columns::Field& field : captured) columns += " " + field.name;
    error.Add("columns", columns);
    return error;
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime

// Whether two names are one, as the collation of their database compares them: a
// database with a case-sensitive or binary collation has case-sensitive names.

#pragma once

#include <string>
#include <string_view>

namespace mssql_cdc::sim {

class Environment;

bool IsCaseSensitive(std::string_view database_collation);
bool SameIdentifier(std::string_view a, std::string_view b, const Environment& in);

}  // namespace mssql_cdc::sim

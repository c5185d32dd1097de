// A span of keys as conditions of WHERE clauses.

#pragma once

#include <string>
#include <vector>

#include "sqlserver/key_statements.h"

namespace mssql_cdc::sqlserver {

// What the first bound of a span means.
enum class FirstKey : std::uint8_t { kIncluded, kExcluded };

// Conditions that no two rows meet both of and that together hold for exactly the keys
// in `span`; "" holds for every row. None: the span is empty. What they need goes into
// `parameters`. Requires bounds as long as `keys`; kExcluded requires a span that is
// open above.
std::vector<std::string> PiecesOf(const std::vector<KeyColumn>& keys,
                                  const KeySpan& span, FirstKey first,
                                  std::vector<Parameter>& parameters);

}  // namespace mssql_cdc::sqlserver

// Parameter declarations of sp_executesql and sp_prepare: "@P1 int, @n nvarchar(max)".

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/value.h"

namespace mssql_cdc::sim::wire {

struct Declaration {
  std::string name;             // With @.
  std::optional<SqlType> type;  // Absent: a type this server does not know.
  bool output = false;
};

// The declarations, in order. What is no declaration is left out.
std::vector<Declaration> ParseDeclarations(std::string_view text);

// Whether a value that came as `sent` may be taken as `declared`: same kind of value,
// and nothing of it would be lost.
bool TakesAs(const SqlType& declared, const SqlType& sent, const Value& value);

}  // namespace mssql_cdc::sim::wire

// Numbers from the text of literals and casts.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/value.h"

namespace mssql_cdc::sim {

// "1.5", "-2e3", "+.5"; absent: it is no number, or one that a double cannot hold.
std::optional<double> ParseDouble(std::string_view text);
// The bytes of an even number of hexadecimal digits. Requires that they are.
Bytes BytesFromHex(std::string_view digits);

}  // namespace mssql_cdc::sim

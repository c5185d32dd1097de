// Letter case beyond ASCII, for names that SQL Server compares ignoring case.
//
// One mapping for every collation: a server's own rules (Turkish i, accents that a
// collation ignores) are not known here, so names that differ only by them are
// different.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mssql_cdc {

// Every letter as its simple lower case; bytes that are no UTF-8 stay.
std::string LowerCase(std::string_view utf8);
bool EqualsIgnoringCase(std::string_view a, std::string_view b);

void AppendUtf8(std::uint32_t code_point, std::string& text);

}  // namespace mssql_cdc

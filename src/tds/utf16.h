// UTF-16LE to UTF-8 and back, for names, messages and requests. Column values have a
// faster way of their own.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mssql_cdc::tds {

// UTF-8 of `utf16`; a lone surrogate, or an odd last byte, becomes U+FFFD.
std::string Utf8FromUtf16(std::span<const std::uint8_t> utf16);

// Appends `utf8` as UTF-16LE; bytes that are no UTF-8 become U+FFFD, one for each.
void AppendUtf16(std::string_view utf8, std::vector<std::uint8_t>& out);

}  // namespace mssql_cdc::tds

// Bytes from the hexadecimal text of specifications and captures. For tests only.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace mssql_cdc::sim::wire {

// Blanks are skipped.
inline std::vector<std::uint8_t> FromHex(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  unsigned value = 0;
  bool half = false;
  for (const char c : text) {
    if (c == ' ') continue;
    const unsigned digit =
        static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    value = value << 4 | digit;
    if (half) bytes.push_back(static_cast<std::uint8_t>(value));
    half = !half;
  }
  return bytes;
}

inline std::string ToHex(std::string_view bytes) {
  return HexUpper({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace mssql_cdc::sim::wire

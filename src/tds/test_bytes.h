// Bytes as tests write them. Not used by the product.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tds/spec.h"

namespace mssql_cdc::tds::test {

using Wire = std::vector<std::uint8_t>;

// "AD 32 00": two digits a byte; anything that is no digit is decoration.
inline Wire Hex(std::string_view text) {
  Wire bytes;
  int half = -1;
  for (const char c : text) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit < 0) continue;
    if (half < 0) {
      half = digit;
    } else {
      bytes.push_back(static_cast<std::uint8_t>(half * 16 + digit));
      half = -1;
    }
  }
  if (half >= 0) std::abort();
  return bytes;
}

// ASCII as UTF-16LE.
inline Wire Utf16(std::string_view ascii) {
  Wire bytes;
  for (const char c : ascii) {
    bytes.push_back(static_cast<std::uint8_t>(c));
    bytes.push_back(0);
  }
  return bytes;
}

template <typename... Parts>
Wire Join(const Parts&... parts) {
  Wire all;
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
  return all;
}

// A u16 length before `body`.
inline Wire ShortPrefixed(const Wire& body) {
  return Join(Wire{static_cast<std::uint8_t>(body.size()),
                   static_cast<std::uint8_t>(body.size() >> 8)},
              body);
}

// One packet, the last of its message unless `more` follow.
inline Wire Packet(PacketType type, const Wire& payload, bool more = false) {
  const std::size_t length = payload.size() + kPacketHeaderSizeBytes;
  return Join(
      Wire{static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(more ? 0 : 1),
           static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length), 0,
           0, 1, 0},
      payload);
}

}  // namespace mssql_cdc::tds::test

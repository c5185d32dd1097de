// Writes the little of TDS that the replay server sends.
//
// On purpose apart from src/tds and sim/: what is measured against it must not have
// written it. MS-TDS 2.2 is where the layouts come from.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mssql_cdc::bench {

using Bytes = std::vector<std::uint8_t>;

// Appends `size_bytes` bytes of `value`, least significant first.
inline void PutLittle(Bytes& out, std::uint64_t value, int size_bytes) {
  for (int i = 0; i < size_bytes; ++i) {
    out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}
inline void PutByte(Bytes& out, unsigned value) { PutLittle(out, value, 1); }
inline void PutShort(Bytes& out, std::size_t value) { PutLittle(out, value, 2); }

inline void PutBytes(Bytes& out, const Bytes& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// UTF-16LE without a length.
inline void PutUtf16(Bytes& out, std::u16string_view text) {
  for (const char16_t unit : text) PutShort(out, unit);
}

// B_VARCHAR: a count of characters in one byte, then UTF-16LE.
inline void PutName(Bytes& out, std::u16string_view text) {
  PutByte(out, static_cast<unsigned>(text.size()));
  PutUtf16(out, text);
}

}  // namespace mssql_cdc::bench

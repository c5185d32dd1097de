// Collations: a name, the five bytes the wire carries for it, and the code page that
// its char, varchar and text use.
//
// Names are understood by their parts (family, version, sensitivities), so that every
// Windows collation of a known family works; the old SQL_ collations are a table.
// MS-TDS 2.2.5.1.2 has the five bytes: LCID 20 bits, flags 8 bits, version 4 bits, then
// the sort id of SQL_ collations.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mssql_cdc::sim::wire {

using CollationBytes = std::array<std::uint8_t, 5>;

inline constexpr std::uint16_t kCodePageUtf8 = 65001;

struct Collation {
  CollationBytes bytes{};
  std::uint16_t code_page = 1252;
};

// SQL_Latin1_General_CP1_CI_AS.
inline constexpr Collation kDefaultCollation{{0x09, 0x04, 0xD0, 0x00, 0x34}, 1252};

// The collation of that name (upper and lower case are alike), or nullopt.
std::optional<Collation> FindCollation(std::string_view name);
// The code page of five bytes from a client; zeros mean the default.
std::uint16_t CodePageOf(const CollationBytes& bytes);

// Text in that code page. What it does not have becomes a question mark.
std::string EncodeText(std::u16string_view text, std::uint16_t code_page);
std::u16string DecodeText(std::span<const std::uint8_t> bytes, std::uint16_t code_page);

}  // namespace mssql_cdc::sim::wire

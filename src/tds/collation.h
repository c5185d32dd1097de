// From a column's collation to the code page its text is in.

#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace mssql_cdc::tds {

// The five bytes of TYPE_INFO's COLLATION: LCID (20 bits), flags (8), version (4), and
// the sort id of a SQL collation.
using Collation = std::array<std::uint8_t, 5>;

inline constexpr int kCodePageUtf8 = 65001;

// The code page number of text under `collation`: the UTF-8 flag first, then a sort id
// (which decides before the LCID), then the LCID's language; 1252 for the western ones
// and for no collation at all. nullopt: a sort id SQL Server does not have.
std::optional<int> CodePageOf(const Collation& collation);

// UTF-8 of each byte of a single-byte code page.
struct SingleByteTable {
  struct Entry {
    std::uint8_t size;  // 0: the page has no character here.
    std::uint8_t utf8[3];
  };
  Entry entries[256];
};

// The table of `code_page`, which lives for ever; null if it is not a single-byte page.
const SingleByteTable* SingleByteTableOf(int code_page);

// iconv's name of a multi-byte page; null if it is not one.
const char* MultiByteNameOf(int code_page);

}  // namespace mssql_cdc::tds

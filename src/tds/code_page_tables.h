// The single-byte code pages a collation can name, as data.

#pragma once

#include <cstdint>

namespace mssql_cdc::tds {

struct SingleBytePage {
  int code_page;
  std::uint16_t upper[128];  // Unicode of bytes 0x80 to 0xFF; 0: no character.
};

extern const SingleBytePage kSingleBytePages[12];

}  // namespace mssql_cdc::tds

// PRELOGIN (MS-TDS 2.2.6.5): what client and server tell each other before the login,
// in clear. A table of {option u8, offset u16 BE, length u16 BE} that ends with 0xFF,
// the values behind it; offsets count from the table's first byte.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tds/spec.h"

namespace mssql_cdc::tds {

struct PreloginRequest {
  std::uint8_t encryption = kEncryptOn;
  std::string instance;  // Empty: the default one.
  // The login will carry an access token.
  bool fed_auth = false;
};

std::vector<std::uint8_t> EncodePrelogin(const PreloginRequest& request);

struct PreloginReply {
  std::uint8_t major_version = 0;
  std::uint8_t minor_version = 0;
  std::uint16_t build = 0;
  std::uint8_t encryption = kEncryptNotSupported;
  // The server wants the FEDAUTH feature to echo this.
  bool fed_auth_required = false;

  bool operator==(const PreloginReply&) const = default;
};

// Errors: TdsMalformed for a table without end, an option outside `payload` or of a
// wrong size, given twice, or without VERSION at first and ENCRYPTION somewhere.
Result<PreloginReply> DecodePrelogin(std::span<const std::uint8_t> payload);

}  // namespace mssql_cdc::tds

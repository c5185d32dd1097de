// LOGIN7 (MS-TDS 2.2.6.4): who logs in, to what, and with which features.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "tds/spec.h"

namespace mssql_cdc::tds {

struct Login7 {
  std::uint32_t tds_version = kTds74;
  std::uint32_t packet_size_bytes = 4096;
  std::uint32_t process_id = 0;
  std::string workstation;
  std::string user;
  Secret password;
  std::string application;
  std::string server;
  std::string database;
  bool read_only_intent = false;
  // Logs in with a token in place of user and password, which are not sent then.
  std::optional<Secret> access_token;
  // The server's PRELOGIN asked for it.
  bool fed_auth_echo = false;
};

// The payload of the LOGIN7 message. It holds credentials: wipe it once it is sent.
// Errors: OptionInvalid, by name, for a text longer than LOGIN7 can carry.
Result<std::vector<std::uint8_t>> EncodeLogin7(const Login7& login);

}  // namespace mssql_cdc::tds

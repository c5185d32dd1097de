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
  // In place of user and password too: a token is brought once the server has said in
  // FEDAUTHINFO where it comes from.
  bool brings_token_later = false;
  // The server's PRELOGIN asked for it.
  bool fed_auth_echo = false;
};

// The payload of the LOGIN7 message. It holds credentials: wipe it once it is sent.
// Errors: OptionInvalid, by name, for a text longer than LOGIN7 can carry.
Result<std::vector<std::uint8_t>> EncodeLogin7(const Login7& login);

// The payload of the FEDAUTH message (2.2.6.3) that answers FEDAUTHINFO. Wipe it too.
std::vector<std::uint8_t> EncodeFedAuthToken(const Secret& token);

}  // namespace mssql_cdc::tds

// From a stream's connection options to what a session logs in with.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "runtime/token_source.h"
#include "sqlserver/connection_string.h"

namespace mssql_cdc::runtime {

struct Connection {
  sqlserver::ConnectOptions options;
  // Where each new session's token comes from; none: `options` has the whole login.
  std::shared_ptr<TokenSource> tokens;
};

// Reads connectionString, user, tokenProvider, connectTimeout (seconds, 0 or more) from
// `options` (names in any case) and adds the secrets. Asks nobody for a token yet.
// Borrows `clock`.
//
// Errors, before anything is connected, none with a credential's value: OptionMissing
// without connectionString or without any login; OptionsClash when the login is given
// twice: accessToken beside tokenProvider, either beside user, password, UID, PWD or
// Authentication (all of them named), user beside UID, password beside PWD;
// OptionInvalid for connectTimeout and tokenProvider; KeywordUnsupported.
Result<Connection> ParseConnection(const std::map<std::string, std::string>& options,
                                   const std::optional<Secret>& password,
                                   const std::optional<Secret>& access_token,
                                   Clock& clock);

}  // namespace mssql_cdc::runtime

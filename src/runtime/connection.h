// From a stream's connection options to what a session logs in with.

#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/secret.h"
#include "sqlserver/connection_string.h"

namespace mssql_cdc::runtime {

// Reads connectionString, user, connectTimeout (seconds, 0 or more) from `options`
// (names in any case) and adds the secrets.
//
// Errors, before anything is connected, none with a credential's value: OptionMissing
// without connectionString or without any login; OptionsClash when the login is given
// twice: a token beside user, password, UID or PWD; user beside UID; password beside
// PWD; OptionInvalid for connectTimeout; KeywordUnsupported; OptionInvalid for
// tokenProvider, which names a Python function and belongs to Spark.
Result<sqlserver::ConnectOptions> ParseConnection(
    const std::map<std::string, std::string>& options,
    const std::optional<Secret>& password, const std::optional<Secret>& access_token);

}  // namespace mssql_cdc::runtime

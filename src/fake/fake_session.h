// Backend `fake`: a session with the history in a directory instead of a server.

#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "sqlserver/session.h"

namespace mssql_cdc::fake {

// Errors: FileRefused for a directory without such a history.
Result<std::unique_ptr<sqlserver::Session>> OpenSession(const std::string& directory);

}  // namespace mssql_cdc::fake

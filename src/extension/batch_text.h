// A request as one batch of T-SQL, for clients that are told statements only.

#pragma once

#include <string>

#include "sqlserver/session.h"

namespace mssql_cdc::extension {

// The same statement with its parameters, each as a literal of sp_executesql.
std::string BatchText(const sqlserver::Request& request);

}  // namespace mssql_cdc::extension

// What tables of a database are captured.

#pragma once

#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "sqlserver/session.h"

namespace mssql_cdc::runtime {

// All capture instances of the database that the login may read. Errors: CdcNotEnabled
// (fact database); the session's.
Result<std::vector<cdc::CaptureInstance>> AskInstances(sqlserver::Session& session);

}  // namespace mssql_cdc::runtime

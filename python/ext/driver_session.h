// A session over a driver that Python keeps (mssql_cdc._drivers).

#pragma once

#include <memory>

#include "edge.h"
#include "sqlserver/session.h"

namespace mssql_cdc::extension {

// Calls `connect` for the driver's connection. Errors: what the driver says of its
// exception (by mssql_cdc._drivers.told). Any thread, without the GIL.
Result<std::unique_ptr<sqlserver::Session>> OpenDriverSession(nb::handle connect);

}  // namespace mssql_cdc::extension

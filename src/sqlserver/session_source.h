// Where sessions come from.

#pragma once

#include <memory>

#include "base/error.h"
#include "sqlserver/session.h"

namespace mssql_cdc::sqlserver {

// A server, the files of one, or a test's script. Called from several threads.
class SessionSource {
 public:
  virtual ~SessionSource() = default;
  virtual Result<std::unique_ptr<Session>> Open() = 0;
};

}  // namespace mssql_cdc::sqlserver

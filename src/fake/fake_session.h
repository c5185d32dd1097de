// Backend `fake`: a session with the history in a directory instead of a server.

#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "sqlserver/session.h"
#include "sqlserver/session_source.h"

namespace mssql_cdc::fake {

// Errors: FileRefused for a directory without such a history.
Result<std::unique_ptr<sqlserver::Session>> OpenSession(const std::string& directory);

// Sessions with the history in one directory.
class FakeSessions final : public sqlserver::SessionSource {
 public:
  explicit FakeSessions(std::string directory) : directory_(std::move(directory)) {}
  Result<std::unique_ptr<sqlserver::Session>> Open() override {
    return OpenSession(directory_);
  }

 private:
  std::string directory_;
};

}  // namespace mssql_cdc::fake

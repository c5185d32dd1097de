// Speaks T-SQL to a simulator in this process, as its administrator.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/session.h"

namespace mssql_cdc::cli {

class SimulatorShell {
 public:
  // Errors: SimulatorFailed if the login is refused.
  static Result<SimulatorShell> Open(std::shared_ptr<sim::Engine> engine,
                                     const std::string& user,
                                     const std::string& password);

  // Runs one batch. Errors: SimulatorFailed with the first message of severity above 10
  // (facts number, message, line).
  Status Run(const std::string& batch);
  // Runs a script: batches parted by lines that say GO, in any case.
  Status RunScript(const std::string& script);

 private:
  SimulatorShell(std::shared_ptr<sim::Engine> engine,
                 std::unique_ptr<sim::EngineSession> session)
      : engine_(std::move(engine)), session_(std::move(session)) {}

  std::shared_ptr<sim::Engine> engine_;
  std::unique_ptr<sim::EngineSession> session_;
};

// The batches of `script`, parted by lines that say GO.
std::vector<std::string> SplitAtGo(const std::string& script);

}  // namespace mssql_cdc::cli

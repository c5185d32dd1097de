// A child process whose output is handed on line by line.

#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace mssql_cdc::cli {

class Child {
 public:
  // Starts `arguments[0]` with `environment` added to ours. `on_line` gets each line of
  // its stdout and stderr, from a thread of the Child's. Errors: FileFailed.
  static Result<std::unique_ptr<Child>> Start(
      const std::vector<std::string>& arguments,
      const std::map<std::string, std::string>& environment,
      std::function<void(const std::string&)> on_line);
  ~Child();

  void Signal(int signal);
  // Waits for the end. Returns the exit code, or minus the signal that ended it.
  int Wait();

 private:
  Child() = default;
  void ReadLines();

  pid_t pid_ = 0;
  int output_fd_ = -1;
  std::optional<int> ended_;
  std::function<void(const std::string&)> on_line_;
  std::thread reader_;
};

}  // namespace mssql_cdc::cli

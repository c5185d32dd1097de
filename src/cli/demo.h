// `mssql-cdc demo`: the product at work on a sample shop, in one command.

#pragma once

#include <cstdint>
#include <string>

namespace mssql_cdc::cli {

struct DemoArguments {
  std::string dir = "mssql-cdc-demo";
  std::int64_t transaction_count = 300;
  bool hold = false;
};

// Starts a simulator with the shop and a writer at work, runs `program` (this binary)
// on a pipeline file as a process of its own, kills it once with SIGKILL, starts it
// again, waits until it is up to date and shows the result. Returns the exit code.
int Demo(const DemoArguments& arguments, const std::string& program);

}  // namespace mssql_cdc::cli

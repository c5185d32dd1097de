// What the tests that live by seeds share: one life a seed, how to replay one that went
// wrong, and what all of them together must have met.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

namespace mssql_cdc::tests {

// Thrown by a life that went wrong.
struct Wrong {
  std::string text;
};

using KindCounts = std::map<std::string, std::int64_t>;

struct SeedTest {
  std::string program;
  // Fifty seeds must have met each of these some times, so that passing means
  // something.
  std::span<const char* const> kinds;
  // More options of the command line and their values; a replay is told them.
  std::map<std::string, std::int64_t> options;
  // One life, with a directory of its own that is removed afterwards. Throws Wrong.
  std::function<void(std::uint64_t seed, const std::string& directory,
                     KindCounts& counts)>
      live;
};

// `--first N --seeds N` and the test's own options. Prints what failed, how often each
// kind was met, and `N passed, N failed`. Returns the exit code.
int RunSeeds(SeedTest& test, int argc, char** argv);

}  // namespace mssql_cdc::tests

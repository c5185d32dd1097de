#include "tests/seeds.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/text.h"

namespace mssql_cdc::tests {
namespace {

constexpr std::int64_t kKindCountMin = 3;
constexpr std::int64_t kSeedCountDefault = 50;

std::int64_t CountMissing(const SeedTest& test, KindCounts& counts) {
  std::int64_t missing = 0;
  for (const char* kind : test.kinds) {
    if (counts[kind] >= kKindCountMin) continue;
    std::printf("FAILED coverage: \"%s\" was met too seldom\n", kind);
    ++missing;
  }
  return missing;
}

bool RunSeed(const SeedTest& test, std::uint64_t seed, const std::string& folder,
             KindCounts& counts) {
  const std::string directory = folder + "/" + std::to_string(seed);
  bool passed = true;
  try {
    test.live(seed, directory, counts);
  } catch (const Wrong& wrong) {
    passed = false;
    std::printf("FAILED seed %llu\n  %s\n  replay: %s --first %llu --seeds 1",
                static_cast<unsigned long long>(seed), wrong.text.c_str(),
                test.program.c_str(), static_cast<unsigned long long>(seed));
    for (const auto& [name, value] : test.options) {
      std::printf(" %s %lld", name.c_str(), static_cast<long long>(value));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::filesystem::remove_all(directory);
  return passed;
}

// In memory where that can be.
std::string FolderOf(const std::string& program) {
  const char* shared = "/dev/shm";
  const std::string root = ::access(shared, W_OK) == 0
                               ? std::string(shared)
                               : std::filesystem::temp_directory_path().string();
  return root + "/mssql_cdc_" + program + "_" + std::to_string(::getpid());
}

}  // namespace

int RunSeeds(SeedTest& test, int argc, char** argv) {
  std::int64_t first = 1;
  std::int64_t seed_count = kSeedCountDefault;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::optional<std::int64_t> value = ParseInt64(argv[i + 1]);
    if (!value) return 2;
    if (std::strcmp(argv[i], "--first") == 0) first = *value;
    if (std::strcmp(argv[i], "--seeds") == 0) seed_count = *value;
    const auto option = test.options.find(argv[i]);
    if (option != test.options.end()) option->second = *value;
  }
  const std::string folder = FolderOf(test.program);
  KindCounts counts;
  std::int64_t failed = 0;
  for (std::int64_t seed = first; seed < first + seed_count; ++seed) {
    failed += !RunSeed(test, static_cast<std::uint64_t>(seed), folder, counts);
  }
  std::filesystem::remove_all(folder);
  if (seed_count >= kSeedCountDefault) failed += CountMissing(test, counts);
  for (const auto& [kind, count] : counts) {
    std::printf("%8lld  %s\n", static_cast<long long>(count), kind.c_str());
  }
  std::printf("%lld passed, %lld failed\n", static_cast<long long>(seed_count - failed),
              static_cast<long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace mssql_cdc::tests

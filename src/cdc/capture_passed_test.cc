#include "cdc/capture_passed.h"

#include <gtest/gtest.h>

#include <vector>

namespace mssql_cdc::cdc {
namespace {

Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

constexpr std::int64_t kSecondUs = 1'000'000;

// What the server says `seconds` after the moment.
CaptureTimes At(std::int64_t seconds, std::uint8_t newest, std::int64_t age_seconds,
                std::optional<std::string> scan_end = {},
                std::optional<std::int64_t> error_count = {}) {
  return {seconds * kSecondUs, L(newest), age_seconds, std::move(scan_end),
          error_count};
}

TEST(CapturePassed, Table) {
  const struct {
    const char* when;
    std::vector<CaptureTimes> heard;  // The first is the moment's.
    bool passed;                      // By the last of them, by none before.
  } kRows[] = {
      {"nothing was ever captured", {{0, {}}, {1, {}}, {2, {}}}, false},
      {"the first that ever was", {{0, {}}, At(3, 9, 1)}, true},
      {"the newest commit is of before", {At(0, 9, 1), At(5, 9, 6)}, false},
      {"one of before is captured", {At(0, 8, 1), At(5, 9, 6)}, false},
      {"of the very second, which others may share", {At(0, 8, 1), At(5, 9, 5)}, false},
      {"of after it", {At(0, 8, 1), At(5, 9, 4)}, true},
      // 02:50 of the first hour, captured at 02:10 of the second.
      {"of before the clock went back", {At(0, 8, -2401), At(5, 9, -2400)}, false},
      // Captured at 02:10, the moment is 02:20, but its LSN is as old as the moment's.
      {"the newest of an hour that came twice", {At(0, 9, 1), At(5, 9, 0)}, false},
      {"the clock went back after the moment", {At(0, 8, 1), At(5, 9, -3598)}, false},
      {"the clock went forth after the moment", {At(0, 8, 1), At(5, 9, 3602)}, false},
      {"a scan that may have begun before it",
       {At(0, 8, 1, "1"), At(1, 8, 2, "2")},
       false},
      {"the same scan, seen again",
       {At(0, 8, 1, "1"), At(1, 8, 2, "2"), At(2, 8, 3, "2")},
       false},
      {"a second one that found nothing",
       {At(0, 8, 1, "1"), At(1, 8, 2, "2"), At(6, 8, 7, "3")},
       true},
      {"though the clock of scans went back",
       {At(0, 8, 1, "9"), At(1, 8, 2, "1"), At(6, 8, 7, "2")},
       true},
      {"a second one that found commits of before: there may be more",
       {At(0, 8, 1, "1"), At(1, 8, 2, "2"), At(6, 9, 9, "3")},
       false},
      {"and a third that found nothing",
       {At(0, 8, 1, "1"), At(1, 8, 2, "2"), At(6, 9, 9, "3"), At(11, 9, 14, "4")},
       true},
      {"a second one that met an error",
       {At(0, 8, 1, "1", 0), At(1, 8, 2, "2", 0), At(6, 8, 7, "3", 1)},
       false},
      {"and a third that found nothing again",
       {At(0, 8, 1, "1", 0), At(1, 8, 2, "2", 0), At(6, 8, 7, "3", 1),
        At(11, 8, 12, "4", 1)},
       true},
      {"the first scans there are", {At(0, 8, 1), At(1, 8, 2, "1")}, false},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    CapturePassed passed(row.heard[0]);
    for (std::size_t i = 1; i < row.heard.size(); ++i) {
      const bool is_last = i + 1 == row.heard.size();
      EXPECT_EQ(passed.Hear(row.heard[i]), is_last && row.passed) << i;
    }
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

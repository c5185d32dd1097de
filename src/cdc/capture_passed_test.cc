#include "cdc/capture_passed.h"

#include <gtest/gtest.h>

#include <vector>

namespace mssql_cdc::cdc {
namespace {

Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }

TEST(CapturePassed, Table) {
  const struct {
    const char* when;
    std::vector<CaptureTimes> heard;
    bool passed;  // By the last of them, by none before.
  } kRows[] = {
      {"nothing was ever captured", {{"11", {}, {}, {}}, {"12", {}, {}, {}}}, false},
      {"the newest commit is of before", {{"11", "09", L(9), {}}}, false},
      {"of the very moment, which others may share", {{"11", "10", L(9), {}}}, false},
      {"of after it", {{"11", "09", L(8), {}}, {"12", "11", L(9), {}}}, true},
      {"a scan that may have begun before it", {{"11", "09", L(8), "11"}}, false},
      {"the same scan, seen again",
       {{"11", "09", L(8), "11"}, {"12", "09", L(8), "11"}},
       false},
      {"a second one that found nothing",
       {{"11", "09", L(8), "11"}, {"16", "09", L(8), "16"}},
       true},
      {"a second one that found commits of before: there may be more",
       {{"11", "08", L(8), "11"}, {"16", "09", L(9), "16"}},
       false},
      {"and a third that found nothing",
       {{"11", "08", L(8), "11"}, {"16", "09", L(9), "16"}, {"21", "09", L(9), "21"}},
       true},
      {"a second one that met an error",
       {{"11", "09", L(8), "11", 0}, {"16", "09", L(8), "16", 1}},
       false},
      {"and a third that found nothing again",
       {{"11", "09", L(8), "11", 0},
        {"16", "09", L(8), "16", 1},
        {"21", "09", L(8), "21", 1}},
       true},
      {"scans of before the moment only",
       {{"11", "09", L(8), "09"}, {"12", "09", L(8), "10"}},
       false},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    CapturePassed passed("10");
    for (std::size_t i = 0; i < row.heard.size(); ++i) {
      const bool is_last = i + 1 == row.heard.size();
      EXPECT_EQ(passed.Hear(row.heard[i]), is_last && row.passed) << i;
    }
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

#include "runtime/change_watch.h"

#include <gtest/gtest.h>

namespace mssql_cdc::runtime {
namespace {

cdc::Lsn At(std::uint8_t number) {
  cdc::Lsn lsn{};
  lsn.bytes.back() = number;
  return lsn;
}

TEST(ChangeWatch, WhoHasSomethingToReadGoesFirst) {
  constexpr std::int64_t kGrace = ChangeWatch::kMoveGraceNs;
  using Told = ChangeWatch::Told;
  const struct {
    const char* condition;
    Told told;
    std::int64_t now_ns;
    bool knows_stall;
    bool is_news;
  } kRows[] = {
      {"nothing was committed", {At(5), false, false, false}, 100, false, false},
      {"no commit is known", {std::nullopt, false, false, false}, 100, false, false},
      {"its changes", {At(6), false, true, true}, 0, false, true},
      {"others' commits, too soon", {At(6), false, false, false}, 99, false, false},
      {"others' commits, in time", {At(6), false, false, false}, 100, false, true},
      {"others have changes to read", {At(6), false, false, true}, 100, false, false},
      {"others go on having them",
       {At(6), false, false, true},
       100 + kGrace,
       false,
       true},
      {"the capture stands still", {At(5), true, false, false}, 0, false, true},
      {"as it did before", {At(5), true, false, false}, 0, true, false},
      {"it goes on", {At(6), false, false, true}, 0, true, true},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.condition);
    const ChangeWatch::Interest interest{{"dbo_t"}, At(5), 100, row.knows_stall};
    EXPECT_EQ(ChangeWatch::IsNews(interest, row.told, row.now_ns), row.is_news);
  }
}

}  // namespace
}  // namespace mssql_cdc::runtime

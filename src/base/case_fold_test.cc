#include "base/case_fold.h"

#include <gtest/gtest.h>

namespace mssql_cdc {
namespace {

TEST(LowerCase, Table) {
  const struct {
    const char* when;
    const char* text;
    const char* lower;
  } kRows[] = {
      {"ASCII", "DBO_Orders_V2", "dbo_orders_v2"},
      {"Latin-1", "DBO_CAFÉ", "dbo_café"},
      {"Latin Extended, in pairs", "ĀĂŁŽŸ", "āăłžÿ"},
      {"Greek and Cyrillic", "ΩΔ КЛЮЧ Ёж", "ωδ ключ ёж"},
      {"Armenian, Georgian capitals", "ԱՖ ᲐᲑ", "աֆ აბ"},
      {"beyond the first plane", "𐐀𐐧", "𐐨𐑏"},
      {"full width", "ＡＺ", "ａｚ"},
      {"no case", "日本語 ß 1]'", "日本語 ß 1]'"},
      {"no UTF-8", "A\xFF\xC3", "a\xFF\xC3"},
      {"cut short", "A\xE2\x82", "a\xE2\x82"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(LowerCase(row.text), row.lower);
    EXPECT_TRUE(EqualsIgnoringCase(row.text, row.lower));
  }
  EXPECT_FALSE(EqualsIgnoringCase("é", "e"));
}

}  // namespace
}  // namespace mssql_cdc

#include "cli/table_text.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cli {
namespace {

using columns::ColumnBuilder;
using columns::Kind;

TEST(TableText, EachKindReadsAsAPersonWritesIt) {
  ColumnBuilder decimal({Kind::kDecimal128, 18, 4}, 4);
  decimal.AppendDecimal(-5);
  decimal.AppendDecimal(1234500);
  decimal.AppendNull();
  const auto decimals = decimal.Finish();
  EXPECT_EQ(CellText(decimals, 0), "-0.0005");
  EXPECT_EQ(CellText(decimals, 1), "123.4500");
  EXPECT_EQ(CellText(decimals, 2), "NULL");

  ColumnBuilder time({Kind::kTimestampUtc}, 2);
  time.AppendInt64(-62135596800000000);
  time.AppendInt64(1'123'456);
  const auto times = time.Finish();
  EXPECT_EQ(CellText(times, 0), "0001-01-01T00:00:00.000Z");
  EXPECT_EQ(CellText(times, 1), "1970-01-01T00:00:01.123456Z");

  ColumnBuilder bytes({Kind::kBinary}, 1);
  bytes.AppendBytes(std::string_view("\x00\xAB", 2));
  EXPECT_EQ(CellText(bytes.Finish(), 0), "0x00AB");

  ColumnBuilder truth({Kind::kBool}, 2);
  truth.AppendBool(false);
  truth.AppendBool(true);
  EXPECT_EQ(CellText(truth.Finish(), 1), "true");
}

TEST(TableText, ColumnsAlignByCharactersNotBytes) {
  EXPECT_EQ(TableText({"a", "name"}, {{"1", "Ærøskøbing"}, {"22", "x"}}, 4),
            "  a   name\n"
            "  1   Ærøs…\n"
            "  22  x\n");
}

}  // namespace
}  // namespace mssql_cdc::cli

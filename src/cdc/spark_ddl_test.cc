#include "cdc/spark_ddl.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;

TEST(SparkDdl, EveryTypeAndForm) {
  const auto fields = ParseColumnsOption(
      "a boolean, b SMALLINT,c Int NOT NULL , d: BIGINT COMMENT 'it\\'s, one', "
      "`e ``f``` FLOAT, g DOUBLE, h DECIMAL(18,2), i decimal ( 5 ), j DECIMAL, k DATE, "
      "l TIMESTAMP, m TIMESTAMP_NTZ, n STRING not null comment \"x\", o BINARY, "
      "Größe long");
  ASSERT_TRUE(fields.ok()) << fields.error().Text();
  const std::vector<columns::Field> expected = {
      {"a", {Kind::kBool}},
      {"b", {Kind::kInt16}},
      {"c", {Kind::kInt32}},
      {"d", {Kind::kInt64}},
      {"e `f`", {Kind::kFloat32}},
      {"g", {Kind::kFloat64}},
      {"h", {Kind::kDecimal128, 18, 2}},
      {"i", {Kind::kDecimal128, 5, 0}},
      {"j", {Kind::kDecimal128, 10, 0}},
      {"k", {Kind::kDate32}},
      {"l", {Kind::kTimestampUtc}},
      {"m", {Kind::kTimestampNtz}},
      {"n", {Kind::kUtf8}},
      {"o", {Kind::kBinary}},
      {"Größe", {Kind::kInt64}},
  };
  EXPECT_EQ(fields.value(), expected);
  const auto again = ParseColumnsOption(ColumnsDdl(expected));
  ASSERT_TRUE(again.ok()) << again.error().Text();
  EXPECT_EQ(again.value(), expected);
  EXPECT_EQ(ColumnsDdl({expected[4], expected[6]}),
            "`e ``f``` FLOAT, `h` DECIMAL(18,2)");
}

TEST(SparkDdl, EachMistakeIsNamed) {
  const std::pair<const char*, const char*> kRows[] = {
      {"", "a name is missing"},
      {"a INT,", "a name is missing"},
      {"a INT, , b INT", "a name is missing"},
      {"a", "a type is"},
      {"a VARIANT", "a type is"},
      {"a TINYINT", "a type is"},
      {"a ARRAY<INT>", "a type is"},
      {"a INT b INT", "a comma is missing"},
      {"a INT NOT", "NOT is followed"},
      {"a INT COMMENT x", "quotes"},
      {"a INT COMMENT 'x", "a quote is missing"},
      {"`a INT", "a backtick"},
      {"`` INT", "a name is missing"},
      {"a DECIMAL(39,0)", "a decimal is"},
      {"a DECIMAL(5,6)", "a decimal is"},
      {"a DECIMAL(5,", "a decimal is"},
      {"a INT, A STRING", "twice"},
      {"Ä INT, ä STRING", "twice"},
      {"_Batch_Id INT", "of its own"},
      {"a.b INT", "a type is"},
  };
  for (const auto& [ddl, reason] : kRows) {
    SCOPED_TRACE(ddl);
    const auto fields = ParseColumnsOption(ddl);
    ASSERT_FALSE(fields.ok());
    EXPECT_EQ(fields.error().id(), ErrorId::kOptionInvalid);
    EXPECT_EQ(fields.error().Fact("option"), "columns");
    EXPECT_NE(fields.error().Fact("reason")->find(reason), std::string_view::npos)
        << fields.error().Text();
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

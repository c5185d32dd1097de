#include "sim/wire/declaration.h"

#include <gtest/gtest.h>

namespace mssql_cdc::sim::wire {
namespace {

TEST(Declarations, AreReadAsDriversWriteThem) {
  const std::vector<Declaration> got = ParseDeclarations(
      "@P0 int,@P1 nvarchar(max) OUTPUT, @d decimal(18, 4),@t datetime2 , "
      "@x sys.[varchar](20) = 'a', @f float(24), @u dbo.MyType READONLY");
  ASSERT_EQ(got.size(), 7u);
  EXPECT_EQ(got[0].name, "@P0");
  EXPECT_EQ(got[0].type, (SqlType{TypeId::kInt, 0, 0, 0, ""}));
  EXPECT_FALSE(got[0].output);
  EXPECT_EQ(got[1].type, (SqlType{TypeId::kNVarChar, kMax, 0, 0, ""}));
  EXPECT_TRUE(got[1].output);
  EXPECT_EQ(got[2].type, (SqlType{TypeId::kDecimal, 0, 18, 4, ""}));
  EXPECT_EQ(got[3].type, (SqlType{TypeId::kDateTime2, 0, 0, 7, ""}));
  EXPECT_EQ(got[4].type, (SqlType{TypeId::kVarChar, 20, 0, 0, ""}));
  EXPECT_EQ(got[5].type, (SqlType{TypeId::kReal, 0, 0, 0, ""}));
  EXPECT_FALSE(got[6].type);
}

TEST(Declarations, BrokenOnesHaveNoType) {
  EXPECT_TRUE(ParseDeclarations("").empty());
  EXPECT_TRUE(ParseDeclarations("no parameter").empty());
  for (const char* text : {"@a", "@a int(", "@a decimal(39)", "@a decimal(5,6)",
                           "@a varchar(0)", "@a varchar(9001)", "@a time(8)"}) {
    const std::vector<Declaration> got = ParseDeclarations(text);
    ASSERT_EQ(got.size(), 1u) << text;
    EXPECT_TRUE(!got[0].type || std::string_view(text) == "@a int(") << text;
  }
}

TEST(Declarations, AValueTakesTheDeclaredTypeOnlyUnchanged) {
  const SqlType small{TypeId::kTinyInt, 0, 0, 0, ""};
  const SqlType big{TypeId::kBigInt, 0, 0, 0, ""};
  const SqlType text3{TypeId::kVarChar, 3, 0, 0, ""};
  const SqlType wide{TypeId::kNVarChar, 4000, 0, 0, ""};
  const SqlType time3{TypeId::kDateTime2, 0, 0, 3, ""};
  const SqlType time7{TypeId::kDateTime2, 0, 0, 7, ""};
  EXPECT_TRUE(TakesAs(small, big, {std::int64_t{200}, {}}));
  EXPECT_FALSE(TakesAs(small, big, {std::int64_t{256}, {}}));
  EXPECT_TRUE(TakesAs(text3, wide, {Text(u"abc"), {}}));
  EXPECT_FALSE(TakesAs(text3, wide, {Text(u"abcd"), {}}));
  EXPECT_FALSE(TakesAs(small, wide, {Text(u"5"), {}}));
  EXPECT_TRUE(TakesAs(time7, time3, {DateTimeValue{1, 0, 0}, {}}));
  EXPECT_FALSE(TakesAs(time3, time7, {DateTimeValue{1, 0, 0}, {}}));
  EXPECT_TRUE(TakesAs(small, wide, {}));
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

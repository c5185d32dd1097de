#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace mssql_cdc {
namespace {

TEST(Text, IsoMillisAndParseAgreeFromYearOneToYear9999) {
  struct Case {
    const char* text;
    std::int64_t us;
  };
  const Case cases[] = {
      {"1970-01-01T00:00:00.000", 0},
      {"0001-01-01T00:00:00.000", -62135596800000000},
      {"9999-12-31T23:59:59.999", 253402300799999000},
      {"2024-02-29T12:30:45.117", 1709209845117000},
      {"1969-12-31T23:59:59.999", -1000},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(IsoMillis(c.us), c.text);
    EXPECT_EQ(ParseIsoUs(c.text), c.us);
  }
}

TEST(Text, IsoMayLackItsFractionOrHaveMoreDigitsThanAreKept) {
  EXPECT_EQ(ParseIsoUs("1970-01-01T00:00:01"), 1'000'000);
  EXPECT_EQ(ParseIsoUs("1970-01-01 00:00:01.1234567"), 1'123'456);
  for (const char* bad :
       {"", "1970-01-01", "1970-13-01T00:00:00", "1970-01-01T24:00:00",
        "1970-01-01T00:00:00.", "1970-01-01T00:00:00Z"}) {
    SCOPED_TRACE(bad);
    EXPECT_EQ(ParseIsoUs(bad), std::nullopt);
  }
}

TEST(Text, EveryDayOfTheCalendarGoesThereAndBack) {
  for (std::int64_t days = -719162; days <= 2932896; days += 17) {
    const CivilDate date = CivilFromDays(days);
    ASSERT_EQ(DaysFromCivil(date.year, date.month, date.day), days);
  }
}

TEST(Text, IntegersAreTheWholeTextOrNothing) {
  EXPECT_EQ(ParseInt64("-12"), -12);
  EXPECT_EQ(ParseInt64("+7"), 7);
  EXPECT_EQ(ParseInt64("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  for (const char* bad : {"", "x", "1x", " 1", "9223372036854775808", "1.0"}) {
    EXPECT_EQ(ParseInt64(bad), std::nullopt) << bad;
  }
}

TEST(Text, NearNamesAreNear) {
  EXPECT_EQ(EditDistance("dbo_order", "dbo_orders"), 1u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_TRUE(EqualsIgnoringAsciiCase("DBO_Orders", "dbo_orders"));
  EXPECT_EQ(Trim("  a b \n"), "a b");
  const std::uint8_t bytes[] = {0x00, 0xAB, 0x7F};
  EXPECT_EQ(HexUpper(bytes), "00AB7F");
}

}  // namespace
}  // namespace mssql_cdc

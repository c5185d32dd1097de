#include "sim/wire/collation.h"

#include <gtest/gtest.h>

#include "sim/wire/hex_test.h"

namespace mssql_cdc::sim::wire {
namespace {

TEST(Collation, NamesGiveTheirFiveBytes) {
  struct Case {
    const char* name;
    const char* bytes;
    std::uint16_t code_page;
  };
  // The first is in every login of a default server (facts, "Types"); the others follow
  // MS-TDS 2.2.5.1.2 from the flags that their names spell out.
  const Case cases[] = {
      {"SQL_Latin1_General_CP1_CI_AS", "0904D00034", 1252},
      {"sql_latin1_general_cp1_cs_as", "0904C00033", 1252},
      {"SQL_Latin1_General_CP1251_CI_AS", "0904D0006A", 1251},
      {"SQL_Latin1_General_CP437_BIN", "090400011E", 437},
      {"Latin1_General_CI_AS", "0904D00000", 1252},
      {"Latin1_General_CS_AS", "0904C00000", 1252},
      {"Latin1_General_CI_AI", "0904F00000", 1252},
      {"Latin1_General_CS_AS_KS_WS", "0904000000", 1252},
      {"Latin1_General_BIN", "0904000100", 1252},
      {"Latin1_General_BIN2", "0904000200", 1252},
      {"Latin1_General_100_CI_AS_SC_UTF8", "0904D02400", kCodePageUtf8},
      {"Latin1_General_100_BIN2_UTF8", "0904002600", kCodePageUtf8},
      {"Cyrillic_General_CI_AS", "1904D00000", 1251},
      {"Japanese_CI_AS", "1104D00000", 932},
      {"Japanese_XJIS_140_CI_AS", "1104D03000", 932},
      {"Chinese_PRC_CI_AS", "0408D00000", 936},
      {"Chinese_Taiwan_Stroke_CI_AS", "0404D00000", 950},
      {"Korean_Wansung_CI_AS", "1204D00000", 949},
      {"Greek_CI_AS", "0804D00000", 1253},
      {"Polish_CI_AS", "1504D00000", 1250},
      {"Hebrew_CI_AS", "0D04D00000", 1255},
      {"Arabic_CI_AS", "0104D00000", 1256},
      {"Thai_CI_AS", "1E04D00000", 874},
      {"Turkish_CI_AS", "1F04D00000", 1254},
      {"Vietnamese_CI_AS", "2A04D00000", 1258},
      {"Lithuanian_CI_AS", "2704D00000", 1257},
  };
  for (const Case& c : cases) {
    const std::optional<Collation> collation = FindCollation(c.name);
    ASSERT_TRUE(collation) << c.name;
    EXPECT_EQ(HexUpper(collation->bytes), c.bytes) << c.name;
    EXPECT_EQ(collation->code_page, c.code_page) << c.name;
    EXPECT_EQ(CodePageOf(collation->bytes), c.code_page) << c.name;
  }
}

TEST(Collation, UnknownNamesAreNone) {
  for (const char* name : {"", "Klingon_CI_AS", "Latin1_General", "Latin1_General_XX",
                           "Latin1_General_AS", "SQL_Latin1_General_CP1_XX"}) {
    EXPECT_FALSE(FindCollation(name)) << name;
  }
}

TEST(Collation, ZeroBytesAreTheDefault) { EXPECT_EQ(CodePageOf({}), 1252); }

TEST(Collation, TextGoesToItsCodePageAndBack) {
  struct Case {
    std::uint16_t code_page;
    std::u16string text;
    const char* bytes;  // Of the code page's own table.
  };
  const Case cases[] = {
      {1252, u"a\u20AC\u00E9", "6180E9"},
      {1252, u"\u0081", "81"},
      {1251, u"\u041F\u0440", "CFF0"},
      {1250, u"\u0142", "B3"},
      {1253, u"\u03A9", "D9"},
      {1254, u"\u011F", "F0"},
      {1255, u"\u05D0", "E0"},
      {1256, u"\u0627", "C7"},
      {1257, u"\u0161", "F0"},
      {1258, u"\u00C2\u0111", "C2F0"},
      {874, u"\u0E01", "A1"},
      {932, u"\u65E5\u672CA", "93FA967B41"},
      {936, u"\u4E2D", "D6D0"},
      {949, u"\uD55C", "C7D1"},
      {950, u"\u4E2D", "A4A4"},
      {437, u"\u00E9", "82"},
      {850, u"\u00E9", "82"},
      {kCodePageUtf8, u"\xD83D\xDE00", "F09F9880"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ToHex(EncodeText(c.text, c.code_page)), c.bytes) << c.code_page;
    EXPECT_EQ(DecodeText(FromHex(c.bytes), c.code_page), c.text) << c.code_page;
  }
}

TEST(Collation, WhatACodePageLacksBecomesQuestionMarks) {
  EXPECT_EQ(EncodeText(u"a\u4E2Db", 1252), "a?b");
  EXPECT_EQ(EncodeText(u"a\xD83D\xDE00"
                       u"b",
                       932),
            "a?b");
  EXPECT_EQ(DecodeText(FromHex("6181"), 932), std::u16string(u"a\xFFFD"));
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

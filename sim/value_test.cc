#include "sim/value.h"

#include <gtest/gtest.h>

namespace mssql_cdc::sim {
namespace {

TEST(ValueText, GoesToUtf16AndBack) {
  const std::string texts[] = {"",
                               "abc",
                               "\xC3\xA9",
                               "\xE2\x82\xAC",
                               "\xF0\x9F\x98\x80",
                               std::string("a\0b", 3)};
  for (const std::string& text : texts) EXPECT_EQ(Utf8(Utf16(text)), text);
  EXPECT_EQ(Utf16("\xF0\x9F\x98\x80"), u"\xD83D\xDE00");
}

TEST(ValueText, InvalidUtf8BecomesReplacementCharacters) {
  struct Case {
    const char* name;
    std::string bytes;
    std::u16string expected;
  };
  const Case cases[] = {
      {"a lone tail byte", "a\x80z", u"a\xFFFDz"},
      {"cut at the end", "\xE2\x82", u"\xFFFD"},
      {"an overlong slash", "\xC0\xAF", u"\xFFFD\xFFFD"},
      {"a surrogate", "\xED\xA0\x80", u"\xFFFD\xFFFD\xFFFD"},
      {"above U+10FFFF", "\xF4\x90\x80\x80", u"\xFFFD\xFFFD\xFFFD\xFFFD"},
      {"a sequence broken by a letter", "\xE2\x82z", u"\xFFFDz"},
  };
  for (const Case& c : cases) EXPECT_EQ(Utf16(c.bytes), c.expected) << c.name;
}

TEST(ValueText, UnpairedSurrogatesBecomeReplacementCharacters) {
  EXPECT_EQ(Utf8(std::u16string{0xD83D}), "\xEF\xBF\xBD");
  EXPECT_EQ(Utf8(std::u16string{0xDE00, u'a'}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(Utf8(std::u16string{0xD83D, 0xD83D, 0xDE00}),
            "\xEF\xBF\xBD\xF0\x9F\x98\x80");
}

}  // namespace
}  // namespace mssql_cdc::sim

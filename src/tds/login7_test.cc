#include "tds/login7.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tds/reader.h"
#include "tds/test_bytes.h"
#include "tds/utf16.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Utf16;
using test::Wire;

bool Holds(const Wire& wire, const Wire& part) {
  return std::ranges::search(wire, part).begin() != wire.end();
}

std::uint32_t U32(const Wire& wire, std::size_t offset) {
  Reader in(wire);
  in.Bytes(offset);
  return in.Le<std::uint32_t>();
}

// The bytes that the {offset, count} pair at `at` points to, `unit` bytes a count.
Wire FieldAt(const Wire& wire, std::size_t at, std::size_t unit = 2) {
  Reader table(wire);
  table.Bytes(at);
  const auto offset = table.Le<std::uint16_t>();
  const auto count = table.Le<std::uint16_t>();
  Reader data(wire);
  data.Bytes(offset);
  const auto bytes = data.Bytes(count * unit);
  EXPECT_TRUE(data.ok());
  return Wire(bytes.begin(), bytes.end());
}

Login7 Sample() {
  Login7 login;
  login.packet_size_bytes = 16383;
  login.process_id = 0x1234;
  login.workstation = "box";
  login.user = "test";
  login.password = Secret("secret");
  login.application = "mssql-cdc";
  login.server = "localhost";
  login.database = "shop";
  return login;
}

TEST(Login7, FieldsAreWhereTheOffsetTableSays) {
  const Wire wire = EncodeLogin7(Sample()).value();
  EXPECT_EQ(U32(wire, 0), wire.size());
  EXPECT_EQ(U32(wire, 4), kTds74);
  EXPECT_EQ(U32(wire, 8), 16383u);
  EXPECT_EQ(U32(wire, 16), 0x1234u);
  // ODBC (0x02): without it TEXTSIZE is 4096.
  EXPECT_EQ(Wire(wire.begin() + 24, wire.begin() + 28), Hex("E0 03 00 10"));
  EXPECT_EQ(FieldAt(wire, 36), Utf16("box"));
  EXPECT_EQ(FieldAt(wire, 40), Utf16("test"));
  // go-mssqldb's tds_login_test.go: "secret" as it goes over the wire.
  EXPECT_EQ(FieldAt(wire, 44), Hex("92A5 F3A5 93A5 82A5 F3A5 E2A5"));
  EXPECT_EQ(FieldAt(wire, 48), Utf16("mssql-cdc"));
  EXPECT_EQ(FieldAt(wire, 52), Utf16("localhost"));
  EXPECT_EQ(FieldAt(wire, 64), Wire{});
  EXPECT_EQ(FieldAt(wire, 68), Utf16("shop"));
  // ibExtension leads to a pointer, and that to the features.
  const Wire pointer = FieldAt(wire, 56, 1);
  ASSERT_EQ(pointer.size(), 4u);
  const std::size_t features = U32(pointer, 0);
  EXPECT_EQ(Wire(wire.begin() + static_cast<long>(features), wire.end()),
            Hex("0A 01000000 01 FF"));
}

TEST(Login7, CountsAreUtf16CodeUnits) {
  Login7 login = Sample();
  login.database = "\xF0\x9F\x98\x80\xC3\xA9";  // A pair of surrogates, and one unit.
  const Wire wire = EncodeLogin7(login).value();
  EXPECT_EQ(FieldAt(wire, 68), Hex("3DD8 00DE E900"));
}

// The FEDAUTH bytes are those of go-mssqldb's TestLoginWithSecurityTokenAuth.
TEST(Login7, ATokenIsSentInPlaceOfTheCredentials) {
  Login7 login = Sample();
  login.access_token = Secret("<token>");
  login.fed_auth_echo = true;
  Wire wire = EncodeLogin7(login).value();
  EXPECT_TRUE(Holds(wire, Hex("02 13000000 03 0E000000 3C0074006F006B0065006E003E00")));
  EXPECT_EQ(FieldAt(wire, 40), Wire{});
  EXPECT_EQ(FieldAt(wire, 44), Wire{});
  login.fed_auth_echo = false;
  wire = EncodeLogin7(login).value();
  EXPECT_TRUE(Holds(wire, Hex("02 13000000 02 0E000000")));
}

// The layouts are MS-TDS 2.2.6.4 (FEDAUTH, library ADAL) and 2.2.6.3.
TEST(Login7, ATokenThatIsBroughtLaterIsOfferedInPlaceOfTheCredentials) {
  Login7 login = Sample();
  login.brings_token_later = true;
  login.fed_auth_echo = true;
  const Wire wire = EncodeLogin7(login).value();
  EXPECT_TRUE(Holds(wire, Hex("02 02000000 05 01 0A")));
  EXPECT_EQ(FieldAt(wire, 40), Wire{});
  EXPECT_EQ(FieldAt(wire, 44), Wire{});
  EXPECT_EQ(EncodeFedAuthToken(Secret("ab")), Hex("08000000 04000000 6100 6200"));
}

TEST(Login7, ReadOnlyIntentIsAFlag) {
  Login7 login = Sample();
  login.read_only_intent = true;
  EXPECT_EQ(EncodeLogin7(login).value()[26], 0x20);
}

TEST(Login7, ATextThatDoesNotFitIsNamedAndNotShown) {
  Login7 login = Sample();
  login.password = Secret(std::string(129, 'S'));
  const auto encoded = EncodeLogin7(login);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().id(), ErrorId::kOptionInvalid);
  EXPECT_EQ(encoded.error().Fact("option"), "PWD");
  EXPECT_EQ(encoded.error().Text().find("SSS"), std::string::npos);
}

TEST(Utf16, GoesThereAndBack) {
  struct Case {
    const char* name;
    std::string utf8;
    Wire utf16;
  };
  const Case cases[] = {
      {"ascii", "aZ", Hex("6100 5A00")},
      {"two bytes", "\xC3\xA9", Hex("E900")},
      {"three bytes", "\xE2\x82\xAC", Hex("AC20")},
      {"pair", "\xF0\x9F\x98\x80", Hex("3DD8 00DE")},
      {"replacement", "\xEF\xBF\xBD", Hex("FDFF")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Wire wire;
    AppendUtf16(c.utf8, wire);
    EXPECT_EQ(wire, c.utf16);
    EXPECT_EQ(Utf8FromUtf16(c.utf16), c.utf8);
  }
}

TEST(Utf16, WhatIsNoTextBecomesTheReplacementCharacter) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(Utf8FromUtf16(Hex("00D8")), replaced);
  EXPECT_EQ(Utf8FromUtf16(Hex("00D8 4100")), replaced + "A");
  EXPECT_EQ(Utf8FromUtf16(Hex("00DC 00D8")), replaced + replaced);
  EXPECT_EQ(Utf8FromUtf16(Hex("4100 42")), "A" + replaced);
  for (const std::string& utf8 :
       {std::string("\xC0\x80"), std::string("\xED\xA0\x80"), std::string("\xE2\x82"),
        std::string("\xF5\x80\x80\x80"), std::string("\xFF")}) {
    Wire wire;
    AppendUtf16(utf8, wire);
    ASSERT_GE(wire.size(), 2u);
    EXPECT_EQ(wire[0], 0xFD);
    EXPECT_EQ(wire[1], 0xFF);
    EXPECT_EQ(wire.size(), utf8.size() * 2);
  }
}

}  // namespace
}  // namespace mssql_cdc::tds

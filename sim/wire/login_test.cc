#include "sim/wire/login.h"

#include <gtest/gtest.h>

#include "sim/value.h"
#include "sim/wire/bytes.h"
#include "sim/wire/hex_test.h"

namespace mssql_cdc::sim::wire {
namespace {

// The LOGIN7 of a client that has the given texts; the feature list is raw bytes.
std::vector<std::uint8_t> Login7Bytes(std::string_view obfuscated_password,
                                      const std::vector<std::uint8_t>& features) {
  const std::u16string user = u"sa";
  const std::u16string database = u"sales";
  ByteBuffer data;
  const std::uint16_t start = 94;
  const auto here = [&] {
    return static_cast<std::uint16_t>(start + data.bytes().size());
  };
  ByteBuffer table;
  const auto text = [&](std::u16string_view value) {
    table.U16(here());
    table.U16(static_cast<std::uint16_t>(value.size()));
    data.Raw(value);
  };
  text(u"host");
  text(user);
  table.U16(here());
  table.U16(static_cast<std::uint16_t>(obfuscated_password.size() / 2));
  data.Raw(obfuscated_password);
  text(u"app");
  text(u"server");
  table.U16(here());
  table.U16(4);
  data.U32(static_cast<std::uint32_t>(here() + 4));
  data.Raw(std::span<const std::uint8_t>(features));
  text(u"lib");
  text(u"");
  text(database);
  ByteBuffer out;
  out.U32(static_cast<std::uint32_t>(start + data.bytes().size()));
  out.U32(0x74000004);
  out.U32(8000);
  out.Fill(12, 0);
  out.U8(0xA0);
  out.U8(0);
  out.U8(0x20);
  out.U8(0x10);
  out.Fill(8, 0);
  out.Raw(table.bytes());
  out.Fill(start - out.bytes().size(), 0);
  out.Raw(data.bytes());
  return {out.bytes().begin(), out.bytes().end()};
}

// "secret", from the test dialogues of go-mssqldb (tds_login_test.go).
const char* const kSecret = "\x92\xA5\xF3\xA5\x93\xA5\x82\xA5\xF3\xA5\xE2\xA5";

TEST(Prelogin, ReadsTheSpecificationsExample) {
  // MS-TDS 4.1, without its packet header.
  const auto body = FromHex(
      "00001A00060100200001020021000103002200040400260001FF"
      "0900000000000100B80D000001");
  const std::optional<Prelogin> prelogin = ParsePrelogin(body);
  ASSERT_TRUE(prelogin);
  EXPECT_EQ(prelogin->encryption, 1);
  EXPECT_FALSE(prelogin->asks_fed_auth);
}

TEST(Prelogin, RefusesEveryMalformedOne) {
  // The cases of go-mssqldb's bad_server_test.go, seen from the other side.
  struct Case {
    const char* name;
    const char* hex;
  };
  const Case cases[] = {
      {"empty", ""},
      {"no options", "FF"},
      {"only ENCRYPTION", "01 0006 0001 FF 00"},
      {"no terminator", "00 0006 0006"},
      {"VERSION beyond the end", "00 0006 0006 FF 0900"},
      {"an offset beyond the end", "00 FFFF 0001 FF 09"},
      {"a length that overflows", "00 0006 FFFF FF 090000000000"},
      {"ENCRYPTION of two bytes", "00 000B 0006 01 0011 0002 FF 090000000000 0000"},
      {"VERSION twice", "00 000B 0006 00 000B 0006 FF 090000000000"},
      {"an option cut off", "00 00"},
  };
  for (const Case& c : cases) {
    EXPECT_FALSE(ParsePrelogin(FromHex(c.hex))) << c.name;
  }
}

TEST(Login7, ReadsWhatAClientSays) {
  const auto body = Login7Bytes({kSecret, 12}, FromHex("0A 01000000 01 FF"));
  const std::optional<Login7> login = ParseLogin7(body);
  ASSERT_TRUE(login);
  EXPECT_EQ(login->tds_version, 0x74000004u);
  EXPECT_EQ(login->packet_size_bytes, 8000u);
  EXPECT_EQ(login->host, "host");
  EXPECT_EQ(login->user, "sa");
  EXPECT_EQ(login->password, "secret");
  EXPECT_EQ(login->application, "app");
  EXPECT_EQ(login->database, "sales");
  EXPECT_TRUE(login->read_only_intent);
  EXPECT_TRUE(login->has_features);
  EXPECT_TRUE(login->utf8_support);
  EXPECT_FALSE(login->fed_auth);
}

TEST(Login7, ReadsTheFedAuthFeature) {
  // A security token of seven characters, as in go-mssqldb's dialogue: option byte 03.
  const auto token = FromHex("02 13000000 03 0E000000 3C0074006F006B0065006E003E00 FF");
  const std::optional<Login7> with_token = ParseLogin7(Login7Bytes("", token));
  ASSERT_TRUE(with_token && with_token->fed_auth);
  EXPECT_EQ(with_token->fed_auth->library, FedAuth::Library::kSecurityToken);
  EXPECT_EQ(with_token->fed_auth->token, "<token>");
  const std::optional<Login7> later =
      ParseLogin7(Login7Bytes("", FromHex("02 02000000 05 01 FF")));
  ASSERT_TRUE(later && later->fed_auth);
  EXPECT_EQ(later->fed_auth->library, FedAuth::Library::kAskLater);
}

TEST(Login7, RefusesEveryPrefixAndWildOffsets) {
  const auto body = Login7Bytes({kSecret, 12}, FromHex("0A 01000000 01 FF"));
  for (std::size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(ParseLogin7(std::span(body).first(size))) << size;
  }
  for (std::size_t at = 36; at < 72; at += 4) {
    if (at == 52 + 4) continue;  // The extension's pointer comes below.
    auto wild = body;
    wild[at] = wild[at + 1] = 0xFF;
    wild[at + 2] = 1;
    EXPECT_FALSE(ParseLogin7(wild)) << at;
  }
  auto wild = body;
  wild[56] = wild[57] = 0xFF;
  EXPECT_FALSE(ParseLogin7(wild));
}

TEST(Login7, RefusesBrokenFeatureLists) {
  for (const char* hex :
       {"0A FFFFFFFF 01 FF", "0A 01000000 01", "0A 0100", "",
        "02 13000000 03 FFFFFFFF 00 FF", "02 00000000 FF", "02 01000000 07 FF"}) {
    const auto whole = Login7Bytes("", FromHex(hex));
    // The texts behind the list would be read as more of it: cut them off.
    std::vector<std::uint8_t> body(whole.begin(), whole.end() - 2 * (3 + 5));
    body[60] = body[62] = body[68] = body[70] = 0;
    const auto size = static_cast<std::uint32_t>(body.size());
    body[0] = static_cast<std::uint8_t>(size);
    EXPECT_FALSE(ParseLogin7(body)) << hex;
  }
}

TEST(FedAuthToken, ReadsItsTwoLengths) {
  EXPECT_EQ(ParseFedAuthToken(FromHex("08000000 04000000 61006200")), "ab");
  EXPECT_FALSE(ParseFedAuthToken(FromHex("08000000 05000000 61006200")));
  EXPECT_FALSE(ParseFedAuthToken(FromHex("08000000 FFFFFFFF 61006200")));
  EXPECT_FALSE(ParseFedAuthToken(FromHex("FF000000 04000000 61006200")));
  EXPECT_FALSE(ParseFedAuthToken({}));
}

TEST(Version, IsTheClientsWherePossible) {
  struct Case {
    std::uint32_t asked;
    bool strict;
    std::optional<TdsVersion> version;
    std::uint32_t acked;
  };
  const Case cases[] = {
      {0x70000000, false, TdsVersion::k70, 0x07000000},
      {0x71000001, false, TdsVersion::k71, 0x71000001},
      {0x72090002, false, TdsVersion::k72, 0x72090002},
      {0x730A0003, false, TdsVersion::k73a, 0x730A0003},
      {0x730B0003, false, TdsVersion::k73b, 0x730B0003},
      {0x74000004, false, TdsVersion::k74, 0x74000004},
      {0x75000000, false, TdsVersion::k74, 0x74000004},
      {0x08000000, true, TdsVersion::k80, 0x08000000},
      {0x74000004, true, TdsVersion::k74, 0x74000004},
      {0x04020000, false, std::nullopt, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(NegotiateVersion(c.asked, c.strict), c.version) << c.asked;
    if (!c.version) continue;
    EXPECT_EQ(AckedVersion(*c.version, c.asked), c.acked);
  }
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

#include "tds/tokens.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "tds/test_bytes.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Join;
using test::ShortPrefixed;
using test::Utf16;
using test::Wire;

struct TokenCase {
  const char* name;
  Wire wire;
  Token token;
};

Wire Message(std::uint8_t id) {
  return Join(Wire{id}, ShortPrefixed(Join(Hex("14 48 00 00  01 0E  04 00"),
                                           Utf16("Oops"), Hex("03"), Utf16("SRV"),
                                           Hex("01"), Utf16("p"), Hex("07 00 00 00"))));
}

const TokenCase kTokenCases[] = {
    {"return status below zero", Hex("79 FEFFFFFF"), ReturnStatus{-2}},
    {"order of two columns is stepped over", Hex("A9 0400 0100 0200"),
     Skipped{TokenId::kOrder}},
    {"done with a count", Hex("FD 1000 C100 0300000000000000"),
     Done{TokenId::kDone, kDoneCount, 0xC1, 3}},
    {"done in procedure, more to follow", Hex("FF 1100 C100 0000000001000000"),
     Done{TokenId::kDoneInProc, kDoneMore | kDoneCount, 0xC1, 1ull << 32}},
    {"error", Message(0xAA), ServerMessage{true, 18452, 1, 14, "Oops", "SRV", "p", 7}},
    {"info", Message(0xAB), ServerMessage{false, 18452, 1, 14, "Oops", "SRV", "p", 7}},
    // From the login dialogues of go-mssqldb's tds_login_test.go: the version is
    // big-endian.
    {"login acknowledged",
     Join(Hex("AD 3200 01 74000004 14"), Utf16("Microsoft SQL Server"),
          Hex("0C 00 07D0")),
     LoginAck{1, kTds74, "Microsoft SQL Server", 12, 0, 2000}},
    {"login acknowledged, name padded as SQL Server 2000 to 2019 do",
     Join(Hex("AD 1200 01 08000000 04"), Utf16("ab"), Hex("0000 0000 10 00 03E8")),
     LoginAck{1, kTds80, "ab", 16, 0, 1000}},
    {"database", Join(Hex("E3 0F00 01 04"), Utf16("shop"), Hex("02"), Utf16("ma")),
     DatabaseChanged{"shop"}},
    {"packet size", Join(Hex("E3 1300 04 04"), Utf16("8000"), Hex("04"), Utf16("4096")),
     PacketSizeChanged{8000}},
    {"packet size as large as servers write it",
     Join(Hex("E3 0D00 04 05"), Utf16("32768"), Hex("00")), PacketSizeChanged{32768}},
    {"collation", Hex("E3 0800 07 05 0904D00034 00"),
     CollationChanged{{0x09, 0x04, 0xD0, 0x00, 0x34}}},
    {"no collation", Hex("E3 0300 07 00 00"), CollationChanged{}},
    {"transaction begun", Hex("E3 0B00 08 08 0100000035000000 00"),
     TransactionChanged{0x3500000001}},
    {"transaction committed", Hex("E3 0B00 09 00 08 0100000035000000"),
     TransactionChanged{0}},
    {"transaction ended", Hex("E3 0B00 11 00 08 0100000035000000"),
     TransactionChanged{0}},
    {"language", Join(Hex("E3 0700 02 02"), Utf16("us"), Hex("00")),
     Skipped{TokenId::kEnvChange}},
    {"an environment change of a later server", Hex("E3 0300 63 0102"),
     Skipped{TokenId::kEnvChange}},
    // The old value's length is two bytes, always zero.
    {"routing", Join(Hex("E3 1000 14 0B00 00 9905 0300"), Utf16("db1"), Hex("0000")),
     Routed{"db1", 1433}},
    {"feature acknowledgements", Hex("AE 0A 01000000 01  02 00000000 FF"),
     FeatureExtAck{{{0x0A, {1}}, {0x02, {}}}}},
    {"no feature acknowledged", Hex("AE FF"), FeatureExtAck{}},
    // MS-TDS 2.2.7.12: offsets count from the number of options.
    {"where a token comes from",
     Join(Hex("EE 24000000 02000000 01 08000000 16000000 02 06000000 1E000000"),
          Utf16("sts:"), Utf16("spn")),
     FedAuthInfo{"sts:", "spn"}},
    {"the same with an option of a later server",
     Join(Hex("EE 11000000 01000000 77 04000000 0D000000"), Utf16("??")),
     FedAuthInfo{}},
    {"session state", Hex("E4 03000000 010203"), Skipped{TokenId::kSessionState}},
    {"table names", Hex("A4 0100 00"), Skipped{TokenId::kTabName}},
    {"column info", Hex("A5 0300 010000"), Skipped{TokenId::kColInfo}},
    // An int output parameter, "@h" = 5; there is no length before it.
    {"return value",
     Join(Hex("AC 0000 02"), Utf16("@h"), Hex("01 00000000 0000 26 04 04 05000000")),
     Skipped{TokenId::kReturnValue}},
};

TEST(Tokens, DecodesEachCaseAndStopsAtItsEnd) {
  for (const TokenCase& c : kTokenCases) {
    SCOPED_TRACE(c.name);
    Wire wire = c.wire;
    wire.push_back(0x79);  // The next token's first byte must be left alone.
    Reader in(wire);
    const auto decoded = DecodeToken(in);
    ASSERT_TRUE(decoded.ok()) << decoded.error().Text();
    EXPECT_EQ(decoded.value(), c.token);
    EXPECT_EQ(in.offset(), c.wire.size());
  }
}

TEST(Tokens, EveryShorterPrefixAsksForMoreAndConsumesNothing) {
  for (const TokenCase& c : kTokenCases) {
    for (std::size_t size = 0; size < c.wire.size(); ++size) {
      SCOPED_TRACE(testing::Message() << c.name << ", first " << size << " bytes");
      Reader in(std::span(c.wire).first(size));
      const auto decoded = DecodeToken(in);
      ASSERT_TRUE(decoded.ok()) << decoded.error().Text();
      EXPECT_FALSE(decoded.value().has_value());
      EXPECT_EQ(in.offset(), 0u);
    }
  }
}

TEST(Tokens, EveryIdWithoutARuleIsRefusedByName) {
  for (int id = 0; id < 256; ++id) {
    const auto token = static_cast<TokenId>(id);
    const auto* rule = std::ranges::find(kTokenRules, token, &TokenRule::id);
    const bool listed = rule != kTokenRules.end();
    if (listed && rule->decode != nullptr) continue;
    const Wire wire(64, static_cast<std::uint8_t>(id));
    Reader in(wire);
    const auto decoded = DecodeToken(in);
    ASSERT_FALSE(decoded.ok()) << id;
    EXPECT_EQ(decoded.error().id(), ErrorId::kTdsRefusedToken);
    if (listed) {
      EXPECT_EQ(decoded.error().Fact("token"), rule->name);
    }
  }
}

// Several are inputs on which other clients crashed or looped (facts/tds.md 2.8, the
// regression bytes of hugr-lab/mssql-extension).
struct HostileCase {
  const char* name;
  Wire wire;
  ErrorId error;
};

const HostileCase kHostileCases[] = {
    {"environment change without a type", Hex("E3 0000"), ErrorId::kTdsMalformed},
    {"error shorter than its fields", Hex("AA 0000"), ErrorId::kTdsMalformed},
    {"info shorter than its fields", Hex("AB 0500 0000000008"), ErrorId::kTdsMalformed},
    {"error text beyond its token", Hex("AA 0C00 00000000 00 0E FFFF 00 00 0000"),
     ErrorId::kTdsMalformed},
    {"error with bytes to spare", Hex("AA 0F00 00000000 00 0E 0000 00 00 07000000 AA"),
     ErrorId::kTdsMalformed},
    {"login acknowledgement cut short", Hex("AD 0500 01 74000004"),
     ErrorId::kTdsMalformed},
    {"transaction descriptor cut short", Hex("E3 0500 08 03 010203"),
     ErrorId::kTdsMalformed},
    {"transaction descriptor beyond its token", Hex("E3 0200 08 08"),
     ErrorId::kTdsMalformed},
    {"collation of four bytes", Hex("E3 0700 07 04 0904D000 00"),
     ErrorId::kTdsMalformed},
    {"packet size of zero", Join(Hex("E3 0500 04 01"), Utf16("0"), Hex("00")),
     ErrorId::kTdsMalformed},
    {"packet size that is no number", Join(Hex("E3 0500 04 01"), Utf16("x"), Hex("00")),
     ErrorId::kTdsMalformed},
    {"packet size beyond any packet",
     Join(Hex("E3 0D00 04 05"), Utf16("65536"), Hex("00")), ErrorId::kTdsMalformed},
    {"route without a host", Hex("E3 0A00 14 0500 00 9905 0000 0000"),
     ErrorId::kTdsMalformed},
    {"route to port 0",
     Join(Hex("E3 0C00 14 0700 00 0000 0100"), Utf16("a"), Hex("0000")),
     ErrorId::kTdsMalformed},
    {"database with bytes to spare", Join(Hex("E3 0500 01 00 00 0000")),
     ErrorId::kTdsMalformed},
    {"feature of four gigabytes", Hex("AE 0A FFFFFFFF"), ErrorId::kTdsLimitExceeded},
    {"session state of four gigabytes", Hex("E4 FBFFFFFF"), ErrorId::kTdsLimitExceeded},
    {"return value of no known type", Hex("AC 0000 00 01 00000000 0000 01"),
     ErrorId::kTdsMalformed},
    {"token's place of four gigabytes", Hex("EE FBFFFFFF"), ErrorId::kTdsLimitExceeded},
    {"token's place without a count", Hex("EE 00000000"), ErrorId::kTdsMalformed},
    {"token's place with options beyond its end", Hex("EE 04000000 FFFFFFFF"),
     ErrorId::kTdsMalformed},
    {"token's place whose text lies outside",
     Hex("EE 0D000000 01000000 01 02000000 0C000000"), ErrorId::kTdsMalformed},
    {"token's place whose offset wraps",
     Hex("EE 0D000000 01000000 01 FEFFFFFF 0C000000"), ErrorId::kTdsMalformed},
    {"token's place of half a character",
     Hex("EE 0D000000 01000000 01 01000000 00000000"), ErrorId::kTdsMalformed},
};

TEST(Tokens, WhatAHostileServerSendsIsAnError) {
  for (const HostileCase& c : kHostileCases) {
    SCOPED_TRACE(c.name);
    Reader in(c.wire);
    const auto decoded = DecodeToken(in);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().id(), c.error);
  }
}

TEST(Tokens, FeaturesWithoutEndMeetTheLimit) {
  Wire wire = Hex("AE");
  const Wire feature = Join(Hex("0A 00040000"), Wire(0x400));
  while (wire.size() <= kTdsTokenSizeBytesMax) wire = Join(wire, feature);
  Reader in(wire);
  EXPECT_EQ(DecodeToken(in).error().id(), ErrorId::kTdsLimitExceeded);
}

}  // namespace
}  // namespace mssql_cdc::tds

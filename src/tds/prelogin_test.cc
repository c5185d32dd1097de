#include "tds/prelogin.h"

#include <gtest/gtest.h>

#include "tds/test_bytes.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Wire;

// The layout of MS-TDS section 4.1 (47 bytes with the packet's header): the same
// options in the same order, with another version.
TEST(Prelogin, TheRequestIsLaidOutAsTheSpecificationsExample) {
  EXPECT_EQ(EncodePrelogin({kEncryptOn, "", false}),
            Hex("00 001A 0006  01 0020 0001  02 0021 0001  03 0022 0004  04 0026 0001"
                "FF 000000000000 01 00 00000000 00"));
}

TEST(Prelogin, InstanceAndTokenAreAnnounced) {
  EXPECT_EQ(EncodePrelogin({kEncryptOff, "AB", true}),
            Hex("00 001F 0006  01 0025 0001  02 0026 0003  03 0029 0004  04 002D 0001"
                "06 002E 0001 FF 000000000000 00 414200 00000000 00 01"));
}

// The reply in the dialogues of go-mssqldb's tds_login_test.go.
TEST(Prelogin, AServersReplyIsRead) {
  const Wire wire =
      Hex("00 0010 0006  01 0016 0001  06 0017 0001  FF 0C0007D00000 02 01");
  const auto reply = DecodePrelogin(wire);
  ASSERT_TRUE(reply.ok()) << reply.error().Text();
  EXPECT_EQ(reply.value(), (PreloginReply{12, 0, 2000, kEncryptNotSupported, true}));
}

TEST(Prelogin, OptionsNobodyAskedForAreSteppedOver) {
  const Wire wire = Hex(
      "00 001F 0006  01 0025 0001  02 0026 0001  03 0000 0000  04 0026 0001  3F 0026"
      "0001 FF 100003E80000 01 00");
  const auto reply = DecodePrelogin(wire);
  ASSERT_TRUE(reply.ok()) << reply.error().Text();
  EXPECT_EQ(reply.value(), (PreloginReply{16, 0, 1000, kEncryptOn, false}));
}

// The conditions of go-mssqldb's bad_server_test.go that concern this message; those
// that concern its packet are in packet_test.cc and session_test.cc.
struct BadCase {
  const char* name;
  Wire payload;
};

const BadCase kBadCases[] = {
    {"empty", {}},
    {"no entries", Hex("FF")},
    {"only encryption", Hex("01 0006 0001 FF 02")},
    {"no encryption", Hex("00 0006 0006 FF 0C0007D00000")},
    {"version is not first", Hex("01 000B 0001 00 000C 0006 FF 02 0C0007D00000")},
    {"no terminator", Hex("00 0010 0006  01 0016 0001  06 0017 0001")},
    {"table cut in an entry", Hex("00 0010 00")},
    {"missing data",
     Hex("00 0010 0006  01 0016 0001  06 0017 0001 FF 0C0007D00000 02")},
    {"a length that overflows", Hex("00 000B FFFF  01 0011 0001 FF 0C0007D00000 02")},
    {"an offset that overflows", Hex("00 FFFF 0006  01 0011 0001 FF 0C0007D00000 02")},
    {"version of five bytes", Hex("00 000B 0005  01 0010 0001 FF 0C0007D000 02")},
    {"encryption of no byte", Hex("00 000B 0006  01 0011 0000 FF 0C0007D00000")},
    {"encryption of two bytes", Hex("00 000B 0006  01 0011 0002 FF 0C0007D00000 0200")},
    {"encryption twice",
     Hex("00 0010 0006  01 0016 0001  01 0017 0001 FF 0C0007D00000 01 00")},
};

TEST(Prelogin, MalformedRepliesAreErrors) {
  for (const BadCase& c : kBadCases) {
    SCOPED_TRACE(c.name);
    const auto reply = DecodePrelogin(c.payload);
    ASSERT_FALSE(reply.ok());
    EXPECT_EQ(reply.error().id(), ErrorId::kTdsMalformed);
  }
}

}  // namespace
}  // namespace mssql_cdc::tds

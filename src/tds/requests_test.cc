#include "tds/requests.h"

#include <gtest/gtest.h>

#include "tds/packet.h"
#include "tds/test_bytes.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Join;
using test::Utf16;
using test::Wire;

// MS-TDS section 4.6, a batch of 92 bytes; its example says 0 outstanding requests,
// where MS-TDS 2.2.5.3 and every driver say 1.
TEST(Requests, ABatchIsTheSpecificationsExample) {
  RequestContext context;
  context.transaction_descriptor = 0x0100000000000000;
  const Wire payload = EncodeBatch("\nselect 'foo' as 'bar'\n        ", context);
  const Wire wire = FrameMessage(PacketType::kSqlBatch, payload, 4096);
  EXPECT_EQ(wire.size(), 92u);
  EXPECT_EQ(wire,
            Join(Hex("01 01 005C 0000 01 00 16000000 12000000 0200 0000000000000001"
                     "01000000"),
                 Utf16("\nselect 'foo' as 'bar'\n        ")));
}

const Wire kHeaders = Hex("16000000 12000000 0200 0000000000000000 01000000");

// The layout of MS-TDS 2.2.6.6 with the type rules of 2.2.5.4; sp_executesql is number
// 10. The statement and the declarations are nameless nvarchar parameters.
TEST(Requests, SpExecuteSqlCarriesTypedParameters) {
  RequestContext context;
  context.collation = {0x09, 0x04, 0xD0, 0x00, 0x34};
  const std::string lsn = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A";
  const std::vector<Parameter> parameters = {
      {"@t", Parameter::Kind::kNVarChar, "h\xC3\xA9"},
      {"@v", Parameter::Kind::kVarBinary, std::string("\0\xFF", 2)},
      {"@l", Parameter::Kind::kBinary10, lsn},
      {"@n", Parameter::Kind::kBigInt, std::nullopt, -2},
  };
  const Wire nvarchar = Hex("E7 401F 0904D00034");
  const std::string declarations =
      "@t nvarchar(4000), @v varbinary(8000), @l binary(10), @n bigint";
  EXPECT_EQ(
      EncodeExecuteSql("SELECT 1", parameters, context),
      Join(kHeaders, Hex("FFFF 0A00 0000"),
           Join(Hex("00 00"), nvarchar, Hex("1000"), Utf16("SELECT 1")),
           Join(Hex("00 00"), nvarchar, Hex("7E00"), Utf16(declarations)),
           Join(Hex("02"), Utf16("@t"), Hex("00"), nvarchar, Hex("0400 6800 E900")),
           Join(Hex("02"), Utf16("@v"), Hex("00 A5 401F 0200 00FF")),
           Join(Hex("02"), Utf16("@l"), Hex("00 AD 0A00 0A00 0102030405060708090A")),
           Join(Hex("02"), Utf16("@n"), Hex("00 26 08 08 FEFFFFFFFFFFFFFF"))));
}

TEST(Requests, NullsHaveNoBytes) {
  const auto payload = EncodeExecuteSql("S",
                                        {{"@t", Parameter::Kind::kNVarChar},
                                         {"@v", Parameter::Kind::kVarBinary},
                                         {"@l", Parameter::Kind::kBinary10}},
                                        {});
  const Wire expected_end =
      Join(Hex("02"), Utf16("@t"), Hex("00 E7 401F 0000000000 FFFF 02"), Utf16("@v"),
           Hex("00 A5 401F FFFF 02"), Utf16("@l"), Hex("00 AD 0A00 FFFF"));
  ASSERT_GT(payload.size(), expected_end.size());
  EXPECT_EQ(Wire(payload.end() - static_cast<long>(expected_end.size()), payload.end()),
            expected_end);
}

// Beyond 8000 bytes a value is sent as a (max) type: PLP with one chunk.
TEST(Requests, LongValuesAreMaxTypes) {
  const std::string at_limit(4000, 'x');
  const std::string beyond(4001, 'x');
  const auto end_of = [](const std::string& text) {
    return EncodeExecuteSql("S", {{"@t", Parameter::Kind::kNVarChar, text}}, {});
  };
  const Wire short_form = Join(Hex("E7 401F 0000000000 401F"), Utf16(at_limit));
  const Wire short_payload = end_of(at_limit);
  EXPECT_EQ(Wire(short_payload.end() - static_cast<long>(short_form.size()),
                 short_payload.end()),
            short_form);
  const Wire long_form = Join(Hex("E7 FFFF 0000000000 421F000000000000 421F0000"),
                              Utf16(beyond), Hex("00000000"));
  const Wire long_payload = end_of(beyond);
  EXPECT_EQ(Wire(long_payload.end() - static_cast<long>(long_form.size()),
                 long_payload.end()),
            long_form);
  const Wire statement = EncodeExecuteSql(
      beyond, {{"@v", Parameter::Kind::kVarBinary, std::string(8001, 'y')}}, {});
  EXPECT_EQ(Wire(statement.begin() + 28, statement.begin() + 38),
            Hex("00 00 E7 FFFF 0000000000"));
}

TEST(Requests, AnAttentionIsOneEmptyPacket) {
  EXPECT_EQ(FrameMessage(PacketType::kAttention, {}, 4096),
            Hex("06 01 0008 0000 01 00"));
}

}  // namespace
}  // namespace mssql_cdc::tds

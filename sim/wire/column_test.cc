// What goes out, byte by byte: values against the layouts of MS-TDS 2.2.5, golden bytes
// from its examples and from drivers' own tests (named at each).

#include "sim/wire/column.h"

#include <gtest/gtest.h>

#include <atomic>

#include "sim/wire/hex_test.h"
#include "sim/wire/reply.h"

namespace mssql_cdc::sim::wire {
namespace {

SqlType Is(TypeId id, std::int32_t length = 0, std::uint8_t precision = 0,
           std::uint8_t scale = 0, std::string collation = "") {
  return {id, length, precision, scale, std::move(collation)};
}
Value Held(decltype(Value::held) held) { return {std::move(held), {}}; }
Value At(std::int32_t days, std::int64_t ticks, std::int16_t offset = 0) {
  return {DateTimeValue{days, ticks, offset}, {}};
}

struct Sent {
  std::string type;  // TYPE_INFO behind user type and flags.
  std::string value;
  std::string null;
};

Sent Send(const SqlType& type, const Value& value, bool nullable = true,
          const Dialect& dialect = {}) {
  const ColumnEncoder column(type, nullable, dialect);
  ByteBuffer info;
  column.WriteTypeInfo(info, 0);
  const std::size_t before = dialect.version < TdsVersion::k72 ? 4 : 6;
  ByteBuffer bytes;
  EXPECT_TRUE(column.Fits(value));
  EXPECT_TRUE(column.WriteValue(value, bytes));
  ByteBuffer null;
  column.WriteNull(null);
  EXPECT_EQ(null.bytes().size(), column.null_size_bytes());
  return {ToHex(info.bytes().substr(before)), ToHex(bytes.bytes()),
          ToHex(null.bytes())};
}

struct LayoutCase {
  SqlType type;
  Value value;
  const char* info;
  const char* bytes;
  const char* null;
};

std::vector<LayoutCase> ScalarCases() {
  const Guid guid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  const std::int64_t noon = 432'000'000'000;
  return {
      {Is(TypeId::kBit), Held(std::int64_t{1}), "6801", "0101", "00"},
      {Is(TypeId::kTinyInt), Held(std::int64_t{255}), "2601", "01FF", "00"},
      {Is(TypeId::kSmallInt), Held(std::int64_t{-2}), "2602", "02FEFF", "00"},
      {Is(TypeId::kInt), Held(std::int64_t{-2}), "2604", "04FEFFFFFF", "00"},
      {Is(TypeId::kNull), Held(std::int64_t{1}), "2604", "0401000000", "00"},
      {Is(TypeId::kBigInt), Held(std::int64_t{1}), "2608", "080100000000000000", "00"},
      {Is(TypeId::kReal), Held(1.5), "6D04", "040000C03F", "00"},
      {Is(TypeId::kFloat), Held(-1.5), "6D08", "08000000000000F8BF", "00"},
      // 12.34 and money ±1.0000: vectors of go-mssqldb and tedious (facts, "Types").
      {Is(TypeId::kDecimal, 0, 4, 2), Held(Decimal{1234, 2}), "6C050402",
       "0501D2040000", "00"},
      {Is(TypeId::kDecimal, 0, 38, 0), Held(Decimal{-1, 0}), "6C112600",
       "110001000000000000000000000000000000", "00"},
      {Is(TypeId::kMoney), Held(Decimal{10000, 4}), "6E08", "080000000010270000", "00"},
      {Is(TypeId::kMoney), Held(Decimal{-10000, 4}), "6E08", "08FFFFFFFFF0D8FFFF",
       "00"},
      {Is(TypeId::kSmallMoney), Held(Decimal{-10000, 4}), "6E04", "04F0D8FFFF", "00"},
      {Is(TypeId::kDate), At(3'652'058, 0), "28", "03DAB937", "00"},
      {Is(TypeId::kTime, 0, 0, 0), At(0, noon), "2900", "03C0A800", "00"},
      {Is(TypeId::kTime, 0, 0, 7), At(0, 1), "2907", "050100000000", "00"},
      {Is(TypeId::kDateTime), At(693'595, 30'000), "6F08", "080000000001000000", "00"},
      {Is(TypeId::kDateTime), At(693'594, 863'999'990'000), "6F08",
       "080000000000000000", "00"},
      {Is(TypeId::kSmallDateTime), At(693'596, 1'200'000'000), "6F04", "0401000200",
       "00"},
      {Is(TypeId::kDateTime2, 0, 0, 3), At(2, 10'000), "2A03", "0701000000020000",
       "00"},
      // Half past midnight an hour east of UTC is the day before in UTC.
      {Is(TypeId::kDateTimeOffset, 0, 0, 0), At(2, 18'000'000'000, 60), "2B00",
       "08784A010100003C00", "00"},
      {Is(TypeId::kUniqueIdentifier), Held(guid), "2410",
       "1004030201060508070"
       "90A0B0C0D0E0F10",
       "00"},
  };
}

std::vector<LayoutCase> LongCases() {
  const std::string utf8 = "Latin1_General_100_CI_AS_SC_UTF8";
  return {
      {Is(TypeId::kChar, 3), Held(Text(u"\u20AC")), "AF03000904D00034", "0300802020",
       "FFFF"},
      {Is(TypeId::kVarChar, 3), Held(Text(u"\u20AC")), "A703000904D00034", "010080",
       "FFFF"},
      {Is(TypeId::kVarChar, 3, 0, 0, utf8), Held(Text(u"\u20AC")), "A703000904D02400",
       "0300E282AC", "FFFF"},
      {Is(TypeId::kNChar, 2), Held(Text(u"a")), "EF04000904D00034", "040061002000",
       "FFFF"},
      {Is(TypeId::kNVarChar, 2), Held(Text(u"")), "E704000904D00034", "0000", "FFFF"},
      {Is(TypeId::kVarChar, kMax), Held(Text(u"ab")), "A7FFFF0904D00034",
       "020000000000000002000000616200000000", "FFFFFFFFFFFFFFFF"},
      {Is(TypeId::kNVarChar, kMax), Held(Text(u"")), "E7FFFF0904D00034",
       "000000000000000000000000", "FFFFFFFFFFFFFFFF"},
      {Is(TypeId::kText, kMax), Held(Text(u"a")), "23FFFFFF7F0904D00034",
       "1070707070707070707070707070707070747474747474747401000000"
       "61",
       "00"},
      {Is(TypeId::kNText, kMax), Held(Text(u"a")), "63FEFFFF7F0904D00034",
       "1070707070707070707070707070707070747474747474747402000000"
       "6100",
       "00"},
      {Is(TypeId::kXml, kMax), Held(Text(u"a")), "F100",
       "020000000000000002000000610000000000", "FFFFFFFFFFFFFFFF"},
      {Is(TypeId::kBinary, 2), Held(Bytes{1}), "AD0200", "02000100", "FFFF"},
      {Is(TypeId::kVarBinary, 2), Held(Bytes{1}), "A50200", "010001", "FFFF"},
      {Is(TypeId::kVarBinary, kMax), Held(Bytes{1}), "A5FFFF",
       "0100000000000000010000000100000000", "FFFFFFFFFFFFFFFF"},
      {Is(TypeId::kImage, kMax), Held(Bytes{1}), "22FFFFFF7F",
       "1070707070707070707070707070707070747474747474747401000000"
       "01",
       "00"},
      {Is(TypeId::kRowVersion, 8), Held(Bytes{0, 0, 0, 0, 0, 0, 7, 209}), "AD0800",
       "080000000000000007D1", "FFFF"},
      {Is(TypeId::kSqlVariant),
       {std::int64_t{7}, Is(TypeId::kInt)},
       "62491F0000",
       "060000003800"
       "07000000",
       "00000000"},
      {Is(TypeId::kSqlVariant),
       {Text(u"a"), Is(TypeId::kNVarChar, 8)},
       "62491F0000",
       "0B000000E7070904D0003410006100",
       "00000000"},
      {Is(TypeId::kSqlVariant),
       {Bytes{9}, Is(TypeId::kVarBinary, 3)},
       "62491F0000",
       "05000000A502030009",
       "00000000"},
      {Is(TypeId::kSqlVariant),
       {Decimal{5, 1}, Is(TypeId::kDecimal, 0, 3, 1)},
       "62491F0000",
       "090000006C0203010105000000",
       "00000000"},
  };
}

TEST(Column, SendsEveryTypeInItsLayout) {
  std::vector<LayoutCase> cases = ScalarCases();
  for (const LayoutCase& c : LongCases()) cases.push_back(c);
  for (const LayoutCase& c : cases) {
    const Sent sent = Send(c.type, c.value);
    EXPECT_EQ(sent.type, c.info);
    EXPECT_EQ(sent.value, c.bytes) << c.info;
    EXPECT_EQ(sent.null, c.null) << c.info;
  }
}

TEST(Column, NotNullFixedTypesHaveNoLength) {
  EXPECT_EQ(Send(Is(TypeId::kInt), Held(std::int64_t{1}), false).type, "38");
  EXPECT_EQ(Send(Is(TypeId::kInt), Held(std::int64_t{1}), false).value, "01000000");
  EXPECT_EQ(Send(Is(TypeId::kBit), Held(std::int64_t{1}), false).type, "32");
  EXPECT_EQ(Send(Is(TypeId::kBigInt), Held(std::int64_t{1}), false).type, "7F");
  EXPECT_EQ(Send(Is(TypeId::kSmallMoney), Held(Decimal{1, 4}), false).type, "7A");
  EXPECT_EQ(Send(Is(TypeId::kDateTime), At(693'595, 0), false).type, "3D");
  // These have no token without a length.
  EXPECT_EQ(Send(Is(TypeId::kDecimal, 0, 4, 2), Held(Decimal{1, 2}), false).type,
            "6C050402");
  EXPECT_EQ(Send(Is(TypeId::kDate), At(0, 0), false).type, "28");
}

TEST(Column, OlderClientsGetTextForDatesAndTextTypesForMax) {
  Dialect tds72;
  tds72.version = TdsVersion::k72;
  Sent sent =
      Send(Is(TypeId::kDateTimeOffset, 0, 0, 3), At(0, 10'000, -90), true, tds72);
  EXPECT_EQ(sent.type, "E73C000904D00034");  // 30 characters.
  EXPECT_EQ(DateText(Is(TypeId::kDateTimeOffset, 0, 0, 3), {0, 10'000, -90}),
            u"0001-01-01 00:00:00.001 -01:30");
  EXPECT_EQ(DateText(Is(TypeId::kTime, 0, 0, 0), {0, 432'000'000'000, 0}), u"12:00:00");
  EXPECT_EQ(DateText(Is(TypeId::kDate), {3'652'058, 0, 0}), u"9999-12-31");
  Dialect tds71;
  tds71.version = TdsVersion::k71;
  sent = Send(Is(TypeId::kNVarChar, kMax), Held(Text(u"a")), true, tds71);
  EXPECT_EQ(sent.type, "63FEFFFF7F0904D00034");
  Dialect tds70;
  tds70.version = TdsVersion::k70;
  EXPECT_EQ(Send(Is(TypeId::kVarChar, 3), Held(Text(u"a")), true, tds70).type,
            "A70300");
}

TEST(Column, Utf8GoesAsUtf16ToClientsWithoutTheFeature) {
  Dialect without;
  without.utf8_support = false;
  const std::string utf8 = "Latin1_General_100_CI_AS_SC_UTF8";
  Sent sent =
      Send(Is(TypeId::kVarChar, 3, 0, 0, utf8), Held(Text(u"\u20AC")), true, without);
  EXPECT_EQ(sent.type, "E706000904D02400");
  EXPECT_EQ(sent.value, "0200AC20");
  sent = Send(Is(TypeId::kVarChar, 8000, 0, 0, utf8), Held(Text(u"a")), true, without);
  EXPECT_EQ(sent.type, "E7FFFF0904D02400");
}

TEST(Column, RefusesWhatDoesNotFit) {
  const Dialect dialect;
  EXPECT_FALSE(
      ColumnEncoder(Is(TypeId::kTinyInt), true, dialect).Fits(Held(std::int64_t{256})));
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kInt), true, dialect).Fits(Held(1.0)));
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kDecimal, 0, 4, 2), true, dialect)
                   .Fits(Held(Decimal{10'000, 2})));
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kDecimal, 0, 4, 2), true, dialect)
                   .Fits(Held(Decimal{1, 3})));
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kDate), true, dialect).Fits(At(-1, 0)));
  EXPECT_FALSE(
      ColumnEncoder(Is(TypeId::kTime), true, dialect).Fits(At(0, 864'000'000'000)));
  EXPECT_FALSE(
      ColumnEncoder(Is(TypeId::kNVarChar, 2), true, dialect).Fits(Held(Text(u"abc"))));
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kVarBinary, 2), true, dialect)
                   .Fits(Held(Bytes{1, 2, 3})));
  ByteBuffer out;
  EXPECT_FALSE(ColumnEncoder(Is(TypeId::kVarChar, 2), true, dialect)
                   .WriteValue(Held(Text(u"abc")), out));
}

// A reply's bytes in one large packet, without its header.
class ReplyBytes {
 public:
  explicit ReplyBytes(Dialect dialect = {})
      : packets_(0,
                 [this](std::string_view bytes) {
                   sent_ += bytes;
                   return true;
                 }),
        dialect_(dialect),
        reply_(packets_, dialect_, "S", stop_) {
    packets_.SetPacketSize(32767);
  }
  Reply& reply() { return reply_; }
  std::string Take() {
    reply_.EndMessage();
    std::string hex = ToHex(std::string_view(sent_).substr(8));
    sent_.clear();
    return hex;
  }
  std::atomic<bool> stop_{false};

 private:
  std::string sent_;
  PacketWriter packets_;
  Dialect dialect_;
  Reply reply_;
};

TEST(Reply, GivesTheSpecificationsBatchResponse) {
  // MS-TDS 4.7: one VARCHAR(3) column "bar" with "foo". Its DONE has curcmd C1.
  ReplyBytes bytes;
  bytes.reply().StartBatch();
  bytes.reply().Columns({{"bar", Is(TypeId::kVarChar, 3), false, false, false}});
  bytes.reply().Row({Held(Text(u"foo"))});
  bytes.reply().StatementDone(1, 0xC1);
  bytes.reply().FinishBatch();
  EXPECT_EQ(bytes.Take(),
            "810100000000000000A703000904D0003403620061007200D10300666F6F"
            "FD1000C1000100000000000000");
}

TEST(Reply, OlderClientsGetShorterTokens) {
  Dialect tds71;
  tds71.version = TdsVersion::k71;
  ReplyBytes bytes(tds71);
  bytes.reply().StartBatch();
  bytes.reply().Columns({{"a", Is(TypeId::kInt), false, false, false}});
  bytes.reply().SendMessage({5, 1, 0, "m", "", 2});
  bytes.reply().StatementDone(3, 0xC1);
  bytes.reply().FinishBatch();
  EXPECT_EQ(bytes.Take(),
            "81010000000000"
            "38"
            "016100"
            "AB1000050000000100"
            "01006D00"
            "015300"
            "00"
            "0200"
            "FD1000C10003000000");
}

TEST(Reply, UsesNullBitmapsWhereTheyAreShorter) {
  ReplyBytes bytes;
  const std::vector<ResultColumn> columns(
      9, {"", Is(TypeId::kVarChar, 5), true, false, false});
  std::vector<Value> row(9);
  row[0] = Held(Text(u"a"));
  bytes.reply().StartBatch();
  bytes.reply().Columns(columns);
  bytes.Take();
  bytes.reply().Row(row);
  EXPECT_EQ(bytes.Take(),
            "D2FE01"
            "010061");
  for (std::size_t i = 1; i < 9; ++i) row[i] = row[0];
  bytes.reply().Row(row);
  EXPECT_EQ(bytes.Take().substr(0, 2), "D1");
  row[8] = Value{};  // Two bytes for NULL, two for a bitmap.
  bytes.reply().Row(row);
  EXPECT_EQ(bytes.Take().substr(0, 2), "D1");
  row[7] = Value{};
  bytes.reply().Row(row);
  EXPECT_EQ(bytes.Take().substr(0, 6), "D28001");
}

TEST(Reply, MarksAllButTheLastStatementOfABatch) {
  ReplyBytes bytes;
  bytes.reply().StartBatch();
  bytes.reply().StatementDone(2, 0xC3);
  bytes.reply().StatementDone(std::nullopt, 0);
  bytes.reply().FinishBatch();
  EXPECT_EQ(bytes.Take(),
            "FD1100C3000200000000000000"
            "FD000000000000000000000000");
}

TEST(Reply, AFailedBatchSaysSoInItsLastDone) {
  ReplyBytes bytes;
  bytes.reply().StartBatch();
  bytes.reply().StatementDone(2, 0xC3);
  bytes.reply().SendMessage({208, 1, 16, "m", "", 1});
  bytes.reply().FinishBatch();
  const std::string hex = bytes.Take();
  EXPECT_TRUE(hex.starts_with("FD1100C3")) << hex;
  EXPECT_TRUE(
      hex.ends_with("FD0200"
                    "00000000000000000000"))
      << hex;
}

TEST(Reply, ACallEndsWithItsStatusOutputsAndDoneProc) {
  ReplyBytes bytes;
  bytes.reply().StartCall(Reply::Status::kOfEngine);
  bytes.reply().SetParameters(1, {{"", true}, {"@x", true}});
  bytes.reply().ReturnValue("@X", Is(TypeId::kInt), Held(std::int64_t{5}));
  bytes.reply().StatementDone(1, 0xC1);
  bytes.reply().ReturnStatus(7);
  bytes.reply().FinishCall(true);
  EXPECT_EQ(bytes.Take(),
            "FF1100C1000100000000000000"
            "7907000000"
            "AC0200"
            "0240005800"
            "01"
            "00000000"
            "0100"
            "2604"
            "0405000000"
            "FE0100"
            "00000000000000000000");
}

TEST(Reply, UnnamedOutputsGoByTheirPlace) {
  ReplyBytes bytes;
  bytes.reply().StartCall(Reply::Status::kOfEngine);
  bytes.reply().SetParameters(0, {{"", false}, {"", true}, {"", false}, {"", true}});
  bytes.reply().ReturnValue("@a", Is(TypeId::kInt), {});
  bytes.reply().ReturnValue("@b", Is(TypeId::kInt), {});
  bytes.reply().FinishCall(false);
  const std::string hex = bytes.Take();
  EXPECT_NE(hex.find("AC0100"
                     "02"
                     "40006100"),
            std::string::npos)
      << hex;
  EXPECT_NE(hex.find("AC0300"
                     "02"
                     "40006200"),
            std::string::npos)
      << hex;
}

TEST(Reply, StopsAtOnceWhenTheClientAsksTo) {
  ReplyBytes bytes;
  bytes.reply().StartBatch();
  bytes.reply().Columns({{"a", Is(TypeId::kInt), false, false, false}});
  bytes.Take();
  bytes.stop_ = true;
  EXPECT_FALSE(bytes.reply().Row({Held(std::int64_t{1})}));
  EXPECT_FALSE(bytes.reply().StatementDone(1, 0xC1));
  bytes.reply().FinishBatch();
  EXPECT_EQ(bytes.Take(),
            "FD00000000"
            "0000000000000000");
  bytes.reply().AcknowledgeAttention();
}

TEST(Reply, AValueThatCannotBeSentEndsTheConnection) {
  for (const Value& value : {Value{}, Held(1.5)}) {
    ReplyBytes bytes;
    bytes.reply().StartBatch();
    bytes.reply().Columns({{"a", Is(TypeId::kInt), false, false, false}});
    EXPECT_FALSE(bytes.reply().Row({value}));
    EXPECT_TRUE(bytes.reply().broken());
  }
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

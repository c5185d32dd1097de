#include "sim/wire/request.h"

#include <gtest/gtest.h>

#include "sim/wire/hex_test.h"

namespace mssql_cdc::sim::wire {
namespace {

const char* const kHeaders = "16000000 12000000 0200 0000000000000001 00000000";

// One call by name of "p" with one parameter whose status, type and value are `hex`.
std::optional<RpcRequest> CallWith(const std::string& hex) {
  return ParseRpc(FromHex(std::string(kHeaders) + "0100 7000 0000 00" + hex),
                  TdsVersion::k74);
}

TEST(Batch, ReadsTextBehindTheHeaders) {
  const auto body = FromHex(std::string(kHeaders) + "73006500AC20");
  EXPECT_EQ(ParseBatch(body, TdsVersion::k74), "se\xE2\x82\xAC");
  EXPECT_EQ(ParseBatch(FromHex("73006500"), TdsVersion::k71), "se");
}

TEST(Batch, RefusesBrokenHeaders) {
  for (const char* hex :
       {"", "03000000", "FFFFFFFF 0000", "16000000 12000000",
        "0A000000 05000000 0000 6100", "0A000000 FFFFFFFF 0000 6100", "04000000 61"}) {
    EXPECT_FALSE(ParseBatch(FromHex(hex), TdsVersion::k74)) << hex;
  }
}

TEST(Rpc, ReadsTheSpecificationsExample) {
  // MS-TDS 4.8: procedure "foo3" with one nameless INTN(2) that takes its default.
  const auto body = FromHex(
      "16000000120000000200000000000000000100000000"
      "040066006F006F00330000000002260200");
  const std::optional<RpcRequest> request = ParseRpc(body, TdsVersion::k74);
  ASSERT_TRUE(request);
  ASSERT_EQ(request->calls.size(), 1u);
  EXPECT_EQ(request->calls[0].name, "foo3");
  ASSERT_EQ(request->calls[0].parameters.size(), 1u);
  const RpcParameter& parameter = request->calls[0].parameters[0];
  EXPECT_TRUE(parameter.uses_default);
  EXPECT_EQ(parameter.type.id, TypeId::kSmallInt);
  EXPECT_TRUE(parameter.value.IsNull());
}

TEST(Rpc, ReadsSeveralCallsOfOneMessage) {
  const auto body = FromHex(std::string(kHeaders) +
                            "FFFF 0F00 0000 00 00 26 04 04 05000000 FF"
                            "FFFF 0F00 0000 03 400061006200 01 26 04 04 06000000");
  const std::optional<RpcRequest> request = ParseRpc(body, TdsVersion::k74);
  ASSERT_TRUE(request);
  ASSERT_EQ(request->calls.size(), 2u);
  EXPECT_EQ(request->calls[0].id, 15);
  EXPECT_EQ(request->calls[1].parameters[0].name, "@ab");
  EXPECT_TRUE(request->calls[1].parameters[0].by_reference);
  EXPECT_EQ(std::get<std::int64_t>(request->calls[1].parameters[0].value.held), 6);
}

Value Held(decltype(Value::held) held) { return {std::move(held), {}}; }
SqlType Is(TypeId id, std::int32_t length = 0, std::uint8_t precision = 0,
           std::uint8_t scale = 0) {
  return {id, length, precision, scale, ""};
}
DateTimeValue At(std::int32_t days, std::int64_t ticks, std::int16_t offset = 0) {
  return {days, ticks, offset};
}

struct ParameterCase {
  const char* hex;  // Status, TYPE_INFO, value. Layouts of MS-TDS 2.2.5.
  SqlType type;
  Value value;
};

// Values of facts "Types": decimal 12.34, money 1.0000 and -1.0000, the GUID's order.
std::vector<ParameterCase> ParameterCases() {
  const Guid guid{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  return {
      {"00 1F", Is(TypeId::kNull), {}},
      {"00 26 08 00", Is(TypeId::kBigInt), {}},
      {"00 26 01 01 FF", Is(TypeId::kTinyInt), Held(std::int64_t{255})},
      {"00 26 02 02 FFFF", Is(TypeId::kSmallInt), Held(std::int64_t{-1})},
      {"00 38 FEFFFFFF", Is(TypeId::kInt), Held(std::int64_t{-2})},
      {"00 26 08 08 FFFFFFFFFFFFFF7F", Is(TypeId::kBigInt),
       Held(std::int64_t{0x7FFFFFFFFFFFFFFF})},
      {"00 68 01 01 01", Is(TypeId::kBit), Held(std::int64_t{1})},
      {"00 6D 04 04 0000C03F", Is(TypeId::kReal), Held(1.5)},
      {"00 6D 08 08 000000000000F8BF", Is(TypeId::kFloat), Held(-1.5)},
      {"00 6C 03 04 02 03 01 D204", Is(TypeId::kDecimal, 0, 4, 2),  // FreeTDS 1.3.
       Held(Decimal{1234, 2})},
      {"00 6A 11 26 0A 11 00 01000000000000000000000000000000",
       Is(TypeId::kDecimal, 0, 38, 10), Held(Decimal{-1, 10})},
      {"00 6E 08 08 00000000 10270000", Is(TypeId::kMoney), Held(Decimal{10000, 4})},
      {"00 6E 08 08 FFFFFFFF F0D8FFFF", Is(TypeId::kMoney), Held(Decimal{-10000, 4})},
      {"00 6E 04 04 F0D8FFFF", Is(TypeId::kSmallMoney), Held(Decimal{-10000, 4})},
      {"00 6F 08 08 FFFFFFFF 2C010000", Is(TypeId::kDateTime),
       Held(At(693'594, 10'000'000))},
      {"00 6F 04 04 0100 0200", Is(TypeId::kSmallDateTime),
       Held(At(693'596, 1'200'000'000))},
      {"00 24 10 10 04030201 0605 0807 090A0B0C0D0E0F10", Is(TypeId::kUniqueIdentifier),
       Held(guid)},
      {"00 28 03 DAB937", Is(TypeId::kDate), Held(At(3'652'058, 0))},
      {"00 28 00", Is(TypeId::kDate), {}},
      {"00 29 00 03 7F5101", Is(TypeId::kTime), Held(At(0, 863'990'000'000))},
      {"00 2A 03 07 01000000 020000", Is(TypeId::kDateTime2, 0, 0, 3),
       Held(At(2, 10'000))},
      // 23:30 UTC of day 1, an hour east: half past midnight of day 2.
      {"00 2B 00 08 787A01 010000 3C00", Is(TypeId::kDateTimeOffset), {}},
      {"00 2B 00 08 784A01 010000 3C00", Is(TypeId::kDateTimeOffset),
       Held(At(2, 18'000'000'000, 60))},
      {"00 A7 0A00 0904D00034 0200 E980", Is(TypeId::kVarChar, 10),
       Held(Text(u"\u00E9\u20AC"))},
      {"00 A7 0A00 0904D00034 FFFF", Is(TypeId::kVarChar, 10), {}},
      {"00 E7 0A00 0000000000 0400 3DD800DE", Is(TypeId::kNVarChar, 5),
       Held(Text(u"\xD83D\xDE00"))},
      {"00 E7 FFFF 0904D00034 FEFFFFFFFFFFFFFF 02000000 6100 02000000 6200 00000000",
       Is(TypeId::kNVarChar, kMax), Held(Text(u"ab"))},
      {"00 E7 FFFF 0904D00034 FFFFFFFFFFFFFFFF", Is(TypeId::kNVarChar, kMax), {}},
      {"00 A5 FFFF 0000000000000000 00000000", Is(TypeId::kVarBinary, kMax),
       Held(Bytes{})},
      {"00 A5 0A00 0200 00FF", Is(TypeId::kVarBinary, 10), Held(Bytes{0, 255})},
      {"00 63 10000000 0904D00034 02000000 6100", Is(TypeId::kNText, kMax),
       Held(Text(u"a"))},
      {"00 63 10000000 0904D00034 FFFFFFFF", Is(TypeId::kNText, kMax), {}},
      {"00 F1 00 0200000000000000 02000000 6100 00000000", Is(TypeId::kXml, kMax),
       Held(Text(u"a"))},
      {"00 62 49 1F0000 06000000 38 00 07000000",
       Is(TypeId::kSqlVariant),
       {std::int64_t{7}, Is(TypeId::kInt)}},
      {"00 62 491F0000 0B000000 E7 07 0904D00034 1000 6100",
       Is(TypeId::kSqlVariant),
       {Text(u"a"), Is(TypeId::kNVarChar, 8)}},
      {"00 62 491F0000 00000000", Is(TypeId::kSqlVariant), {}},
  };
}

TEST(Rpc, ReadsEveryTypeOfParameter) {
  for (const ParameterCase& c : ParameterCases()) {
    const std::optional<RpcRequest> request = CallWith(c.hex);
    if (std::string_view(c.hex).starts_with("00 2B 00 08 787A01")) {
      EXPECT_FALSE(request) << "a time past midnight";
      continue;
    }
    ASSERT_TRUE(request && !request->refused) << c.hex;
    ASSERT_EQ(request->calls[0].parameters.size(), 1u) << c.hex;
    EXPECT_EQ(request->calls[0].parameters[0].type, c.type) << c.hex;
    EXPECT_EQ(request->calls[0].parameters[0].value, c.value) << c.hex;
  }
}

TEST(Rpc, RefusesEveryPrefixOfEveryParameter) {
  for (const ParameterCase& c : ParameterCases()) {
    const auto whole = FromHex(std::string(kHeaders) + "0100 7000 0000 00" + c.hex);
    const std::size_t first = FromHex(kHeaders).size() + 7;  // Up to the name's length.
    for (std::size_t size = first; size < whole.size(); ++size) {
      EXPECT_FALSE(ParseRpc(std::span(whole).first(size), TdsVersion::k74))
          << c.hex << " cut to " << size;
    }
  }
}

TEST(Rpc, RefusesValuesThatBreakTheirType) {
  for (const char* hex :
       {"00 26 03 00", "00 26 04 02 0100", "00 6A 05 27 02 00", "00 6A 05 04 05 00",
        "00 24 10 08 0102030405060708", "00 E7 0A00 0000000000 0100 61",
        "00 A5 0A00 0B00 0000000000000000000000",
        "00 A5 FFFF 0500000000000000 00000000",
        "00 A5 FFFF FEFFFFFFFFFFFFFF FFFFFFFF 00", "00 29 08 03 000000",
        "00 28 03 FFFFFF", "00 2B 00 08 000000 000000 4903",
        "00 6F 08 08 00000000 FFFFFFFF", "00 62 491F0000 FFFFFFFF 38 00",
        "00 62 491F0000 03000000 38 00 07", "00 A5 FF00FF"}) {
    EXPECT_FALSE(CallWith(hex)) << hex;
  }
}

TEST(Rpc, NamesATypeItDoesNotTake) {
  const std::optional<RpcRequest> request = CallWith("00 F3 00 00 00");
  ASSERT_TRUE(request && request->refused);
  EXPECT_EQ(request->refused->type, 0xF3);
  EXPECT_EQ(request->refused->index, 0u);
}

TEST(TransactionRequest, ReadsWhatDriversSend) {
  using Kind = TransactionRequest::Kind;
  struct Case {
    const char* name;
    const char* hex;
    Kind kind;
    std::optional<IsolationLevel> level;
    bool next;
  };
  const Case cases[] = {
      {"begin", "0500 00 00", Kind::kBegin, std::nullopt, false},
      {"begin read committed", "0500 02 00", Kind::kBegin,
       IsolationLevel::kReadCommitted, false},
      {"begin snapshot", "0500 05 00", Kind::kBegin, IsolationLevel::kSnapshot, false},
      {"commit", "0700 00 00", Kind::kCommit, std::nullopt, false},
      {"commit and begin", "0700 00 01 00 00", Kind::kCommit, std::nullopt, true},
      {"rollback and begin", "0800 00 01 00 00", Kind::kRollback, std::nullopt, true},
      {"promote", "0600", Kind::kOther, std::nullopt, false},
  };
  for (const Case& c : cases) {
    const auto request = ParseTransactionRequest(FromHex(std::string(kHeaders) + c.hex),
                                                 TdsVersion::k74);
    ASSERT_TRUE(request) << c.name;
    EXPECT_EQ(request->kind, c.kind) << c.name;
    EXPECT_EQ(request->level, c.level) << c.name;
    EXPECT_EQ(request->begins_next, c.next) << c.name;
  }
  for (const char* hex : {"", "05", "0500", "0500 06 00", "0700 01 61", "0700 00 01"}) {
    EXPECT_FALSE(
        ParseTransactionRequest(FromHex(std::string(kHeaders) + hex), TdsVersion::k74))
        << hex;
  }
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

// ENVCHANGE (MS-TDS 2.2.7.9): u16 length, u8 type, new value, old value. The shape of
// the values depends on the type.

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"
#include "tds/tokens.h"
#include "tds/utf16.h"

namespace mssql_cdc::tds {
namespace {

Error Malformed(std::uint8_t type, std::string_view why) {
  return Error(ErrorId::kTdsMalformed)
      .With("token", "ENVCHANGE")
      .With("type", std::to_string(type))
      .With("why", std::string(why));
}

Result<Token> PacketSize(Reader& body) {
  const std::string text = Utf8FromUtf16(body.ByteVarChar());
  body.ByteVarChar();
  if (!body.ok()) return Token(Skipped{TokenId::kEnvChange});
  const auto size = ParseInt64(text);
  // SQL Server's largest packet is 32767 bytes, which servers also state as 32768.
  if (!size || *size < static_cast<std::int64_t>(kTdsPacketSizeBytesMin) ||
      *size > static_cast<std::int64_t>(kTdsPacketSizeBytesMax) + 1) {
    return Malformed(static_cast<std::uint8_t>(EnvChange::kPacketSize),
                     "packet size out of range");
  }
  return Token(PacketSizeChanged{static_cast<std::uint16_t>(*size)});
}

Result<Token> Collation(Reader& body) {
  const auto bytes = body.Bytes(body.Le<std::uint8_t>());
  body.Bytes(body.Le<std::uint8_t>());
  CollationChanged changed;
  if (bytes.size() == changed.collation.size()) {
    std::ranges::copy(bytes, changed.collation.begin());
  } else if (!bytes.empty()) {
    return Malformed(static_cast<std::uint8_t>(EnvChange::kCollation),
                     "a collation has five bytes");
  }
  return Token(changed);
}

// The descriptor is the new value of 8 (begun) and absent once a transaction ended.
Result<Token> Transaction(std::uint8_t type, Reader& body) {
  const auto now = body.Bytes(body.Le<std::uint8_t>());
  body.Bytes(body.Le<std::uint8_t>());
  TransactionChanged changed;
  if (type != static_cast<std::uint8_t>(EnvChange::kBeginTransaction)) {
    return Token(changed);
  }
  if (body.ok() && now.size() != sizeof(changed.descriptor)) {
    return Malformed(type, "a transaction descriptor has eight bytes");
  }
  changed.descriptor = Reader(now).Le<std::uint64_t>();
  return Token(changed);
}

// u16 length, u8 protocol (0: TCP), u16 port, server; the old value is a u16 zero.
Result<Token> Routing(std::uint8_t type, Reader& body) {
  const auto bytes = body.Bytes(body.Le<std::uint16_t>());
  body.Bytes(body.Le<std::uint16_t>());
  if (!body.ok()) return Token(Skipped{TokenId::kEnvChange});
  Reader value(bytes);
  Routed routed;
  const auto protocol = value.Le<std::uint8_t>();
  routed.port = value.Le<std::uint16_t>();
  routed.host = Utf8FromUtf16(value.ShortVarChar());
  if (!value.ok() || protocol != 0 || routed.port == 0 || routed.host.empty()) {
    return Malformed(type, "no TCP address");
  }
  return Token(routed);
}

}  // namespace

Result<Token> DecodeEnvChange(TokenId id, Reader& in) {
  const auto bytes = in.Bytes(in.Le<std::uint16_t>());
  if (!in.ok()) return Token(Skipped{id});
  Reader body(bytes);
  const auto type = body.Le<std::uint8_t>();
  if (!body.ok()) return Malformed(type, "no type");

  Result<Token> token = Token(Skipped{id});
  switch (static_cast<EnvChange>(type)) {
    case EnvChange::kDatabase:
      token = Token(DatabaseChanged{Utf8FromUtf16(body.ByteVarChar())});
      body.ByteVarChar();
      break;
    case EnvChange::kPacketSize:
      token = PacketSize(body);
      break;
    case EnvChange::kCollation:
      token = Collation(body);
      break;
    case EnvChange::kBeginTransaction:
    case EnvChange::kCommitTransaction:
    case EnvChange::kRollbackTransaction:
    case EnvChange::kDefectTransaction:
    case EnvChange::kTransactionEnded:
      token = Transaction(type, body);
      break;
    case EnvChange::kRouting:
      token = Routing(type, body);
      break;
    // Nothing here concerns this client. Enhanced routing (21) is only sent to who
    // announced the feature. Types that are not listed are later additions, which
    // MS-TDS asks clients to step over by length.
    case EnvChange::kLanguage:
    case EnvChange::kCharset:
    case EnvChange::kEnlistTransaction:
    case EnvChange::kMirroringPartner:
    case EnvChange::kPromoteTransaction:
    case EnvChange::kTransactionManagerAddress:
    case EnvChange::kResetAck:
    case EnvChange::kUserInstance:
    case EnvChange::kEnhancedRouting:
      return token;
  }
  if (!token.ok() || std::holds_alternative<Skipped>(token.value())) {
    if (token.ok() && !body.ok()) return Malformed(type, "values past the token's end");
    return token;
  }
  if (!body.ok()) return Malformed(type, "values past the token's end");
  if (body.remaining() != 0) return Malformed(type, "bytes after the values");
  return token;
}

}  // namespace mssql_cdc::tds

#include "sim/wire/tokens.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::uint8_t kLoginInterface = 1;     // T-SQL.
constexpr std::size_t kMessageUnitsMax = 2048;  // SQL Server's own limit of a message.

void Token(ByteBuffer& out, tds::TokenId token) {
  out.U8(static_cast<std::uint8_t>(token));
}

// `content` with its length of two bytes before it. Requires that it fits.
void WithLength(ByteBuffer& out, const ByteBuffer& content) {
  out.U16(static_cast<std::uint16_t>(content.bytes().size()));
  out.Raw(content.bytes());
}

}  // namespace

void WriteMessage(ByteBuffer& out, const Message& message, std::string_view server,
                  TdsVersion version) {
  Token(out, message.severity > 10 ? tds::TokenId::kError : tds::TokenId::kInfo);
  ByteBuffer content;
  content.I32(message.number);
  content.U8(message.state);
  content.U8(message.severity);
  content.UsVarChar(
      std::u16string_view(Utf16(message.text)).substr(0, kMessageUnitsMax));
  content.BVarChar(Utf16(server));
  content.BVarChar(Utf16(message.procedure));
  if (version < TdsVersion::k72) {
    content.U16(static_cast<std::uint16_t>(message.line));
  } else {
    content.I32(message.line);
  }
  WithLength(out, content);
}

void WriteDone(ByteBuffer& out, tds::TokenId token, std::uint16_t status,
               std::uint16_t command, std::uint64_t row_count, TdsVersion version) {
  Token(out, token);
  out.U16(status);
  out.U16(command);
  if (version < TdsVersion::k72) {
    out.U32(static_cast<std::uint32_t>(row_count));
  } else {
    out.U64(row_count);
  }
}

void WriteEnvChange(ByteBuffer& out, tds::EnvChange kind, std::string_view now,
                    std::string_view before) {
  Token(out, tds::TokenId::kEnvChange);
  ByteBuffer content;
  content.U8(static_cast<std::uint8_t>(kind));
  content.BVarChar(Utf16(now));
  content.BVarChar(Utf16(before));
  WithLength(out, content);
}

void WriteCollationChange(ByteBuffer& out, const CollationBytes& collation) {
  Token(out, tds::TokenId::kEnvChange);
  ByteBuffer content;
  content.U8(static_cast<std::uint8_t>(tds::EnvChange::kCollation));
  content.U8(static_cast<std::uint8_t>(collation.size()));
  content.Raw(std::span<const std::uint8_t>(collation));
  content.U8(0);
  WithLength(out, content);
}

void WriteTransactionChange(ByteBuffer& out, tds::EnvChange kind,
                            std::uint64_t descriptor) {
  Token(out, tds::TokenId::kEnvChange);
  ByteBuffer content;
  content.U8(static_cast<std::uint8_t>(kind));
  const bool begins = kind == tds::EnvChange::kBeginTransaction;
  if (!begins) content.U8(0);
  content.U8(sizeof descriptor);
  content.U64(descriptor);
  if (begins) content.U8(0);
  WithLength(out, content);
}

void WriteResetAck(ByteBuffer& out) {
  Token(out, tds::TokenId::kEnvChange);
  out.U16(3);
  out.U8(static_cast<std::uint8_t>(tds::EnvChange::kResetAck));
  out.U16(0);  // No new value, no old one.
}

void WriteReturnStatus(ByteBuffer& out, std::int32_t status) {
  Token(out, tds::TokenId::kReturnStatus);
  out.I32(status);
}

void WriteLoginAck(ByteBuffer& out, std::uint32_t tds_version, Engine::Version server) {
  Token(out, tds::TokenId::kLoginAck);
  ByteBuffer content;
  content.U8(kLoginInterface);
  content.U32Be(tds_version);
  content.BVarChar(u"Microsoft SQL Server");
  content.U8(server.major);
  content.U8(server.minor);
  content.U16Be(server.build);
  WithLength(out, content);
}

void WriteFeatureAck(ByteBuffer& out, bool fed_auth, bool utf8_support) {
  Token(out, tds::TokenId::kFeatureExtAck);
  if (fed_auth) {
    out.U8(static_cast<std::uint8_t>(tds::Feature::kFedAuth));
    out.U32(0);
  }
  if (utf8_support) {
    out.U8(static_cast<std::uint8_t>(tds::Feature::kUtf8Support));
    out.U32(1);
    out.U8(1);
  }
  out.U8(static_cast<std::uint8_t>(tds::Feature::kTerminator));
}

// Options {id u8, length u32, offset u32 from the count}, then their text.
void WriteFedAuthInfo(ByteBuffer& out, std::string_view sts_url, std::string_view spn) {
  constexpr std::uint8_t kStsUrl = 1;
  constexpr std::uint8_t kSpn = 2;
  const std::u16string url = Utf16(sts_url);
  const std::u16string name = Utf16(spn);
  constexpr std::uint32_t kDataOffset = 4 + 2 * 9;
  const auto url_size = static_cast<std::uint32_t>(url.size() * 2);
  const auto name_size = static_cast<std::uint32_t>(name.size() * 2);
  Token(out, tds::TokenId::kFedAuthInfo);
  out.U32(kDataOffset + url_size + name_size);
  out.U32(2);
  out.U8(kStsUrl);
  out.U32(url_size);
  out.U32(kDataOffset);
  out.U8(kSpn);
  out.U32(name_size);
  out.U32(kDataOffset + url_size);
  out.Raw(url);
  out.Raw(name);
}

Message DatabaseContextMessage(std::string_view database) {
  Message message;
  message.number = 5701;
  message.state = 2;
  message.severity = 0;
  message.text = "Changed database context to '" + std::string(database) + "'.";
  return message;
}

}  // namespace mssql_cdc::sim::wire

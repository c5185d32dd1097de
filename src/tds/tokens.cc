#include "tds/tokens.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "tds/type_info.h"
#include "tds/utf16.h"

namespace mssql_cdc::tds {
namespace {

Error Malformed(TokenId id, std::size_t announced, std::size_t used) {
  return Error(ErrorId::kTdsMalformed)
      .With("token", fmt::format("0x{:02X}", static_cast<unsigned>(id)))
      .With("announced_bytes", std::to_string(announced))
      .With("used_bytes", std::to_string(used));
}

Error TooLong(TokenId id, std::uint64_t announced) {
  return Error(ErrorId::kTdsLimitExceeded)
      .With("token", fmt::format("0x{:02X}", static_cast<unsigned>(id)))
      .With("announced_bytes", std::to_string(announced))
      .With("limit_bytes", std::to_string(kTdsTokenSizeBytesMax));
}

// The value of a body whose fields must take exactly the bytes announced for it.
template <typename T>
Result<Token> Whole(TokenId id, const Reader& body, std::size_t announced, T value) {
  if (!body.ok() || body.remaining() != 0) {
    return Malformed(id, announced, body.offset());
  }
  return Token(std::move(value));
}

}  // namespace

Result<Token> DecodeDone(TokenId id, Reader& in) {
  Done done;
  done.id = id;
  done.status = in.Le<std::uint16_t>();
  done.command = in.Le<std::uint16_t>();
  done.row_count = in.Le<std::uint64_t>();
  return Token(done);
}

Result<Token> DecodeReturnStatus(TokenId, Reader& in) {
  return Token(ReturnStatus{static_cast<std::int32_t>(in.Le<std::uint32_t>())});
}

Result<Token> DecodeServerMessage(TokenId id, Reader& in) {
  const auto bytes = in.Bytes(in.Le<std::uint16_t>());
  if (!in.ok()) return Token(Skipped{id});
  Reader body(bytes);
  ServerMessage message;
  message.is_error = id == TokenId::kError;
  message.number = static_cast<std::int32_t>(body.Le<std::uint32_t>());
  message.state = body.Le<std::uint8_t>();
  message.severity = body.Le<std::uint8_t>();
  message.message = Utf8FromUtf16(body.ShortVarChar());
  message.server = Utf8FromUtf16(body.ByteVarChar());
  message.procedure = Utf8FromUtf16(body.ByteVarChar());
  message.line = body.Le<std::uint32_t>();
  return Whole(id, body, bytes.size(), std::move(message));
}

Result<Token> DecodeLoginAck(TokenId id, Reader& in) {
  const auto bytes = in.Bytes(in.Le<std::uint16_t>());
  if (!in.ok()) return Token(Skipped{id});
  Reader body(bytes);
  LoginAck ack;
  ack.interface_type = body.Le<std::uint8_t>();
  ack.tds_version = body.Be<std::uint32_t>();
  ack.program = Utf8FromUtf16(body.ByteVarChar());
  ack.major_version = body.Le<std::uint8_t>();
  ack.minor_version = body.Le<std::uint8_t>();
  ack.build = body.Be<std::uint16_t>();
  // Servers pad the program name with NUL characters to a fixed length.
  while (!ack.program.empty() && ack.program.back() == '\0') ack.program.pop_back();
  return Whole(id, body, bytes.size(), std::move(ack));
}

// FEATUREEXTACK has no length of its own: {id, u32 length, data} until id 0xFF.
Result<Token> DecodeFeatureExtAck(TokenId id, Reader& in) {
  FeatureExtAck ack;
  const std::size_t begin = in.offset();
  while (true) {
    const auto feature = in.Le<std::uint8_t>();
    if (!in.ok()) return Token(Skipped{id});
    if (feature == static_cast<std::uint8_t>(Feature::kTerminator)) break;
    const auto size = in.Le<std::uint32_t>();
    const std::uint64_t total = in.offset() - begin + std::uint64_t{size};
    if (total > kTdsTokenSizeBytesMax) return TooLong(id, total);
    const auto data = in.Bytes(size);
    if (!in.ok()) return Token(Skipped{id});
    ack.features.push_back({feature, {data.begin(), data.end()}});
  }
  return Token(std::move(ack));
}

// RETURNVALUE has no length of its own: only its type tells where the value ends.
Result<Token> DecodeReturnValue(TokenId id, Reader& in) {
  in.Le<std::uint16_t>();  // Ordinal.
  in.ByteVarChar();        // Name.
  in.Le<std::uint8_t>();   // Status: output parameter or result of a function.
  in.Le<std::uint32_t>();  // UserType.
  in.Le<std::uint16_t>();  // Flags.
  if (!in.ok()) return Token(Skipped{id});
  TRY_ASSIGN(const TypeInfo type, ReadTypeInfo(in));
  if (!in.ok()) return Token(Skipped{id});
  TRY(SkipValue(type, in));
  return Token(Skipped{id});
}

// u32 length, then u32 count, `count` times {u8 id, u32 length, u32 offset from the
// count}, and the UTF-16 texts that they point to.
Result<Token> DecodeFedAuthInfo(TokenId id, Reader& in) {
  constexpr std::uint8_t kStsUrl = 1;
  constexpr std::uint8_t kSpn = 2;
  const auto size = in.Le<std::uint32_t>();
  if (size > kTdsTokenSizeBytesMax) return TooLong(id, size);
  const auto bytes = in.Bytes(size);
  if (!in.ok()) return Token(Skipped{id});
  Reader body(bytes);
  FedAuthInfo info;
  const auto count = body.Le<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && body.ok(); ++i) {
    const auto option = body.Le<std::uint8_t>();
    const std::uint64_t length = body.Le<std::uint32_t>();
    const std::uint64_t offset = body.Le<std::uint32_t>();
    if (!body.ok() || length % 2 != 0 || offset + length > bytes.size()) {
      return Malformed(id, bytes.size(), body.offset());
    }
    std::string text = Utf8FromUtf16(bytes.subspan(static_cast<std::size_t>(offset),
                                                   static_cast<std::size_t>(length)));
    if (option == kStsUrl) info.sts_url = std::move(text);
    if (option == kSpn) info.spn = std::move(text);
  }
  if (!body.ok()) return Malformed(id, bytes.size(), body.offset());
  return Token(std::move(info));
}

Result<Token> SkipShortPrefixed(TokenId id, Reader& in) {
  in.Bytes(in.Le<std::uint16_t>());
  return Token(Skipped{id});
}

Result<Token> SkipLongPrefixed(TokenId id, Reader& in) {
  const auto size = in.Le<std::uint32_t>();
  if (size > kTdsTokenSizeBytesMax) return TooLong(id, size);
  in.Bytes(size);
  return Token(Skipped{id});
}

Result<std::optional<Token>> DecodeToken(Reader& in) {
  Reader ahead = in;
  const auto id = static_cast<TokenId>(ahead.Le<std::uint8_t>());
  if (!ahead.ok()) return std::optional<Token>{};

  const auto* rule = std::ranges::find(kTokenRules, id, &TokenRule::id);
  const bool listed = rule != kTokenRules.end();
  if (!listed || rule->decode == nullptr) {
    return Error(ErrorId::kTdsRefusedToken)
        .With("token", listed ? std::string(rule->name)
                              : fmt::format("0x{:02X}", static_cast<unsigned>(id)));
  }

  auto token = rule->decode(id, ahead);
  if (!token.ok()) return std::move(token).error();
  if (!ahead.ok()) return std::optional<Token>{};
  in = ahead;
  return std::optional<Token>(std::move(token).value());
}

}  // namespace mssql_cdc::tds

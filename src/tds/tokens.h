// The server-to-client tokens of MS-TDS that are not rows, and what this client does
// with each.
//
// kTokenRules is the whole dispatch: an id that is not in it is a protocol error.
// COLMETADATA, ROW and NBCROW are decoded by tds/reply.h and have no rule here. Tokens
// are cited by their MS-TDS name; section numbers move between revisions. Layouts are
// those of TDS 7.2 and later.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "tds/reader.h"
#include "tds/spec.h"

namespace mssql_cdc::tds {

// DONE, DONEPROC and DONEINPROC. `row_count` means something only with kDoneCount in
// `status`.
struct Done {
  TokenId id = TokenId::kDone;
  std::uint16_t status = 0;
  std::uint16_t command = 0;
  std::uint64_t row_count = 0;

  bool operator==(const Done&) const = default;
};

struct ReturnStatus {
  std::int32_t value = 0;
  bool operator==(const ReturnStatus&) const = default;
};

// ERROR and INFO. The texts are the server's: hostile until shown otherwise.
struct ServerMessage {
  bool is_error = false;
  std::int32_t number = 0;
  std::uint8_t state = 0;
  std::uint8_t severity = 0;  // The token's Class; above 10 an error, from 20 on fatal.
  std::string message;
  std::string server;
  std::string procedure;
  std::uint32_t line = 0;

  bool operator==(const ServerMessage&) const = default;
};

struct LoginAck {
  std::uint8_t interface_type = 0;
  std::uint32_t tds_version = 0;  // As kTds74 and the others.
  std::string program;
  std::uint8_t major_version = 0;
  std::uint8_t minor_version = 0;
  std::uint16_t build = 0;

  bool operator==(const LoginAck&) const = default;
};

// What ENVCHANGE reports, as far as it concerns this client; other types are Skipped.
struct DatabaseChanged {
  std::string name;
  bool operator==(const DatabaseChanged&) const = default;
};
struct PacketSizeChanged {
  std::uint16_t size_bytes = 0;  // Within kTdsPacketSizeBytesMin and -Max.
  bool operator==(const PacketSizeChanged&) const = default;
};
struct CollationChanged {
  std::array<std::uint8_t, 5> collation{};  // All zero: none.
  bool operator==(const CollationChanged&) const = default;
};
struct TransactionChanged {
  std::uint64_t descriptor = 0;  // 0: no transaction.
  bool operator==(const TransactionChanged&) const = default;
};
struct Routed {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const Routed&) const = default;
};

struct FeatureAck {
  std::uint8_t feature = 0;
  std::vector<std::uint8_t> data;
  bool operator==(const FeatureAck&) const = default;
};
struct FeatureExtAck {
  std::vector<FeatureAck> features;
  bool operator==(const FeatureExtAck&) const = default;
};

// FEDAUTHINFO: the server wants a token, and says where one comes from and what it is
// for. Only in answer to a login that offers to bring one.
struct FedAuthInfo {
  std::string sts_url;  // "https://login.windows.net/<tenant>"
  std::string spn;      // "https://database.windows.net/"
  bool operator==(const FedAuthInfo&) const = default;
};

// A token that changes nothing for this client; it was read to its end.
struct Skipped {
  TokenId id = TokenId::kOrder;
  bool operator==(const Skipped&) const = default;
};

using Token = std::variant<Done, ReturnStatus, ServerMessage, LoginAck, DatabaseChanged,
                           PacketSizeChanged, CollationChanged, TransactionChanged,
                           Routed, FeatureExtAck, FedAuthInfo, Skipped>;

// Reads what follows the id. A decoder that ran past the end leaves `in` failed and its
// value meaningless. Errors: TdsMalformed, TdsLimitExceeded.
using TokenDecoder = Result<Token> (*)(TokenId id, Reader& in);

struct TokenRule {
  TokenId id;
  std::string_view name;
  // Null: MS-TDS has the token, but nothing this client asks for makes a server send
  // it, so it is refused by name.
  TokenDecoder decode;
};

Result<Token> DecodeDone(TokenId id, Reader& in);
Result<Token> DecodeReturnStatus(TokenId id, Reader& in);
Result<Token> DecodeServerMessage(TokenId id, Reader& in);
Result<Token> DecodeReturnValue(TokenId id, Reader& in);
Result<Token> DecodeLoginAck(TokenId id, Reader& in);
Result<Token> DecodeFeatureExtAck(TokenId id, Reader& in);
Result<Token> DecodeEnvChange(TokenId id, Reader& in);
Result<Token> DecodeFedAuthInfo(TokenId id, Reader& in);
Result<Token> SkipShortPrefixed(TokenId id, Reader& in);  // u16 length
Result<Token> SkipLongPrefixed(TokenId id, Reader& in);   // u32 length

inline constexpr std::array kTokenRules = {
    TokenRule{TokenId::kOffset, "OFFSET", nullptr},
    TokenRule{TokenId::kReturnStatus, "RETURNSTATUS", DecodeReturnStatus},
    TokenRule{TokenId::kAltMetadata, "ALTMETADATA", nullptr},
    TokenRule{TokenId::kDataClassification, "DATACLASSIFICATION", nullptr},
    TokenRule{TokenId::kTabName, "TABNAME", SkipShortPrefixed},
    TokenRule{TokenId::kColInfo, "COLINFO", SkipShortPrefixed},
    TokenRule{TokenId::kOrder, "ORDER", SkipShortPrefixed},
    TokenRule{TokenId::kError, "ERROR", DecodeServerMessage},
    TokenRule{TokenId::kInfo, "INFO", DecodeServerMessage},
    TokenRule{TokenId::kReturnValue, "RETURNVALUE", DecodeReturnValue},
    TokenRule{TokenId::kLoginAck, "LOGINACK", DecodeLoginAck},
    TokenRule{TokenId::kFeatureExtAck, "FEATUREEXTACK", DecodeFeatureExtAck},
    TokenRule{TokenId::kAltRow, "ALTROW", nullptr},
    TokenRule{TokenId::kEnvChange, "ENVCHANGE", DecodeEnvChange},
    TokenRule{TokenId::kSessionState, "SESSIONSTATE", SkipLongPrefixed},
    TokenRule{TokenId::kSspi, "SSPI", nullptr},
    TokenRule{TokenId::kFedAuthInfo, "FEDAUTHINFO", DecodeFedAuthInfo},
    TokenRule{TokenId::kDone, "DONE", DecodeDone},
    TokenRule{TokenId::kDoneProc, "DONEPROC", DecodeDone},
    TokenRule{TokenId::kDoneInProc, "DONEINPROC", DecodeDone},
};
static_assert(std::ranges::adjacent_find(kTokenRules, std::ranges::greater_equal{},
                                         &TokenRule::id) == kTokenRules.end(),
              "kTokenRules is in ascending order of id, each id once");

// Decodes the token at the front of `in`.
//
// Returns the token and leaves `in` behind it; or nullopt, `in` untouched, if the
// bytes end inside it (the caller reads another packet and asks again). A token never
// takes more than kTdsTokenSizeBytesMax bytes, so a caller that holds that many and is
// still asked for more does not occur.
// Errors: TdsRefusedToken for an id that has no rule or a refused one; TdsMalformed,
// TdsLimitExceeded.
Result<std::optional<Token>> DecodeToken(Reader& in);

}  // namespace mssql_cdc::tds

// What a client sends before it is logged in: PRELOGIN, LOGIN7, a federated token.
// Pure: bytes in, values out; nullopt for whatever breaks the layout.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace mssql_cdc::sim::wire {

// MS-TDS 2.2.6.5.
struct Prelogin {
  std::optional<std::uint8_t> encryption;
  bool asks_fed_auth = false;  // FEDAUTHREQUIRED is there.
};
std::optional<Prelogin> ParsePrelogin(std::span<const std::uint8_t> body);

// The LOGIN7 feature FEDAUTH (2.2.6.4).
struct FedAuth {
  enum class Library : std::uint8_t { kSecurityToken, kAskLater };
  Library library = Library::kSecurityToken;
  std::string token;  // kSecurityToken only.
};

// MS-TDS 2.2.6.4. Text is UTF-8.
struct Login7 {
  std::uint32_t tds_version = 0;
  std::uint32_t packet_size_bytes = 0;
  std::string host;
  std::string user;
  std::string password;
  std::string application;
  std::string language;
  std::string database;
  bool read_only_intent = false;
  bool integrated_security = false;
  bool has_features = false;
  bool utf8_support = false;
  std::optional<FedAuth> fed_auth;
};
std::optional<Login7> ParseLogin7(std::span<const std::uint8_t> body);

// Message type 8 (2.2.6.3): the token that FEDAUTHINFO asked for.
std::optional<std::string> ParseFedAuthToken(std::span<const std::uint8_t> body);

// The generations of TDS that differ on the wire.
enum class TdsVersion : std::uint8_t { k70, k71, k72, k73a, k73b, k74, k80 };
// What is spoken with a client that names `asked` in LOGIN7. An unknown newer one gets
// 7.4, an older one nullopt. 8.0 must be asked for, inside strict encryption too: to a
// client that asked 7.4 there, SQL Server 2022 spoke 7.4 (dotnet/SqlClient issue 1652).
std::optional<TdsVersion> NegotiateVersion(std::uint32_t asked, bool strict);
// As LOGINACK shows it, big-endian there: for every version the number the client sent.
std::uint32_t AckedVersion(TdsVersion version, std::uint32_t asked);

}  // namespace mssql_cdc::sim::wire

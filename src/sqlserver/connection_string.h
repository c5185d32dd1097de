// What a connection string says, in the form of Microsoft's ODBC driver.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/secret.h"

namespace mssql_cdc::sqlserver {

enum class Encrypt : std::uint8_t {
  kMandatory,  // Encrypt=yes|true|mandatory (the default): TLS inside PRELOGIN.
  kStrict,  // Encrypt=strict: TDS 8.0, TLS first; the certificate is always verified.
  kLoginOnly,  // Encrypt=optional|no|false: asked for by name; only the login is
               // encrypted, or nothing where the server has no encryption at all.
};

// Keyword Authentication. The last two log in with a token that somebody else gets.
enum class Authentication : std::uint8_t {
  kNotGiven,
  kSqlPassword,
  kManagedIdentity,   // ActiveDirectoryMsi, ActiveDirectoryManagedIdentity
  kServicePrincipal,  // ActiveDirectoryServicePrincipal
};

// What a server says of where a token for it comes from. It may be anybody's words:
// whoever has a secret to lose decides whether to follow them.
struct TokenPlace {
  std::string sts_url;
  std::string spn;
};
// Gets a token in the middle of a login, within `limit_ms` (0: no limit).
using AskToken =
    std::function<Result<Secret>(const TokenPlace& place, std::int64_t limit_ms)>;

struct ConnectOptions {
  std::string host;
  std::optional<std::uint16_t> port;    // Absent: 1433, or what SQL Browser says.
  std::optional<std::string> instance;  // From host\instance.
  std::string database;
  std::string user;
  Secret password;
  std::optional<Secret> access_token;
  AskToken ask_token;  // In place of user, password and access_token.
  Authentication authentication = Authentication::kNotGiven;
  Encrypt encrypt = Encrypt::kMandatory;
  bool trust_server_certificate = false;
  std::optional<std::string> host_name_in_certificate;
  std::optional<std::string> server_certificate;  // PEM file: this very leaf.
  std::optional<std::string> ca_file;             // CAFile: PEM of extra roots.
  bool read_only_intent = false;
  std::string application_name = "mssql-cdc";
  std::string workstation;
  std::int64_t connect_timeout_ms = 30'000;
  // How long a reply may be without a byte; 0: no limit, since a query may take long.
  std::int64_t silence_timeout_ms = 0;
  // 0: 32767 in clear, 16383 with encryption.
  std::uint16_t packet_size_bytes = 0;
};

// Reads `text`: key=value pairs separated by ;. Keys in any case, with or without
// blanks and underscores; values may stand in {braces}, with }} for }.
//
//   Server, Address, Addr, Data Source    [tcp:]host[,port] or host\instance; "." and
//                                         "(local)" are localhost
//   Database, Initial Catalog
//   UID, User ID, User; PWD, Password
//   Authentication                        SqlPassword, ActiveDirectoryMsi,
//                                         ActiveDirectoryServicePrincipal
//   Encrypt                               see above
//   TrustServerCertificate                yes|no
//   HostNameInCertificate, ServerCertificate, CAFile
//   ApplicationIntent                     ReadOnly|ReadWrite
//   APP, Application Name; WSID, Workstation ID
//   Packet Size                           512 to 32767
//   Connect Timeout, Connection Timeout, LoginTimeout, Timeout    seconds; 0: no limit
//   Command Timeout                       seconds; 0, the default: no limit
//
// Driver and what only tunes other drivers (Pooling, MultiSubnetFailover, ...) is taken
// and ignored; every address of a name is tried anyway.
//
// Errors: KeywordUnsupported for a known keyword that changes meaning and has no
// support here (Trusted_Connection=yes, another Authentication, MARS, ...)
// and for an unknown one, by name; OptionInvalid for a value outside its choices;
// OptionsClash for a keyword given twice with different values; OptionMissing without a
// server. No error holds a value.
Result<ConnectOptions> ParseConnectionString(std::string_view text);

}  // namespace mssql_cdc::sqlserver

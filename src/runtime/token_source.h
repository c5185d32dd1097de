// Where the access token of a new connection comes from.
//
// Asked each time a connection is opened, so that a stream outlives its tokens. No
// token and no secret is ever part of an error.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/secret.h"
#include "sqlserver/connection_string.h"

namespace mssql_cdc::runtime {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  // Waits at most `limit_ms` (0: no limit). From any thread. Errors: TokenUnavailable,
  // TokenRefused (fact provider).
  virtual Result<Secret> Get(std::int64_t limit_ms) = 0;
};

// Option tokenProvider: "command:" and a shell command that prints a token, or "file:"
// and the path of a file that holds one; blanks around a token are left out. Errors:
// OptionInvalid for another form. Borrows `clock`.
Result<std::shared_ptr<TokenSource>> MakeTokenProvider(std::string_view option,
                                                       Clock& clock);

// A managed identity of the machine (IDENTITY_ENDPOINT and IDENTITY_HEADER where the
// platform sets them, else the metadata endpoint, whose place
// AZURE_POD_IDENTITY_AUTHORITY_HOST may change), or the application `client_id` with
// its secret.
struct EntraLogin {
  std::string client_id;  // Empty: the machine's own identity.
  std::string tenant;     // Only of an application.
  Secret client_secret;   // Only of an application.
  std::string resource;   // "https://database.windows.net/"
};
// Both keep a token until five minutes before it expires. Borrow `clock`.
std::shared_ptr<TokenSource> ManagedIdentityTokens(EntraLogin login, Clock& clock);
// Entra ID itself is where AZURE_AUTHORITY_HOST says, else login.microsoftonline.com.
std::shared_ptr<TokenSource> ApplicationTokens(EntraLogin login, Clock& clock);

// The application `login`, whose tenant the server tells in the middle of each login
// (FEDAUTHINFO). Of what it says only the tenant is taken, and only for the resource of
// a cloud's SQL databases: the secret goes where ApplicationTokens sends it, and no
// token for anything else comes back. Errors: TokenRefused for another resource or no
// tenant. Borrows `clock`.
sqlserver::AskToken AskApplicationTokens(EntraLogin login, Clock& clock);

// The resource that tokens for a server of this name are for: that of its cloud.
std::string TokenResource(std::string_view host);

// Whether `text` can be a tenant's id or domain: nothing that changes a URL.
bool IsTenant(std::string_view text);

}  // namespace mssql_cdc::runtime

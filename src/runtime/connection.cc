#include "runtime/connection.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cdc/option_values.h"

namespace mssql_cdc::runtime {
namespace {

using sqlserver::Authentication;

// The value of `name` in any case.
std::optional<std::string> FindGiven(const std::map<std::string, std::string>& options,
                                     std::string_view name) {
  for (const auto& [key, value] : options) {
    if (EqualsIgnoringAsciiCase(key, name)) return value;
  }
  return std::nullopt;
}

// The same; an empty value counts as not given.
std::optional<std::string> Find(const std::map<std::string, std::string>& options,
                                std::string_view name) {
  std::optional<std::string> value = FindGiven(options, name);
  if (value && value->empty()) value.reset();
  return value;
}

// Which parts of a login are there.
struct Given {
  bool user = false;
  bool password = false;
  bool uid = false;
  bool pwd = false;
  bool access_token = false;
  bool token_provider = false;
  Authentication authentication = Authentication::kNotGiven;
};

Error Clash(std::string option, std::string with) {
  return Error(ErrorId::kOptionsClash)
      .With("option", std::move(option))
      .With("with", std::move(with));
}

Error Missing(const char* option) {
  return Error(ErrorId::kOptionMissing).With("option", option);
}

// A token takes the place of every other login.
Status CheckToken(const Given& given) {
  const std::pair<bool, const char*> others[] = {
      {given.user, "user"},
      {given.password, "password"},
      {given.uid, "UID in connectionString"},
      {given.pwd, "PWD in connectionString"},
      {given.authentication != Authentication::kNotGiven,
       "Authentication in connectionString"}};
  std::string clashes;
  for (const auto& [is_given, name] : others) {
    if (is_given) clashes += (clashes.empty() ? "" : ", ") + std::string(name);
  }
  if (clashes.empty()) return Unit{};
  return Clash(given.access_token ? "accessToken" : "tokenProvider",
               std::move(clashes));
}

Status CheckLogin(const Given& given) {
  if (given.access_token && given.token_provider) {
    return Clash("accessToken", "tokenProvider");
  }
  if (given.access_token || given.token_provider) return CheckToken(given);
  if (given.user && given.uid) return Clash("user", "UID in connectionString");
  if (given.password && given.pwd) return Clash("password", "PWD in connectionString");
  const bool has_password = given.password || given.pwd;
  if (given.authentication == Authentication::kManagedIdentity) {
    if (!has_password) return Unit{};
    return Clash("password", "Authentication=ActiveDirectoryMsi");
  }
  if (!given.user && !given.uid) return Missing("user");
  if (!has_password) return Missing("password");
  return Unit{};
}

// `user` of an application is its id, or id@tenant. Without a tenant the server is
// asked for it, in each login.
Result<std::shared_ptr<TokenSource>> MakeApplicationTokens(
    sqlserver::ConnectOptions& connect, Clock& clock) {
  EntraLogin login;
  const std::size_t at = connect.user.find('@');
  login.client_id = connect.user.substr(0, at);
  if (at != std::string::npos) login.tenant = connect.user.substr(at + 1);
  if (login.tenant.empty()) {
    const char* tenant = std::getenv("AZURE_TENANT_ID");
    if (tenant != nullptr) login.tenant = tenant;
  }
  login.client_secret = connect.password;
  login.resource = TokenResource(connect.host);
  if (login.tenant.empty() && at == std::string::npos) {
    connect.ask_token = AskApplicationTokens(std::move(login), clock);
    return std::shared_ptr<TokenSource>();
  }
  if (!IsTenant(login.tenant)) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "user")
        .With("allowed",
              "the application's id, alone or with its tenant as id@tenant or in "
              "AZURE_TENANT_ID");
  }
  return ApplicationTokens(std::move(login), clock);
}

Result<std::shared_ptr<TokenSource>> MakeTokens(
    sqlserver::ConnectOptions& connect,
    const std::optional<std::string>& token_provider, Clock& clock) {
  if (token_provider) return MakeTokenProvider(*token_provider, clock);
  if (connect.authentication == Authentication::kServicePrincipal) {
    return MakeApplicationTokens(connect, clock);
  }
  if (connect.authentication == Authentication::kManagedIdentity) {
    EntraLogin login;
    login.client_id = connect.user;
    login.resource = TokenResource(connect.host);
    return ManagedIdentityTokens(std::move(login), clock);
  }
  return std::shared_ptr<TokenSource>();
}

}  // namespace

Result<Connection> ParseConnection(const std::map<std::string, std::string>& options,
                                   const std::optional<Secret>& password,
                                   const std::optional<Secret>& access_token,
                                   Clock& clock) {
  const auto text = Find(options, "connectionString");
  if (!text) return Missing("connectionString");
  Connection connection;
  TRY_ASSIGN(connection.options, sqlserver::ParseConnectionString(*text));
  sqlserver::ConnectOptions& connect = connection.options;
  if (const auto timeout = FindGiven(options, "connectTimeout")) {
    TRY_ASSIGN(const std::int64_t seconds,
               cdc::ParseIntegerOption("connectTimeout", *timeout, 0));
    constexpr std::int64_t kSecondsMax = 86'400;
    connect.connect_timeout_ms = std::min(seconds, kSecondsMax) * 1000;
  }

  const auto user = Find(options, "user");
  const auto token_provider = Find(options, "tokenProvider");
  Given given;
  given.user = user.has_value();
  given.password = password && !password->empty();
  given.uid = !connect.user.empty();
  given.pwd = !connect.password.empty();
  given.access_token = access_token && !access_token->empty();
  given.token_provider = token_provider.has_value();
  given.authentication = connect.authentication;
  TRY(CheckLogin(given));
  if (user) connect.user = *user;
  if (given.password) connect.password = *password;
  if (given.access_token) connect.access_token = *access_token;
  TRY_ASSIGN(connection.tokens, MakeTokens(connect, token_provider, clock));
  return connection;
}

}  // namespace mssql_cdc::runtime

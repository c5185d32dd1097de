#include "runtime/connection.h"

#include <utility>
#include <vector>

#include "base/text.h"

namespace mssql_cdc::runtime {
namespace {

// The value of `name` in any case; an empty value counts as not set.
std::optional<std::string> Find(const std::map<std::string, std::string>& options,
                                std::string_view name) {
  for (const auto& [key, value] : options) {
    if (EqualsIgnoringAsciiCase(key, name) && !value.empty()) return value;
  }
  return std::nullopt;
}

Status CheckLogin(const sqlserver::ConnectOptions& from_string, bool user,
                  bool password, bool token) {
  const auto clash = [](std::string a, std::string b) {
    return Error(ErrorId::kOptionsClash)
        .With("option", std::move(a))
        .With("with", std::move(b));
  };
  const bool uid = !from_string.user.empty();
  const bool pwd = !from_string.password.empty();
  if (token) {
    const std::pair<bool, const char*> others[] = {{user, "user"},
                                                   {password, "password"},
                                                   {uid, "UID in connectionString"},
                                                   {pwd, "PWD in connectionString"}};
    for (const auto& [given, name] : others) {
      if (given) return clash("accessToken", name);
    }
    return Unit{};
  }
  if (user && uid) return clash("user", "UID in connectionString");
  if (password && pwd) return clash("password", "PWD in connectionString");
  if (!user && !uid) {
    return Error(ErrorId::kOptionMissing).With("option", "user");
  }
  if (!password && !pwd) {
    return Error(ErrorId::kOptionMissing).With("option", "password");
  }
  return Unit{};
}

}  // namespace

Result<sqlserver::ConnectOptions> ParseConnection(
    const std::map<std::string, std::string>& options,
    const std::optional<Secret>& password, const std::optional<Secret>& access_token) {
  if (Find(options, "tokenProvider")) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "tokenProvider")
        .With("allowed", "on Spark only; accessToken = { env = ... } works here");
  }
  const auto text = Find(options, "connectionString");
  if (!text) return Error(ErrorId::kOptionMissing).With("option", "connectionString");
  TRY_ASSIGN(sqlserver::ConnectOptions connect,
             sqlserver::ParseConnectionString(*text));

  const auto user = Find(options, "user");
  const bool has_password = password && !password->empty();
  const bool has_token = access_token && !access_token->empty();
  TRY(CheckLogin(connect, user.has_value(), has_password, has_token));
  if (user) connect.user = *user;
  if (has_password) connect.password = *password;
  if (has_token) connect.access_token = *access_token;

  if (const auto timeout = Find(options, "connectTimeout")) {
    const auto seconds = ParseInt64(Trim(*timeout));
    if (!seconds || *seconds < 0 || *seconds > 86'400) {
      return Error(ErrorId::kOptionInvalid)
          .With("option", "connectTimeout")
          .With("value", *timeout)
          .With("allowed", "seconds, 0 to 86400");
    }
    connect.connect_timeout_ms = *seconds * 1000;
  }
  return connect;
}

}  // namespace mssql_cdc::runtime

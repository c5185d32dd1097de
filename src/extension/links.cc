#include "extension/links.h"

#include <unistd.h>

#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "base/text.h"
#include "fake/fake_session.h"
#include "runtime/connection.h"

namespace mssql_cdc::extension {
namespace {

constexpr std::array kConnectionOptions = {
    "backend",     "connectionString", "user",           "password",
    "accessToken", "tokenProvider",    "connectTimeout", "fakePath"};

class CalledTokens final : public runtime::TokenSource {
 public:
  explicit CalledTokens(std::function<Result<Secret>()> call)
      : call_(std::move(call)) {}
  Result<Secret> Get(std::int64_t) override { return call_(); }

 private:
  std::function<Result<Secret>()> call_;
};

class CalledSessions final : public runtime::SessionSource {
 public:
  explicit CalledSessions(
      std::function<Result<std::unique_ptr<sqlserver::Session>>()> call)
      : call_(std::move(call)) {}
  Result<std::unique_ptr<sqlserver::Session>> Open() override { return call_(); }

 private:
  std::function<Result<std::unique_ptr<sqlserver::Session>>()> call_;
};

bool IsFake(const Options& options) {
  const std::optional<std::string> backend = FindOptionText(options, "backend");
  return backend && EqualsIgnoringAsciiCase(Trim(*backend), "fake");
}

std::optional<Secret> FindSecret(const Options& options, std::string_view name) {
  const std::optional<std::string> text = FindOptionText(options, name);
  if (!text) return std::nullopt;
  return Secret(*text);
}

// Length and text of each, so that no value can be taken for another's end.
std::string KeyOf(const Options& options) {
  std::string key = std::to_string(getpid());
  for (const char* name : kConnectionOptions) {
    const std::optional<std::string> text = FindOptionText(options, name);
    key += text ? ' ' + std::to_string(text->size()) + ':' + *text : " -";
  }
  return key;
}

Result<std::unique_ptr<Link>> MakeLink(const Options& options, const Access& access) {
  auto link = std::make_unique<Link>();
  if (access.connect || IsFake(options)) {
    if (access.connect) {
      link->sessions = std::make_unique<CalledSessions>(access.connect);
    } else {
      link->sessions = std::make_unique<fake::FakeSessions>(
          FindOptionText(options, "fakePath").value_or(""));
    }
    link->pool = std::make_unique<runtime::SessionPool>(*link->sessions);
    return link;
  }
  Options plain;
  for (const auto& [name, value] : options) {
    const bool is_secret = EqualsIgnoringAsciiCase(name, "password") ||
                           EqualsIgnoringAsciiCase(name, "accessToken");
    if (is_secret) continue;
    // Stands for the function, so that a login given twice is told by its option.
    const bool is_called =
        access.token && EqualsIgnoringAsciiCase(name, "tokenProvider");
    plain[name] = is_called ? "command:true" : value;
  }
  TRY_ASSIGN(runtime::Connection connection,
             runtime::ParseConnection(plain, FindSecret(options, "password"),
                                      FindSecret(options, "accessToken"), link->clock));
  if (access.token) {
    connection.tokens = std::make_shared<CalledTokens>(access.token);
  }
  link->sessions = std::make_unique<runtime::ServerSessions>(
      connection.options, link->dialer, link->clock, connection.tokens);
  link->pool = std::make_unique<runtime::SessionPool>(*link->sessions);
  return link;
}

}  // namespace

std::optional<std::string> FindOptionText(const Options& options,
                                          std::string_view name) {
  for (const auto& [key, value] : options) {
    if (EqualsIgnoringAsciiCase(key, name) && !value.empty()) return value;
  }
  return std::nullopt;
}

Result<Link*> LinkOf(const Options& options, const Access& access) {
  // Never destroyed: a parent's sessions must not be closed by a child that forked.
  static auto& mutex = *new std::mutex;
  static auto& links = *new std::map<std::string, std::unique_ptr<Link>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Link>& link = links[KeyOf(options)];
  if (!link) {
    TRY_ASSIGN(link, MakeLink(options, access));
  }
  return link.get();
}

}  // namespace mssql_cdc::extension

// Entra ID is reached by https only.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <httplib.h>

#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "runtime/token_source.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::int64_t kRenewBeforeNs = 300'000'000'000;
constexpr std::int64_t kNsPerS = 1'000'000'000;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What an endpoint is asked: one request, form fields for POST.
struct Question {
  const char* provider;  // As errors name it.
  std::string url;       // Scheme and authority, then the path.
  std::string path;
  httplib::Params parameters;
  httplib::Headers headers;
  bool post = false;
};

Error Unavailable(const Question& question, std::string reason) {
  return Error(ErrorId::kTokenUnavailable)
      .With("provider", question.provider)
      .With("endpoint", question.url)
      .With("reason", std::move(reason));
}

// "https://host/path" in two parts; a path of "/" is none.
std::pair<std::string, std::string> SplitUrl(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (slash == std::string::npos) return {url, ""};
  std::string path = url.substr(slash);
  while (path.ends_with('/')) path.pop_back();
  return {url.substr(0, slash), path};
}

// The endpoint's own name of what is wrong: no description, which may repeat the
// request.
std::string CodeOf(const std::string& body) {
  const nlohmann::json reply = nlohmann::json::parse(body, nullptr, false);
  std::string code;
  if (!reply.is_object()) return code;
  if (const auto error = reply.find("error"); error != reply.end()) {
    if (error->is_string()) code = error->get<std::string>().substr(0, 60);
  }
  if (const auto codes = reply.find("error_codes");
      codes != reply.end() && codes->is_array() && !codes->empty() &&
      (*codes)[0].is_number_integer()) {
    code += " AADSTS" + std::to_string((*codes)[0].get<std::int64_t>());
  }
  return code;
}

struct Answer {
  Secret token;
  std::int64_t lifetime_s = 0;
};

Result<Answer> ReadAnswer(const Question& question, const std::string& body) {
  const nlohmann::json reply = nlohmann::json::parse(body, nullptr, false);
  if (!reply.is_object() || !reply.contains("access_token") ||
      !reply["access_token"].is_string() ||
      reply["access_token"].get_ref<const std::string&>().empty()) {
    return Unavailable(question, "its answer has no token");
  }
  Answer answer;
  answer.token = Secret(reply["access_token"].get<std::string>());
  // A number, or a text of one: both are seen.
  if (const auto expires = reply.find("expires_in"); expires != reply.end()) {
    if (expires->is_number_integer()) answer.lifetime_s = expires->get<std::int64_t>();
    if (expires->is_string()) {
      answer.lifetime_s = ParseInt64(expires->get<std::string>()).value_or(0);
    }
  }
  return answer;
}

Result<Answer> Ask(const Question& question, std::int64_t limit_ms) {
  httplib::Client client(question.url);
  if (!client.is_valid()) return Unavailable(question, "it is no URL");
  constexpr std::int64_t kLimitDefaultMs = 30'000;
  const std::int64_t limit = limit_ms == 0 ? kLimitDefaultMs : limit_ms;
  client.set_connection_timeout(limit / 1000, limit % 1000 * 1000);
  client.set_read_timeout(limit / 1000, limit % 1000 * 1000);
  client.set_follow_location(false);
  const httplib::Result result =
      question.post
          ? client.Post(question.path.c_str(), question.headers, question.parameters)
          : client.Get(question.path.c_str(), question.parameters, question.headers);
  if (!result) {
    return Unavailable(question, "no answer: " + httplib::to_string(result.error()));
  }
  if (result->status == 200) return ReadAnswer(question, result->body);
  const bool may_pass = result->status == 404 || result->status == 408 ||
                        result->status == 410 || result->status == 429 ||
                        result->status >= 500;
  return Error(may_pass ? ErrorId::kTokenUnavailable : ErrorId::kTokenRefused)
      .With("provider", question.provider)
      .With("endpoint", question.url)
      .With("status", std::to_string(result->status))
      .With("code", CodeOf(result->body));
}

// http would show the secret or the token to everybody on the way.
bool IsSafe(std::string_view url) {
  if (url.starts_with("https://")) return true;
  for (const std::string_view local : {"http://127.0.0.1", "http://localhost"}) {
    if (!url.starts_with(local)) continue;
    // Not the beginning of another host's name, nor a user's name before one.
    const bool ends = url.size() == local.size() || url[local.size()] == ':';
    if (ends && url.find('@') == std::string_view::npos) return true;
  }
  return false;
}

class EntraTokens : public TokenSource {
 public:
  explicit EntraTokens(Clock& clock) : clock_(clock) {}

  Result<Secret> Get(std::int64_t limit_ms) override {
    const std::lock_guard lock(mutex_);
    if (kept_ && clock_.MonotonicNs() < renew_at_ns_) return *kept_;
    TRY_ASSIGN(const Question question, MakeQuestion());
    TRY_ASSIGN(Answer answer, Ask(question, limit_ms));
    renew_at_ns_ = clock_.MonotonicNs() + answer.lifetime_s * kNsPerS - kRenewBeforeNs;
    kept_ = std::move(answer.token);
    return *kept_;
  }

 protected:
  virtual Result<Question> MakeQuestion() const = 0;

 private:
  Clock& clock_;
  std::mutex mutex_;
  std::optional<Secret> kept_;
  std::int64_t renew_at_ns_ = 0;
};

class IdentityTokens final : public EntraTokens {
 public:
  IdentityTokens(EntraLogin login, Clock& clock)
      : EntraTokens(clock), login_(std::move(login)) {}

 private:
  Result<Question> MakeQuestion() const override {
    Question question{"ActiveDirectoryMsi", "", "", {}, {}, false};
    question.parameters.emplace("resource", login_.resource);
    if (!login_.client_id.empty()) {
      question.parameters.emplace("client_id", login_.client_id);
    }
    const std::string platform = Environment("IDENTITY_ENDPOINT");
    if (!platform.empty()) {
      std::tie(question.url, question.path) = SplitUrl(platform);
      if (question.path.empty()) question.path = "/";
      question.parameters.emplace("api-version", "2019-08-01");
      question.headers.emplace("X-IDENTITY-HEADER", Environment("IDENTITY_HEADER"));
      return question;
    }
    std::string host = Environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    if (host.empty()) host = "http://169.254.169.254";
    std::tie(question.url, question.path) = SplitUrl(host);
    question.path += "/metadata/identity/oauth2/token";
    question.parameters.emplace("api-version", "2018-02-01");
    question.headers.emplace("Metadata", "true");
    return question;
  }

  EntraLogin login_;
};

class PrincipalTokens final : public EntraTokens {
 public:
  PrincipalTokens(EntraLogin login, Clock& clock)
      : EntraTokens(clock), login_(std::move(login)) {}

 private:
  Result<Question> MakeQuestion() const override {
    Question question{"ActiveDirectoryServicePrincipal", "", "", {}, {}, true};
    std::string host = Environment("AZURE_AUTHORITY_HOST");
    if (host.empty()) host = "https://login.microsoftonline.com";
    if (host.find("://") == std::string::npos) host = "https://" + host;
    std::tie(question.url, question.path) = SplitUrl(host);
    if (!IsSafe(question.url)) {
      return Error(ErrorId::kTokenRefused)
          .With("provider", question.provider)
          .With("endpoint", question.url)
          .With("reason", "a secret is only sent by https");
    }
    question.path += "/" + login_.tenant + "/oauth2/v2.0/token";
    question.parameters.emplace("grant_type", "client_credentials");
    question.parameters.emplace("client_id", login_.client_id);
    question.parameters.emplace("client_secret", login_.client_secret.Reveal());
    question.parameters.emplace("scope", login_.resource + ".default");
    return question;
  }

  EntraLogin login_;
};

}  // namespace

std::shared_ptr<TokenSource> ManagedIdentityTokens(EntraLogin login, Clock& clock) {
  return std::make_shared<IdentityTokens>(std::move(login), clock);
}

std::shared_ptr<TokenSource> ApplicationTokens(EntraLogin login, Clock& clock) {
  return std::make_shared<PrincipalTokens>(std::move(login), clock);
}

std::string TokenResource(std::string_view host) {
  const std::string lower = LowerAscii(host);
  for (const std::string_view cloud :
       {"database.usgovcloudapi.net", "database.chinacloudapi.cn"}) {
    if (lower.ends_with(cloud)) return "https://" + std::string(cloud) + "/";
  }
  return "https://database.windows.net/";
}

}  // namespace mssql_cdc::runtime

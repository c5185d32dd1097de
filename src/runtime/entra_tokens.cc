// Entra ID is reached by https only.
#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
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

Error Refused(const Question& question, std::string reason) {
  return Error(ErrorId::kTokenRefused)
      .With("provider", question.provider)
      .With("endpoint", question.url)
      .With("reason", std::move(reason));
}

// What stands between "//" and the path: a host's name or address, and perhaps a port.
bool IsAuthority(std::string_view text) {
  constexpr std::string_view kHostCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  std::size_t end = text.find_first_not_of(kHostCharacters);
  if (text.starts_with('[')) {
    const std::size_t close = text.find_first_not_of("0123456789abcdefABCDEF:.", 1);
    if (close == std::string_view::npos || text[close] != ']') return false;
    end = close + 1 == text.size() ? std::string_view::npos : close + 1;
  }
  if (end == std::string_view::npos) return !text.empty();
  if (end == 0 || text[end] != ':') return false;
  const std::string_view digits = text.substr(end + 1);
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return false;
  const std::optional<std::int64_t> port = ParseInt64(digits);
  return port && *port >= 1 && *port <= 65'535;
}

// Takes "https://host/path" apart into the question's url and path; a path of "/" is
// none. Errors: TokenRefused for what is no http or https URL of a host.
Status PlaceAt(const std::string& url, Question& question) {
  constexpr std::string_view kSchemes[] = {"https://", "http://"};
  const auto* const scheme = std::ranges::find_if(kSchemes, [&](std::string_view each) {
    return EqualsIgnoringAsciiCase(url.substr(0, each.size()), each);
  });
  const std::size_t begin = scheme == std::end(kSchemes) ? 0 : scheme->size();
  const std::size_t slash = url.find('/', begin);
  const std::string authority = url.substr(begin, slash - begin);
  // A user's name before the host may come with a password: neither is shown.
  const std::size_t at = authority.rfind('@');
  const bool has_user = at != std::string::npos;
  question.url = (begin == 0 ? "" : std::string(*scheme)) +
                 authority.substr(has_user ? at + 1 : 0);
  if (begin == 0) return Refused(question, "it begins with neither https nor http");
  if (has_user) {
    return Refused(question, "a host without a user's name is wanted, by https");
  }
  if (!IsAuthority(authority)) return Refused(question, "it names no host and port");
  if (slash != std::string::npos) question.path = url.substr(slash);
  while (question.path.ends_with('/')) question.path.pop_back();
  return Unit{};
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
  constexpr std::int64_t kLifetimeMaxS = 86'400;
  answer.lifetime_s = std::clamp<std::int64_t>(answer.lifetime_s, 0, kLifetimeMaxS);
  return answer;
}

// Ends a request that takes longer than it may: the client's own limits are for each
// step of it.
class Deadline {
 public:
  Deadline(httplib::Client& client, std::int64_t limit_ms)
      : thread_([this, &client, limit_ms] {
          std::unique_lock lock(mutex_);
          auto wait = std::chrono::milliseconds(limit_ms);
          // More than once: it may be between two steps.
          while (!done_.wait_for(lock, wait, [this] { return is_done_; })) {
            has_passed_ = true;
            client.stop();
            wait = std::chrono::milliseconds(50);
          }
        }) {}
  ~Deadline() { (void)HasPassed(); }

  // Ends the watch.
  bool HasPassed() {
    {
      const std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    done_.notify_one();
    if (thread_.joinable()) thread_.join();
    return has_passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  bool has_passed_ = false;
  std::thread thread_;  // Begins when all else is there.
};

Result<Answer> Ask(const Question& question, std::int64_t limit_ms) {
  httplib::Client client(question.url);
  if (!client.is_valid()) return Unavailable(question, "it is no URL");
  constexpr std::int64_t kLimitDefaultMs = 30'000;
  const std::int64_t limit = limit_ms == 0 ? kLimitDefaultMs : limit_ms;
  client.set_connection_timeout(limit / 1000, limit % 1000 * 1000);
  client.set_read_timeout(limit / 1000, limit % 1000 * 1000);
  client.set_write_timeout(limit / 1000, limit % 1000 * 1000);
  client.set_follow_location(false);
  Deadline deadline(client, limit);
  const httplib::Result result =
      question.post
          ? client.Post(question.path.c_str(), question.headers, question.parameters)
          : client.Get(question.path.c_str(), question.parameters, question.headers);
  if (deadline.HasPassed()) return Unavailable(question, "it takes too long");
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
    // Not the beginning of another host's name.
    if (url.size() == local.size() || url[local.size()] == ':') return true;
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
      TRY(PlaceAt(platform, question));
      if (question.path.empty()) question.path = "/";
      question.parameters.emplace("api-version", "2019-08-01");
      question.headers.emplace("X-IDENTITY-HEADER", Environment("IDENTITY_HEADER"));
      return question;
    }
    std::string host = Environment("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    if (host.empty()) host = "http://169.254.169.254";
    TRY(PlaceAt(host, question));
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
    TRY(PlaceAt(host, question));
    if (!IsSafe(question.url))
      return Refused(question, "a secret is only sent by https");
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

bool IsTenant(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWX"
             "YZ0123456789.-") == std::string_view::npos &&
         text.find_first_not_of('.') != std::string_view::npos;
}

sqlserver::AskToken AskApplicationTokens(EntraLogin login, Clock& clock) {
  struct Kept {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<TokenSource>> by_tenant;
  };
  return [login = std::move(login), &clock, kept = std::make_shared<Kept>()](
             const sqlserver::TokenPlace& place,
             std::int64_t limit_ms) -> Result<Secret> {
    const auto refuse = [&](const char* fact, const std::string& value) {
      return Error(ErrorId::kTokenRefused)
          .With("provider", "ActiveDirectoryServicePrincipal")
          .With("reason", "the server asks for what no SQL database does")
          .With(fact, value.substr(0, 200));
    };
    std::string resource = place.spn;
    if (!resource.ends_with('/')) resource += '/';
    constexpr std::string_view kHttps = "https://";
    const bool is_known =
        resource.starts_with(kHttps) &&
        TokenResource(resource.substr(kHttps.size(),
                                      resource.size() - kHttps.size() - 1)) == resource;
    if (!is_known) return refuse("spn", place.spn);
    std::string_view url = place.sts_url;
    while (url.ends_with('/')) url.remove_suffix(1);
    const std::string tenant(url.substr(std::min(url.rfind('/') + 1, url.size())));
    if (!IsTenant(tenant)) return refuse("sts_url", place.sts_url);
    std::shared_ptr<TokenSource> tokens;
    {
      const std::lock_guard lock(kept->mutex);
      std::shared_ptr<TokenSource>& known = kept->by_tenant[tenant + ' ' + resource];
      if (!known) {
        EntraLogin whole = login;
        whole.tenant = tenant;
        whole.resource = resource;
        known = ApplicationTokens(std::move(whole), clock);
      }
      tokens = known;
    }
    return tokens->Get(limit_ms);
  };
}

}  // namespace mssql_cdc::runtime

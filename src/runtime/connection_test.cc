#include "runtime/connection.h"

#include <gtest/gtest.h>

namespace mssql_cdc::runtime {
namespace {

using Options = std::map<std::string, std::string>;

struct Case {
  const char* name;
  Options options;
  std::optional<Secret> password;
  std::optional<Secret> token;
  std::optional<ErrorId> error;
  const char* fact;  // Occurs in the error's text.
};

const Secret kCanary("canary-5ecret");

const Case kCases[] = {
    {"user and password",
     {{"connectionString", "Server=h"}, {"user", "u"}},
     kCanary,
     {},
     {},
     ""},
    {"names in any case",
     {{"CONNECTIONSTRING", "Server=h"}, {"User", "u"}},
     kCanary,
     {},
     {},
     ""},
    {"login inside the string",
     {{"connectionString", "Server=h;UID=u;PWD={canary-5ecret}"}},
     {},
     {},
     {},
     ""},
    {"a token alone", {{"connectionString", "Server=h"}}, {}, kCanary, {}, ""},
    {"no string",
     {{"user", "u"}},
     kCanary,
     {},
     ErrorId::kOptionMissing,
     "option=connectionString"},
    {"no user",
     {{"connectionString", "Server=h"}},
     kCanary,
     {},
     ErrorId::kOptionMissing,
     "option=user"},
    {"no password",
     {{"connectionString", "Server=h"}, {"user", "u"}},
     {},
     {},
     ErrorId::kOptionMissing,
     "option=password"},
    {"user twice",
     {{"connectionString", "Server=h;UID=x"}, {"user", "u"}},
     kCanary,
     {},
     ErrorId::kOptionsClash,
     "UID"},
    {"password twice",
     {{"connectionString", "Server=h;PWD=canary-5ecret"}, {"user", "u"}},
     kCanary,
     {},
     ErrorId::kOptionsClash,
     "PWD"},
    {"token and user",
     {{"connectionString", "Server=h"}, {"user", "u"}},
     {},
     kCanary,
     ErrorId::kOptionsClash,
     "accessToken"},
    {"token and PWD",
     {{"connectionString", "Server=h;PWD=canary-5ecret"}},
     {},
     kCanary,
     ErrorId::kOptionsClash,
     "PWD"},
    {"a timeout below zero",
     {{"connectionString", "Server=h"}, {"user", "u"}, {"connectTimeout", "-1"}},
     kCanary,
     {},
     ErrorId::kOptionInvalid,
     "connectTimeout"},
    {"a timeout that is empty",
     {{"connectionString", "Server=h"}, {"user", "u"}, {"connectTimeout", ""}},
     kCanary,
     {},
     ErrorId::kOptionInvalid,
     "connectTimeout"},
    {"a Python function",
     {{"connectionString", "Server=h"}, {"tokenProvider", "m:f"}},
     {},
     {},
     ErrorId::kOptionInvalid,
     "Spark"},
    {"a provider without a command",
     {{"connectionString", "Server=h"}, {"tokenProvider", "command: "}},
     {},
     {},
     ErrorId::kOptionInvalid,
     "tokenProvider"},
    {"a provider",
     {{"connectionString", "Server=h"}, {"tokenProvider", "file:t"}},
     {},
     {},
     {},
     ""},
    {"an empty provider and a login",
     {{"connectionString", "Server=h"}, {"tokenProvider", ""}, {"user", "u"}},
     kCanary,
     {},
     {},
     ""},
    {"token and provider",
     {{"connectionString", "Server=h"}, {"tokenProvider", "file:t"}},
     {},
     kCanary,
     ErrorId::kOptionsClash,
     "with=tokenProvider"},
    {"every clash of a provider is named",
     {{"connectionString", "Server=h;UID=x;Authentication=SqlPassword"},
      {"user", "u"},
      {"tokenProvider", "file:t"}},
     kCanary,
     {},
     ErrorId::kOptionsClash,
     "with=user, password, UID in connectionString, Authentication in "
     "connectionString"},
    {"token and Authentication",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryMsi"}},
     {},
     kCanary,
     ErrorId::kOptionsClash,
     "Authentication"},
    {"a managed identity",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryMsi"}},
     {},
     {},
     {},
     ""},
    {"a managed identity of the user's",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryMsi"},
      {"user", "id"}},
     {},
     {},
     {},
     ""},
    {"a managed identity with a password",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryMsi"}},
     kCanary,
     {},
     ErrorId::kOptionsClash,
     "ActiveDirectoryMsi"},
    {"an application",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryServicePrincipal"},
      {"user", "id@tenant"}},
     kCanary,
     {},
     {},
     ""},
    {"an application without its secret",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryServicePrincipal"},
      {"user", "id@tenant"}},
     {},
     {},
     ErrorId::kOptionMissing,
     "option=password"},
    {"an application whose tenant is a path",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryServicePrincipal"},
      {"user", "id@../x"}},
     kCanary,
     {},
     ErrorId::kOptionInvalid,
     "id@tenant"},
    {"another kind",
     {{"connectionString", "Server=h;Authentication=ActiveDirectoryInteractive"}},
     {},
     {},
     ErrorId::kKeywordUnsupported,
     "value=ActiveDirectoryInteractive"},
    {"a kind nobody knows may be a secret",
     {{"connectionString", "Server=h;Authentication=canary"}},
     {},
     {},
     ErrorId::kKeywordUnsupported,
     "Authentication"},
};

TEST(Connection, EachWayToLogInAndEachClash) {
  ManualClock clock(0);
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto parsed = ParseConnection(c.options, c.password, c.token, clock);
    ASSERT_EQ(parsed.ok(), !c.error.has_value());
    if (parsed.ok()) continue;
    EXPECT_EQ(parsed.error().id(), *c.error);
    EXPECT_NE(parsed.error().Text().find(c.fact), std::string::npos)
        << parsed.error().Text();
    EXPECT_EQ(parsed.error().Text().find("canary"), std::string::npos);
  }
}

TEST(Connection, TheTimeoutIsInSeconds) {
  ManualClock clock(0);
  const auto parsed = ParseConnection(
      {{"connectionString", "Server=h"}, {"user", "u"}, {"connectTimeout", "5"}},
      kCanary, {}, clock);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().options.connect_timeout_ms, 5000);
  EXPECT_EQ(parsed.value().options.password.Reveal(), "canary-5ecret");
  EXPECT_EQ(parsed.value().tokens, nullptr);
}

TEST(TokenResource, IsThatOfTheServersCloud) {
  EXPECT_EQ(TokenResource("x.database.windows.net"), "https://database.windows.net/");
  EXPECT_EQ(TokenResource("localhost"), "https://database.windows.net/");
  EXPECT_EQ(TokenResource("X.Database.USGovCloudAPI.net"),
            "https://database.usgovcloudapi.net/");
  EXPECT_EQ(TokenResource("x.database.chinacloudapi.cn"),
            "https://database.chinacloudapi.cn/");
}

// What a provider says, and what is made of it; no answer shows what it printed.
TEST(TokenProvider, ACommandOrAFile) {
  const struct {
    const char* option;
    std::optional<ErrorId> error;
  } kRows[] = {
      {"command:echo ' canary '", {}},
      {"command:printf canary", {}},
      {"command:true", ErrorId::kTokenRefused},
      {"command:echo canary two", ErrorId::kTokenRefused},
      {"command:echo '{\"accessToken\":\"canary\"}'", ErrorId::kTokenRefused},
      {"command:echo canary; exit 3", ErrorId::kTokenUnavailable},
      {"command:no-such-command-here", ErrorId::kTokenRefused},
      {"command:yes canary", ErrorId::kTokenRefused},
      {"command:kill -9 $$", ErrorId::kTokenUnavailable},
      {"file:/no/such/file", ErrorId::kTokenRefused},
      {"file:/dev/null", ErrorId::kTokenRefused},
  };
  SystemClock clock;
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.option);
    const auto provider = MakeTokenProvider(row.option, clock);
    ASSERT_TRUE(provider.ok());
    const auto token = provider.value()->Get(60'000);
    ASSERT_EQ(token.ok(), !row.error);
    if (token.ok()) {
      EXPECT_EQ(token.value().Reveal(), "canary");
    } else {
      EXPECT_EQ(token.error().id(), *row.error) << token.error().Text();
      EXPECT_EQ(token.error().Text().find("canary"), std::string::npos);
    }
  }
}

// One that closed its output may go on for ever.
TEST(TokenProvider, ACommandThatGoesOnWithoutOutputIsEnded) {
  ManualClock clock(0);  // Moves while it is waited for.
  const auto provider = MakeTokenProvider("command:exec >&-; sleep 600", clock);
  ASSERT_TRUE(provider.ok());
  const auto token = provider.value()->Get(30'000);
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().id(), ErrorId::kTokenUnavailable);
  EXPECT_EQ(token.error().Fact("reason"), "the command takes too long");
}

// A clock that is over any limit at once: the command is ended, not waited for.
TEST(TokenProvider, ACommandThatHangsIsEnded) {
  class Hurried final : public Clock {
   public:
    std::int64_t NowUtcUs() override { return 0; }
    std::int64_t MonotonicNs() override { return now_ns_ += 3'600'000'000'000; }
    void SleepMs(std::int64_t) override {}

   private:
    std::int64_t now_ns_ = 0;
  };
  Hurried clock;
  const auto provider = MakeTokenProvider("command:sleep 600", clock);
  ASSERT_TRUE(provider.ok());
  const auto token = provider.value()->Get(30'000);
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().id(), ErrorId::kTokenUnavailable);
}

}  // namespace
}  // namespace mssql_cdc::runtime

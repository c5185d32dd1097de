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
    {"a Python function",
     {{"connectionString", "Server=h"}, {"tokenProvider", "m:f"}},
     {},
     {},
     ErrorId::kOptionInvalid,
     "Spark"},
};

TEST(Connection, EachWayToLogInAndEachClash) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto parsed = ParseConnection(c.options, c.password, c.token);
    ASSERT_EQ(parsed.ok(), !c.error.has_value());
    if (parsed.ok()) continue;
    EXPECT_EQ(parsed.error().id(), *c.error);
    EXPECT_NE(parsed.error().Text().find(c.fact), std::string::npos)
        << parsed.error().Text();
    EXPECT_EQ(parsed.error().Text().find("canary"), std::string::npos);
  }
}

TEST(Connection, TheTimeoutIsInSeconds) {
  const auto parsed = ParseConnection(
      {{"connectionString", "Server=h"}, {"user", "u"}, {"connectTimeout", "5"}},
      kCanary, {});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().connect_timeout_ms, 5000);
  EXPECT_EQ(parsed.value().password.Reveal(), "canary-5ecret");
}

}  // namespace
}  // namespace mssql_cdc::runtime

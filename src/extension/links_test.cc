#include "extension/links.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mssql_cdc::extension {
namespace {

const Options kOptions = {{"connectionString", "Server=nowhere;Database=d"},
                          {"user", "reader"},
                          {"password", "Canary-1"},
                          {"captureInstance", "dbo_a"}};

Link* Made(const Options& options, const Access& call = {}) {
  const Result<Link*> link = LinkOf(options, call);
  return link.ok() ? link.value() : nullptr;
}

TEST(LinkOf, IsOneForOneLoginWhateverElseTheOptionsSay) {
  Options other = kOptions;
  other["captureInstance"] = "dbo_b";
  ASSERT_NE(Made(kOptions), nullptr);
  EXPECT_EQ(Made(kOptions), Made(other));
}

TEST(LinkOf, IsAnotherForEveryCredential) {
  const std::pair<const char*, const char*> changes[] = {
      {"connectionString", "Server=nowhere;Database=e"},
      {"user", "other"},
      {"password", "Canary-2"},
      {"connectTimeout", "5"}};
  for (const auto& [name, value] : changes) {
    Options other = kOptions;
    other[name] = value;
    ASSERT_NE(Made(other), nullptr) << name;
    EXPECT_NE(Made(kOptions), Made(other)) << name;
  }
}

TEST(LinkOf, IsAnotherInAProcessThatForked) {
  Link* const parents = Made(kOptions);
  const pid_t child = fork();
  if (child == 0) _exit(Made(kOptions) == parents ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LinkOf, TakesAFunctionForTheTokenAndRefusesALoginBesideIt) {
  const Access call = {[]() -> Result<Secret> { return Secret("token"); }, {}};
  const Options with_token = {{"connectionString", "Server=nowhere;Database=d"},
                              {"tokenProvider", "package.module:function"}};
  EXPECT_NE(Made(with_token, call), nullptr);
  Options twice = with_token;
  twice["user"] = "reader";
  const Result<Link*> refused = LinkOf(twice, call);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kOptionsClash);
  EXPECT_EQ(refused.error().Fact("option"), "tokenProvider");
}

TEST(LinkOf, ConnectsByTheClientThatIsGiven) {
  int count = 0;
  const Access other{{}, [&count]() -> Result<std::unique_ptr<sqlserver::Session>> {
                       ++count;
                       return Error(ErrorId::kConnectionLost);
                     }};
  Options options = kOptions;
  options["backend"] = "mssql-python";
  Link* const link = Made(options, other);
  ASSERT_NE(link, nullptr);
  EXPECT_NE(link, Made(kOptions));
  EXPECT_FALSE(link->pool->Acquire().ok());
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace mssql_cdc::extension

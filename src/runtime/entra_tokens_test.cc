// Tokens of Entra ID from a stand-in of its endpoint in this process: how long they are
// kept, how long they may take, and where they are asked for.

#define CPPHTTPLIB_OPENSSL_SUPPORT
#include <gtest/gtest.h>
#include <httplib.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "runtime/token_source.h"

namespace mssql_cdc::runtime {
namespace {

// Sets an environment variable as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

class Endpoint {
 public:
  explicit Endpoint(httplib::Server::Handler answer) {
    server_.Get(".*", std::move(answer));
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Endpoint() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

TEST(EntraTokens, AreKeptUntilFiveMinutesBeforeTheyExpire) {
  const struct {
    const char* expires_in;
    int requests;  // Of three, an hour apart.
  } kRows[] = {
      {"3600", 3},
      {"\"10800\"", 1},
      {"9223372036854775807", 1},  // Longer than any: a day is enough.
      {"\"9000000000000000\"", 1},
      {"-9223372036854775808", 3},
      {"0", 3},
      {"null", 3},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.expires_in);
    int requests = 0;
    const Endpoint endpoint([&](const httplib::Request&, httplib::Response& response) {
      ++requests;
      response.set_content(std::string("{\"access_token\": \"t\", \"expires_in\": ") +
                               row.expires_in + "}",
                           "application/json");
    });
    const Variable place("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint.url());
    ManualClock clock(0);
    const auto tokens = ManagedIdentityTokens({}, clock);
    for (int hour = 0; hour < 3; ++hour) {
      const auto token = tokens->Get(30'000);
      ASSERT_TRUE(token.ok()) << token.error().Text();
      EXPECT_EQ(token.value().Reveal(), "t");
      clock.AdvanceMs(3'300'000);
    }
    EXPECT_EQ(requests, row.requests);
  }
}

// Each byte comes within the client's limit for a read; the whole never ends.
TEST(EntraTokens, AnAnswerThatNeverEndsIsNotWaitedFor) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  const Endpoint endpoint([&](const httplib::Request&, httplib::Response& response) {
    response.set_content_provider(
        std::size_t{1} << 20, "application/json",
        [&](std::size_t, std::size_t, httplib::DataSink& sink) {
          std::unique_lock lock(mutex);
          changed.wait_for(lock, std::chrono::milliseconds(1), [&] { return is_over; });
          return !is_over && sink.write(" ", 1);
        });
  });
  const Variable place("AZURE_POD_IDENTITY_AUTHORITY_HOST", endpoint.url());
  ManualClock clock(0);
  const auto token = ManagedIdentityTokens({}, clock)->Get(100);
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  ASSERT_FALSE(token.ok());
  EXPECT_EQ(token.error().id(), ErrorId::kTokenUnavailable);
  EXPECT_EQ(token.error().Fact("reason"), "it takes too long");
}

TEST(EntraTokens, APlaceThatIsNoneIsRefusedByName) {
  const struct {
    const char* place;
    const char* reason;
  } kRows[] = {
      {"ftp://127.0.0.1/x", "neither https nor http"},
      {"unix:/run/token", "neither https nor http"},
      {"http://127.0.0.1:99999999999999999999", "no host and port"},
      {"http://127.0.0.1:0", "no host and port"},
      {"http://127.0.0.1:65536/x", "no host and port"},
      {"http://127.0.0.1:80x", "no host and port"},
      {"http://127.0.0.1:", "no host and port"},
      {"http://", "no host and port"},
      {"http://:80", "no host and port"},
      {"http://a b/", "no host and port"},
      {"http://[::1", "no host and port"},
      {"http://canary:canary@127.0.0.1/x", "without a user's name"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.place);
    for (const char* variable :
         {"AZURE_POD_IDENTITY_AUTHORITY_HOST", "IDENTITY_ENDPOINT"}) {
      const Variable place(variable, row.place);
      ManualClock clock(0);
      const auto token = ManagedIdentityTokens({}, clock)->Get(1000);
      ASSERT_FALSE(token.ok());
      EXPECT_EQ(token.error().id(), ErrorId::kTokenRefused);
      EXPECT_NE(token.error().Fact("reason")->find(row.reason), std::string_view::npos)
          << token.error().Text();
      EXPECT_EQ(token.error().Text().find("canary"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace mssql_cdc::runtime

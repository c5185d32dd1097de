#include "runtime/session_pool.h"

#include <gtest/gtest.h>

#include "runtime/scripted_server_test.h"

namespace mssql_cdc::runtime {
namespace {

const sqlserver::Request kRequest = {"SELECT wait_time_ms", {}};

TEST(SessionPool, KeepsCleanSessionsAndClosesTheOthers) {
  ScriptedServer server;
  ScriptedSessions sessions(server);
  SessionPool pool(sessions);
  {
    const SessionPool::Lease first = pool.Acquire().value();
    const SessionPool::Lease second = pool.Acquire().value();
    EXPECT_EQ(pool.open_count(), 2);
  }
  {
    // Both are kept; one is given back with its answer unread.
    SessionPool::Lease first = pool.Acquire().value();
    const SessionPool::Lease second = pool.Acquire().value();
    EXPECT_EQ(pool.open_count(), 2);
    const auto reply = first->Execute(kRequest, {});
    ASSERT_TRUE(reply.ok());
    EXPECT_FALSE(first->clean());
  }
  {
    const SessionPool::Lease first = pool.Acquire().value();
    EXPECT_EQ(pool.open_count(), 2);
    const SessionPool::Lease second = pool.Acquire().value();
    EXPECT_EQ(pool.open_count(), 3);
  }
  pool.DropIdle();
  EXPECT_TRUE(pool.Acquire().ok());
  EXPECT_EQ(pool.open_count(), 4);
  // Requests of sessions that are gone count as well.
  EXPECT_EQ(pool.request_count(), 1);
}

// A token source that takes its time, and a network that is never asked.
TEST(ServerSessions, TheTokenAndTheLoginShareOneLimit) {
  class Slow final : public TokenSource {
   public:
    explicit Slow(Clock& clock) : clock_(clock) {}
    Result<Secret> Get(std::int64_t limit_ms) override {
      EXPECT_EQ(limit_ms, 30'000);
      clock_.SleepMs(limit_ms);
      return Secret("canary");
    }

   private:
    Clock& clock_;
  };
  class Nobody final : public net::Dialer {
   public:
    Result<std::unique_ptr<net::Transport>> Dial(const std::string&, std::uint16_t,
                                                 std::int64_t) override {
      ADD_FAILURE() << "dialed";
      return Error(ErrorId::kConnectFailed);
    }
    Result<std::uint16_t> InstancePort(const std::string&, const std::string&,
                                       std::int64_t) override {
      return Error(ErrorId::kConnectFailed);
    }
  };
  ManualClock clock(0);
  Nobody dialer;
  sqlserver::ConnectOptions options;
  options.host = "h";
  ServerSessions sessions(options, dialer, clock, std::make_shared<Slow>(clock));
  const auto opened = sessions.Open();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().id(), ErrorId::kTokenUnavailable);
  EXPECT_NE(opened.error().Text().find("connectTimeout"), std::string::npos);
}

TEST(SessionPool, AfterStopNobodyGetsASession) {
  ScriptedServer server;
  ScriptedSessions sessions(server);
  SessionPool pool(sessions);
  pool.Stop();
  const Result<SessionPool::Lease> lease = pool.Acquire();
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().id(), ErrorId::kStopped);
}

}  // namespace
}  // namespace mssql_cdc::runtime

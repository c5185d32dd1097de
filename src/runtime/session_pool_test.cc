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

// Requests on a session that is logged in to a scripted server: rows, errors at every
// place they can stand, cancelling, and what leaves a session unusable.

#include "sqlserver/session.h"

#include <gtest/gtest.h>

#include "net/faulty.h"
#include "sqlserver/scripted_server.h"
#include "sqlserver/server_errors.h"

namespace mssql_cdc::sqlserver {
namespace {

using namespace test;

// MS-TDS section 4.7 from its first token to the row: a column "bar", varchar(3), and
// the value "foo".
const Wire kMetadata = Hex("81 0100 00000000 2000 A7 0300 0904D00034 03 620061007200");
const Wire kRow = Hex("D1 0300 666F6F");
const Wire kDoneWithCount = Hex("FD 1000 C100 0100000000000000");

class TickingClock final : public Clock {
 public:
  std::int64_t NowUtcUs() override { return 0; }
  std::int64_t MonotonicNs() override { return now_ns_ += 1'000'000'000; }
  void SleepMs(std::int64_t) override {}

 private:
  std::int64_t now_ns_ = 0;
};

ConnectOptions Options() {
  ConnectOptions options;
  options.host = "db.test";
  options.user = "reader";
  options.password = Secret("canary-Pa55");
  options.encrypt = Encrypt::kLoginOnly;
  options.connect_timeout_ms = 100'000;
  return options;
}

// A server that logs in and answers each request with the next of `replies`, whole
// packets each; the requests are kept.
class AnsweringServer {
 public:
  explicit AnsweringServer(std::vector<Wire> replies,
                           std::string_view packet_size = "4096")
      : server_([this, replies = std::move(replies),
                 packet_size](std::unique_ptr<net::Transport> client) {
          if (!LogInClear(*client, packet_size)) return;
          for (const Wire& reply : replies) {
            Message request = ReadMessage(*client);
            if (request.packet_lengths.empty()) return;
            requests.push_back(std::move(request));
            Send(*client, reply);
          }
          // Open until the client leaves.
          while (!ReadMessage(*client).packet_lengths.empty()) {
          }
        }) {}

  ScriptedServer& scripted() { return server_; }
  std::unique_ptr<Session> Open(Clock& clock) {
    auto session = Session::Open(Options(), server_.dialer(), clock);
    EXPECT_TRUE(session.ok()) << session.error().Text();
    return std::move(session).value();
  }

  std::vector<Message> requests;  // Read it once the session is gone.

 private:
  ScriptedServer server_;
};

Wire Reply(const Wire& payload) { return Packet(tds::PacketType::kReply, payload); }

std::string TextOf(const columns::RecordBatch& batch) {
  const columns::Column& column = *batch.columns.at(0);
  return std::string(reinterpret_cast<const char*>(column.values.data()),
                     column.values.size_bytes());
}

TEST(Session, ARequestsRowsAreGivenAndTheSessionIsReused) {
  ManualClock clock(0);
  const Wire reply = Reply(Join(kMetadata, kRow, kDoneWithCount));
  AnsweringServer server({reply, reply});
  const auto session = server.Open(clock);
  EXPECT_EQ(session->request_count(), 0);
  for (int i = 1; i <= 2; ++i) {
    auto running = session->Execute({"SELECT 'foo' AS bar", {}}, {});
    ASSERT_TRUE(running.ok()) << running.error().Text();
    EXPECT_FALSE(session->clean());
    const auto schema = running.value()->NextResult();
    ASSERT_TRUE(schema.ok()) << schema.error().Text();
    ASSERT_TRUE(schema.value().has_value());
    EXPECT_EQ(schema.value().value()->fields.at(0).name, "bar");
    const auto batch = running.value()->NextBatch();
    ASSERT_TRUE(batch.ok()) << batch.error().Text();
    ASSERT_TRUE(batch.value().has_value());
    EXPECT_EQ(TextOf(*batch.value()), "foo");
    EXPECT_FALSE(running.value()->NextBatch().value().has_value());
    EXPECT_FALSE(running.value()->NextResult().value().has_value());
    EXPECT_TRUE(running.value()->Finish().ok());
    EXPECT_TRUE(session->clean());
    EXPECT_EQ(session->request_count(), i);
  }
}

TEST(Session, OneByteAtATimeGivesTheSame) {
  ManualClock clock(0);
  AnsweringServer server({Reply(Join(kMetadata, kRow, kRow, kDoneWithCount))});
  server.scripted().wrap = [](auto lower) {
    return net::MakeFaulty(std::move(lower), {.read_size_bytes_max = 1});
  };
  const auto session = server.Open(clock);
  const auto results = Collect(*session, {"SELECT 1", {}});
  ASSERT_TRUE(results.ok()) << results.error().Text();
  ASSERT_EQ(results.value().size(), 1u);
  EXPECT_EQ(results.value()[0].row_count, 2);
  EXPECT_EQ(TextOf(results.value()[0]), "foofoo");
}

TEST(Session, CollectGivesEveryResultSetAlsoEmptyOnes) {
  ManualClock clock(0);
  const Wire done_more = Done(1);
  AnsweringServer server({Reply(Join(kMetadata, done_more, kMetadata, kRow, done_more,
                                     Done(1), kMetadata, kRow, kRow, Done())),
                          Reply(Join(kMetadata, kRow, kRow, kRow, Done()))});
  const auto session = server.Open(clock);
  const auto results = Collect(*session, {"SELECT 1", {}});
  ASSERT_TRUE(results.ok()) << results.error().Text();
  ASSERT_EQ(results.value().size(), 3u);
  EXPECT_EQ(results.value()[0].row_count, 0);
  EXPECT_EQ(results.value()[0].columns.size(), 1u);
  EXPECT_EQ(results.value()[1].row_count, 1);
  EXPECT_EQ(results.value()[2].row_count, 2);
  const auto too_many = Collect(*session, {"SELECT 1", {}}, 2);
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.error().id(), ErrorId::kTdsLimitExceeded);
}

TEST(Session, ARequestIsCutIntoPacketsOfTheAgreedSize) {
  std::vector<Message> requests;
  {
    ManualClock clock(0);
    AnsweringServer server({Reply(Done()), Reply(Done())}, "512");
    {
      const auto session = server.Open(clock);
      EXPECT_TRUE(Collect(*session, {std::string(600, 'x'), {}}).ok());
      Request with_parameter{"SELECT @p", {}};
      with_parameter.parameters.push_back({"@p", Parameter::Kind::kBigInt, {}, 1});
      EXPECT_TRUE(Collect(*session, with_parameter).ok());
    }
    requests = server.requests;
  }
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].type, tds::PacketType::kSqlBatch);
  EXPECT_EQ(requests[0].packet_lengths, (std::vector<std::size_t>{512, 512, 222}));
  EXPECT_EQ(requests[0].payload.size(), 22u + 1200);
  EXPECT_EQ(requests[1].type, tds::PacketType::kRpc);
  // Text parameters carry the server's collation.
  EXPECT_EQ(Wire(requests[1].payload.begin() + 33, requests[1].payload.begin() + 38),
            Hex("0904D00034"));
}

TEST(Session, TheOpenTransactionIsNamedInRequests) {
  std::vector<Message> requests;
  {
    ManualClock clock(0);
    AnsweringServer server(
        {Reply(Join(Hex("E3 0B00 08 08 0102030405060708 00"), Done())),
         Reply(Join(Hex("E3 0B00 09 00 08 0102030405060708"), Done())), Reply(Done())});
    {
      const auto session = server.Open(clock);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(Collect(*session, {"x", {}}).ok());
    }
    requests = server.requests;
  }
  ASSERT_EQ(requests.size(), 3u);
  const auto descriptor = [&](std::size_t i) {
    return Wire(requests[i].payload.begin() + 10, requests[i].payload.begin() + 18);
  };
  EXPECT_EQ(descriptor(0), Wire(8));
  EXPECT_EQ(descriptor(1), Hex("0102030405060708"));
  EXPECT_EQ(descriptor(2), Wire(8));
}

TEST(Session, AnErrorAnywhereFailsTheRequestAndLeavesTheSessionClean) {
  struct Case {
    const char* name;
    Wire reply;
    ErrorId error;
    std::optional<std::string> number;
  };
  const Wire denied = ErrorToken(229, "The SELECT permission was denied.");
  const Case cases[] = {
      {"alone", Join(denied, Done(2)), ErrorId::kPermissionDenied, "229"},
      {"behind rows", Join(kMetadata, kRow, ErrorToken(1205, "deadlock", 13), Done(2)),
       ErrorId::kServerBusy, "1205"},
      {"in a later result", Join(kMetadata, kRow, Done(1), denied, Done(2)),
       ErrorId::kPermissionDenied, "229"},
      {"the first of two counts",
       Join(ErrorToken(22901, "not enabled", 16), ErrorToken(229, "x"), Done(2)),
       ErrorId::kServerError, "22901"},
      {"only as a bit", Join(kMetadata, kRow, Done(2)), ErrorId::kServerError,
       std::nullopt},
      {"rows behind it are not waited for in vain",
       Join(denied, Done(3), kMetadata, kRow, Done()), ErrorId::kPermissionDenied,
       "229"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ManualClock clock(0);
    AnsweringServer server({Reply(c.reply), Reply(Join(kMetadata, kRow, Done()))});
    const auto session = server.Open(clock);
    const auto failed = Collect(*session, {"SELECT 1", {}});
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().id(), c.error);
    EXPECT_EQ(failed.error().Fact("number"), c.number);
    EXPECT_TRUE(session->clean());
    EXPECT_TRUE(Collect(*session, {"SELECT 1", {}}).ok());
  }
}

TEST(Session, ASevereErrorStaysTheOutcomeWhenTheServerLeaves) {
  ManualClock clock(0);
  ScriptedServer server([](auto client) {
    if (!LogInClear(*client)) return;
    ReadMessage(*client);
    Send(*client,
         Packet(tds::PacketType::kReply, ErrorToken(6005, "SHUTDOWN", 21), true));
  });
  const auto session = Session::Open(Options(), server.dialer(), clock).value();
  EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kServerBusy);
  EXPECT_FALSE(session->clean());
  EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kConnectionLost);
}

TEST(Session, InfoBetweenMetadataAndRowsIsSteppedOver) {
  ManualClock clock(0);
  AnsweringServer server({Reply(Join(kMetadata, ErrorToken(1, "hello", 0, 0xAB),
                                     EnvChange(2, Hex("00 00")), kRow, Done()))});
  const auto session = server.Open(clock);
  const auto results = Collect(*session, {"SELECT 1", {}});
  ASSERT_TRUE(results.ok()) << results.error().Text();
  EXPECT_EQ(results.value()[0].row_count, 1);
}

TEST(Session, AReplyCutAtAnyByteIsAnErrorAndEndsTheSession) {
  const Wire reply = Reply(Join(kMetadata, kRow, kDoneWithCount));
  for (std::size_t size = 0; size < reply.size(); ++size) {
    ManualClock clock(0);
    ScriptedServer server([&](auto client) {
      if (!LogInClear(*client)) return;
      ReadMessage(*client);
      Send(*client, Wire(reply.begin(), reply.begin() + static_cast<long>(size)));
    });
    const auto session = Session::Open(Options(), server.dialer(), clock).value();
    const auto results = Collect(*session, {"x", {}});
    ASSERT_FALSE(results.ok()) << size;
    EXPECT_EQ(results.error().id(), ErrorId::kConnectionLost) << size;
    EXPECT_FALSE(session->clean());
  }
}

TEST(Session, AMessageThatEndsInsideATokenIsMalformed) {
  const Wire payload = Join(kMetadata, kRow, kDoneWithCount);
  for (std::size_t size = 1; size < payload.size(); ++size) {
    const bool at_token_end =
        size == kMetadata.size() || size == kMetadata.size() + kRow.size();
    if (at_token_end) continue;
    ManualClock clock(0);
    AnsweringServer server(
        {Reply(Wire(payload.begin(), payload.begin() + static_cast<long>(size)))});
    const auto session = server.Open(clock);
    const auto results = Collect(*session, {"x", {}});
    ASSERT_FALSE(results.ok()) << size;
    EXPECT_EQ(results.error().id(), ErrorId::kTdsMalformed) << size;
    EXPECT_FALSE(session->clean());
  }
}

TEST(Session, BytesBehindAReplyEndTheSession) {
  ManualClock clock(0);
  AnsweringServer server({Join(Reply(Done()), Reply(Done()))});
  const auto session = server.Open(clock);
  EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kTdsMalformed);
}

TEST(Session, AReplyThatIsNotReadKeepsTheSessionFromReuse) {
  ManualClock clock(0);
  AnsweringServer server({Reply(Join(kMetadata, kRow, Done()))});
  const auto session = server.Open(clock);
  {
    auto reply = session->Execute({"x", {}}, {});
    ASSERT_TRUE(reply.ok());
  }
  EXPECT_FALSE(session->clean());
  EXPECT_EQ(session->Execute({"x", {}}, {}).error().id(), ErrorId::kInternalError);
}

// What servers do with an attention (facts/tds-clients.md, trap 1): acknowledge it in
// the running reply's message or in one of its own behind it.
TEST(Session, CancellingReadsToTheAcknowledgementAndKeepsTheSession) {
  struct Case {
    const char* name;
    Wire begin;  // Sent at once.
    Wire rest;   // Sent upon the attention.
  };
  const Wire acknowledged = Done(0x20);
  const Wire rows = Join(kMetadata, kRow);
  const Case cases[] = {
      {"in the same message", Packet(tds::PacketType::kReply, rows, true),
       Reply(acknowledged)},
      {"in a message of its own", Packet(tds::PacketType::kReply, rows, true),
       Join(Reply(Done()), Reply(acknowledged))},
      {"with an error first", Packet(tds::PacketType::kReply, rows, true),
       Join(Reply(Join(ErrorToken(3617, "cancelled"), Done(2))), Reply(acknowledged))},
      {"more rows before it", Packet(tds::PacketType::kReply, rows, true),
       Reply(Join(kRow, kRow, acknowledged))},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ManualClock clock(0);
    Message attention;
    {
      ScriptedServer server([&](auto client) {
        if (!LogInClear(*client)) return;
        ReadMessage(*client);
        Send(*client, c.begin);
        attention = ReadMessage(*client);
        Send(*client, c.rest);
        ReadMessage(*client);
        SendReply(*client, Join(kMetadata, kRow, Done()));
      });
      const auto session = Session::Open(Options(), server.dialer(), clock).value();
      BatchLimits limits;
      limits.row_count_max = 1;
      const auto reply = session->Execute({"WAITFOR", {}}, limits);
      ASSERT_TRUE(reply.ok());
      ASSERT_TRUE(reply.value()->NextResult().value().has_value());
      session->Cancel();
      const auto finished = reply.value()->Finish();
      ASSERT_FALSE(finished.ok());
      EXPECT_EQ(finished.error().id(), ErrorId::kStopped);
      EXPECT_TRUE(session->clean());
      const auto next = Collect(*session, {"SELECT 1", {}});
      ASSERT_TRUE(next.ok()) << next.error().Text();
      EXPECT_EQ(next.value()[0].row_count, 1);
    }
    EXPECT_EQ(attention.type, tds::PacketType::kAttention);
    EXPECT_TRUE(attention.payload.empty());
  }
}

TEST(Session, CancelWakesAReaderThatWaits) {
  SystemClock clock;
  ScriptedServer server([](auto client) {
    if (!LogInClear(*client)) return;
    ReadMessage(*client);
    // Nothing, until the attention comes.
    if (ReadMessage(*client).type == tds::PacketType::kAttention) {
      SendReply(*client, Done(0x20));
    }
  });
  const auto session = Session::Open(Options(), server.dialer(), clock).value();
  const auto reply = session->Execute({"WAITFOR DELAY '1:00'", {}}, {});
  ASSERT_TRUE(reply.ok());
  std::thread other([&] { session->Cancel(); });
  EXPECT_EQ(reply.value()->Finish().error().id(), ErrorId::kStopped);
  other.join();
  EXPECT_TRUE(session->clean());
}

TEST(Session, AnAttentionThatIsNotAcknowledgedEndsTheSession) {
  TickingClock clock;
  AnsweringServer server({Packet(tds::PacketType::kReply, kMetadata, true)});
  const auto session = server.Open(clock);
  const auto reply = session->Execute({"x", {}}, {});
  ASSERT_TRUE(reply.ok());
  session->Cancel();
  EXPECT_EQ(reply.value()->Finish().error().id(), ErrorId::kTimedOut);
  EXPECT_FALSE(session->clean());
}

TEST(Session, CancelWithoutARequestDoesNothing) {
  ManualClock clock(0);
  AnsweringServer server({Reply(Join(kMetadata, kRow, Done()))});
  const auto session = server.Open(clock);
  session->Cancel();
  EXPECT_TRUE(Collect(*session, {"x", {}}).ok());
}

TEST(Session, SilenceEndsAtTheTimeLimitIfThereIsOne) {
  TickingClock clock;
  AnsweringServer server({Packet(tds::PacketType::kReply, kMetadata, true)});
  ConnectOptions options = Options();
  options.silence_timeout_ms = 3'000;
  const auto session =
      Session::Open(options, server.scripted().dialer(), clock).value();
  EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kTimedOut);
  EXPECT_FALSE(session->clean());
}

TEST(Session, AnErrorWhoseReplyDoesNotEndIsStillTheOutcome) {
  {
    TickingClock clock;  // Silence behind it.
    AnsweringServer server(
        {Packet(tds::PacketType::kReply, ErrorToken(229, "denied"), true)});
    const auto session = server.Open(clock);
    EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kPermissionDenied);
    EXPECT_FALSE(session->clean());
  }
  {
    ManualClock clock(0);  // Rows without end behind it.
    ScriptedServer server([](auto client) {
      if (!LogInClear(*client)) return;
      ReadMessage(*client);
      Send(*client, Packet(tds::PacketType::kReply,
                           Join(ErrorToken(229, "denied"), kMetadata), true));
      Wire rows;
      while (rows.size() < 4000) rows = Join(rows, kRow);
      while (client->Write(Packet(tds::PacketType::kReply, rows, true)).ok()) {
      }
    });
    const auto session = Session::Open(Options(), server.dialer(), clock).value();
    EXPECT_EQ(Collect(*session, {"x", {}}).error().id(), ErrorId::kPermissionDenied);
    EXPECT_FALSE(session->clean());
  }
}

TEST(Session, ARepliesEndlessPartsMeetLimits) {
  const std::pair<const char*, Wire> cases[] = {
      {"messages", ErrorToken(1, "x", 0, 0xAB)},
      {"ends of statements", Done(1)},
      {"result sets", Join(kMetadata, Done(1))},
      {"columns without rows", kMetadata},
      {"rows", kRow},
  };
  for (const auto& [name, part] : cases) {
    for (const bool collected : {true, false}) {
      SCOPED_TRACE(testing::Message() << name << (collected ? ", collected" : ""));
      const bool rows = std::string_view(name) == "rows";
      if (rows && !collected) continue;  // Rows alone may be as many as there are.
      ManualClock clock(0);
      ScriptedServer server([&part = part](auto client) {
        if (!LogInClear(*client)) return;
        ReadMessage(*client);
        Wire parts;
        while (parts.size() < 3000) parts = Join(parts, part);
        Send(*client, Packet(tds::PacketType::kReply, kMetadata, true));
        while (client->Write(Packet(tds::PacketType::kReply, parts, true)).ok()) {
        }
      });
      const auto session = Session::Open(Options(), server.dialer(), clock).value();
      Status outcome = Unit{};
      if (collected) {
        const auto results = Collect(*session, {"x", {}}, rows ? 1'000'000'000 : 10);
        if (!results.ok()) outcome = results.error();
      } else {
        outcome = session->Execute({"x", {}}, {}).value()->Finish();
      }
      ASSERT_FALSE(outcome.ok());
      EXPECT_EQ(outcome.error().id(), ErrorId::kTdsLimitExceeded);
      EXPECT_FALSE(session->clean());
    }
  }
}

TEST(Session, AServerThatRepeatsCredentialsDoesNotGetThemIntoErrors) {
  ManualClock clock(0);
  AnsweringServer server({Reply(
      Join(ErrorToken(50000, "canary-Pa55 of 'reader'\ncanary-Pa55"), Done(2)))});
  const auto session = server.Open(clock);
  const auto failed = Collect(*session, {"x", {}});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().Fact("message"), "*** of *** ***");
}

TEST(ServerErrors, NumbersAreClassified) {
  struct Case {
    std::int32_t number;
    ErrorId in_login;
    ErrorId in_request;
  };
  const Case cases[] = {
      {229, ErrorId::kPermissionDenied, ErrorId::kPermissionDenied},
      {230, ErrorId::kPermissionDenied, ErrorId::kPermissionDenied},
      {1222, ErrorId::kServerBusy, ErrorId::kServerBusy},
      {3952, ErrorId::kOptionInvalid, ErrorId::kOptionInvalid},
      {4060, ErrorId::kDatabaseUnavailable, ErrorId::kDatabaseUnavailable},
      {911, ErrorId::kDatabaseUnavailable, ErrorId::kDatabaseUnavailable},
      {18456, ErrorId::kLoginFailed, ErrorId::kLoginFailed},
      {40501, ErrorId::kServerBusy, ErrorId::kServerBusy},
      {208, ErrorId::kLoginFailed, ErrorId::kServerError},
      {0, ErrorId::kLoginFailed, ErrorId::kServerError},
      {-1, ErrorId::kLoginFailed, ErrorId::kServerError},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ErrorIdOf(c.number, Phase::kLogin), c.in_login) << c.number;
    EXPECT_EQ(ErrorIdOf(c.number, Phase::kRequest), c.in_request) << c.number;
  }
}

TEST(ServerErrors, SnapshotIsolationThatIsNotAllowedIsToldWithItsCure) {
  tds::ServerMessage message;
  message.number = 3952;
  message.message = "no";
  const Error error = ErrorFrom(message, Phase::kRequest, Redactor());
  EXPECT_EQ(error.Fact("option"), "isolationLevel");
  EXPECT_EQ(error.Fact("number"), "3952");
  EXPECT_EQ(error.Fact("message"), "no");
  EXPECT_NE(error.Text().find("ALLOW_SNAPSHOT_ISOLATION ON"), std::string::npos);
}

}  // namespace
}  // namespace mssql_cdc::sqlserver

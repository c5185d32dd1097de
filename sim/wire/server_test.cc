// The whole server over in-memory pipes and TLS, in front of an engine that answers a
// few words. Goal: the dialogue that foreign drivers insist on (facts of drivers, its
// traps and its checklist), token by token, and that nothing a client sends does more
// than end its own connection.

#include "sim/wire/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/text.h"
#include "net/pipe.h"
#include "net/tls.h"
#include "sim/wire/raw_client_test.h"

namespace mssql_cdc::sim::wire {
namespace {

using testing::ElementsAre;

using Lines = std::vector<std::string>;

const SqlType kInt{TypeId::kInt, 0, 0, 0, ""};

class FakeSession final : public EngineSession {
 public:
  // "rows" gives two rows, "many" rows until the client stops it, "hold" waits for
  // that, "fail" is an error, "use" changes the database, "begin" opens a transaction.
  void Batch(const std::string& sql, ReplySink& sink) override {
    if (sql == "rows") {
      sink.Columns({{"a", kInt, false, false, false}});
      sink.Row({{std::int64_t{1}, {}}});
      sink.Row({{std::int64_t{2}, {}}});
      sink.StatementDone(2, 0xC1);
    } else if (sql == "many") {
      sink.Columns({{"a", kInt, false, false, false}});
      while (sink.Row({{std::int64_t{1}, {}}})) {
      }
    } else if (sql == "hold") {
      while (!stop_requested) std::this_thread::yield();
    } else if (sql == "fail") {
      sink.SendMessage({208, 1, 16, "Invalid object name.", "", 1});
    } else if (sql == "use") {
      sink.DatabaseChanged(database_, "other");
      sink.SendMessage({5701, 2, 0, "Changed database context to 'other'.", "", 1});
      database_ = "other";
      sink.StatementDone(std::nullopt, 0);
    } else if (sql == "greek") {
      sink.DatabaseChanged(database_, "greek");
      collation_ = "Greek_CI_AS";
      Batch("rows", sink);
    } else if (sql == "SAVE TRANSACTION [s]]1]" ||
               sql == "ROLLBACK TRANSACTION [s]]1]") {
      sink.StatementDone(std::nullopt, 0);
    } else if (sql == "begin") {
      BeginTransaction(std::nullopt, sink);
      sink.StatementDone(std::nullopt, 0);
    } else {
      sink.StatementDone(std::nullopt, 0);
    }
  }
  void ExecuteSql(const std::string& sql, std::vector<BoundParameter> parameters,
                  ReplySink& sink) override {
    if (parameters.empty()) return Batch(sql, sink);
    std::vector<ResultColumn> columns;
    std::vector<Value> values;
    for (BoundParameter& parameter : parameters) {
      if (parameter.output) {
        sink.ReturnValue(parameter.name, parameter.type, parameter.value);
      }
      columns.push_back({parameter.name, parameter.type, true, false, false});
      values.push_back(std::move(parameter.value));
    }
    if (sink.Columns(columns) && sink.Row(values)) sink.StatementDone(1, 0xC1);
  }
  void Procedure(const std::string& name, std::vector<BoundParameter> parameters,
                 ReplySink& sink) override {
    if (name != "[dbo].echo") {
      sink.SendMessage({2812, 62, 16, "Could not find stored procedure.", "", 1});
      return;
    }
    ExecuteSql("", std::move(parameters), sink);
    sink.ReturnStatus(7);
  }
  void BeginTransaction(std::optional<IsolationLevel>, ReplySink& sink) override {
    sink.TransactionBegan(++transaction_);
  }
  void CommitTransaction(bool next, ReplySink& sink) override {
    sink.TransactionEnded(transaction_, true);
    if (next) sink.TransactionBegan(++transaction_);
  }
  void RollbackTransaction(bool, ReplySink& sink) override {
    sink.TransactionEnded(transaction_, false);
  }
  void Reset(ReplySink& sink) override {
    if (database_ != "master") sink.DatabaseChanged(database_, "master");
    database_ = "master";
  }
  const std::string& database() const override { return database_; }
  const std::string& collation() const override { return collation_; }

 private:
  std::string database_ = "master";
  std::string collation_ = "SQL_Latin1_General_CP1_CI_AS";
  std::uint64_t transaction_ = 0;
};

class FakeEngine final : public Engine {
 public:
  std::variant<std::unique_ptr<EngineSession>, LoginFailure> Login(
      const LoginRequest& request) override {
    if (request.password == "secret" || request.access_token == "token") {
      return std::make_unique<FakeSession>();
    }
    return LoginFailure{{18456, 1, 14, "Login failed.", "", 1}};
  }
  Version version() const override { return {}; }
};

std::unique_ptr<Server> StartServer(ServerOptions options = {}) {
  options.listen = false;
  auto server = Server::Start(options, std::make_shared<FakeEngine>());
  return std::move(server).value();
}

RawClient Connect(Server& server) {
  auto [near, far] = net::MakePipe();
  server.Serve(std::move(far));
  return RawClient(std::move(near));
}

constexpr std::uint8_t kNoTls = 2;

RawClient LoggedInClient(Server& server, const RawLogin& login = {}) {
  RawClient client = Connect(server);
  client.SendPrelogin(kNoTls);
  EXPECT_TRUE(client.ReadMessage());
  client.SendLogin(login);
  const Lines tokens = client.ReadTokens();
  EXPECT_EQ(tokens.back(), "DONE 0 0");
  return client;
}

TEST(ServerLogin, AnswersInTheOrderOfSqlServer) {
  const auto server = StartServer();
  RawClient client = Connect(*server);
  client.SendPrelogin(kNoTls);
  // VERSION, ENCRYPTION, INSTOPT, THREADID, MARS; then 16.0.4185, NOT_SUP, no MARS.
  EXPECT_EQ(ToHex(*client.ReadMessage()),
            "00001A0006"
            "0100200001"
            "0200210001"
            "0300220000"
            "0400220001"
            "FF"
            "100010590000"
            "02"
            "00"
            "00");
  RawLogin login;
  login.packet_size_bytes = 8000;
  login.features = FromHex("04 01000000 01 0A 01000000 01 FF");
  client.SendLogin(login);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ENVCHANGE 1 master", "INFO 5701", "ENVCHANGE 7 0904D00034",
                          "ENVCHANGE 2 us_english", "INFO 5703", "LOGINACK 74000004",
                          "ENVCHANGE 4 8000", "FEATUREEXTACK 10:01", "DONE 0 0"));
  EXPECT_EQ(server->counters().logins, 1u);
}

TEST(ServerLogin, AgreesOnAPacketSizeNoClientChokesOn) {
  struct Case {
    std::uint32_t wish;
    const char* answer;
  };
  const Case cases[] = {
      {0, "4096"}, {512, "512"}, {100, "512"}, {32767, "32767"}, {1'000'000, "32767"}};
  for (const Case& c : cases) {
    const auto server = StartServer();
    RawClient client = Connect(*server);
    client.SendPrelogin(kNoTls);
    client.ReadMessage();
    RawLogin login;
    login.packet_size_bytes = c.wish;
    client.SendLogin(login);
    const Lines tokens = client.ReadTokens();
    EXPECT_THAT(tokens, testing::Contains(std::string("ENVCHANGE 4 ") + c.answer));
  }
}

TEST(ServerLogin, SendsPacketsOfTheAgreedSize) {
  const auto server = StartServer();
  RawLogin login;
  login.packet_size_bytes = 512;
  RawClient client = LoggedInClient(*server, login);
  const std::size_t at_login = client.largest_packet_bytes();
  EXPECT_GT(at_login, 0u);
  client.SendBatch(u"rows");
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("COLMETADATA a", "ROW 1", "ROW 2", "DONE 16 2"));
}

TEST(ServerLogin, RefusesAWrongPasswordAndCloses) {
  const auto server = StartServer();
  RawClient client = Connect(*server);
  client.SendPrelogin(kNoTls);
  client.ReadMessage();
  RawLogin login;
  login.password = u"wrong";
  client.SendLogin(login);
  EXPECT_THAT(client.ReadTokens(), ElementsAre("ERROR 18456", "DONE 2 0"));
  EXPECT_EQ(client.ReadTokens(), Lines{"CLOSED"});
  EXPECT_EQ(server->counters().failed_logins, 1u);
}

TEST(ServerLogin, RefusesIntegratedSecurity) {
  const auto server = StartServer();
  RawClient client = Connect(*server);
  client.SendPrelogin(kNoTls);
  client.ReadMessage();
  RawLogin login;
  login.options2 = 0x80;
  client.SendLogin(login);
  EXPECT_THAT(client.ReadTokens(), ElementsAre("ERROR 18452", "DONE 2 0"));
}

TEST(ServerLogin, TakesATokenInLogin7OrWhenAskedForIt) {
  const auto server = StartServer();
  const std::string token = "74006F006B0065006E00";
  RawClient client = Connect(*server);
  client.SendPrelogin(kNoTls);
  client.ReadMessage();
  RawLogin login;
  login.password = u"";
  login.features = FromHex("02 0F000000 03 0A000000 " + token + " FF");
  client.SendLogin(login);
  EXPECT_THAT(client.ReadTokens(), testing::Contains("FEATUREEXTACK 2:"));

  RawClient later = Connect(*server);
  later.SendPrelogin(kNoTls);
  later.ReadMessage();
  login.features = FromHex("02 02000000 05 01 FF");
  later.SendLogin(login);
  EXPECT_THAT(later.ReadTokens(), ElementsAre("FEDAUTHINFO"));
  const auto answer = FromHex("0E000000 0A000000 " + token);
  later.Send(0x08, {reinterpret_cast<const char*>(answer.data()), answer.size()});
  EXPECT_EQ(later.ReadTokens().back(), "DONE 0 0");
  EXPECT_EQ(server->counters().logins, 2u);
}

TEST(ServerLogin, EncryptionFollowsTheModeAndTheClient) {
  struct Case {
    TlsMode mode;
    std::uint8_t asked;
    int answer;
  };
  const Case cases[] = {
      {TlsMode::kAsClientAsks, 0, 0}, {TlsMode::kAsClientAsks, 1, 1},
      {TlsMode::kAsClientAsks, 2, 2}, {TlsMode::kAsClientAsks, 3, 1},
      {TlsMode::kRequired, 0, 3},     {TlsMode::kRequired, 1, 1},
      {TlsMode::kRequired, 2, 3},     {TlsMode::kRequired, 3, 1},
      {TlsMode::kNotSupported, 0, 2}, {TlsMode::kNotSupported, 1, 2},
  };
  for (const Case& c : cases) {
    ServerOptions options;
    options.tls_mode = c.mode;
    const auto server = StartServer(options);
    RawClient client = Connect(*server);
    client.SendPrelogin(c.asked);
    const std::optional<std::string> reply = client.ReadMessage();
    ASSERT_TRUE(reply);
    EXPECT_EQ((*reply)[32], c.answer) << static_cast<int>(c.asked);
    if (c.answer == 2) continue;
    client.SendLogin({});  // In clear, where TLS was agreed on.
    EXPECT_EQ(client.ReadTokens(), Lines{"CLOSED"});
  }
}

// Carries a TLS handshake inside PRELOGIN packets until told to stop.
class PreloginWrapped final : public net::Transport {
 public:
  explicit PreloginWrapped(std::unique_ptr<net::Transport> lower, const bool& wraps)
      : client_(std::move(lower)), wraps_(wraps) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    if (held_.empty() && !wraps_) return client_.transport().Read(into);
    if (held_.empty()) {
      std::optional<std::string> message = client_.ReadMessage();
      if (!message) return Error(ErrorId::kConnectionLost);
      held_ = std::move(*message);
    }
    const std::size_t count = std::min(into.size(), held_.size());
    std::copy_n(held_.begin(), count, into.begin());
    held_.erase(0, count);
    return count;
  }
  Status Write(std::span<const std::uint8_t> bytes) override {
    if (!wraps_) return client_.transport().Write(bytes);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size());
    if (!client_.Send(0x12, text)) return Error(ErrorId::kConnectionLost);
    return Unit{};
  }
  void SetTimeLimitMs(std::int64_t) override {}
  void Close() override { client_.transport().Close(); }

 private:
  RawClient client_;
  const bool& wraps_;
  std::string held_;
};

TEST(ServerTls, EncryptsTheLoginOrAllOfIt) {
  for (const std::uint8_t asked : {std::uint8_t{0}, std::uint8_t{1}}) {
    const auto server = StartServer();
    RawClient client = Connect(*server);
    client.SendPrelogin(asked);
    client.ReadMessage();
    bool wraps = true;
    net::TlsClientOptions options;
    options.verify = false;
    options.tls13_allowed = true;  // The server must not take it.
    auto tls = net::TlsTransport::Connect(
        std::make_unique<PreloginWrapped>(client.TakeTransport(), wraps), options);
    ASSERT_TRUE(tls.ok()) << tls.error().Text();
    wraps = false;
    EXPECT_EQ(tls.value()->ProtocolVersion(), "TLSv1.2");
    RawLogin login;
    login.packet_size_bytes = 32767;
    RawClient sender(nullptr);
    if (asked == 0) {
      RawClient through(std::move(tls).value());
      through.SendLogin(login);
      auto* inside = static_cast<net::TlsTransport*>(&through.transport());
      auto clear = inside->Release();
      ASSERT_TRUE(clear.ok());
      sender.SetTransport(std::move(clear).value());
      EXPECT_THAT(sender.ReadTokens(), testing::Contains("ENVCHANGE 4 32767"));
    } else {
      sender.SetTransport(std::move(tls).value());
      sender.SendLogin(login);
      // One TLS record must hold a packet (traps: JDBC refuses more than 16384).
      EXPECT_THAT(sender.ReadTokens(), testing::Contains("ENVCHANGE 4 16383"));
    }
    sender.SendBatch(u"rows");
    EXPECT_EQ(sender.ReadTokens().back(), "DONE 16 2");
  }
}

TEST(ServerTls, StrictIsTlsFirst) {
  const auto server = StartServer();
  const std::filesystem::path ca =
      std::filesystem::path(testing::TempDir()) / "wire_strict_ca.pem";
  std::ofstream(ca) << server->authority_pem();
  auto [near, far] = net::MakePipe();
  server->Serve(std::move(far));
  net::TlsClientOptions options;
  options.ca_file = ca.string();
  options.certificate_name = "localhost";
  options.server_name = "localhost";
  options.tls13_allowed = true;
  options.alpn = "tds/8.0";
  auto tls = net::TlsTransport::Connect(std::move(near), options);
  ASSERT_TRUE(tls.ok()) << tls.error().Text();
  EXPECT_EQ(tls.value()->ProtocolVersion(), "TLSv1.3");
  EXPECT_EQ(tls.value()->Alpn(), "tds/8.0");
  RawClient client(std::move(tls).value());
  client.SendPrelogin(4);  // What go-mssqldb sends here; it means nothing.
  EXPECT_EQ((*client.ReadMessage())[32], 1);
  RawLogin login;
  login.tds_version = 0x08000000;
  client.SendLogin(login);
  EXPECT_THAT(client.ReadTokens(), testing::Contains("LOGINACK 08000000"));
  client.SendBatch(u"rows");
  EXPECT_EQ(client.ReadTokens().back(), "DONE 16 2");
}

TEST(ServerTls, KeepsItsCertificatesWhileTheyAreGood) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "wire_certificates";
  std::filesystem::remove_all(folder);
  ServerOptions options;
  options.certificate_directory = folder.string();
  const std::string first = StartServer(options)->authority_pem();
  EXPECT_EQ(StartServer(options)->authority_pem(), first);
  EXPECT_EQ(std::filesystem::status(folder / "server.key").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::ofstream(folder / "server.key") << "not a key";
  EXPECT_NE(StartServer(options)->authority_pem(), first);
}

TEST(ServerRequests, BatchesGiveTheirTokens) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  struct Case {
    std::u16string sql;
    Lines tokens;
  };
  const Case cases[] = {
      {u"rows", {"COLMETADATA a", "ROW 1", "ROW 2", "DONE 16 2"}},
      {u"fail", {"ERROR 208", "DONE 2 0"}},
      {u"use", {"ENVCHANGE 1 other", "INFO 5701", "DONE 0 0"}},
      {u"begin", {"ENVCHANGE 8 0100000000000000", "DONE 4 0"}},
      {u"", {"DONE 4 0"}},
  };
  for (const Case& c : cases) {
    client.SendBatch(c.sql);
    EXPECT_EQ(client.ReadTokens(), c.tokens) << Utf8(c.sql);
  }
  EXPECT_EQ(server->counters().messages, 5u);
  EXPECT_EQ(server->counters().requests, 5u);
}

TEST(ServerRequests, TransactionsChangeTheEnvironment) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendTransaction("0500 00 00");
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ENVCHANGE 8 0100000000000000", "DONE 4 0"));
  client.SendTransaction("0700 00 01 00 00");  // Commit and begin: what ODBC sends.
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ENVCHANGE 9 ", "ENVCHANGE 8 0200000000000000", "DONE 4 0"));
  // To the savepoint "s]1": what tedious sends. The transaction goes on.
  client.SendTransaction("0900 06 7300 5D00 3100");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 4 0"));
  client.SendTransaction("0800 06 7300 5D00 3100 00");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 4 0"));
  client.SendTransaction("0800 00 00");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("ENVCHANGE 10 ", "DONE 0 0"));
  client.SendTransaction("0600");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("ERROR 8501", "DONE 2 0"));
}

TEST(ServerRequests, ResetsBeforeTheRequest) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendBatch(u"use");
  client.ReadTokens();
  client.SendBatch(u"rows", 0x08);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ENVCHANGE 18", "ENVCHANGE 1 master", "INFO 5701",
                          "COLMETADATA a", "ROW 1", "ROW 2", "DONE 16 2"));
}

// nvarchar(4000) parameters: name, status 0, TYPE_INFO, text.
std::string TextParameter(std::u16string_view text) {
  ByteBuffer bytes;
  bytes.U8(0);
  bytes.U8(0);
  bytes.U8(0xE7);
  bytes.U16(8000);
  bytes.Fill(5, 0);
  bytes.U16(static_cast<std::uint16_t>(text.size() * 2));
  bytes.Raw(text);
  return ToHex(bytes.bytes());
}

TEST(ServerRequests, TellsTheCollationOfANewDatabase) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendBatch(u"greek");
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ENVCHANGE 1 greek", "INFO 5701", "ENVCHANGE 7 0804D00000",
                          "COLMETADATA a", "ROW 1", "ROW 2", "DONE 16 2"));
}

TEST(ServerCalls, ExecuteSqlBindsByDeclaration) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendCall("FFFF 0A00 0000" + TextParameter(u"select") +
                  TextParameter(u"@a int, @b int output") +
                  "00 00 26 08 08 0500000000000000" + "00 01 26 04 04 06000000");
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("COLMETADATA @a @b", "ROW 5 6", "DONEINPROC 17 1",
                          "RETURNSTATUS 0", "RETURNVALUE 3 @b 6", "DONEPROC 0 0"));
  // By name, with a schema, without parameters.
  client.SendCall("0D00 " +
                  ToHex(std::string("s\0y\0s\0.\0[\0s\0p\0_\0e\0x\0e\0c\0u\0", 26)) +
                  "0000");
  EXPECT_THAT(client.ReadTokens(), testing::Contains("ERROR 2812"));
}

TEST(ServerCalls, PreparedStatementsLiveInTheConnection) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  const std::string handle_out = "00 01 26 04 00";
  const std::string value = "00 00 26 04 04 09000000";
  client.SendCall("FFFF 0B00 0000" + handle_out + TextParameter(u"@a int") +
                  TextParameter(u"select"));
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("RETURNSTATUS 0", "RETURNVALUE 0  1", "DONEPROC 0 0"));
  client.SendCall("FFFF 0C00 0000 00 00 26 04 04 01000000" + value);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("COLMETADATA @a", "ROW 9", "DONEINPROC 17 1",
                          "RETURNSTATUS 0", "DONEPROC 0 0"));
  // sp_prepexec frees the handle that it is given.
  client.SendCall("FFFF 0D00 0000 00 01 26 04 04 01000000" + TextParameter(u"@a int") +
                  TextParameter(u"select") + value);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("COLMETADATA @a", "ROW 9", "DONEINPROC 17 1",
                          "RETURNSTATUS 0", "RETURNVALUE 0  2", "DONEPROC 0 0"));
  client.SendCall("FFFF 0C00 0000 00 00 26 04 04 01000000" + value);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("ERROR 8179", "RETURNSTATUS 8179", "DONEPROC 2 0"));
  // Two calls of one message.
  const std::string unprepare = "FFFF 0F00 0000 00 00 26 04 04 02000000";
  client.SendCall(unprepare + "FF" + unprepare);
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("RETURNSTATUS 0", "DONEPROC 1 0", "ERROR 8179",
                          "RETURNSTATUS 8179", "DONEPROC 2 0"));
}

TEST(ServerCalls, AResetForgetsPreparedStatements) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendCall("FFFF 0B00 0000 00 01 26 04 00" + TextParameter(u"") +
                  TextParameter(u"rows"));
  client.ReadTokens();
  client.SendCall("FFFF 0C00 0000 00 00 26 04 04 01000000", 0x08);
  EXPECT_THAT(client.ReadTokens(), testing::Contains("ERROR 8179"));
}

TEST(ServerCalls, OtherProceduresGoToTheEngine) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  const std::u16string name = u"[dbo].echo";
  ByteBuffer call;
  call.U16(static_cast<std::uint16_t>(name.size()));
  call.Raw(name);
  const std::string hex = ToHex(call.bytes()) + "0000";
  client.SendCall(hex + "00 00 26 04 04 05000000");
  EXPECT_THAT(client.ReadTokens(),
              ElementsAre("COLMETADATA ", "ROW 5", "DONEINPROC 17 1", "RETURNSTATUS 7",
                          "DONEPROC 0 0"));
  client.SendCall("0100 7800 0000");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("ERROR 2812", "DONEPROC 2 0"));
  client.SendCall("FFFF 0200 0000");  // sp_cursoropen.
  EXPECT_THAT(client.ReadTokens(), testing::Contains("ERROR 2812"));
  client.SendCall(hex + "00 00 F3 00 00 00");  // A table-valued parameter.
  EXPECT_THAT(client.ReadTokens(), testing::Contains("ERROR 8009"));
}

TEST(ServerAttention, EndsARunningReplyAndThenAnswersInAMessageOfItsOwn) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  for (const std::u16string_view sql : {u"many", u"hold"}) {
    client.SendBatch(sql);
    client.Send(0x06, "");
    const Lines interrupted = client.ReadTokens();
    EXPECT_EQ(interrupted.back(), "DONE 0 0");
    EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 32 0"));
    client.SendBatch(u"rows");
    EXPECT_EQ(client.ReadTokens().back(), "DONE 16 2");
  }
  EXPECT_EQ(server->counters().attentions, 2u);
}

TEST(ServerAttention, AnIdleOneGetsOneMessage) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.Send(0x06, "");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 32 0"));
  client.SendBatch(u"rows");
  EXPECT_EQ(client.ReadTokens().back(), "DONE 16 2");
}

TEST(ServerAttention, StopsACallToo) {
  const auto server = StartServer();
  RawClient client = LoggedInClient(*server);
  client.SendCall("FFFF 0A00 0000" + TextParameter(u"hold"));
  client.Send(0x06, "");
  EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 0 0"));
  EXPECT_THAT(client.ReadTokens(), ElementsAre("DONE 32 0"));
}

TEST(ServerRobustness, BadFirstMessagesEndTheConnection) {
  const auto server = StartServer();
  const std::string bytes[] = {
      "GET / HTTP/1.0\r\n\r\n",
      std::string("\x12\x01\x00\x07\0\0\0\0", 8),
      std::string("\x12\x00\x00\x08\0\0\0\0", 8),
      std::string("\x16\x03\x01\x00\x05hello", 10),
      std::string("\x01\x01\x00\x08\0\0\0\0", 8),
      std::string("\x12\x01\x00\x09\0\0\0\0\xFF", 9),
      std::string("\x10\x01\x00\x0C\0\0\0\0\xFF\xFF\xFF\x7F", 12),
  };
  for (const std::string& sent : bytes) {
    RawClient client = Connect(*server);
    client.SendRaw(sent);
    // A TLS alert may come first; then the end.
    std::uint8_t block[256];
    Result<std::size_t> count = client.transport().Read(block);
    while (count.ok() && count.value() > 0) count = client.transport().Read(block);
    EXPECT_TRUE(!count.ok() || count.value() == 0);
  }
  RawClient good = LoggedInClient(*server);
  good.SendBatch(u"rows");
  EXPECT_EQ(good.ReadTokens().back(), "DONE 16 2");
}

TEST(ServerRobustness, BadRequestsEndTheConnection) {
  ServerOptions options;
  options.message_size_bytes_max = 20'000;
  const auto server = StartServer(options);
  struct Case {
    const char* name;
    std::uint8_t type;
    std::string body;
  };
  const Case cases[] = {
      {"a batch without headers", 0x01, "ab"},
      {"a call cut off", 0x03, std::string("\x04\0\0\0\xFF\xFF", 6)},
      {"a transaction request cut off", 0x0E, std::string("\x04\0\0\0\x05\0", 6)},
      {"a second login", 0x10, "x"},
      {"bulk load", 0x07, "x"},
      {"a message above the limit", 0x01, std::string(30'000, '\x04')},
  };
  for (const Case& c : cases) {
    RawClient client = LoggedInClient(*server);
    client.Send(c.type, c.body);
    EXPECT_EQ(client.ReadTokens(), Lines{"CLOSED"}) << c.name;
  }
  EXPECT_EQ(server->counters().malformed, 5u);
}

TEST(ServerRobustness, NothingLargeIsTakenBeforeTheLogin) {
  const auto server = StartServer();
  RawClient client = Connect(*server);
  client.SendPrelogin(kNoTls);
  client.ReadMessage();
  client.Send(0x10, std::string(300'000, 'x'));
  EXPECT_EQ(client.ReadTokens(), Lines{"CLOSED"});
}

TEST(ServerRobustness, StopEndsAllConnections) {
  const auto server = StartServer();
  RawClient silent = Connect(*server);
  RawClient idle = LoggedInClient(*server);
  RawClient busy = LoggedInClient(*server);
  busy.SendBatch(u"hold");
  RawClient unread = LoggedInClient(*server);
  unread.SendBatch(u"many");
  server->Stop();
  EXPECT_EQ(idle.ReadTokens(), Lines{"CLOSED"});
}

TEST(ServerRobustness, ListensOnAPort) {
  ServerOptions options;
  auto server = Server::Start(options, std::make_shared<FakeEngine>());
  ASSERT_TRUE(server.ok());
  EXPECT_NE(server.value()->port(), 0);
  options.bind_address = "not an address";
  EXPECT_FALSE(Server::Start(options, std::make_shared<FakeEngine>()).ok());
  options.bind_address = "127.0.0.1";
  options.certificate_directory = "/dev/null/x";
  const auto failed = Server::Start(options, std::make_shared<FakeEngine>());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().id(), ErrorId::kFileFailed);
}

}  // namespace
}  // namespace mssql_cdc::sim::wire

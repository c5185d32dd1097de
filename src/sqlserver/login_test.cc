// Logins against a scripted server: what succeeds, what is refused, what a hostile or
// broken server can do. No error may hold a credential.

#include "sqlserver/login.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "net/faulty.h"
#include "sqlserver/scripted_server.h"
#include "tds/utf16.h"

namespace mssql_cdc::sqlserver {
namespace {

using namespace test;

constexpr const char* kPassword = "canary-Pa55";

ConnectOptions Options(Encrypt encrypt = Encrypt::kLoginOnly) {
  ConnectOptions options;
  options.host = "db.test";
  options.database = "shop";
  options.user = "reader";
  options.password = Secret(kPassword);
  options.encrypt = encrypt;
  options.connect_timeout_ms = 20'000;
  return options;
}

// The password as it is, in UTF-16LE and as LOGIN7 hides it.
void ExpectNoCredential(const Error& error) {
  const std::string text = error.Text();
  Wire utf16;
  tds::AppendUtf16(kPassword, utf16);
  std::string plain16(utf16.begin(), utf16.end());
  for (std::uint8_t& byte : utf16) {
    byte = static_cast<std::uint8_t>(((byte << 4) | (byte >> 4)) ^ 0xA5);
  }
  const std::string hidden(utf16.begin(), utf16.end());
  EXPECT_EQ(text.find(kPassword), std::string::npos) << text;
  EXPECT_EQ(text.find(plain16), std::string::npos);
  EXPECT_EQ(text.find(hidden), std::string::npos);
}

const net::Certificates& Identity() {
  static const net::Certificates made = [] {
    SystemClock clock;
    return net::MakeCertificates({"db.test", "replica.test"}, clock.NowUtcUs()).value();
  }();
  return made;
}

// The root of Identity() as a file.
const std::string& CaFile() {
  static const struct File {
    std::string path = (std::filesystem::temp_directory_path() /
                        ("mssql_cdc_login_test_" + std::to_string(getpid()) + ".pem"))
                           .string();
    File() { std::ofstream(path) << Identity().ca_pem; }
    ~File() { std::filesystem::remove(path); }
  } file;
  return file.path;
}

// Every question about the time moves it on, so that waits pass without waiting.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(std::int64_t step_ms) : step_ms_(step_ms) {}
  std::int64_t NowUtcUs() override { return 0; }
  std::int64_t MonotonicNs() override { return now_ns_ += step_ms_ * 1'000'000; }
  void SleepMs(std::int64_t) override {}

 private:
  std::int64_t step_ms_;
  std::int64_t now_ns_ = 0;
};

Result<LoggedIn> TryLogIn(ScriptedServer& server, const ConnectOptions& options) {
  ManualClock clock(0);
  auto logged_in = LogIn(options, server.dialer(), clock);
  if (!logged_in.ok()) ExpectNoCredential(logged_in.error());
  return logged_in;
}

std::uint32_t U32(const Wire& wire, std::size_t at) {
  return wire.at(at) | (wire.at(at + 1) << 8) | (wire.at(at + 2) << 16) |
         (static_cast<std::uint32_t>(wire.at(at + 3)) << 24);
}

bool Holds(const Wire& wire, const Wire& part) {
  return std::ranges::search(wire, part).begin() != wire.end();
}

TEST(LogIn, WithoutEncryptionWhereTheServerHasNoneAndThatIsAllowed) {
  Message prelogin;
  Message login;
  {
    ScriptedServer server([&](auto client) {
      prelogin = ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
      login = ReadMessage(*client);
      SendReply(*client, LoginReply("8000"));
    });
    const auto session = TryLogIn(server, Options());
    ASSERT_TRUE(session.ok()) << session.error().Text();
    EXPECT_EQ(session.value().packet_size_bytes, 8000u);
    EXPECT_EQ(session.value().collation,
              (std::array<std::uint8_t, 5>{9, 4, 0xD0, 0, 0x34}));
    EXPECT_FALSE(session.value().facts.encrypted);
    EXPECT_EQ(session.value().facts.product, "Microsoft SQL Server");
    EXPECT_EQ(session.value().facts.major_version, 16);
    EXPECT_EQ(session.value().facts.build, 1000);
    EXPECT_EQ(session.value().facts.database, "shop");
    EXPECT_EQ(server.dialed, std::vector<std::string>{"db.test:1433"});
  }
  EXPECT_EQ(prelogin.type, tds::PacketType::kPrelogin);
  EXPECT_EQ(login.type, tds::PacketType::kLogin7);
  EXPECT_EQ(U32(login.payload, 4), tds::kTds74);
  EXPECT_EQ(U32(login.payload, 8), 32767u);
}

// Serves one login under TLS in the mode that `answer` stands for, and gives the LOGIN7
// payload.
void ServeTls(std::unique_ptr<net::Transport> client, std::uint8_t answer,
              Wire* login7) {
  ReadMessage(*client);
  SendReply(*client, PreloginReply(answer));
  auto tls = AcceptTls(std::move(client), Identity(), false);
  if (tls == nullptr) return;
  const Message login = ReadMessage(*tls);
  if (login7 != nullptr) *login7 = login.payload;
  if (answer == tds::kEncryptOff) {
    tls = static_cast<net::TlsTransport&>(*tls).Release().value();
  }
  SendReply(*tls, LoginReply());
}

TEST(LogIn, EncryptedAsTheServerAndTheOptionsAgree) {
  struct Case {
    const char* name;
    Encrypt wanted;
    std::uint8_t answer;
    bool encrypted;
    std::uint32_t packet_size;
  };
  const Case cases[] = {
      {"mandatory, on", Encrypt::kMandatory, tds::kEncryptOn, true, 16383},
      {"mandatory, required", Encrypt::kMandatory, tds::kEncryptRequired, true, 16383},
      {"optional, on", Encrypt::kLoginOnly, tds::kEncryptOn, true, 16383},
      {"optional, required", Encrypt::kLoginOnly, tds::kEncryptRequired, true, 16383},
      {"optional, login only", Encrypt::kLoginOnly, tds::kEncryptOff, false, 32767},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Wire login7;
    {
      ScriptedServer server(
          [&](auto client) { ServeTls(std::move(client), c.answer, &login7); });
      ConnectOptions options = Options(c.wanted);
      options.ca_file = CaFile();
      const auto session = TryLogIn(server, options);
      ASSERT_TRUE(session.ok()) << session.error().Text();
      EXPECT_EQ(session.value().encrypted, c.encrypted);
      EXPECT_EQ(session.value().facts.encrypted, c.encrypted);
    }
    EXPECT_EQ(U32(login7, 8), c.packet_size);
  }
}

TEST(LogIn, StrictIsTlsFromTheFirstByte) {
  Wire login7;
  std::string version;
  std::string alpn;
  {
    ScriptedServer server([&](auto client) {
      auto tls = AcceptTls(std::move(client), Identity(), true);
      ASSERT_NE(tls, nullptr);
      version = static_cast<net::TlsTransport&>(*tls).ProtocolVersion();
      alpn = static_cast<net::TlsTransport&>(*tls).Alpn();
      ReadMessage(*tls);
      SendReply(*tls, PreloginReply(tds::kEncryptOn));
      login7 = ReadMessage(*tls).payload;
      SendReply(*tls, LoginReply());
    });
    ConnectOptions options = Options(Encrypt::kStrict);
    options.ca_file = CaFile();
    const auto session = TryLogIn(server, options);
    ASSERT_TRUE(session.ok()) << session.error().Text();
    EXPECT_TRUE(session.value().encrypted);
  }
  EXPECT_EQ(version, "TLSv1.3");
  EXPECT_EQ(alpn, "tds/8.0");
  EXPECT_EQ(U32(login7, 4), tds::kTds80);
  EXPECT_EQ(U32(login7, 8), 16383u);
}

TEST(LogIn, TheCertificateIsVerifiedUnlessTheOptionsSayOtherwise) {
  struct Case {
    const char* name;
    Encrypt encrypt;
    bool with_ca;
    bool trust;
    const char* host;
    std::optional<std::string> name_in_certificate;
    bool accepted;
  };
  const Case cases[] = {
      {"known root", Encrypt::kMandatory, true, false, "db.test", {}, true},
      {"unknown root", Encrypt::kMandatory, false, false, "db.test", {}, false},
      {"unknown root, login only",
       Encrypt::kLoginOnly,
       false,
       false,
       "db.test",
       {},
       false},
      {"another name", Encrypt::kMandatory, true, false, "other.test", {}, false},
      {"another name that is expected", Encrypt::kMandatory, true, false, "other.test",
       "db.test", true},
      {"trusted by name", Encrypt::kMandatory, false, true, "other.test", {}, true},
      {"strict trusts nobody by name",
       Encrypt::kStrict,
       false,
       true,
       "db.test",
       {},
       false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Wire login7;
    {
      ScriptedServer server([&](auto client) {
        if (c.encrypt == Encrypt::kStrict) {
          AcceptTls(std::move(client), Identity(), true);
          return;
        }
        const bool only = c.encrypt == Encrypt::kLoginOnly;
        ServeTls(std::move(client), only ? tds::kEncryptOff : tds::kEncryptOn, &login7);
      });
      ConnectOptions options = Options(c.encrypt);
      options.host = c.host;
      options.trust_server_certificate = c.trust;
      options.host_name_in_certificate = c.name_in_certificate;
      if (c.with_ca) options.ca_file = CaFile();
      const auto session = TryLogIn(server, options);
      ASSERT_EQ(session.ok(), c.accepted);
      if (!c.accepted) {
        EXPECT_EQ(session.error().id(), ErrorId::kCertificateUntrusted);
      }
    }
    // Without trust the credentials stay here.
    EXPECT_EQ(login7.empty(), !c.accepted);
  }
}

TEST(LogIn, ADowngradeIsRefusedBeforeTheCredentialsAreSent) {
  for (const std::uint8_t answer : {tds::kEncryptOff, tds::kEncryptNotSupported}) {
    Message after{tds::PacketType::kLogin7, {}, {1}};
    {
      ScriptedServer server([&](auto client) {
        ReadMessage(*client);
        SendReply(*client, PreloginReply(answer));
        after = ReadMessage(*client);
      });
      const auto session = TryLogIn(server, Options(Encrypt::kMandatory));
      ASSERT_FALSE(session.ok());
      EXPECT_EQ(session.error().id(), ErrorId::kEncryptionRefused);
    }
    EXPECT_TRUE(after.packet_lengths.empty());
  }
}

// The table of facts/tds.md 2.2, walked whole.
TEST(DecideEncryption, NeverGivesLessThanWasAskedFor) {
  for (int answer = 0; answer < 256; ++answer) {
    const auto byte = static_cast<std::uint8_t>(answer);
    const auto must = DecideEncryption(Encrypt::kMandatory, byte);
    const auto may = DecideEncryption(Encrypt::kLoginOnly, byte);
    switch (answer) {
      case tds::kEncryptOn:
      case tds::kEncryptRequired:
        EXPECT_EQ(must.value(), Encryption::kAll);
        EXPECT_EQ(may.value(), Encryption::kAll);
        break;
      case tds::kEncryptOff:
        EXPECT_EQ(must.error().id(), ErrorId::kEncryptionRefused);
        EXPECT_EQ(may.value(), Encryption::kLoginOnly);
        break;
      case tds::kEncryptNotSupported:
        EXPECT_EQ(must.error().id(), ErrorId::kEncryptionRefused);
        EXPECT_EQ(may.value(), Encryption::kNothing);
        break;
      default:
        EXPECT_EQ(must.error().id(), ErrorId::kTdsMalformed);
        EXPECT_EQ(may.error().id(), ErrorId::kTdsMalformed);
    }
  }
}

TEST(LogIn, ARefusalIsToldByItsNumber) {
  struct Case {
    std::int32_t number;
    ErrorId error;
  };
  const Case cases[] = {
      {18456, ErrorId::kLoginFailed},    {18470, ErrorId::kLoginFailed},
      {9820, ErrorId::kOptionInvalid},   {4060, ErrorId::kDatabaseUnavailable},
      {40613, ErrorId::kServerBusy},     {18401, ErrorId::kServerBusy},
      {916, ErrorId::kPermissionDenied}, {99999, ErrorId::kLoginFailed},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.number);
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
      ReadMessage(*client);
      // It repeats what it was told; whole or cut off right behind the error.
      const std::string text =
          std::string("Login failed for user 'reader' with ") + kPassword;
      if (c.number == 18456) {
        SendReply(*client, Join(ErrorToken(c.number, text), Done(2)));
      } else {
        Send(*client,
             Packet(tds::PacketType::kReply, ErrorToken(c.number, text), true));
      }
    });
    const auto session = TryLogIn(server, Options());
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().id(), c.error);
    EXPECT_EQ(session.error().Fact("number"), std::to_string(c.number));
    EXPECT_EQ(session.error().Fact("class"), "14");
    EXPECT_EQ(session.error().Fact("state"), "1");
    EXPECT_EQ(session.error().Fact("message"), "Login failed for user *** with ***");
    EXPECT_EQ(session.error().Fact("host"), "db.test");
  }
}

TEST(LogIn, ARedirectionIsFollowedWithTheNameThatWasAskedFor) {
  std::vector<Wire> logins;
  {
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
      logins.push_back(ReadMessage(*client).payload);
      SendReply(*client, logins.size() == 1
                             ? Join(LoginAck(), Route("replica.test", 1444), Done())
                             : LoginReply());
    });
    const auto session = TryLogIn(server, Options());
    ASSERT_TRUE(session.ok()) << session.error().Text();
    EXPECT_EQ(server.dialed,
              (std::vector<std::string>{"db.test:1433", "replica.test:1444"}));
  }
  ASSERT_EQ(logins.size(), 2u);
  EXPECT_TRUE(Holds(logins[1], Utf16("db.test")));
  EXPECT_FALSE(Holds(logins[1], Utf16("replica.test")));
}

TEST(LogIn, TheRedirectedHostsOwnNameIsVerified) {
  const auto serve = [](const char* target) {
    return [target](std::unique_ptr<net::Transport> client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptOn));
      auto tls = AcceptTls(std::move(client), Identity(), false);
      if (tls == nullptr || ReadMessage(*tls).packet_lengths.empty()) return;
      SendReply(*tls, Join(LoginAck(), Route(target, 1), Done()));
    };
  };
  ConnectOptions options = Options(Encrypt::kMandatory);
  options.ca_file = CaFile();
  ScriptedServer known(serve("replica.test"));
  EXPECT_EQ(TryLogIn(known, options).error().id(), ErrorId::kTooManyRoutes);
  ScriptedServer unknown(serve("evil.test"));
  EXPECT_EQ(TryLogIn(unknown, options).error().id(), ErrorId::kCertificateUntrusted);
}

TEST(LogIn, RedirectionsInACircleEnd) {
  ScriptedServer server([](auto client) {
    ReadMessage(*client);
    SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
    ReadMessage(*client);
    SendReply(*client, Join(LoginAck(), Route("db.test", 1433), Done()));
  });
  const auto session = TryLogIn(server, Options());
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().id(), ErrorId::kTooManyRoutes);
  EXPECT_EQ(server.dialed.size(), 6u);
}

TEST(LogIn, ATokenIsNeverSentInClear) {
  ScriptedServer server([](auto client) {
    ReadMessage(*client);
    SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
    EXPECT_TRUE(ReadMessage(*client).packet_lengths.empty());
  });
  ConnectOptions options = Options();
  options.access_token = Secret("token");
  EXPECT_EQ(TryLogIn(server, options).error().id(), ErrorId::kEncryptionRefused);
}

// FEDAUTHINFO (MS-TDS 2.2.7.12), with an empty place of tokens.
Wire WantsToken() { return Hex("EE 04000000 00000000"); }

TEST(LogIn, AServerGetsNoTokenThatWasNotOffered) {
  ScriptedServer server([](auto client) {
    ReadMessage(*client);
    SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
    ReadMessage(*client);
    SendReply(*client, WantsToken());
    EXPECT_TRUE(ReadMessage(*client).packet_lengths.empty());
  });
  EXPECT_EQ(TryLogIn(server, Options()).error().id(), ErrorId::kTdsMalformed);
}

TEST(LogIn, ATokenIsAskedForWhereTheServerSaysAndBroughtInAMessageOfItsOwn) {
  Wire token;
  {
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptOn));
      auto tls = AcceptTls(std::move(client), Identity(), false);
      ASSERT_NE(tls, nullptr);
      ReadMessage(*tls);
      SendReply(*tls, Join(Hex("EE 1E000000 02000000 01 02000000 16000000 02 06000000 "
                               "18000000"),
                           Utf16("u"), Utf16("spn")));
      const Message message = ReadMessage(*tls);
      EXPECT_EQ(message.type, tds::PacketType::kFederatedToken);
      token = message.payload;
      SendReply(*tls, LoginReply());
    });
    ConnectOptions options = Options(Encrypt::kMandatory);
    options.ca_file = CaFile();
    options.ask_token = [](const TokenPlace& place, std::int64_t limit_ms) {
      EXPECT_EQ(place.sts_url, "u");
      EXPECT_EQ(place.spn, "spn");
      EXPECT_GT(limit_ms, 0);
      return Result<Secret>(Secret("ab"));
    };
    ASSERT_TRUE(TryLogIn(server, options).ok());
  }
  EXPECT_EQ(token, Hex("08000000 04000000 6100 6200"));
}

TEST(LogIn, ATokenThatIsBroughtLaterNeedsMoreThanAnEncryptedLogin) {
  ScriptedServer server([](auto client) {
    ReadMessage(*client);
    SendReply(*client, PreloginReply(tds::kEncryptOff));
    EXPECT_TRUE(ReadMessage(*client).packet_lengths.empty());
  });
  ConnectOptions options = Options(Encrypt::kLoginOnly);
  options.ask_token = [](const TokenPlace&, std::int64_t) {
    ADD_FAILURE() << "asked";
    return Result<Secret>(Secret("ab"));
  };
  EXPECT_EQ(TryLogIn(server, options).error().id(), ErrorId::kEncryptionRefused);
}

TEST(LogIn, ATokenLongerThanAPacketIsSentInSeveral) {
  Wire login7;
  std::vector<std::size_t> lengths;
  {
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptOn));
      auto tls = AcceptTls(std::move(client), Identity(), false);
      ASSERT_NE(tls, nullptr);
      const Message login = ReadMessage(*tls);
      login7 = login.payload;
      lengths = login.packet_lengths;
      SendReply(*tls, LoginReply());
    });
    ConnectOptions options = Options(Encrypt::kMandatory);
    options.ca_file = CaFile();
    options.access_token = Secret(std::string(3000, 't'));
    ASSERT_TRUE(TryLogIn(server, options).ok());
  }
  ASSERT_EQ(lengths.size(), 2u);
  EXPECT_EQ(lengths[0], 4096u);
  EXPECT_FALSE(Holds(login7, Utf16("reader")));
}

TEST(LogIn, SilenceEndsAtTheTimeLimit) {
  for (const bool with_prelogin : {false, true}) {
    // The server's end stays open until the client has given up.
    std::unique_ptr<net::Transport> open;
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      if (with_prelogin) SendReply(*client, PreloginReply(tds::kEncryptOn));
      open = std::move(client);
    });
    ConnectOptions options = Options(Encrypt::kMandatory);
    options.trust_server_certificate = true;
    options.connect_timeout_ms = 20;
    const auto session = TryLogIn(server, options);
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().id(), ErrorId::kTimedOut);
  }
}

// One INFO token after the other: each alone is in order.
const Wire& Chatter() {
  static const Wire chatter = ErrorToken(1, std::string(1500, 'x'), 0, 0xAB);
  return chatter;
}

void TalkOn(std::unique_ptr<net::Transport> client) {
  ReadMessage(*client);
  SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
  ReadMessage(*client);
  while (client->Write(Packet(tds::PacketType::kReply, Chatter(), true)).ok()) {
  }
}

TEST(LogIn, AServerThatTalksOnMeetsTheTimeLimit) {
  ScriptedServer server(TalkOn);
  TickingClock clock(500);
  ConnectOptions options = Options();
  options.connect_timeout_ms = 5'000;
  const auto session = LogIn(options, server.dialer(), clock);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().id(), ErrorId::kTimedOut);
}

TEST(LogIn, AServerThatTalksOnMeetsTheSizeLimit) {
  ScriptedServer server(TalkOn);
  EXPECT_EQ(TryLogIn(server, Options()).error().id(), ErrorId::kTdsLimitExceeded);
}

TEST(LogIn, BytesBehindPreloginAreNotTakenIntoTheEncryptedPart) {
  ScriptedServer server([](auto client) {
    ReadMessage(*client);
    Send(*client, Join(Packet(tds::PacketType::kReply, PreloginReply(tds::kEncryptOn)),
                       Packet(tds::PacketType::kReply, LoginReply())));
  });
  EXPECT_EQ(TryLogIn(server, Options(Encrypt::kMandatory)).error().id(),
            ErrorId::kTdsMalformed);
}

// The conditions of go-mssqldb's bad_server_test.go, and more of the kind.
TEST(LogIn, AnswersThatBreakTheProtocolAreErrors) {
  struct Case {
    const char* name;
    Wire prelogin;
    Wire login;
    ErrorId error;
  };
  const Wire fine =
      Packet(tds::PacketType::kReply, PreloginReply(tds::kEncryptNotSupported));
  const auto reply = [](const Wire& payload) {
    return Packet(tds::PacketType::kReply, payload);
  };
  const Case cases[] = {
      {"closed at once", {}, {}, ErrorId::kConnectionLost},
      {"empty packet that is not the last",
       Hex("04 00 0008 0000 01 00"),
       {},
       ErrorId::kTdsMalformed},
      {"prelogin in another packet type",
       Hex("01 01 0008 0000 01 00"),
       {},
       ErrorId::kTdsMalformed},
      {"empty prelogin", reply({}), {}, ErrorId::kTdsMalformed},
      {"no answer to the login", fine, {}, ErrorId::kConnectionLost},
      {"login answered in another packet type", fine,
       Packet(tds::PacketType::kPrelogin, Done()), ErrorId::kTdsMalformed},
      {"unknown token", fine, reply(Hex("00")), ErrorId::kTdsRefusedToken},
      {"rows before the login", fine, reply(Hex("D1 00")), ErrorId::kTdsRefusedToken},
      {"SSPI that nobody asked for", fine, reply(Hex("ED 0100 00")),
       ErrorId::kTdsRefusedToken},
      {"no LOGINACK", fine, reply(Done()), ErrorId::kTdsMalformed},
      {"failed without a reason", fine, reply(Done(2)), ErrorId::kLoginFailed},
      {"cut inside a token", fine, reply(Hex("AD 3200 01")), ErrorId::kTdsMalformed},
      {"an old TDS version", fine,
       reply(Join(Hex("AD"), ShortPrefixed(Hex("01 07010000 00 08 00 0000")), Done())),
       ErrorId::kTdsMalformed},
      {"bytes behind the reply", fine, Join(reply(LoginReply()), reply(Done())),
       ErrorId::kTdsMalformed},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      Send(*client, c.prelogin);
      if (c.login.empty()) return;
      ReadMessage(*client);
      Send(*client, c.login);
    });
    const auto session = TryLogIn(server, Options());
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().id(), c.error) << session.error().Text();
  }
}

TEST(LogIn, ALoginReplyCutAtAnyByteIsAnErrorAndOneInPiecesIsNot) {
  const Wire reply = Packet(tds::PacketType::kReply, LoginReply());
  for (std::size_t size = 0; size <= reply.size(); ++size) {
    ScriptedServer server([&](auto client) {
      ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
      ReadMessage(*client);
      Send(*client, Wire(reply.begin(), reply.begin() + static_cast<long>(size)));
    });
    server.wrap = [](auto lower) {
      return net::MakeFaulty(std::move(lower), {.read_size_bytes_max = 1});
    };
    const auto session = TryLogIn(server, Options());
    if (size == reply.size()) {
      EXPECT_TRUE(session.ok()) << session.error().Text();
    } else {
      ASSERT_FALSE(session.ok()) << size;
      EXPECT_EQ(session.error().id(), ErrorId::kConnectionLost) << size;
    }
  }
}

TEST(LogIn, AnEncryptedLoginCutAnywhereIsAnErrorUntilItIsComplete) {
  ConnectOptions options = Options(Encrypt::kMandatory);
  options.ca_file = CaFile();
  constexpr std::uint64_t kStep = 29;
  for (std::uint64_t size = 0;; size += kStep) {
    ScriptedServer server(
        [&](auto client) { ServeTls(std::move(client), tds::kEncryptOn, nullptr); });
    server.wrap = [&](auto lower) {
      return net::MakeFaulty(std::move(lower), {.lost_after_read_bytes = size});
    };
    const auto session = TryLogIn(server, options);
    if (session.ok()) {
      // PRELOGIN, a certificate and the login reply take more than this.
      EXPECT_GT(size, 700u);
      break;
    }
    ASSERT_EQ(session.error().id(), ErrorId::kConnectionLost) << size;
    ASSERT_LT(size, 10'000u);
  }
}

TEST(LogIn, AnInstanceIsAskedForItsPort) {
  Message prelogin;
  {
    ScriptedServer server([&](auto client) {
      prelogin = ReadMessage(*client);
      SendReply(*client, PreloginReply(tds::kEncryptNotSupported));
      ReadMessage(*client);
      SendReply(*client, LoginReply());
    });
    ConnectOptions options = Options();
    options.instance = "SALES";
    ASSERT_TRUE(TryLogIn(server, options).ok());
  }
  EXPECT_TRUE(Holds(prelogin.payload, Hex("53414C4553 00")));
}

}  // namespace
}  // namespace mssql_cdc::sqlserver

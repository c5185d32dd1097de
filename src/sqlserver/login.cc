#include "sqlserver/login.h"

#include <unistd.h>

#include <variant>

#include "net/tls.h"
#include "sqlserver/login_transport.h"
#include "sqlserver/messages.h"
#include "tds/login7.h"
#include "tds/prelogin.h"
#include "tds/tokens.h"

namespace mssql_cdc::sqlserver {
namespace {

constexpr std::uint16_t kDefaultPort = 1433;
constexpr std::size_t kInitialPacketSizeBytes = 4096;
constexpr int kRouteCountMax = 5;
constexpr const char* kStrictProtocol = "tds/8.0";

struct Address {
  std::string host;
  std::uint16_t port = kDefaultPort;
};

// One login that is under way, from the dialed transport on.
struct Attempt {
  const ConnectOptions& options;
  const Address& address;
  // The way to the server: at first `login` itself, later TLS over it.
  std::unique_ptr<net::Transport> transport;
  LoginTransport* login = nullptr;  // Owned by `transport` or what that one owns.
  Clock& clock;
  std::int64_t deadline_ns = 0;  // 0: none.
};

// What the server's answer to LOGIN7 said.
struct LoginReply {
  std::optional<tds::LoginAck> ack;
  std::optional<tds::Routed> route;
  std::optional<tds::FedAuthInfo> wants_token;
  std::optional<Error> failure;
  std::optional<std::uint16_t> packet_size_bytes;
  std::array<std::uint8_t, 5> collation{};
  std::string database;
};

Error Malformed(std::string_view why) {
  return Error(ErrorId::kTdsMalformed)
      .With("during", "login")
      .With("why", std::string(why));
}

bool BringsToken(const ConnectOptions& options) {
  return options.access_token || options.ask_token;
}

// Milliseconds until `deadline_ns`; 0 if there is no deadline.
Result<std::int64_t> LeftMs(Clock& clock, std::int64_t deadline_ns) {
  if (deadline_ns == 0) return std::int64_t{0};
  const std::int64_t left_ms = (deadline_ns - clock.MonotonicNs()) / 1'000'000;
  if (left_ms <= 0) return Error(ErrorId::kTimedOut).With("during", "login");
  return left_ms;
}

std::uint8_t EncryptionWish(Encrypt encrypt) {
  switch (encrypt) {
    case Encrypt::kMandatory:
      return tds::kEncryptOn;
    case Encrypt::kLoginOnly:
      return tds::kEncryptOff;
    case Encrypt::kStrict:
      // Ignored by servers, since TLS is there already; what other drivers send.
      return tds::kEncryptNotSupported;
  }
  return tds::kEncryptOn;
}

Result<tds::PreloginReply> AskPrelogin(Attempt& attempt) {
  tds::PreloginRequest request;
  request.encryption = EncryptionWish(attempt.options.encrypt);
  request.instance = attempt.options.instance.value_or("");
  request.fed_auth = BringsToken(attempt.options);
  TRY(SendMessage(*attempt.transport, tds::PacketType::kPrelogin,
                  tds::EncodePrelogin(request), kInitialPacketSizeBytes));
  tds::PacketReader reader(tds::PacketType::kReply, kInitialPacketSizeBytes);
  while (true) {
    TRY_ASSIGN(const bool advanced, reader.Advance());
    if (advanced) continue;
    if (reader.message_ended()) break;
    TRY(ReceiveInto(*attempt.transport, reader));
  }
  // What came along in clear would otherwise be taken for something TLS protected.
  if (reader.has_more_than_message()) return Malformed("bytes behind PRELOGIN");
  return tds::DecodePrelogin(reader.Payload());
}

// Puts TLS over the attempt's transport.
Status StartTls(Attempt& attempt, bool strict) {
  const ConnectOptions& options = attempt.options;
  net::TlsClientOptions tls;
  tls.server_name = attempt.address.host;
  tls.certificate_name =
      options.host_name_in_certificate.value_or(attempt.address.host);
  tls.pinned_certificate_file = options.server_certificate;
  tls.ca_file = options.ca_file;
  tls.verify = strict || !options.trust_server_certificate;
  // What TLS 1.3 sends after its handshake does not fit into PRELOGIN packets.
  tls.tls13_allowed = strict;
  if (strict) tls.alpn = kStrictProtocol;
  if (!strict) attempt.login->BeginWrapping();
  TRY_ASSIGN(auto connected,
             net::TlsTransport::Connect(std::move(attempt.transport), tls));
  attempt.transport = std::move(connected);
  if (!strict) TRY(attempt.login->EndWrapping());
  return Unit{};
}

// LOGIN7's ServerName is the server that was asked for, even behind a redirection.
std::string ServerName(const ConnectOptions& options) {
  return options.instance ? options.host + '\\' + *options.instance : options.host;
}

std::uint16_t PacketSizeWish(const ConnectOptions& options, Encryption encryption) {
  const std::uint16_t most =
      encryption == Encryption::kAll ? kPacketSizeEncrypted : kPacketSizeClear;
  return options.packet_size_bytes == 0 ? most
                                        : std::min(options.packet_size_bytes, most);
}

Status SendLogin(Attempt& attempt, Encryption encryption, bool fed_auth_echo) {
  const ConnectOptions& options = attempt.options;
  tds::Login7 login;
  login.tds_version = options.encrypt == Encrypt::kStrict ? tds::kTds80 : tds::kTds74;
  login.packet_size_bytes = PacketSizeWish(options, encryption);
  login.process_id = static_cast<std::uint32_t>(getpid());
  login.workstation = options.workstation;
  login.user = options.user;
  login.password = options.password;
  login.application = options.application_name;
  login.server = ServerName(options);
  login.database = options.database;
  login.read_only_intent = options.read_only_intent;
  login.access_token = options.access_token;
  login.brings_token_later = !options.access_token && options.ask_token;
  login.fed_auth_echo = fed_auth_echo;
  TRY_ASSIGN(auto payload, tds::EncodeLogin7(login));
  auto sent = SendMessage(*attempt.transport, tds::PacketType::kLogin7, payload,
                          kInitialPacketSizeBytes);
  Wipe(payload);
  return sent;
}

void Take(tds::Token&& token, const Redactor& redactor, LoginReply& reply) {
  if (const auto* message = std::get_if<tds::ServerMessage>(&token)) {
    if (message->is_error && !reply.failure) {
      reply.failure = ErrorFrom(*message, Phase::kLogin, redactor);
    }
  } else if (auto* ack = std::get_if<tds::LoginAck>(&token)) {
    reply.ack = std::move(*ack);
  } else if (auto* route = std::get_if<tds::Routed>(&token)) {
    reply.route = std::move(*route);
  } else if (auto* place = std::get_if<tds::FedAuthInfo>(&token)) {
    reply.wants_token = std::move(*place);
  } else if (const auto* size = std::get_if<tds::PacketSizeChanged>(&token)) {
    reply.packet_size_bytes = size->size_bytes;
  } else if (const auto* collation = std::get_if<tds::CollationChanged>(&token)) {
    reply.collation = collation->collation;
  } else if (auto* database = std::get_if<tds::DatabaseChanged>(&token)) {
    reply.database = std::move(database->name);
  } else if (const auto* done = std::get_if<tds::Done>(&token)) {
    const bool failed = (done->status & (tds::kDoneError | tds::kDoneServerError)) != 0;
    if (failed && !reply.failure) {
      reply.failure =
          Error(ErrorId::kLoginFailed).With("message", "the server gave no reason");
    }
  }
}

// Reads the answer to LOGIN7 to its end. A server that refuses may close right behind
// its ERROR; what it said counts more than that.
Result<LoginReply> ReadLoginReply(net::Transport& transport, tds::PacketReader& reader,
                                  const Redactor& redactor) {
  LoginReply reply;
  while (true) {
    tds::Reader in(reader.Payload());
    auto token = tds::DecodeToken(in);
    if (!token.ok()) return std::move(token).error();
    if (token.value()) {
      reader.Consume(in.offset());
      Take(std::move(*token.value()), redactor, reply);
      continue;
    }
    TRY_ASSIGN(const bool advanced, reader.Advance());
    if (advanced) continue;
    if (reader.message_ended()) break;
    auto received = ReceiveInto(transport, reader);
    if (!received.ok() && reply.failure) return reply;
    if (!received.ok()) return std::move(received).error();
  }
  if (!reader.Payload().empty()) return Malformed("the reply ends inside a token");
  if (reader.has_more_than_message()) return Malformed("bytes behind the login reply");
  return reply;
}

// TDS 7.2 to 7.4 and 8.0 have the layouts that this client reads.
bool IsVersionRead(std::uint32_t version) {
  const std::uint32_t generation = version >> 24;
  return (generation >= 0x72 && generation <= 0x74) || generation == 0x08;
}

// Gets the token that the server asks for and sends it; it is in no message then.
Status BringToken(Attempt& attempt, const tds::FedAuthInfo& wants, Redactor& redactor) {
  TRY_ASSIGN(const std::int64_t left_ms, LeftMs(attempt.clock, attempt.deadline_ns));
  TRY_ASSIGN(const Secret token,
             attempt.options.ask_token({wants.sts_url, wants.spn}, left_ms));
  redactor = Redactor(attempt.options.password, token, attempt.options.user);
  std::vector<std::uint8_t> payload = tds::EncodeFedAuthToken(token);
  auto sent = SendMessage(*attempt.transport, tds::PacketType::kFederatedToken, payload,
                          kInitialPacketSizeBytes);
  Wipe(payload);
  return sent;
}

using Outcome = std::variant<LoggedIn, tds::Routed>;

Result<Outcome> Conclude(Attempt& attempt, Encryption encryption) {
  LoggedIn session;
  Redactor redactor = RedactorOf(attempt.options);
  TRY_ASSIGN(LoginReply reply,
             ReadLoginReply(*attempt.transport, session.reader, redactor));
  if (reply.wants_token && !reply.failure && !reply.ack) {
    if (!attempt.options.ask_token) return Malformed("FEDAUTHINFO unasked for");
    TRY(BringToken(attempt, *reply.wants_token, redactor));
    session.reader.BeginMessage();
    TRY_ASSIGN(reply, ReadLoginReply(*attempt.transport, session.reader, redactor));
  }
  if (reply.failure) return std::move(*reply.failure);
  if (!reply.ack) return Malformed("no LOGINACK");
  if (!IsVersionRead(reply.ack->tds_version)) {
    return Malformed("a TDS version that was not asked for");
  }
  // The redirection comes behind LOGINACK and wins over it.
  if (reply.route) return Outcome(std::move(*reply.route));

  session.packet_size_bytes = reply.packet_size_bytes.value_or(kInitialPacketSizeBytes);
  session.reader.SetPacketSizeMax(session.packet_size_bytes);
  session.collation = reply.collation;
  session.encrypted = encryption == Encryption::kAll;
  session.facts.product = reply.ack->program;
  session.facts.major_version = reply.ack->major_version;
  session.facts.minor_version = reply.ack->minor_version;
  session.facts.build = reply.ack->build;
  session.facts.database =
      reply.database.empty() ? attempt.options.database : reply.database;
  session.facts.encrypted = session.encrypted;
  attempt.login->EndLogin();
  session.transport = std::move(attempt.transport);
  return Outcome(std::move(session));
}

Result<Outcome> LogInOnce(Attempt& attempt) {
  const bool strict = attempt.options.encrypt == Encrypt::kStrict;
  if (strict) TRY(StartTls(attempt, true));
  TRY_ASSIGN(const tds::PreloginReply prelogin, AskPrelogin(attempt));
  Encryption encryption = Encryption::kAll;
  if (!strict) {
    TRY_ASSIGN(encryption,
               DecideEncryption(attempt.options.encrypt, prelogin.encryption));
    // A token is as good as a password and never goes out in clear. One that is
    // brought later comes behind the encrypted part of a login.
    const bool is_clear =
        encryption == Encryption::kNothing ||
        (encryption == Encryption::kLoginOnly && !attempt.options.access_token);
    if (is_clear && BringsToken(attempt.options)) {
      return Error(ErrorId::kEncryptionRefused)
          .With("why", "an access token is only sent encrypted");
    }
    if (encryption != Encryption::kNothing) TRY(StartTls(attempt, false));
  }
  TRY(SendLogin(attempt, encryption, prelogin.fed_auth_required));
  if (encryption == Encryption::kLoginOnly) {
    auto& tls = static_cast<net::TlsTransport&>(*attempt.transport);
    TRY_ASSIGN(attempt.transport, tls.Release());
  }
  return Conclude(attempt, encryption);
}

Result<Address> FirstAddress(const ConnectOptions& options, net::Dialer& dialer,
                             std::int64_t left_ms) {
  Address address{options.host, options.port.value_or(kDefaultPort)};
  if (options.port || !options.instance) return address;
  TRY_ASSIGN(address.port,
             dialer.InstancePort(options.host, *options.instance, left_ms));
  return address;
}

}  // namespace

Result<Encryption> DecideEncryption(Encrypt wanted, std::uint8_t server_answer) {
  const bool on = server_answer == tds::kEncryptOn;
  const bool required = server_answer == tds::kEncryptRequired;
  if (on || required) return Encryption::kAll;
  const bool off = server_answer == tds::kEncryptOff;
  const bool not_supported = server_answer == tds::kEncryptNotSupported;
  if (!off && !not_supported) {
    return Error(ErrorId::kTdsMalformed)
        .With("token", "PRELOGIN")
        .With("encryption", std::to_string(server_answer));
  }
  if (wanted == Encrypt::kLoginOnly) {
    return off ? Encryption::kLoginOnly : Encryption::kNothing;
  }
  // A server that was asked for encryption answers ON or REQ; anything less is a
  // downgrade, by the server or by somebody in between.
  return Error(ErrorId::kEncryptionRefused)
      .With("server", off ? "offers the login only" : "has no encryption");
}

Redactor RedactorOf(const ConnectOptions& options) {
  return Redactor(options.password, options.access_token.value_or(Secret()),
                  options.user);
}

Result<LoggedIn> LogIn(const ConnectOptions& options, net::Dialer& dialer,
                       Clock& clock) {
  const std::int64_t deadline_ns =
      options.connect_timeout_ms <= 0
          ? 0
          : clock.MonotonicNs() + options.connect_timeout_ms * 1'000'000;
  TRY_ASSIGN(std::int64_t left_ms, LeftMs(clock, deadline_ns));
  TRY_ASSIGN(Address address, FirstAddress(options, dialer, left_ms));
  for (int routes = 0; routes <= kRouteCountMax; ++routes) {
    TRY_ASSIGN(left_ms, LeftMs(clock, deadline_ns));
    TRY_ASSIGN(auto dialed, dialer.Dial(address.host, address.port, left_ms));
    auto login =
        std::make_unique<LoginTransport>(std::move(dialed), clock, deadline_ns);
    Attempt attempt{options, address, nullptr, login.get(), clock, deadline_ns};
    attempt.transport = std::move(login);
    auto outcome = LogInOnce(attempt);
    if (!outcome.ok()) {
      Error error = std::move(outcome).error();
      if (!error.Fact("host")) error.Add("host", address.host);
      error.Add("port", std::to_string(address.port));
      return error;
    }
    if (auto* session = std::get_if<LoggedIn>(&outcome.value())) {
      return std::move(*session);
    }
    const auto& route = std::get<tds::Routed>(outcome.value());
    address = {route.host, route.port};
  }
  return Error(ErrorId::kTooManyRoutes)
      .With("limit", std::to_string(kRouteCountMax))
      .With("host", address.host)
      .With("port", std::to_string(address.port));
}

}  // namespace mssql_cdc::sqlserver

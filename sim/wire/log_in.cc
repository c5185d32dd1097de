#include <algorithm>

#include "base/limits.h"
#include "sim/wire/connection.h"
#include "sim/wire/tokens.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::uint8_t kFirstByteTls = 0x16;  // A TLS handshake record.
constexpr std::uint32_t kPacketSizeBytesDefault = 4096;
// JDBC and Microsoft's ODBC driver fail on larger packets under TLS.
constexpr std::uint32_t kPacketSizeBytesTlsMax = 16383;
constexpr std::string_view kLanguage = "us_english";

void WritePreloginOption(ByteBuffer& table, tds::PreloginOption option,
                         std::size_t offset, std::size_t size) {
  table.U8(static_cast<std::uint8_t>(option));
  table.U16Be(static_cast<std::uint16_t>(offset));
  table.U16Be(static_cast<std::uint16_t>(size));
}

class LoginDialogue {
 public:
  LoginDialogue(Link& link, ServerContext& context, std::int32_t spid)
      : link_(link),
        context_(context),
        spid_(spid),
        packets_(static_cast<std::uint16_t>(spid),
                 [this](std::string_view bytes) { return link_.Write(bytes); }) {}

  std::optional<LoggedIn> Run();

 private:
  bool Greet(ClientMessage& message);
  std::optional<std::uint8_t> AgreeOnEncryption(std::uint8_t asked) const;
  void SendPreloginReply(std::uint8_t encryption, bool fed_auth);
  bool FetchToken(LoginRequest& request, const Login7& login);
  void Refuse(const Message& message, TdsVersion version);
  void Welcome(const Login7& login, const EngineSession& session, const LoggedIn& to);

  Link& link_;
  ServerContext& context_;
  std::int32_t spid_;
  PacketWriter packets_;
  bool strict_ = false;
  bool login_only_tls_ = false;
};

// What ENCRYPTION this server answers; nullopt: the client's value is none.
std::optional<std::uint8_t> LoginDialogue::AgreeOnEncryption(std::uint8_t asked) const {
  if (strict_) return tds::kEncryptOn;  // The option means nothing inside TLS.
  if (asked > tds::kEncryptRequired) return std::nullopt;
  switch (context_.options.tls_mode) {
    case TlsMode::kNotSupported:
      return tds::kEncryptNotSupported;
    case TlsMode::kRequired:
      return asked == tds::kEncryptOff || asked == tds::kEncryptNotSupported
                 ? tds::kEncryptRequired
                 : tds::kEncryptOn;
    case TlsMode::kAsClientAsks:
      return asked == tds::kEncryptRequired ? tds::kEncryptOn : asked;
  }
  return std::nullopt;
}

void LoginDialogue::SendPreloginReply(std::uint8_t encryption, bool fed_auth) {
  const Engine::Version version = context_.engine->version();
  const std::size_t option_count = fed_auth ? 6 : 5;
  std::size_t offset = option_count * 5 + 1;
  ByteBuffer body;
  const auto option = [&](tds::PreloginOption id, std::size_t size) {
    WritePreloginOption(body, id, offset, size);
    offset += size;
  };
  option(tds::PreloginOption::kVersion, 6);
  option(tds::PreloginOption::kEncryption, 1);
  option(tds::PreloginOption::kInstance, 1);
  option(tds::PreloginOption::kThreadId, 0);
  option(tds::PreloginOption::kMars, 1);
  if (fed_auth) option(tds::PreloginOption::kFedAuthRequired, 1);
  body.U8(static_cast<std::uint8_t>(tds::PreloginOption::kTerminator));
  body.U8(version.major);
  body.U8(version.minor);
  body.U16Be(version.build);
  body.U16(0);
  body.U8(encryption);
  body.U8(0);  // The instance is this one.
  body.U8(0);  // No MARS.
  if (fed_auth) body.U8(1);
  packets_.Append(body.bytes());
  packets_.EndMessage();
}

// Everything up to LOGIN7, which is left in `message`.
bool LoginDialogue::Greet(ClientMessage& message) {
  const std::optional<std::uint8_t> first_byte = link_.PeekFirstByte();
  if (!first_byte) return false;
  const bool takes_tls = context_.options.tls_mode != TlsMode::kNotSupported;
  if (*first_byte == kFirstByteTls) {
    strict_ = true;
    if (!takes_tls || !link_.StartBareTls(context_.tls->Context(true))) return false;
  }
  if (!link_.ReadMessage(message)) return false;
  if (message.type == tds::PacketType::kLogin7) {  // TDS 7.0 has no PRELOGIN.
    return !strict_ && context_.options.tls_mode != TlsMode::kRequired;
  }
  if (message.type != tds::PacketType::kPrelogin) return false;
  const std::optional<Prelogin> prelogin = ParsePrelogin(message.body);
  if (!prelogin) return false;
  const std::uint8_t asked = prelogin->encryption.value_or(tds::kEncryptNotSupported);
  const std::optional<std::uint8_t> answer = AgreeOnEncryption(asked);
  if (!answer) return false;
  SendPreloginReply(*answer, prelogin->asks_fed_auth);
  if (packets_.broken()) return false;
  if (!strict_ && *answer != tds::kEncryptNotSupported) {
    if (!link_.StartWrappedTls(context_.tls->Context(false))) return false;
    login_only_tls_ = *answer == tds::kEncryptOff;
  }
  return link_.ReadMessage(message) && message.type == tds::PacketType::kLogin7;
}

// Asks for a token where the client brings it only then.
bool LoginDialogue::FetchToken(LoginRequest& request, const Login7& login) {
  if (!login.fed_auth) return true;
  if (login.fed_auth->library == FedAuth::Library::kSecurityToken) {
    request.access_token = login.fed_auth->token;
    return true;
  }
  ByteBuffer info;
  WriteFedAuthInfo(info, context_.options.sts_url, context_.options.spn);
  packets_.Append(info.bytes());
  packets_.EndMessage();
  ClientMessage message;
  if (!link_.ReadMessage(message) || message.type != tds::PacketType::kFederatedToken) {
    return false;
  }
  request.access_token = ParseFedAuthToken(message.body);
  return request.access_token.has_value();
}

void LoginDialogue::Refuse(const Message& message, TdsVersion version) {
  ++context_.counters.failed_logins;
  ByteBuffer out;
  WriteMessage(out, message, context_.options.server_name, version);
  WriteDone(out, tds::TokenId::kDone, tds::kDoneError, 0, 0, version);
  packets_.Append(out.bytes());
  packets_.EndMessage();
}

// The order in which SQL Server sends these; clients insist on the collation, the
// packet size and LOGINACK.
void LoginDialogue::Welcome(const Login7& login, const EngineSession& session,
                            const LoggedIn& to) {
  const TdsVersion version = to.dialect.version;
  const std::string& server = context_.options.server_name;
  ByteBuffer out;
  WriteEnvChange(out, tds::EnvChange::kDatabase, session.database(), "master");
  WriteMessage(out, DatabaseContextMessage(session.database()), server, version);
  if (version >= TdsVersion::k71) {
    WriteCollationChange(out, to.dialect.collation.bytes);
  }
  WriteEnvChange(out, tds::EnvChange::kLanguage, kLanguage, "");
  Message language;
  language.number = 5703;
  language.severity = 0;
  language.text = "Changed language setting to us_english.";
  WriteMessage(out, language, server, version);
  WriteLoginAck(out, AckedVersion(version, login.tds_version),
                context_.engine->version());
  WriteEnvChange(out, tds::EnvChange::kPacketSize, std::to_string(to.packet_size_bytes),
                 std::to_string(kPacketSizeBytesDefault));
  if (login.has_features) {
    WriteFeatureAck(out, login.fed_auth.has_value(), login.utf8_support);
  }
  WriteDone(out, tds::TokenId::kDone, 0, 0, 0, version);
  packets_.Append(out.bytes());
  packets_.EndMessage();
}

std::optional<LoggedIn> LoginDialogue::Run() {
  ClientMessage message;
  if (!Greet(message)) return std::nullopt;
  const std::optional<Login7> login = ParseLogin7(message.body);
  if (!login) return std::nullopt;
  if (login_only_tls_) link_.StopTls();
  const std::optional<TdsVersion> version =
      NegotiateVersion(login->tds_version, strict_);
  if (!version) return std::nullopt;

  LoginRequest request;
  request.user = login->user;
  request.password = login->password;
  request.database = login->database;
  request.application = login->application;
  request.host = login->host;
  request.read_only_intent = login->read_only_intent;
  request.spid = spid_;
  if (login->integrated_security) {
    Message refused;
    refused.number = 18452;
    refused.severity = 14;
    refused.text =
        "Login failed. The login is from an untrusted domain and cannot be used with "
        "Integrated authentication.";
    Refuse(refused, *version);
    return std::nullopt;
  }
  if (!FetchToken(request, *login)) return std::nullopt;
  auto outcome = context_.engine->Login(request);
  if (const LoginFailure* failure = std::get_if<LoginFailure>(&outcome)) {
    Refuse(failure->message, *version);
    return std::nullopt;
  }

  LoggedIn logged_in;
  logged_in.session = std::get<std::unique_ptr<EngineSession>>(std::move(outcome));
  logged_in.dialect.version = *version;
  logged_in.dialect.utf8_support = login->utf8_support;
  logged_in.dialect.collation =
      FindCollation(logged_in.session->collation()).value_or(kDefaultCollation);
  const std::uint32_t wish = login->packet_size_bytes == 0 ? kPacketSizeBytesDefault
                                                           : login->packet_size_bytes;
  const auto limit = static_cast<std::uint32_t>(
      std::min(context_.options.packet_size_bytes_max, kTdsPacketSizeBytesMax));
  const std::uint32_t largest =
      link_.encrypted() ? std::min(limit, kPacketSizeBytesTlsMax) : limit;
  const auto smallest = static_cast<std::uint32_t>(kTdsPacketSizeBytesMin);
  logged_in.packet_size_bytes = std::clamp(wish, smallest, std::max(largest, smallest));
  ++context_.counters.logins;  // Before the client knows, so that tests may count.
  Welcome(*login, *logged_in.session, logged_in);
  if (packets_.broken()) return std::nullopt;
  return logged_in;
}

}  // namespace

std::optional<LoggedIn> LogIn(Link& link, ServerContext& context, std::int32_t spid) {
  return LoginDialogue(link, context, spid).Run();
}

}  // namespace mssql_cdc::sim::wire

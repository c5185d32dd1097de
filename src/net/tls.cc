#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "net/openssl_handles.h"
#include "net/roots.h"

namespace mssql_cdc::net {
namespace {

constexpr std::size_t kReadBlockSizeBytes = 256u << 10;

// The reason OpenSSL gives for its last failure. Its texts name protocol states and
// never hold data of the connection.
std::string OpenSslReason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown";
  const char* reason = ERR_reason_error_string(code);
  return reason == nullptr ? "code " + std::to_string(code) : reason;
}

Error Failed(std::string reason) {
  return Error(ErrorId::kTlsFailed).With("reason", std::move(reason));
}

bool IsIpAddress(const std::string& name) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, name.c_str(), &v4) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &v6) == 1;
}

}  // namespace

// OpenSSL reads and writes the lower transport through a BIO of its own, so that bytes
// are copied once (out of the read block) and each flight of the handshake is one
// Write.
struct TlsTransport::State {
  std::unique_ptr<Transport> lower;
  SslContext context;
  Ssl ssl;
  std::vector<std::uint8_t> block;  // Received records: [block_begin, block_end).
  std::size_t block_begin = 0;
  std::size_t block_end = 0;
  std::vector<std::uint8_t> flight;    // Collected until OpenSSL flushes.
  bool collecting = true;              // During the handshake.
  bool waiting_allowed = true;         // Whether the BIO may read the lower transport.
  std::optional<Error> lower_failure;  // Of the last call, if the lower one failed.
  bool lower_ended = false;

  static int BioRead(BIO* bio, char* into, int size);
  static int BioWrite(BIO* bio, const char* bytes, int size);
  static long BioControl(BIO* bio, int command, long number, void* pointer);
  static BIO_METHOD* Method();

  Status Attach();
  Status Handshake(const std::string& host);
  Error Failure(int ssl_result);
};

int TlsTransport::State::BioRead(BIO* bio, char* into, int size) {
  auto& state = *static_cast<State*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (state.block_begin == state.block_end) {
    if (state.lower_ended) return 0;
    if (!state.waiting_allowed) {
      BIO_set_retry_read(bio);
      return -1;
    }
    auto count = state.lower->Read(state.block);
    if (!count.ok()) {
      // A time limit that passed leaves the stream intact: it can be read on later.
      if (count.error().id() == ErrorId::kTimedOut) BIO_set_retry_read(bio);
      state.lower_failure = std::move(count).error();
      return -1;
    }
    state.block_begin = 0;
    state.block_end = count.value();
    state.lower_ended = count.value() == 0;
    if (state.lower_ended) return 0;
  }
  const std::size_t count =
      std::min(static_cast<std::size_t>(size), state.block_end - state.block_begin);
  std::memcpy(into, state.block.data() + state.block_begin, count);
  state.block_begin += count;
  return static_cast<int>(count);
}

int TlsTransport::State::BioWrite(BIO* bio, const char* bytes, int size) {
  auto& state = *static_cast<State*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes);
  const std::span<const std::uint8_t> part(first, static_cast<std::size_t>(size));
  if (state.collecting) {
    state.flight.insert(state.flight.end(), part.begin(), part.end());
    return size;
  }
  auto written = state.lower->Write(part);
  if (written.ok()) return size;
  state.lower_failure = std::move(written).error();
  return -1;
}

long TlsTransport::State::BioControl(BIO* bio, int command, long, void*) {
  auto& state = *static_cast<State*>(BIO_get_data(bio));
  switch (command) {
    case BIO_CTRL_FLUSH: {
      if (state.flight.empty()) return 1;
      auto written = state.lower->Write(state.flight);
      state.flight.clear();
      if (written.ok()) return 1;
      state.lower_failure = std::move(written).error();
      return 0;
    }
    case BIO_CTRL_EOF:
      return state.lower_ended ? 1 : 0;
    default:
      return 0;
  }
}

BIO_METHOD* TlsTransport::State::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "transport");
    if (made != nullptr) {
      BIO_meth_set_read(made, BioRead);
      BIO_meth_set_write(made, BioWrite);
      BIO_meth_set_ctrl(made, BioControl);
    }
    return made;
  }();
  return method;
}

Status TlsTransport::State::Attach() {
  block.resize(kReadBlockSizeBytes);
  ssl.reset(SSL_new(context.get()));
  BIO* bio = Method() == nullptr ? nullptr : BIO_new(Method());
  if (!ssl || bio == nullptr) {
    BIO_free(bio);
    return Failed(OpenSslReason());
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);  // Owned by ssl from here on.
  return Unit{};
}

// What the failed call of OpenSSL means.
Error TlsTransport::State::Failure(int ssl_result) {
  const int kind = SSL_get_error(ssl.get(), ssl_result);
  if (lower_failure) {
    Error failure = std::move(*lower_failure);
    lower_failure.reset();
    ERR_clear_error();
    return failure;
  }
  if (lower_ended || kind == SSL_ERROR_ZERO_RETURN) {
    ERR_clear_error();
    return Error(ErrorId::kConnectionLost);
  }
  return Failed(OpenSslReason());
}

Status TlsTransport::State::Handshake(const std::string& host) {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl.get());
  if (result != 1) {
    const long verified = SSL_get_verify_result(ssl.get());
    if (!lower_failure && verified != X509_V_OK) {
      ERR_clear_error();
      return Error(ErrorId::kCertificateUntrusted)
          .With("host", host)
          .With("reason", X509_verify_cert_error_string(verified));
    }
    Error failure = Failure(result);
    failure.Add("during", "TLS handshake");
    return failure;
  }
  collecting = false;
  if (!flight.empty()) TRY(lower->Write(std::exchange(flight, {})));
  return Unit{};
}

namespace {

Result<SslContext> NewContext(const SSL_METHOD* method, bool tls13_allowed) {
  SslContext context(SSL_CTX_new(method));
  if (!context) return Failed(OpenSslReason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context.get(),
                                tls13_allowed ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_NO_COMPRESSION |
                                         SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_AUTO_RETRY);
  return context;
}

// As TLS carries a list of protocols: a length byte before each.
std::string AlpnList(const std::string& protocol) {
  return static_cast<char>(protocol.size()) + protocol;
}

const unsigned char* Unsigned(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Status SetVerification(SSL_CTX* context, const TlsClientOptions& options) {
  if (options.pinned_certificate_file) {
    // Compared once the handshake is over; the chain says nothing about a pinned leaf.
    TRY(CheckCertificateFile(*options.pinned_certificate_file));
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    return Unit{};
  }
  if (!options.verify) {
    if (options.ca_file) TRY(CheckCertificateFile(*options.ca_file));
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    return Unit{};
  }
  TRY_ASSIGN(X509Store roots, TrustedRoots(options.ca_file));
  SSL_CTX_set_cert_store(context, roots.release());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  X509_VERIFY_PARAM* rules = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                             X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  const std::string& name = options.certificate_name;
  const int set = IsIpAddress(name)
                      ? X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str())
                      : X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size());
  // An empty name would switch the check off.
  if (name.empty() || set != 1) {
    return Error(ErrorId::kCertificateUntrusted)
        .With("host", name)
        .With("reason", "no name to verify the certificate against");
  }
  return Unit{};
}

Status CheckPinned(SSL* ssl, const TlsClientOptions& options) {
  const Bio file(BIO_new_file(options.pinned_certificate_file->c_str(), "r"));
  const X509Certificate pinned(
      file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr);
  const X509Certificate shown(SSL_get1_peer_certificate(ssl));
  ERR_clear_error();
  if (pinned && shown && X509_cmp(pinned.get(), shown.get()) == 0) return Unit{};
  return Error(ErrorId::kCertificateUntrusted)
      .With("host", options.certificate_name)
      .With("reason", "the certificate is not the pinned one");
}

int ChooseAlpn(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
               const unsigned char* offered, unsigned offered_size, void* argument) {
  const auto& list = *static_cast<const std::string*>(argument);
  unsigned char* match = nullptr;
  const int found =
      SSL_select_next_proto(&match, chosen_size, Unsigned(list),
                            static_cast<unsigned>(list.size()), offered, offered_size);
  *chosen = match;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

Status UseIdentity(SSL_CTX* context, const TlsServerOptions& options) {
  const auto pem = [](const std::string& text) {
    return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  };
  const Bio chain = pem(options.certificate_chain_pem);
  const X509Certificate leaf(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  const Bio key_text = pem(options.private_key_pem);
  const PrivateKey key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (!leaf || !key || SSL_CTX_use_certificate(context, leaf.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, key.get()) != 1) {
    return Failed(OpenSslReason());
  }
  while (X509* issuer = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, issuer) != 1) {
      X509_free(issuer);
      return Failed(OpenSslReason());
    }
  }
  ERR_clear_error();  // The end of the chain is reported as an error.
  return Unit{};
}

}  // namespace

TlsTransport::TlsTransport(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsTransport::~TlsTransport() = default;

Result<std::unique_ptr<TlsTransport>> TlsTransport::Connect(
    std::unique_ptr<Transport> lower, const TlsClientOptions& options) {
  auto state = std::make_unique<State>();
  state->lower = std::move(lower);
  TRY_ASSIGN(state->context, NewContext(TLS_client_method(), options.tls13_allowed));
  TRY(SetVerification(state->context.get(), options));
  TRY(state->Attach());
  SSL* ssl = state->ssl.get();
  if (!options.server_name.empty() && !IsIpAddress(options.server_name)) {
    SSL_set_tlsext_host_name(ssl, options.server_name.c_str());
  }
  if (!options.alpn.empty()) {
    const auto list = AlpnList(options.alpn);
    SSL_set_alpn_protos(ssl, Unsigned(list), static_cast<unsigned>(list.size()));
  }
  SSL_set_connect_state(ssl);
  TRY(state->Handshake(options.certificate_name));
  if (options.pinned_certificate_file) TRY(CheckPinned(ssl, options));
  return std::unique_ptr<TlsTransport>(new TlsTransport(std::move(state)));
}

Result<std::unique_ptr<TlsTransport>> TlsTransport::Accept(
    std::unique_ptr<Transport> lower, const TlsServerOptions& options) {
  auto state = std::make_unique<State>();
  state->lower = std::move(lower);
  TRY_ASSIGN(state->context, NewContext(TLS_server_method(), options.tls13_allowed));
  TRY(UseIdentity(state->context.get(), options));
  auto alpn = AlpnList(options.alpn);
  if (!options.alpn.empty()) {
    SSL_CTX_set_alpn_select_cb(state->context.get(), ChooseAlpn, &alpn);
  }
  TRY(state->Attach());
  SSL_set_accept_state(state->ssl.get());
  TRY(state->Handshake(""));
  // The callback borrowed `alpn`, and no second handshake can occur.
  SSL_CTX_set_alpn_select_cb(state->context.get(), nullptr, nullptr);
  return std::unique_ptr<TlsTransport>(new TlsTransport(std::move(state)));
}

Result<std::size_t> TlsTransport::Read(std::span<std::uint8_t> into) {
  if (!state_->lower) return Error(ErrorId::kConnectionLost);
  if (into.empty()) return std::size_t{0};
  SSL* ssl = state_->ssl.get();
  std::size_t total = 0;
  state_->waiting_allowed = true;
  // One record a call of OpenSSL; the others that have arrived are taken along.
  while (total < into.size()) {
    ERR_clear_error();
    std::size_t count = 0;
    const int result =
        SSL_read_ex(ssl, into.data() + total, into.size() - total, &count);
    if (result == 1) {
      total += count;
      state_->waiting_allowed = false;
      continue;
    }
    if (total > 0) break;  // Whatever stopped it will do so again at the next call.
    const int kind = SSL_get_error(ssl, result);
    const bool ended = !state_->lower_failure &&
                       (kind == SSL_ERROR_ZERO_RETURN || state_->lower_ended);
    if (ended) {
      ERR_clear_error();
      return std::size_t{0};
    }
    return state_->Failure(result);
  }
  return total;
}

Status TlsTransport::Write(std::span<const std::uint8_t> bytes) {
  if (!state_->lower) return Error(ErrorId::kConnectionLost);
  while (!bytes.empty()) {
    ERR_clear_error();
    std::size_t count = 0;
    const int result =
        SSL_write_ex(state_->ssl.get(), bytes.data(), bytes.size(), &count);
    if (result != 1) return state_->Failure(result);
    bytes = bytes.subspan(count);
  }
  return Unit{};
}

void TlsTransport::SetTimeLimitMs(std::int64_t limit_ms) {
  if (state_->lower) state_->lower->SetTimeLimitMs(limit_ms);
}

void TlsTransport::Close() {
  if (state_->lower) state_->lower->Close();
}

std::string TlsTransport::ProtocolVersion() const {
  return SSL_get_version(state_->ssl.get());
}

std::string TlsTransport::Alpn() const {
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(state_->ssl.get(), &protocol, &size);
  return protocol == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(protocol), size);
}

Result<std::unique_ptr<Transport>> TlsTransport::Release() {
  if (!state_->lower) return Error(ErrorId::kConnectionLost);
  if (state_->block_begin != state_->block_end ||
      SSL_has_pending(state_->ssl.get()) == 1) {
    return Failed("records were received that nobody read");
  }
  return std::move(state_->lower);
}

}  // namespace mssql_cdc::net

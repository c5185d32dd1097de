#include "sim/wire/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstring>

#include "sim/wire/certificate.h"

namespace mssql_cdc::sim::wire {
namespace {

Error TlsSetupFailed() {
  return Error(ErrorId::kSimulatorFailed).With("step", "TLS settings");
}

// Takes "tds/8.0" where the client offers it; no client insists on the answer.
int SelectAlpn(SSL*, const unsigned char** selected, unsigned char* selected_size,
               const unsigned char* offered, unsigned int offered_size, void*) {
  static constexpr unsigned char kTds8[] = {7, 't', 'd', 's', '/', '8', '.', '0'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, selected_size, kTds8, sizeof kTds8, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *selected = chosen;
  return SSL_TLSEXT_ERR_OK;
}

SSL_CTX* NewContext(const Certificates& certificates, int version_max) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context, version_max);
  // A resumed session would end with the client's message, where the framing changes.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_alpn_select_cb(context, SelectAlpn, nullptr);
  if (SSL_CTX_use_certificate(context, certificates.leaf.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context, certificates.leaf_key.get()) != 1 ||
      SSL_CTX_add1_chain_cert(context, certificates.authority.get()) != 1) {
    SSL_CTX_free(context);
    return nullptr;
  }
  return context;
}

}  // namespace

void TlsSettings::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<std::unique_ptr<TlsSettings>> TlsSettings::Open(const std::string& directory) {
  TRY_ASSIGN(const Certificates certificates, LoadOrMakeCertificates(directory));
  auto settings = std::make_unique<TlsSettings>();
  settings->wrapped_.reset(NewContext(certificates, TLS1_2_VERSION));
  settings->strict_.reset(NewContext(certificates, TLS1_3_VERSION));
  if (settings->wrapped_ == nullptr || settings->strict_ == nullptr) {
    return TlsSetupFailed();
  }
  settings->authority_pem_ = CertificatePem(certificates.authority.get());
  return settings;
}

TlsSession::TlsSession(ssl_ctx_st* context) : ssl_(SSL_new(context)) {
  if (ssl_ == nullptr) return;
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

void TlsSession::Feed(std::span<const std::uint8_t> ciphertext) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ssl_ == nullptr) return;
  BIO_write(SSL_get_rbio(ssl_), ciphertext.data(), static_cast<int>(ciphertext.size()));
}

TlsSession::Step TlsSession::Handshake() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ssl_ == nullptr) return Step::kFailed;
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) return Step::kDone;
  return SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ ? Step::kNeedMore
                                                          : Step::kFailed;
}

TlsSession::Step TlsSession::Read(std::vector<std::uint8_t>& plain) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::uint8_t block[16384];
  for (;;) {
    ERR_clear_error();
    const int count = SSL_read(ssl_, block, sizeof block);
    if (count > 0) {
      plain.insert(plain.end(), block, block + count);
      continue;
    }
    switch (SSL_get_error(ssl_, count)) {
      case SSL_ERROR_WANT_READ:
        return Step::kNeedMore;
      case SSL_ERROR_ZERO_RETURN:
        return Step::kDone;
      default:
        return Step::kFailed;
    }
  }
}

std::string TlsSession::Encrypt(std::string_view plain) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!plain.empty()) {
    ERR_clear_error();
    // A memory BIO takes everything, so one call writes it all or TLS is broken.
    if (SSL_write(ssl_, plain.data(), static_cast<int>(plain.size())) <= 0) return {};
  }
  return TakeOutputLocked();
}

std::string TlsSession::TakeOutput() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return TakeOutputLocked();
}

std::string TlsSession::TakeOutputLocked() {
  if (ssl_ == nullptr) return {};
  BIO* out = SSL_get_wbio(ssl_);
  std::string bytes(BIO_ctrl_pending(out), '\0');
  if (!bytes.empty()) BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace mssql_cdc::sim::wire

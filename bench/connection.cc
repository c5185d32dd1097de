#include "bench/connection.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace mssql_cdc::bench {
namespace {

constexpr std::uint8_t kPreLogin = 0x12;
constexpr std::uint8_t kReply = 0x04;
constexpr std::size_t kMessageSizeBytesMax = 1 << 20;

int ChooseAlpn(SSL*, const unsigned char** chosen, unsigned char* size,
               const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kTds8[] = "\x07tds/8.0";
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, size, kTds8, 8, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

X509* MakeCertificate(EVP_PKEY* key) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86'400);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86'400L * 30);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1,
                             -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name,
                                              "DNS:localhost,IP:127.0.0.1");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());
  return certificate;
}

}  // namespace

SSL_CTX* MakeTlsContext(bool strict) {
  static EVP_PKEY* key = EVP_RSA_gen(2048);
  static X509* certificate = MakeCertificate(key);
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Several drivers hang on TLS 1.3 inside PRELOGIN; SQL Server does not offer it
  // there.
  SSL_CTX_set_max_proto_version(context, strict ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (strict) SSL_CTX_set_alpn_select_cb(context, ChooseAlpn, nullptr);
  return context;
}

bool WriteCertificate(SSL_CTX* context, const char* path) {
  BIO* file = BIO_new_file(path, "w");
  const bool written = file != nullptr &&
                       PEM_write_bio_X509(file, SSL_CTX_get0_certificate(context)) == 1;
  BIO_free(file);
  return written;
}

Connection::~Connection() {
  SSL_free(ssl_);
  close(socket_);
}

bool Connection::ReadExactly(std::uint8_t* into, std::size_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t got = ssl_ != nullptr
                            ? SSL_read(ssl_, into, static_cast<int>(size_bytes))
                            : recv(socket_, into, size_bytes, 0);
    if (got <= 0) {
      if (ssl_ == nullptr && got < 0 && errno == EINTR) continue;
      return false;
    }
    into += got;
    size_bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<Message> Connection::Read() {
  Message message;
  for (bool last = false; !last;) {
    Header header;
    if (!ReadExactly(header, sizeof header)) return std::nullopt;
    const std::size_t size = static_cast<std::size_t>(header[2]) << 8 | header[3];
    const std::size_t before = message.payload.size();
    if (size < kHeaderSizeBytes || before + size > kMessageSizeBytesMax) {
      return std::nullopt;
    }
    message.type = header[0];
    last = (header[1] & 0x01) != 0;
    message.payload.resize(before + size - kHeaderSizeBytes);
    if (!ReadExactly(message.payload.data() + before, size - kHeaderSizeBytes)) {
      return std::nullopt;
    }
  }
  return message;
}

bool Connection::StartStrictTls(SSL_CTX* context) {
  ssl_ = SSL_new(context);
  SSL_set_fd(ssl_, socket_);
  return SSL_accept(ssl_) == 1;
}

bool Connection::StartWrappedTls(SSL_CTX* context) {
  SSL* ssl = SSL_new(context);
  BIO* incoming = BIO_new(BIO_s_mem());
  BIO* outgoing = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, incoming, outgoing);
  bool done = false;
  while (!done) {
    const std::optional<Message> message = Read();
    if (!message || message->type != kPreLogin) break;
    BIO_write(incoming, message->payload.data(),
              static_cast<int>(message->payload.size()));
    const int result = SSL_accept(ssl);
    done = result == 1;
    if (!done && SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ) break;
    char* bytes = nullptr;
    const auto size = static_cast<std::size_t>(BIO_get_mem_data(outgoing, &bytes));
    if (size == 0) continue;
    Bytes packet = {kPreLogin, 1, 0, 0, 0, 0, next_packet_id_++, 0};
    packet[2] = static_cast<std::uint8_t>((size + kHeaderSizeBytes) >> 8);
    packet[3] = static_cast<std::uint8_t>(size + kHeaderSizeBytes);
    packet.insert(packet.end(), bytes, bytes + size);
    BIO_reset(outgoing);
    if (!WriteRaw(packet.data(), packet.size())) break;
  }
  if (!done) {
    SSL_free(ssl);
    return false;
  }
  SSL_set_fd(ssl, socket_);  // From here on records travel without packets around them.
  ssl_ = ssl;
  return true;
}

void Connection::EndTls() {
  SSL_free(ssl_);
  ssl_ = nullptr;
}

bool Connection::WriteRaw(const std::uint8_t* bytes, std::size_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t sent = ssl_ != nullptr
                             ? SSL_write(ssl_, bytes, static_cast<int>(size_bytes))
                             : send(socket_, bytes, size_bytes, MSG_NOSIGNAL);
    if (sent <= 0) {
      if (ssl_ == nullptr && sent < 0 && errno == EINTR) continue;
      return false;
    }
    bytes += sent;
    size_bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

void Connection::OpenPacket() {
  Header& header = headers_[header_count_++];
  pieces_.push_back({header, kHeaderSizeBytes});
  open_size_bytes_ = kHeaderSizeBytes;
}

void Connection::ClosePacket(bool last) {
  Header& header = headers_[header_count_ - 1];
  const std::size_t size = *open_size_bytes_;
  header[0] = kReply;
  header[1] = last ? 1 : 0;
  header[2] = static_cast<std::uint8_t>(size >> 8);
  header[3] = static_cast<std::uint8_t>(size);
  header[4] = header[5] = header[7] = 0;
  header[6] = next_packet_id_++;
  open_size_bytes_.reset();
}

bool Connection::Append(const std::uint8_t* bytes, std::size_t size_bytes) {
  while (size_bytes > 0) {
    // A full packet stays open until it is known that it is not the last one.
    if (open_size_bytes_ == packet_size_bytes_) ClosePacket(false);
    if (!open_size_bytes_) {
      // A packet takes its header and a handful of pieces.
      if (pieces_.size() + 8 > kPieceCountMax && !Flush()) return false;
      OpenPacket();
    }
    const std::size_t taken =
        std::min(size_bytes, packet_size_bytes_ - *open_size_bytes_);
    pieces_.push_back({const_cast<std::uint8_t*>(bytes), taken});
    *open_size_bytes_ += taken;
    bytes += taken;
    size_bytes -= taken;
  }
  return true;
}

bool Connection::Finish() {
  if (!open_size_bytes_) OpenPacket();
  ClosePacket(true);
  const bool sent = Flush();
  next_packet_id_ = 1;
  return sent;
}

bool Connection::Flush() {
  bool sent = false;
  if (ssl_ == nullptr) {
    sent = FlushClear();
  } else {
    plain_.clear();
    for (const iovec& piece : pieces_) {
      const auto* bytes = static_cast<const std::uint8_t*>(piece.iov_base);
      plain_.insert(plain_.end(), bytes, bytes + piece.iov_len);
    }
    sent = WriteRaw(plain_.data(), plain_.size());
  }
  pieces_.clear();
  header_count_ = 0;
  return sent;
}

bool Connection::FlushClear() {
  iovec* next = pieces_.data();
  std::size_t count = pieces_.size();
  while (count > 0) {
    msghdr message = {};
    message.msg_iov = next;
    message.msg_iovlen = count;
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    auto left = static_cast<std::size_t>(sent);
    while (count > 0 && left >= next->iov_len) {
      left -= next->iov_len;
      ++next;
      --count;
    }
    if (count > 0) {
      next->iov_base = static_cast<std::uint8_t*>(next->iov_base) + left;
      next->iov_len -= left;
    }
  }
  return true;
}

}  // namespace mssql_cdc::bench

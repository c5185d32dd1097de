// TLS over any other Transport, both sides, through OpenSSL 3.
//
// The lower transport carries the records; its time limits and errors are those of the
// calls here. TLS 1.2 is the least; session tickets and renegotiation are off.

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "net/transport.h"

namespace mssql_cdc::net {

struct TlsClientOptions {
  // Sent as SNI (unless it is an IP address).
  std::string server_name = "";
  // The DNS name or IP address that the certificate's subjectAltName must hold.
  std::string certificate_name = "";
  // false: any certificate is taken. Has no effect beside `pinned_certificate_file`.
  bool verify = true;
  // PEM: the server's certificate must be this very one; nothing else is looked at.
  std::optional<std::string> pinned_certificate_file = std::nullopt;
  // PEM: roots that are trusted beside the system's.
  std::optional<std::string> ca_file = std::nullopt;
  bool tls13_allowed = false;
  std::string alpn = "";  // Offered protocol; empty: none.
};

struct TlsServerOptions {
  std::string certificate_chain_pem;  // The leaf first.
  std::string private_key_pem;
  bool tls13_allowed = false;
  std::string alpn;  // Chosen when the client offers it; empty: none.
};

class TlsTransport final : public Transport {
 public:
  // Performs the handshake as client. Owns `lower`.
  // Errors: CertificateUntrusted, with facts host and reason; TlsFailed; FileFailed for
  // an unreadable PEM file; those of `lower`.
  static Result<std::unique_ptr<TlsTransport>> Connect(std::unique_ptr<Transport> lower,
                                                       const TlsClientOptions& options);
  // Performs the handshake as server. Errors: TlsFailed; those of `lower`.
  static Result<std::unique_ptr<TlsTransport>> Accept(std::unique_ptr<Transport> lower,
                                                      const TlsServerOptions& options);
  ~TlsTransport() override;

  Result<std::size_t> Read(std::span<std::uint8_t> into) override;
  Status Write(std::span<const std::uint8_t> bytes) override;
  void SetTimeLimitMs(std::int64_t limit_ms) override;
  void Close() override;

  // "TLSv1.2", "TLSv1.3".
  std::string ProtocolVersion() const;
  // The negotiated ALPN protocol, empty if none.
  std::string Alpn() const;
  // Gives the lower transport back, to go on in clear; no closing alert is sent. The
  // TlsTransport is closed afterwards. Errors: TlsFailed if records were already
  // received that nobody has read.
  Result<std::unique_ptr<Transport>> Release();

 private:
  struct State;
  explicit TlsTransport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mssql_cdc::net

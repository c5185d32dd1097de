// The replay server's side of one connection: packets over a socket, with TLS inside
// PRELOGIN, for the login only, from the first byte (TDS 8.0) or not at all.

#pragma once

#include <openssl/ssl.h>
#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench/wire_writer.h"

namespace mssql_cdc::bench {

struct Message {
  std::uint8_t type = 0;
  Bytes payload;
};

// A TLS context with a key and a self-signed certificate for localhost made on the
// spot. `strict` allows TLS 1.3 and answers ALPN tds/8.0.
SSL_CTX* MakeTlsContext(bool strict);
// Writes its certificate as PEM, for clients that pin it. False if the file fails.
bool WriteCertificate(SSL_CTX* context, const char* path);

class Connection {
 public:
  // Owns the socket.
  explicit Connection(int socket) : socket_(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // The next whole message, or nullopt when the peer is gone or breaks the framing.
  std::optional<Message> Read();

  // TLS from the first byte. False if the handshake fails.
  bool StartStrictTls(SSL_CTX* context);
  // TLS whose handshake travels in PRELOGIN packets. False if the handshake fails.
  bool StartWrappedTls(SSL_CTX* context);
  // Back to clear text after the login message.
  void EndTls();
  bool encrypted() const { return ssl_ != nullptr; }

  void set_packet_size(std::size_t size_bytes) { packet_size_bytes_ = size_bytes; }

  // Adds bytes to the reply being written, without copying them: they must stay as they
  // are until Finish. False once the peer is gone.
  bool Append(const std::uint8_t* bytes, std::size_t size_bytes);
  bool Append(const Bytes& bytes) { return Append(bytes.data(), bytes.size()); }
  // Ends the reply and sends what is left of it.
  bool Finish();

 private:
  static constexpr std::size_t kHeaderSizeBytes = 8;
  static constexpr std::size_t kPieceCountMax = 900;
  using Header = std::uint8_t[kHeaderSizeBytes];

  bool ReadExactly(std::uint8_t* into, std::size_t size_bytes);
  bool WriteRaw(const std::uint8_t* bytes, std::size_t size_bytes);
  void OpenPacket();
  void ClosePacket(bool last);
  bool Flush();
  bool FlushClear();

  int socket_;
  SSL* ssl_ = nullptr;
  std::size_t packet_size_bytes_ = 4096;
  std::uint8_t next_packet_id_ = 1;
  // The reply's packets that are not yet sent. The last one is open while
  // open_size_bytes_ is set; its header is filled in when it closes.
  std::unique_ptr<Header[]> headers_ = std::make_unique<Header[]>(kPieceCountMax);
  std::size_t header_count_ = 0;
  std::vector<iovec> pieces_;
  std::optional<std::size_t> open_size_bytes_;
  Bytes plain_;
};

}  // namespace mssql_cdc::bench

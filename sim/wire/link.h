// One client's connection as messages, over a transport that may turn to TLS and back.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "net/transport.h"
#include "sim/wire/packet.h"
#include "sim/wire/tls.h"

namespace mssql_cdc::sim::wire {

class Link {
 public:
  Link(net::Transport& transport, std::size_t message_size_bytes_max)
      : transport_(transport), assembler_(message_size_bytes_max) {}

  // The next message; false when the client is gone or breaks the protocol.
  bool ReadMessage(ClientMessage& message);
  // Waits for the first bytes and says what the first one is; nullopt: the client left.
  std::optional<std::uint8_t> PeekFirstByte();
  // Sends bytes of packets. May be called while another thread is in ReadMessage.
  bool Write(std::string_view bytes);

  // The server's part of a TLS handshake: inside PRELOGIN packets, or bare (strict).
  bool StartWrappedTls(ssl_ctx_st* context);
  bool StartBareTls(ssl_ctx_st* context);
  // Back to clear text, where only the login was encrypted.
  void StopTls() { tls_.reset(); }
  bool encrypted() const { return tls_ != nullptr; }

 private:
  bool ReadSome();
  bool WriteRaw(std::string_view bytes);

  net::Transport& transport_;
  MessageAssembler assembler_;
  std::unique_ptr<TlsSession> tls_;
  std::vector<std::uint8_t> block_ = std::vector<std::uint8_t>(64u << 10);
  std::vector<std::uint8_t> plain_;
};

}  // namespace mssql_cdc::sim::wire

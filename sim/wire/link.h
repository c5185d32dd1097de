// One client's connection as messages, over a transport that may turn to TLS and back.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "net/gathering.h"
#include "sim/wire/packet.h"
#include "sim/wire/tls.h"

namespace mssql_cdc::sim::wire {

class Link {
 public:
  // Takes only messages of the size that logins have, until told otherwise.
  explicit Link(net::Transport& transport)
      : transport_(transport),
        gathering_(dynamic_cast<net::GatheringTransport*>(&transport)),
        assembler_(kLoginSizeBytesMax) {}

  void SetMessageSizeMax(std::size_t size_bytes) {
    assembler_.SetMessageSizeMax(size_bytes);
  }

  // The next message; false when the client is gone or breaks the protocol.
  bool ReadMessage(ClientMessage& message);
  // Waits for the first bytes and says what the first one is; nullopt: the client left.
  std::optional<std::uint8_t> PeekFirstByte();
  // Sends bytes of packets. May be called while another thread is in ReadMessage.
  bool Write(std::string_view bytes);
  bool WriteParts(PacketWriter::Parts parts);

  // The server's part of a TLS handshake: inside PRELOGIN packets, or bare (strict).
  bool StartWrappedTls(ssl_ctx_st* context);
  bool StartBareTls(ssl_ctx_st* context);
  // Back to clear text, where only the login was encrypted.
  void StopTls() { tls_.reset(); }
  bool encrypted() const { return tls_ != nullptr; }

 private:
  // A LOGIN7 with its texts and a large token, and some more.
  static constexpr std::size_t kLoginSizeBytesMax = 256u << 10;

  bool ReadSome();
  bool WriteRaw(std::string_view bytes);

  net::Transport& transport_;
  net::GatheringTransport* gathering_;  // The same; null: it is none.
  MessageAssembler assembler_;
  std::unique_ptr<TlsSession> tls_;
  std::vector<std::uint8_t> block_ = std::vector<std::uint8_t>(64u << 10);
  std::vector<std::uint8_t> plain_;
};

}  // namespace mssql_cdc::sim::wire

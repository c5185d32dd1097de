// A server for tests whose every byte the test writes. It runs a script against each
// connection that is dialed, on a thread of its own. Not used by the product.

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "net/certificate.h"
#include "net/pipe.h"
#include "net/tls.h"
#include "tds/test_bytes.h"

namespace mssql_cdc::sqlserver::test {

using tds::test::Hex;
using tds::test::Join;
using tds::test::Packet;
using tds::test::ShortPrefixed;
using tds::test::Utf16;
using tds::test::Wire;

struct Message {
  tds::PacketType type{};
  Wire payload;
  std::vector<std::size_t> packet_lengths;  // With headers.
};

// `count` bytes, or none if the client leaves before.
inline Wire ReadExactly(net::Transport& from, std::size_t count) {
  Wire bytes(count);
  for (std::size_t got = 0; got < count;) {
    const auto read = from.Read(std::span(bytes).subspan(got));
    if (!read.ok() || read.value() == 0) return {};
    got += read.value();
  }
  return bytes;
}

// The client's next message; without packets if the client leaves instead.
inline Message ReadMessage(net::Transport& from) {
  Message message;
  while (true) {
    const Wire header = ReadExactly(from, 8);
    if (header.empty()) return {};
    const std::size_t length = header[2] * 256u + header[3];
    const Wire payload = ReadExactly(from, length - 8);
    message.type = static_cast<tds::PacketType>(header[0]);
    message.payload = Join(message.payload, payload);
    message.packet_lengths.push_back(length);
    if ((header[1] & 1) != 0) return message;
  }
}

inline void Send(net::Transport& to, const Wire& bytes) {
  // A client that has left is not this server's concern.
  static_cast<void>(to.Write(bytes));
}

inline void SendReply(net::Transport& to, const Wire& payload) {
  Send(to, Packet(tds::PacketType::kReply, payload));
}

// A PRELOGIN reply with VERSION 16.0.1000 and this ENCRYPTION.
inline Wire PreloginReply(std::uint8_t encryption) {
  return Join(Hex("00 000B 0006  01 0011 0001 FF 100003E80000"), Wire{encryption});
}

inline Wire EnvChange(std::uint8_t type, const Wire& values) {
  return Join(Hex("E3"), ShortPrefixed(Join(Wire{type}, values)));
}

inline Wire ByteVarChar(std::string_view text) {
  return Join(Wire{static_cast<std::uint8_t>(text.size())}, Utf16(text));
}

inline Wire PacketSize(std::string_view size) {
  return EnvChange(4, Join(ByteVarChar(size), ByteVarChar("4096")));
}

inline Wire LoginAck() {
  return Join(Hex("AD"), ShortPrefixed(Join(Hex("01 74000004"),
                                            ByteVarChar("Microsoft SQL Server"),
                                            Hex("10 00 03E8"))));
}

inline Wire Done(std::uint8_t status = 0) {
  return Join(Hex("FD"), Wire{status}, Hex("00 0000 0000000000000000"));
}

// ERROR, or INFO with id 0xAB.
inline Wire ErrorToken(std::int32_t number, std::string_view text,
                       std::uint8_t severity = 14, std::uint8_t id = 0xAA) {
  const auto n = static_cast<std::uint32_t>(number);
  const Wire fixed = {static_cast<std::uint8_t>(n),
                      static_cast<std::uint8_t>(n >> 8),
                      static_cast<std::uint8_t>(n >> 16),
                      static_cast<std::uint8_t>(n >> 24),
                      1,
                      severity};
  const Wire length = {static_cast<std::uint8_t>(text.size()),
                       static_cast<std::uint8_t>(text.size() >> 8)};
  return Join(Wire{id},
              ShortPrefixed(Join(fixed, length, Utf16(text), ByteVarChar("SRV"),
                                 ByteVarChar(""), Hex("01000000"))));
}

inline Wire Route(std::string_view host, std::uint16_t port) {
  const Wire value =
      Join(Hex("00"),
           Wire{static_cast<std::uint8_t>(port), static_cast<std::uint8_t>(port >> 8)},
           Wire{static_cast<std::uint8_t>(host.size()), 0}, Utf16(host));
  return EnvChange(20, Join(ShortPrefixed(value), Hex("0000")));
}

// What SQL Server answers to a login (facts/tds-clients.md section 3).
inline Wire LoginReply(std::string_view packet_size = "4096") {
  return Join(EnvChange(1, Join(ByteVarChar("shop"), ByteVarChar("master"))),
              ErrorToken(5701, "Changed database context to 'shop'.", 0, 0xAB),
              EnvChange(7, Hex("05 0904D00034 00")), LoginAck(),
              PacketSize(packet_size), Hex("AE 0A 01000000 01 FF"), Done());
}

// The server's side of a TLS handshake inside PRELOGIN packets.
class PreloginWrapping final : public net::Transport {
 public:
  explicit PreloginWrapping(std::unique_ptr<net::Transport> lower)
      : lower_(std::move(lower)) {}
  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    if (!wrapping) return lower_->Read(into);
    if (left_ == 0) {
      const Wire header = ReadExactly(*lower_, 8);
      if (header.empty()) return std::size_t{0};
      EXPECT_EQ(header[0], 0x12);
      left_ = header[2] * 256u + header[3] - 8;
      EXPECT_LE(left_, 4088u);
    }
    auto read = lower_->Read(into.first(std::min(into.size(), left_)));
    if (read.ok()) left_ -= read.value();
    return read;
  }
  Status Write(std::span<const std::uint8_t> bytes) override {
    if (!wrapping) return lower_->Write(bytes);
    // In pieces, as servers cut a flight that is longer than a packet.
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min<std::size_t>(bytes.size(), 500));
      bytes = bytes.subspan(part.size());
      TRY(lower_->Write(Packet(tds::PacketType::kPrelogin,
                               Wire(part.begin(), part.end()), !bytes.empty())));
    }
    return Unit{};
  }
  void SetTimeLimitMs(std::int64_t limit_ms) override {
    lower_->SetTimeLimitMs(limit_ms);
  }
  void Close() override { lower_->Close(); }

  bool wrapping = true;

 private:
  std::unique_ptr<net::Transport> lower_;
  std::size_t left_ = 0;
};

inline std::unique_ptr<net::Transport> AcceptTls(std::unique_ptr<net::Transport> lower,
                                                 const net::Certificates& identity,
                                                 bool strict) {
  net::TlsServerOptions options;
  options.certificate_chain_pem = identity.leaf_pem;
  options.private_key_pem = identity.leaf_key_pem;
  options.tls13_allowed = strict;
  if (strict) options.alpn = "tds/8.0";
  PreloginWrapping* wrapping = nullptr;
  if (!strict) {
    auto wrapped = std::make_unique<PreloginWrapping>(std::move(lower));
    wrapping = wrapped.get();
    lower = std::move(wrapped);
  }
  auto accepted = net::TlsTransport::Accept(std::move(lower), options);
  if (!accepted.ok()) return nullptr;
  if (wrapping != nullptr) wrapping->wrapping = false;
  return std::move(accepted).value();
}

// Serves every dialed connection with `script`, which gets the server's end.
class ScriptedServer {
 public:
  using Script = std::function<void(std::unique_ptr<net::Transport> client)>;

  explicit ScriptedServer(Script script)
      : script_(std::move(script)),
        dialer_([this](const std::string& host, std::uint16_t port) {
          dialed.push_back(host + ":" + std::to_string(port));
          auto [near, far] = net::MakePipe();
          threads_.emplace_back(
              [this](std::unique_ptr<net::Transport> end) { script_(std::move(end)); },
              std::move(far));
          return Result<std::unique_ptr<net::Transport>>(wrap ? wrap(std::move(near))
                                                              : std::move(near));
        }) {}
  ~ScriptedServer() {
    for (std::thread& thread : threads_) thread.join();
  }

  net::Dialer& dialer() { return dialer_; }

  std::vector<std::string> dialed;
  // Put around the client's end, where set.
  std::function<std::unique_ptr<net::Transport>(std::unique_ptr<net::Transport>)> wrap;

 private:
  Script script_;
  std::vector<std::thread> threads_;
  net::InMemoryDialer dialer_;
};

// Logs the client in in clear; false if it left.
inline bool LogInClear(net::Transport& client, std::string_view packet_size = "4096") {
  if (ReadMessage(client).packet_lengths.empty()) return false;
  SendReply(client, PreloginReply(tds::kEncryptNotSupported));
  if (ReadMessage(client).packet_lengths.empty()) return false;
  SendReply(client, LoginReply(packet_size));
  return true;
}

}  // namespace mssql_cdc::sqlserver::test

#include "sim/wire/link.h"

#include <string>

namespace mssql_cdc::sim::wire {
namespace {

// A packet of the handshake, with its header.
constexpr std::size_t kHandshakePacketSizeBytes = 4096;
// More rounds than any TLS handshake takes.
constexpr int kHandshakeRoundCountMax = 64;

}  // namespace

bool Link::ReadSome() {
  const Result<std::size_t> count = transport_.Read(block_);
  if (!count.ok() || count.value() == 0) return false;
  const std::span<const std::uint8_t> bytes(block_.data(), count.value());
  if (tls_ == nullptr) {
    assembler_.Feed(bytes);
    return true;
  }
  tls_->Feed(bytes);
  plain_.clear();
  const TlsSession::Step step = tls_->Read(plain_);
  assembler_.Feed(plain_);
  return step == TlsSession::Step::kNeedMore || !plain_.empty();
}

bool Link::ReadMessage(ClientMessage& message) {
  for (;;) {
    switch (assembler_.Next(message)) {
      case MessageAssembler::Step::kMessage:
        return true;
      case MessageAssembler::Step::kMalformed:
        return false;
      case MessageAssembler::Step::kNeedMore:
        break;
    }
    if (!ReadSome()) return false;
  }
}

std::optional<std::uint8_t> Link::PeekFirstByte() {
  if (!ReadSome()) return std::nullopt;
  const std::vector<std::uint8_t> bytes = assembler_.TakeRest();
  assembler_.Feed(bytes);
  return bytes.front();
}

bool Link::WriteRaw(std::string_view bytes) {
  const Status written = transport_.Write(
      {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return written.ok();
}

bool Link::Write(std::string_view bytes) {
  if (tls_ == nullptr) return WriteRaw(bytes);
  const std::string ciphertext = tls_->Encrypt(bytes);
  return !ciphertext.empty() && WriteRaw(ciphertext);
}

bool Link::WriteParts(PacketWriter::Parts parts) {
  if (gathering_ == nullptr || tls_ != nullptr) {
    std::string joined;
    for (const std::string_view part : parts) joined += part;
    return Write(joined);
  }
  std::vector<std::span<const std::uint8_t>> spans;
  spans.reserve(parts.size());
  for (const std::string_view part : parts) {
    spans.emplace_back(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  }
  return gathering_->WriteParts(spans).ok();
}

bool Link::StartWrappedTls(ssl_ctx_st* context) {
  auto tls = std::make_unique<TlsSession>(context);
  PacketWriter packets(0, [this](std::string_view bytes) { return WriteRaw(bytes); });
  packets.SetPacketSize(kHandshakePacketSizeBytes);
  for (int round = 0; round < kHandshakeRoundCountMax; ++round) {
    ClientMessage message;
    if (!ReadMessage(message) || message.type != tds::PacketType::kPrelogin)
      return false;
    tls->Feed(message.body);
    const TlsSession::Step step = tls->Handshake();
    const std::string flight = tls->TakeOutput();
    if (!flight.empty()) {
      packets.Append(flight);
      packets.EndMessage(tds::PacketType::kPrelogin);
    }
    if (step == TlsSession::Step::kFailed || packets.broken()) return false;
    if (step == TlsSession::Step::kNeedMore) continue;
    // What the client sent behind its last flight is TLS without packets around it.
    const std::vector<std::uint8_t> rest = assembler_.TakeRest();
    tls_ = std::move(tls);
    tls_->Feed(rest);
    plain_.clear();
    if (tls_->Read(plain_) == TlsSession::Step::kFailed) return false;
    assembler_.Feed(plain_);
    return true;
  }
  return false;
}

bool Link::StartBareTls(ssl_ctx_st* context) {
  auto tls = std::make_unique<TlsSession>(context);
  tls->Feed(assembler_.TakeRest());
  for (int round = 0; round < kHandshakeRoundCountMax; ++round) {
    const TlsSession::Step step = tls->Handshake();
    const std::string flight = tls->TakeOutput();
    if (!flight.empty() && !WriteRaw(flight)) return false;
    if (step == TlsSession::Step::kFailed) return false;
    if (step == TlsSession::Step::kDone) {
      tls_ = std::move(tls);
      plain_.clear();
      if (tls_->Read(plain_) == TlsSession::Step::kFailed) return false;
      assembler_.Feed(plain_);
      return true;
    }
    const Result<std::size_t> count = transport_.Read(block_);
    if (!count.ok() || count.value() == 0) return false;
    tls->Feed({block_.data(), count.value()});
  }
  return false;
}

}  // namespace mssql_cdc::sim::wire

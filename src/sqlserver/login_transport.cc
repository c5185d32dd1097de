#include "sqlserver/login_transport.h"

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "tds/packet.h"
#include "tds/reader.h"

namespace mssql_cdc::sqlserver {
namespace {

// Before a size is agreed packets have 4096 bytes at most.
constexpr std::size_t kHandshakePacketSizeBytes = 4096;

}  // namespace

// A server that sends a byte now and then does not stretch the login: what is left of
// the deadline is asked before every wait.
Status LoginTransport::ApplyDeadline() {
  if (login_ended_ || deadline_ns_ == 0) return Unit{};
  const std::int64_t left_ms = (deadline_ns_ - clock_.MonotonicNs()) / 1'000'000;
  if (left_ms <= 0) {
    return Error(ErrorId::kTimedOut).With("during", "login");
  }
  lower_->SetTimeLimitMs(left_ms);
  return Unit{};
}

void LoginTransport::SetTimeLimitMs(std::int64_t limit_ms) {
  if (login_ended_) lower_->SetTimeLimitMs(limit_ms);
}

Result<std::size_t> LoginTransport::ReadLower(std::span<std::uint8_t> into) {
  TRY(ApplyDeadline());
  TRY_ASSIGN(const std::size_t count, lower_->Read(into));
  if (login_ended_) return count;
  read_bytes_ += count;
  if (read_bytes_ > kTdsLoginReplySizeBytesMax) {
    return Error(ErrorId::kTdsLimitExceeded)
        .With("during", "login")
        .With("limit_bytes", std::to_string(kTdsLoginReplySizeBytesMax));
  }
  return count;
}

Status LoginTransport::OpenPacket() {
  std::array<std::uint8_t, tds::kPacketHeaderSizeBytes> bytes{};
  for (std::size_t got = 0; got < bytes.size();) {
    TRY_ASSIGN(const std::size_t count, ReadLower(std::span(bytes).subspan(got)));
    if (count == 0) return Error(ErrorId::kConnectionLost);
    got += count;
  }
  tds::Reader header(bytes);
  const auto type = header.Le<std::uint8_t>();
  header.Le<std::uint8_t>();
  const auto length = header.Be<std::uint16_t>();
  if (type != static_cast<std::uint8_t>(tds::PacketType::kPrelogin) ||
      length <= tds::kPacketHeaderSizeBytes) {
    return Error(ErrorId::kTdsMalformed)
        .With("during", "TLS handshake")
        .With("packet_type", std::to_string(type))
        .With("packet_length", std::to_string(length));
  }
  packet_left_ = length - std::size_t{tds::kPacketHeaderSizeBytes};
  return Unit{};
}

Result<std::size_t> LoginTransport::Read(std::span<std::uint8_t> into) {
  if (!wrapping_) return ReadLower(into);
  if (packet_left_ == 0) TRY(OpenPacket());
  const auto part = into.first(std::min(into.size(), packet_left_));
  TRY_ASSIGN(const std::size_t count, ReadLower(part));
  packet_left_ -= count;
  return count;
}

Status LoginTransport::Write(std::span<const std::uint8_t> bytes) {
  TRY(ApplyDeadline());
  if (!wrapping_) return lower_->Write(bytes);
  return lower_->Write(
      tds::FrameMessage(tds::PacketType::kPrelogin, bytes, kHandshakePacketSizeBytes));
}

Status LoginTransport::EndWrapping() {
  wrapping_ = false;
  if (packet_left_ == 0) return Unit{};
  return Error(ErrorId::kTdsMalformed)
      .With("during", "TLS handshake")
      .With("unread_bytes", std::to_string(packet_left_));
}

}  // namespace mssql_cdc::sqlserver

#include "tds/packet.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tds/reader.h"

namespace mssql_cdc::tds {

std::vector<std::uint8_t> FrameMessage(PacketType type,
                                       std::span<const std::uint8_t> payload,
                                       std::size_t packet_size_bytes) {
  CHECK(packet_size_bytes > kPacketHeaderSizeBytes && packet_size_bytes <= 0xFFFF);
  const std::size_t payload_size_max = packet_size_bytes - kPacketHeaderSizeBytes;
  std::vector<std::uint8_t> packets;
  packets.reserve(payload.size() +
                  (payload.size() / payload_size_max + 1) * kPacketHeaderSizeBytes);
  std::uint8_t packet_id = 1;
  do {
    const auto part = payload.first(std::min(payload.size(), payload_size_max));
    payload = payload.subspan(part.size());
    const std::size_t length = part.size() + kPacketHeaderSizeBytes;
    const std::uint8_t status = payload.empty() ? kStatusEndOfMessage : 0;
    for (const std::uint8_t byte :
         {static_cast<std::uint8_t>(type), status,
          static_cast<std::uint8_t>(length >> 8), static_cast<std::uint8_t>(length),
          std::uint8_t{0}, std::uint8_t{0}, packet_id++, std::uint8_t{0}}) {
      packets.push_back(byte);
    }
    packets.insert(packets.end(), part.begin(), part.end());
  } while (!payload.empty());
  return packets;
}

Result<std::span<std::uint8_t>> PacketReader::Space() {
  if (begin_ == end_ && end_ == received_end_) begin_ = end_ = received_end_ = 0;
  if (buffer_.size() - received_end_ < block_size_bytes_) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, received_end_ - begin_);
    end_ -= begin_;
    received_end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - received_end_ < block_size_bytes_) {
    if (received_end_ > kTdsTokenSizeBytesMax + block_size_bytes_) {
      return Error(ErrorId::kTdsLimitExceeded)
          .With("unread_bytes", std::to_string(received_end_))
          .With("limit_bytes", std::to_string(kTdsTokenSizeBytesMax));
    }
    buffer_.resize(2 * buffer_.size());
  }
  return std::span(buffer_).subspan(received_end_);
}

Result<bool> PacketReader::OpenPacket() {
  Reader header({buffer_.data() + end_, received_end_ - end_});
  const auto type = header.Le<std::uint8_t>();
  const auto status = header.Le<std::uint8_t>();
  const auto length = header.Be<std::uint16_t>();
  header.Bytes(4);  // SPID, packet id and window say nothing that is needed.
  if (!header.ok()) return false;
  const bool last = (status & kStatusEndOfMessage) != 0;
  const bool fits = length >= kPacketHeaderSizeBytes && length <= size_bytes_max_;
  // Without payload a message could be endless.
  const bool empty = length == kPacketHeaderSizeBytes && !last;
  if (type != static_cast<std::uint8_t>(type_) || !fits || empty) {
    return Error(ErrorId::kTdsMalformed)
        .With("packet_type", std::to_string(type))
        .With("packet_length", std::to_string(length))
        .With("packet_length_max", std::to_string(size_bytes_max_));
  }
  // What was left unconsumed goes over the header, next to what follows it.
  std::memmove(buffer_.data() + begin_ + kPacketHeaderSizeBytes,
               buffer_.data() + begin_, end_ - begin_);
  begin_ += kPacketHeaderSizeBytes;
  end_ += kPacketHeaderSizeBytes;
  packet_left_ = length - std::size_t{kPacketHeaderSizeBytes};
  last_packet_ = last;
  return true;
}

Result<bool> PacketReader::Advance() {
  if (message_ended()) return false;
  if (packet_left_ == 0) {
    TRY_ASSIGN(const bool opened, OpenPacket());
    if (!opened) return false;
    if (packet_left_ == 0) return true;  // An empty last packet: the message ended.
  }
  const std::size_t count = std::min(packet_left_, received_end_ - end_);
  end_ += count;
  packet_left_ -= count;
  return count > 0;
}

void PacketReader::BeginMessage() {
  CHECK(message_ended());
  begin_ = end_;
  last_packet_ = false;
}

}  // namespace mssql_cdc::tds

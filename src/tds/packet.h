// The packets that carry TDS messages (MS-TDS 2.2.3.1): cutting a message into packets,
// and finding the payload in packets as they arrive.
//
//   +------+--------+---------+------+-----------+--------+---------
//   | type | status | length  | SPID | packet id | window | payload
//   |  u8  |   u8   | u16 BE  | u16  |    u8     |   u8   |
//   +------+--------+---------+------+-----------+--------+---------

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "tds/spec.h"

namespace mssql_cdc::tds {

// `payload` as the packets of one message, one behind the other, each of
// `packet_size_bytes` but the last. An empty payload is one packet.
// Requires packet_size_bytes > kPacketHeaderSizeBytes.
std::vector<std::uint8_t> FrameMessage(PacketType type,
                                       std::span<const std::uint8_t> payload,
                                       std::size_t packet_size_bytes);

// Finds the payload of arriving packets, without copying it: bytes are received into
// Space() and looked at where they lie, packet by packet.
//
//   while Payload() is not enough:          (enough is the caller's to say)
//     if Advance()? continue                payload grew by what had arrived
//     if message_ended()? done              nothing more belongs to this message
//     count = receive into Space(); Received(count)
//   use some of Payload(); Consume(some)
//
// Payload not consumed is kept and comes out contiguous with what follows it: it is
// moved over the header of the next packet, so this is meant for the few bytes of a
// token that was cut, not for whole values.
class PacketReader {
 public:
  // Large reads are what makes long replies cheap.
  static constexpr std::size_t kBlockSizeBytes = 256u << 10;

  // Requires that every packet is of `type`. One receive can take at least
  // `block_size_bytes`.
  explicit PacketReader(PacketType type, std::size_t block_size_bytes = kBlockSizeBytes)
      : type_(type),
        block_size_bytes_(block_size_bytes),
        buffer_(block_size_bytes * 5 / 4) {}

  // Room for a block at least. Errors: TdsLimitExceeded when more than
  // kTdsTokenSizeBytesMax wait to be consumed.
  Result<std::span<std::uint8_t>> Space();
  // The first `count` bytes of Space() were filled.
  void Received(std::size_t count) { received_end_ += count; }

  // Payload of the current message that is contiguous and not consumed.
  std::span<const std::uint8_t> Payload() const {
    return {buffer_.data() + begin_, end_ - begin_};
  }
  void Consume(std::size_t count) { begin_ += count; }

  // Adds to Payload() what has arrived of the current packet or, if that is used up, of
  // the next; false if nothing was added. Errors: TdsMalformed for a packet that is too
  // short, of another type, longer than size_bytes_max, or empty and not the last.
  Result<bool> Advance();
  // The last packet of the message is in Payload() whole, or was.
  bool message_ended() const { return packet_left_ == 0 && last_packet_; }
  // Goes on with the message behind the current one. Requires message_ended(); payload
  // not consumed is dropped.
  void BeginMessage();
  // Bytes were received behind the end of the current message.
  bool has_more_than_message() const { return message_ended() && end_ < received_end_; }

  // The negotiated packet size, once it is known.
  void SetPacketSizeMax(std::size_t size_bytes_max) {
    size_bytes_max_ = size_bytes_max;
  }

 private:
  Result<bool> OpenPacket();

  // buffer_: consumed | payload | not looked at | free
  //                 begin_     end_       received_end_
  PacketType type_;
  std::size_t block_size_bytes_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t received_end_ = 0;
  std::size_t packet_left_ = 0;  // Payload of the current packet beyond end_.
  bool last_packet_ = false;     // The current packet ends the message.
  std::size_t size_bytes_max_ = kTdsPacketSizeBytesMax + 1;
};

}  // namespace mssql_cdc::tds

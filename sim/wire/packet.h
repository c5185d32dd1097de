// Packets and messages: bytes of a client put together into messages, and a reply cut
// into packets. Pure; where the bytes come from and go to is the caller's.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tds/spec.h"

namespace mssql_cdc::sim::wire {

struct ClientMessage {
  tds::PacketType type = tds::PacketType::kSqlBatch;
  std::uint8_t status = 0;  // Of the first packet: the reset bits count only there.
  std::vector<std::uint8_t> body;
};

// Takes bytes in any portions and gives whole messages.
class MessageAssembler {
 public:
  explicit MessageAssembler(std::size_t message_size_bytes_max)
      : message_size_bytes_max_(message_size_bytes_max) {}

  enum class Step : std::uint8_t { kNeedMore, kMessage, kMalformed };

  void SetMessageSizeMax(std::size_t size_bytes) {
    message_size_bytes_max_ = size_bytes;
  }
  void Feed(std::span<const std::uint8_t> bytes) {
    held_.insert(held_.end(), bytes.begin(), bytes.end());
  }
  // kMessage: `message` is the next one. After kMalformed the connection must end.
  Step Next(ClientMessage& message);
  // The bytes that were fed and not used, which are no longer held: what follows the
  // last message when the framing changes.
  std::vector<std::uint8_t> TakeRest();

 private:
  Step TakePacket(ClientMessage& message);

  std::size_t message_size_bytes_max_;
  std::vector<std::uint8_t> held_;
  std::size_t at_ = 0;  // held_ before here is used up.
  bool open_ = false;   // A message has begun and not ended.
  ClientMessage current_;
};

// Cuts replies into packets. All packets of a message but the last are full.
class PacketWriter {
 public:
  // Returns false when the client is gone; the writer then swallows everything.
  using Output = std::function<bool(std::string_view)>;
  // The same for bytes in parts that follow one another.
  using Parts = std::span<const std::string_view>;
  using PartsOutput = std::function<bool(Parts)>;

  PacketWriter(std::uint16_t spid, Output output, PartsOutput parts_output = nullptr)
      : spid_(spid),
        output_(std::move(output)),
        parts_output_(std::move(parts_output)) {}

  // The size with header that holds from the next message on.
  void SetPacketSize(std::size_t size_bytes) { packet_size_bytes_ = size_bytes; }
  void Append(std::string_view bytes);
  // Append for many bytes: those that fill packets are sent from where they lie.
  void AppendMany(std::string_view bytes);
  // Ends the message and sends all of it.
  void EndMessage(tds::PacketType type = tds::PacketType::kReply);
  bool broken() const { return broken_; }

 private:
  using Header = std::array<char, tds::kPacketHeaderSizeBytes>;

  Header HeaderOf(tds::PacketType type, std::uint8_t status, std::size_t size_bytes);
  void OpenPacket();
  void ClosePacket(tds::PacketType type, std::uint8_t status);
  void Send(std::size_t count);

  std::uint16_t spid_;
  Output output_;
  PartsOutput parts_output_;
  std::size_t packet_size_bytes_ = 4096;
  std::string held_;
  bool open_ = false;             // A packet has begun.
  std::size_t packet_start_ = 0;  // Where in held_.
  std::uint8_t packet_id_ = 1;
  bool broken_ = false;
};

}  // namespace mssql_cdc::sim::wire

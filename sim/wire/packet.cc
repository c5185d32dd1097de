#include "sim/wire/packet.h"

#include <algorithm>

#include "base/limits.h"

namespace mssql_cdc::sim::wire {
namespace {

// How much of a reply gathers before it is handed to the connection.
constexpr std::size_t kSendSizeBytes = 128u << 10;

bool IsClientPacketType(std::uint8_t type) {
  switch (static_cast<tds::PacketType>(type)) {
    case tds::PacketType::kSqlBatch:
    case tds::PacketType::kRpc:
    case tds::PacketType::kAttention:
    case tds::PacketType::kBulkLoad:
    case tds::PacketType::kFederatedToken:
    case tds::PacketType::kTransactionManager:
    case tds::PacketType::kLogin7:
    case tds::PacketType::kSspi:
    case tds::PacketType::kPrelogin:
      return true;
    case tds::PacketType::kReply:
      return false;
  }
  return false;
}

}  // namespace

MessageAssembler::Step MessageAssembler::Next(ClientMessage& message) {
  for (;;) {
    const std::size_t before = at_;
    const Step step = TakePacket(message);
    if (step == Step::kNeedMore && at_ != before) continue;
    if (at_ == held_.size()) {
      held_.clear();
      at_ = 0;
    } else if (at_ > kSendSizeBytes) {
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at_));
      at_ = 0;
    }
    return step;
  }
}

// A packet: type u8, status u8, length u16 big-endian with these eight bytes, SPID u16,
// packet id u8, window u8. Clients number packets as they like, so the id is not read.
MessageAssembler::Step MessageAssembler::TakePacket(ClientMessage& message) {
  if (held_.size() - at_ < tds::kPacketHeaderSizeBytes) return Step::kNeedMore;
  const std::uint8_t* header = held_.data() + at_;
  const std::size_t size = static_cast<std::size_t>(header[2]) << 8 | header[3];
  if (!IsClientPacketType(header[0])) return Step::kMalformed;
  if (size < tds::kPacketHeaderSizeBytes || size > kTdsPacketSizeBytesMax + 1) {
    return Step::kMalformed;
  }
  if (held_.size() - at_ < size) return Step::kNeedMore;

  const auto type = static_cast<tds::PacketType>(header[0]);
  const std::uint8_t status = header[1];
  const bool last = (status & tds::kStatusEndOfMessage) != 0;
  if (open_ && type == tds::PacketType::kAttention) {
    open_ = false;  // The request it cuts off was never complete.
  }
  if (open_ && type != current_.type) return Step::kMalformed;
  if (!last && size == tds::kPacketHeaderSizeBytes) return Step::kMalformed;
  if (!open_) current_ = {type, status, {}};
  open_ = !last;
  if (current_.body.size() + size > message_size_bytes_max_) return Step::kMalformed;
  current_.body.insert(current_.body.end(), header + tds::kPacketHeaderSizeBytes,
                       header + size);
  at_ += size;
  if (!last) return Step::kNeedMore;
  if ((status & tds::kStatusIgnore) != 0) {
    current_ = {};  // The client gave up on its own half-sent request.
    return Step::kNeedMore;
  }
  message = std::move(current_);
  current_ = {};
  return Step::kMessage;
}

std::vector<std::uint8_t> MessageAssembler::TakeRest() {
  std::vector<std::uint8_t> rest(held_.begin() + static_cast<std::ptrdiff_t>(at_),
                                 held_.end());
  held_.clear();
  at_ = 0;
  return rest;
}

void PacketWriter::Append(std::string_view bytes) {
  while (!bytes.empty() && !broken_) {
    if (!open_) OpenPacket();
    const std::size_t room = packet_start_ + packet_size_bytes_ - held_.size();
    if (room == 0) {
      ClosePacket(tds::PacketType::kReply, 0);
      if (held_.size() >= kSendSizeBytes) Send(held_.size());
      continue;
    }
    const std::size_t count = std::min(room, bytes.size());
    held_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
  }
}

void PacketWriter::AppendMany(std::string_view bytes) {
  const std::size_t content = packet_size_bytes_ - tds::kPacketHeaderSizeBytes;
  const std::size_t room =
      open_ ? packet_start_ + packet_size_bytes_ - held_.size() : std::size_t{0};
  if (parts_output_ == nullptr || bytes.size() <= room + content || broken_) {
    return Append(bytes);
  }
  Append(bytes.substr(0, room));
  bytes.remove_prefix(room);
  if (open_) ClosePacket(tds::PacketType::kReply, 0);
  // A packet may be closed only when more is known to follow.
  const std::size_t packet_count = (bytes.size() - 1) / content;
  std::vector<Header> headers;
  headers.reserve(packet_count);
  std::vector<std::string_view> parts;
  if (!held_.empty()) parts.emplace_back(held_);
  for (std::size_t i = 0; i < packet_count; ++i) {
    headers.push_back(HeaderOf(tds::PacketType::kReply, 0, packet_size_bytes_));
    parts.emplace_back(headers.back().data(), headers.back().size());
    parts.push_back(bytes.substr(i * content, content));
  }
  if (!broken_ && !parts_output_(parts)) broken_ = true;
  held_.clear();
  Append(bytes.substr(packet_count * content));
}

void PacketWriter::EndMessage(tds::PacketType type) {
  if (!open_) OpenPacket();
  ClosePacket(type, tds::kStatusEndOfMessage);
  Send(held_.size());
  packet_id_ = 1;
}

void PacketWriter::OpenPacket() {
  open_ = true;
  packet_start_ = held_.size();
  held_.append(tds::kPacketHeaderSizeBytes, '\0');
}

PacketWriter::Header PacketWriter::HeaderOf(tds::PacketType type, std::uint8_t status,
                                            std::size_t size_bytes) {
  return {static_cast<char>(type),
          static_cast<char>(status),
          static_cast<char>(size_bytes >> 8),
          static_cast<char>(size_bytes),
          static_cast<char>(spid_ >> 8),
          static_cast<char>(spid_),
          static_cast<char>(packet_id_++),
          0};
}

void PacketWriter::ClosePacket(tds::PacketType type, std::uint8_t status) {
  const Header header = HeaderOf(type, status, held_.size() - packet_start_);
  std::copy(header.begin(), header.end(),
            held_.begin() + static_cast<std::ptrdiff_t>(packet_start_));
  open_ = false;
}

void PacketWriter::Send(std::size_t count) {
  if (!broken_ && !output_(std::string_view(held_).substr(0, count))) broken_ = true;
  held_.clear();
}

}  // namespace mssql_cdc::sim::wire

#include "sqlserver/messages.h"

#include <algorithm>

namespace mssql_cdc::sqlserver {

Status SendMessage(net::Transport& transport, tds::PacketType type,
                   std::span<const std::uint8_t> payload,
                   std::size_t packet_size_bytes) {
  auto packets = tds::FrameMessage(type, payload, packet_size_bytes);
  std::span<const std::uint8_t> left(packets);
  Status sent = Unit{};
  while (!left.empty() && sent.ok()) {
    const auto packet = left.first(std::min(left.size(), packet_size_bytes));
    sent = transport.Write(packet);
    left = left.subspan(packet.size());
  }
  Wipe(packets);
  return sent;
}

Result<std::size_t> ReceiveInto(net::Transport& transport, tds::PacketReader& reader) {
  TRY_ASSIGN(const auto space, reader.Space());
  TRY_ASSIGN(const std::size_t count, transport.Read(space));
  if (count == 0) return Error(ErrorId::kConnectionLost);
  reader.Received(count);
  return count;
}

void Wipe(std::vector<std::uint8_t>& bytes) {
  volatile std::uint8_t* byte = bytes.data();
  for (std::size_t i = 0; i < bytes.size(); ++i) byte[i] = 0;
}

}  // namespace mssql_cdc::sqlserver

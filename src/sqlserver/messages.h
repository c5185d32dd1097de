// Sends and receives whole TDS messages over a transport.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "net/transport.h"
#include "tds/packet.h"

namespace mssql_cdc::sqlserver {

// Sends `payload` as packets, each with a write of its own: under TLS a packet is then
// one record, and some servers drop a connection where a record exceeds the packet.
// The framed bytes are wiped afterwards, since they may hold credentials.
Status SendMessage(net::Transport& transport, tds::PacketType type,
                   std::span<const std::uint8_t> payload,
                   std::size_t packet_size_bytes);

// Receives once into `reader` and tells how many bytes. Errors: ConnectionLost at the
// peer's end; the transport's.
Result<std::size_t> ReceiveInto(net::Transport& transport, tds::PacketReader& reader);

// Overwrites bytes that held credentials.
void Wipe(std::vector<std::uint8_t>& bytes);

}  // namespace mssql_cdc::sqlserver

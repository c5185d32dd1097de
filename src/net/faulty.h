// A transport that misbehaves on purpose: the faults a network can have, for tests.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "net/transport.h"

namespace mssql_cdc::net {

struct TransportFaults {
  // Most bytes one Read hands on; absent: as many as there are.
  std::optional<std::size_t> read_size_bytes_max = std::nullopt;
  // Once this many bytes were read, every Read fails with ConnectionLost.
  std::optional<std::uint64_t> lost_after_read_bytes = std::nullopt;
  // The same, as the peer's orderly end: Read gives 0.
  std::optional<std::uint64_t> ended_after_read_bytes = std::nullopt;
  // Once this many bytes were written, every Write fails with ConnectionLost; the one
  // that crosses the border hands on the bytes before it.
  std::optional<std::uint64_t> lost_after_written_bytes = std::nullopt;
};

std::unique_ptr<Transport> MakeFaulty(std::unique_ptr<Transport> lower,
                                      const TransportFaults& faults);

}  // namespace mssql_cdc::net

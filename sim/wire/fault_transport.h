// The server's end of a connection with a network's faults in it, from a seed: pieces
// of any size, delays, a cut inside a row, bytes that never arrive.
//
// A plan is drawn per connection, so a client that comes again meets other faults. What
// was lost is lost for good, and the connection ends there, as TCP has it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/dice.h"
#include "net/transport.h"

namespace mssql_cdc::sim::wire {

struct FaultPlan {
  // Most bytes that go out at once; absent: as they come.
  std::optional<std::size_t> piece_size_bytes_max;
  // Before each piece, up to so long.
  std::int64_t delay_ms_max = 0;
  // The connection ends after so many bytes, whatever they are part of.
  std::optional<std::uint64_t> cut_after_bytes;
  // The same, and the server learns of it with its next write only.
  std::optional<std::uint64_t> drop_after_bytes;
  std::uint64_t seed = 0;  // Of sizes and delays.
};

// One of: none, pieces, pieces with delays, a cut, a drop.
FaultPlan DrawFaults(Dice& dice);

// `clock` must outlive the transport.
std::unique_ptr<net::Transport> WithFaults(std::unique_ptr<net::Transport> lower,
                                           const FaultPlan& plan, Clock& clock);

}  // namespace mssql_cdc::sim::wire

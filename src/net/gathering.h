// A transport that takes bytes from many places at once, so that who has them in pieces
// need not join them.

#pragma once

#include <cstdint>
#include <span>

#include "net/transport.h"

namespace mssql_cdc::net {

class GatheringTransport : public Transport {
 public:
  using Parts = std::span<const std::span<const std::uint8_t>>;
  // Write, of all `parts` one behind the other.
  virtual Status WriteParts(Parts parts) = 0;
};

}  // namespace mssql_cdc::net

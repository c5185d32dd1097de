// A two-way stream of bytes to a server, with time limits.
//
// The one seam between the client and the outside world: TCP, TLS over another
// Transport, an in-memory pipe, and the test transports that cut and delay.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"

namespace mssql_cdc::net {

class Transport {
 public:
  virtual ~Transport() = default;

  // Reads at least one byte, at most `into.size()`; 0 at the peer's orderly end. Waits
  // up to the time limit; after TimedOut nothing is lost and Read may be called again.
  // Errors: TimedOut, ConnectionLost.
  virtual Result<std::size_t> Read(std::span<std::uint8_t> into) = 0;
  // Writes all of `bytes`. Errors: TimedOut, ConnectionLost.
  virtual Status Write(std::span<const std::uint8_t> bytes) = 0;
  // How long one Read or Write may wait; 0: no limit.
  virtual void SetTimeLimitMs(std::int64_t limit_ms) = 0;
  // Ends both directions. Later calls fail with ConnectionLost. Safe from another
  // thread.
  virtual void Close() = 0;
};

// Opens transports: the network, or a simulator in this process.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // Errors: NameNotResolved, ConnectFailed, TimedOut.
  virtual Result<std::unique_ptr<Transport>> Dial(const std::string& host,
                                                  std::uint16_t port,
                                                  std::int64_t limit_ms) = 0;
  // The TCP port of a named instance, asked from the host's SQL Browser (UDP 1434).
  // Errors: NameNotResolved, TimedOut, ConnectFailed if there is no such instance.
  virtual Result<std::uint16_t> InstancePort(const std::string& host,
                                             const std::string& instance,
                                             std::int64_t limit_ms) = 0;
};

}  // namespace mssql_cdc::net

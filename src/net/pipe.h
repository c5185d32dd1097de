// Two transports joined in memory: what one writes, the other reads. For a server in
// this process and for tests. Each end belongs to one thread; the two may differ.

#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "net/transport.h"

namespace mssql_cdc::net {

// A write waits, within its time limit, while the peer has `capacity_bytes` unread.
std::pair<std::unique_ptr<Transport>, std::unique_ptr<Transport>> MakePipe(
    std::size_t capacity_bytes = 1u << 20);

// Dials by calling `connect` with the host and port; `connect` gives the client's end.
class InMemoryDialer final : public Dialer {
 public:
  using Connect = std::function<Result<std::unique_ptr<Transport>>(
      const std::string& host, std::uint16_t port)>;
  explicit InMemoryDialer(Connect connect) : connect_(std::move(connect)) {}

  Result<std::unique_ptr<Transport>> Dial(const std::string& host, std::uint16_t port,
                                          std::int64_t) override {
    return connect_(host, port);
  }
  // Every instance answers on the default port.
  Result<std::uint16_t> InstancePort(const std::string&, const std::string&,
                                     std::int64_t) override {
    return std::uint16_t{1433};
  }

 private:
  Connect connect_;
};

}  // namespace mssql_cdc::net

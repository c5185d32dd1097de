// Transports over TCP sockets, and the way to SQL Browser.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/transport.h"

namespace mssql_cdc::net {

// Dials over the network. Every address of a name is tried in the resolver's order
// until one answers. Resolving a name takes as long as the system's resolver lets it;
// the time limit counts from after that.
class TcpDialer final : public Dialer {
 public:
  // `clock` must outlive the dialer.
  explicit TcpDialer(Clock& clock) : clock_(clock) {}

  Result<std::unique_ptr<Transport>> Dial(const std::string& host, std::uint16_t port,
                                          std::int64_t limit_ms) override;
  Result<std::uint16_t> InstancePort(const std::string& host,
                                     const std::string& instance,
                                     std::int64_t limit_ms) override;

  // As InstancePort, asking UDP port `browser_port`.
  Result<std::uint16_t> AskBrowser(const std::string& host, std::uint16_t browser_port,
                                   const std::string& instance, std::int64_t limit_ms);

 private:
  Clock& clock_;
};

// The port that SQL Browser's reply (MC-SQLR SVR_RESP) names for `instance`, or nullopt
// if the reply is for another instance, names no TCP port or is malformed. The reply
// holds ServerName;X;InstanceName;Y;...;tcp;PORT;; behind three bytes.
std::optional<std::uint16_t> PortInBrowserReply(std::span<const std::uint8_t> reply,
                                                std::string_view instance);

// The server side: accepts connections on one port.
class TcpListener {
 public:
  // Listens on `address` ("127.0.0.1", "0.0.0.0", "::"); `port` 0 takes a free one.
  // Errors: ConnectFailed, NameNotResolved.
  static Result<std::unique_ptr<TcpListener>> Listen(const std::string& address,
                                                     std::uint16_t port);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  std::uint16_t port() const { return port_; }
  // The next connection. Errors: ConnectionLost once Close was called.
  Result<std::unique_ptr<Transport>> Accept();
  // Wakes Accept for good. Safe from another thread.
  void Close();

 private:
  TcpListener(int socket, int wake_read, int wake_write, std::uint16_t port)
      : socket_(socket), wake_read_(wake_read), wake_write_(wake_write), port_(port) {}

  int socket_;
  int wake_read_;  // A pipe whose closing end Accept polls beside the socket.
  int wake_write_;
  std::uint16_t port_;
};

}  // namespace mssql_cdc::net

// The simulator's TDS server: one port that speaks TDS 7.0 to 7.4 and 8.0 (strict), in
// clear and under TLS, in front of an Engine.
//
// It knows the wire, not SQL: batches and calls go to the engine, which answers through
// a ReplySink. Prepared statements are the exception: handles live in the connection.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/transport.h"
#include "sim/session.h"

namespace mssql_cdc::sim::wire {

enum class TlsMode : std::uint8_t {
  kAsClientAsks,
  kRequired,      // A client that asks for none is told to use it.
  kNotSupported,  // Not even for the login.
};

struct ServerOptions {
  bool listen = true;  // False: connections come through Serve() only.
  std::string bind_address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one.
  TlsMode tls_mode = TlsMode::kAsClientAsks;
  // Where ca.pem, server.pem and server.key lie, made if they are not there. Empty:
  // they are made in memory and thrown away.
  std::string certificate_directory;
  std::size_t packet_size_bytes_max = 32767;
  std::size_t message_size_bytes_max = 256u << 20;
  // Present: each connection meets faults of a network, drawn from this seed
  // (fault_transport.h).
  std::optional<std::uint64_t> fault_seed;
  std::string server_name = "SIMULATOR";  // In messages.
  // What FEDAUTHINFO tells clients that bring a token only when asked.
  std::string sts_url = "https://login.microsoftonline.com/common";
  std::string spn = "https://database.windows.net/";
};

// What has happened since the start, for tests that count round trips.
struct Counters {
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> logins{0};  // That succeeded.
  std::atomic<std::uint64_t> failed_logins{0};
  std::atomic<std::uint64_t> messages{0};  // After login, attentions not counted.
  std::atomic<std::uint64_t> requests{0};  // Batches and calls in them.
  std::atomic<std::uint64_t> attentions{0};
  std::atomic<std::uint64_t> malformed{0};  // Messages that ended a connection.
};

class Server {
 public:
  // Errors: SimulatorFailed, FileFailed, ConnectFailed, NameNotResolved.
  static Result<std::unique_ptr<Server>> Start(ServerOptions options,
                                               std::shared_ptr<Engine> engine);
  virtual ~Server() = default;

  // 0 if it does not listen.
  virtual std::uint16_t port() const = 0;
  // Serves one connection over `transport`, on a thread of its own. Requires that one
  // thread may Read while another Writes.
  virtual void Serve(std::unique_ptr<net::Transport> transport) = 0;
  // Ends all connections and waits for their threads. Called by the destructor too.
  virtual void Stop() = 0;

  virtual const Counters& counters() const = 0;
  // The certificate that clients may trust, as PEM.
  virtual const std::string& authority_pem() const = 0;
};

}  // namespace mssql_cdc::sim::wire

// The dialed transport with what holds only while a login is under way: one deadline
// for all steps, a limit on what the server may send, and, for the TLS handshake of
// TDS 7.x, the packets of type 0x12 that its bytes travel in. After the login it passes
// every call through.

#pragma once

#include <memory>

#include "base/clock.h"
#include "net/transport.h"

namespace mssql_cdc::sqlserver {

class LoginTransport final : public net::Transport {
 public:
  // `deadline_ns` is on clock.MonotonicNs(); 0: none. `clock` is not used after
  // EndLogin.
  LoginTransport(std::unique_ptr<net::Transport> lower, Clock& clock,
                 std::int64_t deadline_ns)
      : lower_(std::move(lower)), clock_(clock), deadline_ns_(deadline_ns) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override;
  Status Write(std::span<const std::uint8_t> bytes) override;
  // Has no effect before EndLogin: the deadline decides.
  void SetTimeLimitMs(std::int64_t limit_ms) override;
  void Close() override { lower_->Close(); }

  // From here on what is written is wrapped and what is read is unwrapped.
  void BeginWrapping() { wrapping_ = true; }
  // Errors: TdsMalformed if a packet was read in part.
  Status EndWrapping();
  void EndLogin() { login_ended_ = true; }

 private:
  Status ApplyDeadline();
  Result<std::size_t> ReadLower(std::span<std::uint8_t> into);
  Status OpenPacket();

  std::unique_ptr<net::Transport> lower_;
  Clock& clock_;
  std::int64_t deadline_ns_;
  bool login_ended_ = false;
  bool wrapping_ = false;
  std::size_t packet_left_ = 0;  // Payload of the wrapping packet not yet read.
  std::size_t read_bytes_ = 0;   // At most kTdsLoginReplySizeBytesMax.
};

}  // namespace mssql_cdc::sqlserver

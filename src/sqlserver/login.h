// Gets from a dialer to a session that is logged in: PRELOGIN, encryption, LOGIN7, the
// server's answer, and the redirections it may ask for.

#pragma once

#include <array>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "net/transport.h"
#include "sqlserver/connection_string.h"
#include "sqlserver/server_errors.h"
#include "sqlserver/session.h"
#include "tds/packet.h"

namespace mssql_cdc::sqlserver {

// How much of a connection is encrypted.
enum class Encryption : std::uint8_t { kNothing, kLoginOnly, kAll };

// What the server's answer to PRELOGIN makes of the client's wish; not for kStrict,
// which is settled before PRELOGIN. Never less than was asked for.
// Errors: EncryptionRefused; TdsMalformed for an answer MS-TDS does not have.
Result<Encryption> DecideEncryption(Encrypt wanted, std::uint8_t server_answer);

// A connection that is logged in, with what was agreed.
struct LoggedIn {
  std::unique_ptr<net::Transport> transport;
  tds::PacketReader reader{tds::PacketType::kReply};
  std::size_t packet_size_bytes = 4096;
  std::array<std::uint8_t, 5> collation{};
  bool encrypted = false;
  ServerFacts facts;
};

// Errors: those of Session::Open.
Result<LoggedIn> LogIn(const ConnectOptions& options, net::Dialer& dialer,
                       Clock& clock);

// What is sent instead of `size_bytes_wished` = 0.
inline constexpr std::uint16_t kPacketSizeClear = 32767;
// One packet then fits a TLS record of 16 KB, which drivers and servers rely on.
inline constexpr std::uint16_t kPacketSizeEncrypted = 16383;

Redactor RedactorOf(const ConnectOptions& options);

}  // namespace mssql_cdc::sqlserver

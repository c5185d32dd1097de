// The tokens of a reply that are not rows (MS-TDS 2.2.7), as bytes.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/session.h"
#include "sim/wire/bytes.h"
#include "sim/wire/collation.h"
#include "sim/wire/login.h"
#include "tds/spec.h"

namespace mssql_cdc::sim::wire {

// ERROR above severity 10, else INFO.
void WriteMessage(ByteBuffer& out, const Message& message, std::string_view server,
                  TdsVersion version);
void WriteDone(ByteBuffer& out, tds::TokenId token, std::uint16_t status,
               std::uint16_t command, std::uint64_t row_count, TdsVersion version);
// ENVCHANGE with text in both values.
void WriteEnvChange(ByteBuffer& out, tds::EnvChange kind, std::string_view now,
                    std::string_view before);
void WriteCollationChange(ByteBuffer& out, const CollationBytes& collation);
// ENVCHANGE 8, 9, 10: the descriptor is the new value of a begin, else the old one.
void WriteTransactionChange(ByteBuffer& out, tds::EnvChange kind,
                            std::uint64_t descriptor);
void WriteResetAck(ByteBuffer& out);
void WriteReturnStatus(ByteBuffer& out, std::int32_t status);
void WriteLoginAck(ByteBuffer& out, std::uint32_t tds_version, Engine::Version server);
// The features that are acknowledged: FEDAUTH with nothing, UTF8_SUPPORT with 1.
void WriteFeatureAck(ByteBuffer& out, bool fed_auth, bool utf8_support);
// Where to get a token, for clients that bring one only when asked.
void WriteFedAuthInfo(ByteBuffer& out, std::string_view sts_url, std::string_view spn);
// "Changed database context to 'x'."
Message DatabaseContextMessage(std::string_view database);

}  // namespace mssql_cdc::sim::wire

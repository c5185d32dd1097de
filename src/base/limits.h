// Bounds that a length or count from outside must meet before it is used.

#pragma once

#include <cstddef>
#include <cstdint>

namespace mssql_cdc {

// A batch that is handed on: whichever of rows and bytes is reached first ends it.
inline constexpr std::int64_t kBatchRowCountDefault = 10'000;
inline constexpr std::size_t kBatchSizeBytesMax = 64u << 20;

// TDS. A SELECT list has at most 4096 columns, a packet at most 32767 bytes.
inline constexpr std::size_t kTdsColumnCountMax = 4096;
inline constexpr std::size_t kTdsPacketSizeBytesMax = 32767;
inline constexpr std::size_t kTdsPacketSizeBytesMin = 512;
// Tokens that are not rows: ERROR, INFO, ENVCHANGE, FEATUREEXTACK and the like.
inline constexpr std::size_t kTdsTokenSizeBytesMax = 1u << 20;
// What a server may send before login is complete.
inline constexpr std::size_t kTdsLoginReplySizeBytesMax = 4u << 20;
// The largest value of a (max) type, by SQL Server's own limit.
inline constexpr std::uint64_t kTdsValueSizeBytesMax = 0x7FFFFFFF;

}  // namespace mssql_cdc

// How large a batch that is handed on may become, and how it is made.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace mssql_cdc::tds {

// What a batch comes to unless asked otherwise. Its columns are written side by side,
// so all of it has to stay in the cache of one core, beside the packets: of a larger
// one every line comes from memory, which costs more than what is decoded into it.
inline constexpr std::size_t kBatchSizeBytesDefault = 1u << 20;

// A batch ends at whichever is reached first. A row is never divided: the batch exceeds
// size_bytes_max by at most the row that reached it.
struct ReplyLimits {
  std::int64_t row_count_max = kBatchRowCountDefault;
  std::size_t size_bytes_max = kBatchSizeBytesDefault;
  // Long values are converted in pieces of this size, so that room is made in
  // proportion. At least 4: a character.
  std::size_t piece_size_bytes = std::size_t{64} << 10;
};

}  // namespace mssql_cdc::tds

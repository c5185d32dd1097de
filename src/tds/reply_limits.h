// How large a batch that is handed on may become, and how it is made.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/limits.h"

namespace mssql_cdc::tds {

// A batch ends at whichever is reached first. A row is never divided: the batch exceeds
// size_bytes_max by at most the row that reached it.
struct ReplyLimits {
  std::int64_t row_count_max = kBatchRowCountDefault;
  std::size_t size_bytes_max = kBatchSizeBytesMax;
  // Long values are converted in pieces of this size, so that room is made in
  // proportion. At least 4: a character.
  std::size_t piece_size_bytes = std::size_t{64} << 10;
};

}  // namespace mssql_cdc::tds

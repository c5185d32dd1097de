// How large a batch that is handed on may become.

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
};

}  // namespace mssql_cdc::tds

// Merges a table's small files, and rewrites those with many rows gone.

#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/compaction.h"

namespace mssql_cdc::runtime {

struct OptimizeOutcome {
  std::int64_t file_count_before = 0;
  std::int64_t file_count_after = 0;
  std::int64_t commit_count = 0;
  std::int64_t row_count = 0;  // Rewritten.
  std::int64_t size_bytes = 0;
};

// Rows stay the same; readers of older versions keep their files. A commit of another
// writer in between makes a group be planned anew, with fewer files, so that it is done
// sooner. Errors: LakeConflict when that does not help; the lake's.
Result<OptimizeOutcome> Optimize(lake::Lake& lake, const std::string& location,
                                 const pipeline::CompactionLimits& limits);

}  // namespace mssql_cdc::runtime

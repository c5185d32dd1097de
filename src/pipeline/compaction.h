// Decides which data files of a table are worth merging into larger ones.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mssql_cdc::pipeline {

struct FileFacts {
  std::optional<std::int64_t> row_count;
  std::int64_t removed_count = 0;
  std::int64_t size_bytes = 0;
};

struct CompactionLimits {
  std::int64_t small_size_bytes = std::int64_t{64} << 20;  // Below, a file is small.
  std::int64_t target_size_bytes = std::int64_t{256} << 20;
  double removed_share_max = 0.2;  // Above, a file is rewritten for its own sake.
};

// Numbers of files, in groups that are rewritten together, each in one commit: small
// ones side by side, and those with many rows gone. A single file is a group only if it
// has rows gone.
std::vector<std::vector<std::int32_t>> PlanCompaction(
    const std::vector<FileFacts>& files, const CompactionLimits& limits);

}  // namespace mssql_cdc::pipeline

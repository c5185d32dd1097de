#include "runtime/read_sums.h"

#include <algorithm>

namespace mssql_cdc::runtime {

void AddCounts(const reader::ChangeCounts& read, pipeline::BatchCounts& sum) {
  sum.rows += read.row_count;
  sum.deletes += read.deletes;
  sum.inserts += read.inserts;
  sum.updates += read.updates;
  if (read.row_count == 0) return;
  // Windows ascend, and so do the LSNs; commit times need not.
  if (!sum.min_lsn) sum.min_lsn = read.min_lsn;
  sum.max_lsn = read.max_lsn;
  sum.min_commit_us = sum.min_commit_us
                          ? std::min(sum.min_commit_us, read.min_commit_us)
                          : read.min_commit_us;
  sum.max_commit_us = std::max(sum.max_commit_us, read.max_commit_us);
}

void AddMetrics(const reader::ChangeCounts& read,
                const std::optional<reader::AfterRead>& after,
                pipeline::ReadMetrics& sum) {
  sum.read_seconds += static_cast<double>(read.read_ns) / 1e9;
  sum.size_bytes += read.size_bytes;
  if (!after) return;
  sum.retention_watermark_us =
      std::max(sum.retention_watermark_us, after->instance_min_commit_us);
  if (after->newest) {
    sum.source_max_commit_us =
        std::max(sum.source_max_commit_us, after->newest->commit_us);
  }
}

}  // namespace mssql_cdc::runtime

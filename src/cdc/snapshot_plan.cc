#include "cdc/snapshot_plan.h"

#include <algorithm>

namespace mssql_cdc::cdc {

std::vector<KeyRange> PlanKeyRanges(const std::optional<KeyExtent>& extent,
                                    std::int64_t range_count_max) {
  std::vector<KeyRange> ranges;
  KeyRange range;
  if (extent && extent->min < extent->max) {
    const __int128 width = static_cast<__int128>(extent->max) - extent->min + 1;
    const __int128 count = std::min<__int128>(width, range_count_max);
    for (__int128 i = 1; i < count; ++i) {
      range.through = static_cast<std::int64_t>(extent->min + width * i / count - 1);
      ranges.push_back(range);
      range.after = range.through;
    }
  }
  range.through.reset();
  ranges.push_back(range);
  return ranges;
}

std::optional<Lsn> SnapshotLsn(const std::optional<Lsn>& server_max,
                               const std::optional<Lsn>& instance_first) {
  std::optional<Lsn> lsn = server_max;
  if (instance_first) {
    const std::optional<Lsn> below = instance_first->Previous();
    if (below && (!lsn || *lsn < *below)) lsn = below;
  }
  return lsn;
}

}  // namespace mssql_cdc::cdc

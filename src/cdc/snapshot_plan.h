// Cuts a snapshot of a table into ranges that are read at the same time.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cdc/lsn.h"

namespace mssql_cdc::cdc {

// Keys above `after`, up to and including `through`. Open below takes NULL too.
struct KeyRange {
  std::optional<std::int64_t> after;
  std::optional<std::int64_t> through;

  bool operator==(const KeyRange&) const = default;
};

// The extent of an integer key.
struct KeyExtent {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// At most `range_count_max` ranges of equal width that tile all integers and NULL, the
// first open below, the last open above. One range without an extent. Requires 1 <=
// range_count_max.
std::vector<KeyRange> PlanKeyRanges(const std::optional<KeyExtent>& extent,
                                    std::int64_t range_count_max);

// The LSN a snapshot is stamped with: every commit up to it is in the table when the
// read begins. An instance that capture has not reached yet counts from just below its
// first LSN, so that the stream can start there. nullopt: capture has not written
// anything.
std::optional<Lsn> SnapshotLsn(const std::optional<Lsn>& server_max,
                               const std::optional<Lsn>& instance_first);

}  // namespace mssql_cdc::cdc

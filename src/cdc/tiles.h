// Cuts a batch's window into ranges that are read at the same time.

#pragma once

#include <cstdint>
#include <vector>

#include "cdc/lsn.h"

namespace mssql_cdc::cdc {

// Fewer changes than this are not worth a connection of their own.
inline constexpr std::int64_t kTileRowCountMin = 50'000;

// A run of changes in LSN order, as the server counted it: its last change's commit.
struct Tile {
  Lsn last;
  std::int64_t row_count = 0;
};

// Windows that tile `window`, each ending at a commit or at the window's end, and each
// with kTileRowCountMin changes or more if there is more than one. A commit that lies
// across tiles is whole in the window of the first. `tiles` are in order.
std::vector<LsnWindow> PlanTiles(const LsnWindow& window,
                                 const std::vector<Tile>& tiles);

}  // namespace mssql_cdc::cdc

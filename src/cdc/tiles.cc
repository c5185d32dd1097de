#include "cdc/tiles.h"

namespace mssql_cdc::cdc {

std::vector<LsnWindow> PlanTiles(const LsnWindow& window,
                                 const std::vector<Tile>& tiles) {
  std::vector<LsnWindow> windows;
  LsnWindow left = window;
  std::int64_t row_count = 0;
  for (const Tile& tile : tiles) {
    if (tile.last <= left.after) continue;  // Shares the last commit of the one before.
    row_count += tile.row_count;
    if (tile.last >= window.through || row_count < kTileRowCountMin) continue;
    windows.push_back({left.after, tile.last});
    left.after = tile.last;
    row_count = 0;
  }
  if (!windows.empty() && row_count < kTileRowCountMin) {
    left.after = windows.back().after;
    windows.pop_back();
  }
  windows.push_back(left);
  return windows;
}

}  // namespace mssql_cdc::cdc

// Shows record batches as text, for the demo and for people at a terminal.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns/batch.h"

namespace mssql_cdc::cli {

// The value as a person reads it: numbers plain, decimals with their scale, times ISO
// 8601, binary as 0x.., absent as NULL. Requires 0 <= row < column.row_count.
std::string CellText(const columns::Column& column, std::int64_t row);

// `names` and rows in aligned columns, each cell cut to `width_max` characters. Every
// row has as many cells as there are names.
std::string TableText(const std::vector<std::string>& names,
                      const std::vector<std::vector<std::string>>& rows,
                      std::size_t width_max);

}  // namespace mssql_cdc::cli

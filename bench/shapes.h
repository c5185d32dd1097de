// The result sets that the read bench replays, serialised once.
//
// Columns, types, value lengths and NULL shares follow the workloads that
// docs/compatibility and the bench's own page name: W1 eight narrow columns, W2 TPC-H
// lineitem, W3 the 89 columns of the existing package's fetch bench, W3u 90 columns
// with non-ASCII text and NULLs, C1 change rows of W1. Values come from a fixed seed,
// so that every run sends the same bytes.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/wire_writer.h"

namespace mssql_cdc::bench {

struct Shape {
  std::u16string name;  // What a query calls it: bench.W1.
  std::size_t column_count = 0;
  Bytes metadata;                     // COLMETADATA.
  Bytes rows;                         // ROW or NBCROW tokens, one after the other.
  std::vector<std::size_t> row_ends;  // Offsets in `rows` just past each row.
};

// All shapes, each with `distinct_row_count` rows.
std::vector<Shape> MakeShapes(std::size_t distinct_row_count);

}  // namespace mssql_cdc::bench

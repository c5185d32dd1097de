// The row loop over bytes that are all there: no check per value but the lengths.

#pragma once

#include <cstddef>
#include <cstdint>

#include "tds/row_plan.h"

namespace mssql_cdc::tds {

enum class RowStop : std::uint8_t {
  kBetweenRows,  // No whole row may fit any more, row_end or stop_at is reached, or
                 // something other than a row follows.
  kInsideRow,    // The value at `column` cannot be taken in place.
  kMalformed,    // The value at `column` is none of its type.
  kNotText,      // The value at `column` is not valid in its encoding.
};

// Where the row loop stands; in and out.
struct RowCursor {
  const std::uint8_t* at = nullptr;       // The next token or, inside a row, value.
  std::uintptr_t end_address = 0;         // Behind the last byte that may be read.
  const std::uint8_t* stop_at = nullptr;  // No row begins here or later.
  std::size_t row = 0;                    // The row that is written next.
  std::size_t row_end = 0;                // Rows there is room for.
  const std::uint8_t* row_at = nullptr;   // The token of the row it stopped at or in.
  // Of a stop inside a row.
  RowStop stop = RowStop::kBetweenRows;
  std::size_t column = 0;
  const std::uint8_t* bitmap = nullptr;  // Of NBCROW; null for ROW.
};

// Decodes ROW and NBCROW tokens from cursor.at on, as many as can be.
void DecodeRows(RowPlan& plan, RowCursor& cursor);

// Decodes the one value at cursor.at of column cursor.column, which is not NULL by a
// bitmap and of no long kind; cursor.end_address must leave room for need_after. On
// success moves cursor.at behind it and leaves cursor.stop at kBetweenRows.
void DecodeValue(RowPlan& plan, RowCursor& cursor);

// Writes NULL for cursor.row of `column`.
void WriteNull(PlannedColumn& column, std::size_t row);

// Moves the column's bytes to a place with room for `size_bytes` in all.
void GrowBytes(PlannedColumn& column, std::size_t size_bytes);

}  // namespace mssql_cdc::tds

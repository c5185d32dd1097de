// The NULL bitmaps of NBCROW rows on their way into the columns' validity bits.
//
// A bitmap has a bit per column, validity a bit per row. Clearing bits one by one would
// touch a line of every column for every row; instead the bitmaps of 64 rows are
// collected and turned at once into one word per column.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mssql_cdc::tds {

struct PlannedColumn;

class NullBlock {
 public:
  static constexpr std::size_t kRowCount = 64;

  NullBlock() = default;
  explicit NullBlock(std::size_t column_count) : squares_((column_count + 63) / 64) {}

  // Notes the bitmap of `row` of the batch at hand; putting the same row again
  // overwrites it. Reads whole words: up to 7 bytes behind the bitmap must be readable.
  // Requires that rows are put in order, and that every block of kRowCount rows is
  // flushed before a row of the next is put.
  void Put(std::size_t row, const std::uint8_t* bitmap) {
    for (Square& square : squares_) {
      std::memcpy(&square[row % kRowCount], bitmap, sizeof(std::uint64_t));
      bitmap += sizeof(std::uint64_t);
    }
    is_empty_ = false;
  }

  // Clears the validity bits of what was put; `row_count` rows of the batch are whole,
  // the last of them in this block. What was put of a row behind them is dropped.
  void Flush(std::vector<PlannedColumn>& columns, std::size_t row_count) {
    if (!is_empty_) FlushSquares(columns, row_count);
  }

 private:
  using Square = std::array<std::uint64_t, kRowCount>;  // 64 columns of 64 rows.

  void FlushSquares(std::vector<PlannedColumn>& columns, std::size_t row_count);

  std::vector<Square> squares_;
  bool is_empty_ = true;
};

}  // namespace mssql_cdc::tds

#include "tds/null_block.h"

#include <algorithm>

#include "tds/row_plan.h"

namespace mssql_cdc::tds {
namespace {

// Bit b of word w becomes bit w of word b: halves change places across the diagonal,
// then halves of the halves, and so on.
void Transpose(std::array<std::uint64_t, NullBlock::kRowCount>& words) {
  std::uint64_t low_halves = 0xFFFF'FFFF;
  for (std::size_t half = 32; half != 0; half /= 2, low_halves ^= low_halves << half) {
    for (std::size_t first = 0; first < words.size(); first += 2 * half) {
      for (std::size_t i = first; i < first + half; ++i) {
        const std::uint64_t swapped = (words[i] >> half ^ words[i + half]) & low_halves;
        words[i] ^= swapped << half;
        words[i + half] ^= swapped;
      }
    }
  }
}

}  // namespace

void NullBlock::FlushSquares(std::vector<PlannedColumn>& columns,
                             std::size_t row_count) {
  is_empty_ = true;
  const std::size_t block = (row_count - 1) / kRowCount;
  const std::size_t whole_count = row_count - block * kRowCount;
  std::size_t first = 0;
  for (Square& square : squares_) {
    std::fill(square.begin() + static_cast<std::ptrdiff_t>(whole_count), square.end(),
              0);
    Transpose(square);
    const std::size_t count = std::min(columns.size() - first, square.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (square[i] == 0) continue;
      std::uint8_t* at = columns[first + i].raw.validity + block * sizeof(square[i]);
      std::uint64_t valid;
      std::memcpy(&valid, at, sizeof(valid));
      valid &= ~square[i];
      std::memcpy(at, &valid, sizeof(valid));
    }
    square.fill(0);
    first += square.size();
  }
}

}  // namespace mssql_cdc::tds

#include "tds/null_block.h"

#include <gtest/gtest.h>

#include "base/dice.h"
#include "tds/row_plan.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::size_t kRowCount = 200;
constexpr std::size_t kStrideBytes = 16;  // Of a bitmap, padded to whole words.

// `column_count` columns of kRowCount rows, all valid.
struct Columns {
  explicit Columns(std::size_t column_count)
      : validity(column_count, std::vector<std::uint8_t>(256 / 8, 0xFF)),
        columns(column_count) {
    for (std::size_t i = 0; i < column_count; ++i) {
      columns[i].raw.validity = validity[i].data();
    }
  }
  bool IsValid(std::size_t column, std::size_t row) const {
    return (validity[column][row / 8] >> (row % 8) & 1) != 0;
  }

  std::vector<std::vector<std::uint8_t>> validity;
  std::vector<PlannedColumn> columns;
};

std::vector<std::uint8_t> RandomBitmap(Dice& dice, std::size_t column_count) {
  std::vector<std::uint8_t> bitmap(kStrideBytes, 0xFF);  // What lies behind is no NULL.
  for (std::size_t i = 0; i < column_count; ++i) {
    if (!dice.Chance(1, 3)) bitmap[i / 8] &= static_cast<std::uint8_t>(~(1u << i % 8));
  }
  return bitmap;
}

TEST(NullBlock, ClearsWhatTheBitmapsSay) {
  for (const std::size_t column_count : {1u, 7u, 63u, 64u, 65u, 100u}) {
    Dice dice(column_count);
    Columns made(column_count);
    NullBlock block(column_count);
    std::vector<std::vector<std::uint8_t>> bitmaps;
    for (std::size_t row = 0; row < kRowCount; ++row) {
      bitmaps.push_back(RandomBitmap(dice, column_count));
      block.Put(row, bitmaps.back().data());
      if ((row + 1) % NullBlock::kRowCount == 0) block.Flush(made.columns, row + 1);
    }
    block.Flush(made.columns, kRowCount);
    for (std::size_t column = 0; column < column_count; ++column) {
      for (std::size_t row = 0; row < kRowCount; ++row) {
        const bool is_null = (bitmaps[row][column / 8] >> (column % 8) & 1) != 0;
        ASSERT_NE(made.IsValid(column, row), is_null)
            << "column " << column << " of " << column_count << ", row " << row;
      }
      EXPECT_TRUE(made.IsValid(column, kRowCount)) << "behind the last row";
    }
  }
}

TEST(NullBlock, DropsARowThatIsNotWhole) {
  Columns made(2);
  NullBlock block(2);
  const std::vector<std::uint8_t> both(kStrideBytes, 0b11);
  block.Put(0, both.data());
  block.Put(1, both.data());
  block.Flush(made.columns, 1);
  EXPECT_FALSE(made.IsValid(0, 0));
  EXPECT_TRUE(made.IsValid(0, 1));
  // Nor does it come back with the next batch.
  block.Put(0, std::vector<std::uint8_t>(kStrideBytes, 0).data());
  block.Flush(made.columns, 2);
  EXPECT_TRUE(made.IsValid(1, 1));
}

TEST(NullBlock, ARowThatIsPutAgainIsOverwritten) {
  Columns made(2);
  NullBlock block(2);
  block.Put(0, std::vector<std::uint8_t>(kStrideBytes, 0b01).data());
  block.Put(0, std::vector<std::uint8_t>(kStrideBytes, 0b10).data());
  block.Flush(made.columns, 1);
  EXPECT_TRUE(made.IsValid(0, 0));
  EXPECT_FALSE(made.IsValid(1, 0));
}

}  // namespace
}  // namespace mssql_cdc::tds

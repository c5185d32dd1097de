#include "pipeline/chunk_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace mssql_cdc::pipeline {
namespace {

constexpr Int128 kSlicesPerChunk = 16;
// Answers stay small.
constexpr Int128 kSliceCountMax = 90'000;

Int128 CeilOf(Int128 dividend, Int128 divisor) {
  return (dividend + divisor - 1) / divisor;
}

// Rounded down, below zero too.
std::int64_t FloorOf(std::int64_t dividend, std::int64_t divisor) {
  const std::int64_t quotient = dividend / divisor;
  return dividend % divisor < 0 ? quotient - 1 : quotient;
}

Error Malformed(const Slice& slice) {
  return Error(ErrorId::kTdsMalformed)
      .With("reason", "a count is of another slice than was asked for")
      .With("slice", std::to_string(slice.slice));
}

}  // namespace

SlicePlanner::SlicePlanner(std::int64_t min, std::int64_t max,
                           std::int64_t row_estimate, std::int64_t chunk_rows)
    : max_(max), chunk_rows_(chunk_rows) {
  pieces_.push_back({min, row_estimate, Grid(min, max, row_estimate)});
}

SliceWish SlicePlanner::Grid(std::int64_t min, std::int64_t max,
                             std::int64_t rows) const {
  const Int128 span = Int128{max} - min + 1;
  const Int128 count = std::clamp<Int128>(
      CeilOf(kSlicesPerChunk * std::max<std::int64_t>(rows, 0), chunk_rows_), 1,
      kSliceCountMax);
  const Int128 width =
      std::min<Int128>(CeilOf(span, count), std::numeric_limits<std::int64_t>::max());
  return {static_cast<std::int64_t>(std::max<Int128>(width, 1)), min, max};
}

std::optional<SliceWish> SlicePlanner::Next() const {
  for (const Piece& piece : pieces_) {
    if (piece.finer) return piece.finer;
  }
  return std::nullopt;
}

Status SlicePlanner::Answer(std::vector<Slice> slices) {
  const auto asked = std::find_if(pieces_.begin(), pieces_.end(),
                                  [](const Piece& piece) { return piece.finer; });
  const SliceWish wish = *asked->finer;
  std::ranges::sort(slices, {}, &Slice::slice);
  std::vector<Piece> finer;
  std::optional<std::int64_t> previous;
  for (const Slice& slice : slices) {
    const bool fits = wish.min <= slice.min_key && slice.min_key <= slice.max_key &&
                      slice.max_key <= wish.max &&
                      FloorOf(slice.min_key, wish.width) == slice.slice &&
                      FloorOf(slice.max_key, wish.width) == slice.slice;
    if (!fits || previous == slice.slice) return Malformed(slice);
    previous = slice.slice;
    const Int128 grid_key = Int128{slice.slice} * wish.width;
    Piece piece{static_cast<std::int64_t>(std::max<Int128>(grid_key, wish.min)),
                slice.row_count,
                {}};
    if (slice.row_count > chunk_rows_ && slice.min_key < slice.max_key) {
      piece.finer = Grid(slice.min_key, slice.max_key, slice.row_count);
    }
    finer.push_back(piece);
  }
  const auto at = pieces_.erase(asked);
  pieces_.insert(at, finer.begin(), finer.end());
  return Unit{};
}

std::vector<KeyRange> SlicePlanner::Chunks() const {
  std::vector<KeyRange> chunks(1);
  std::int64_t row_count = 0;
  for (const Piece& piece : pieces_) {
    if (row_count > 0 && row_count + piece.row_count > chunk_rows_) {
      const Key bound = {Int128{piece.first_key}};
      chunks.back().hi = bound;
      chunks.push_back({bound, std::nullopt});
      row_count = 0;
    }
    row_count += piece.row_count;
  }
  chunks.back().hi = Key{Int128{max_} + 1};
  return chunks;
}

SeekPlanner::SeekPlanner(std::optional<Key> max, bool is_unique,
                         std::int64_t chunk_rows)
    : max_(std::move(max)),
      is_unique_(is_unique),
      chunk_rows_(chunk_rows),
      skip_count_(chunk_rows) {
  if (!max_) state_ = State::kDone;
}

std::optional<SeekWish> SeekPlanner::Next() const {
  switch (state_) {
    case State::kSeek:
      return SeekWish{{from_, max_}, skip_count_};
    case State::kCheckNotEmpty:
      return SeekWish{{from_, bound_}, 0};
    case State::kDone:
      return std::nullopt;
  }
  return std::nullopt;
}

void SeekPlanner::Answer(std::optional<Key> key) {
  const auto skip_more = [this] {
    skip_count_ = skip_count_ > std::numeric_limits<std::int64_t>::max() / 4
                      ? skip_count_
                      : skip_count_ * 2;
    state_ = State::kSeek;
  };
  if (state_ == State::kCheckNotEmpty) {
    if (key) {
      Close(*std::exchange(bound_, std::nullopt));
    } else {
      skip_more();
    }
    return;
  }
  if (!key) {
    state_ = State::kDone;
  } else if (from_ && *key == *from_) {
    skip_more();
  } else if (is_unique_) {
    Close(*std::move(key));
  } else {
    bound_ = std::move(key);
    state_ = State::kCheckNotEmpty;
  }
}

void SeekPlanner::Close(Key bound) {
  chunks_.push_back({from_, bound});
  from_ = std::move(bound);
  skip_count_ = chunk_rows_;
  state_ = State::kSeek;
}

std::vector<KeyRange> SeekPlanner::Chunks() const {
  std::vector<KeyRange> chunks = chunks_;
  chunks.push_back({from_, std::nullopt});
  return chunks;
}

}  // namespace mssql_cdc::pipeline

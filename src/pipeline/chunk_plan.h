// Cuts a table into chunks of about as many rows, by asking the server for counts or
// for single keys. Each planner says what it wants to know next and is told the answer;
// it holds no rows.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.h"
#include "pipeline/key_value.h"

namespace mssql_cdc::pipeline {

// Rows with keys slice * width up to, but without, (slice + 1) * width.
struct Slice {
  std::int64_t slice = 0;
  std::int64_t row_count = 0;
  std::int64_t min_key = 0;
  std::int64_t max_key = 0;
};

// Asks for the rows in each slice of `width` keys among keys min to max, both included.
struct SliceWish {
  std::int64_t width = 1;
  std::int64_t min = 0;
  std::int64_t max = 0;

  bool operator==(const SliceWish&) const = default;
};

// Chunks of one integer key: rows are counted per slice, slices with too many rows
// again in finer ones, and neighbours joined while they hold `chunk_rows` together. So
// chunks follow where the rows are, not how the keys are spread: a dense cluster is
// split, a sparse region joins its neighbours, a sentinel far away costs nothing.
class SlicePlanner {
 public:
  // Keys lie from min to max, both included; `row_estimate` only sets how fine the
  // first slices are. Requires 1 <= chunk_rows.
  SlicePlanner(std::int64_t min, std::int64_t max, std::int64_t row_estimate,
               std::int64_t chunk_rows);

  // nullopt: everything is known.
  std::optional<SliceWish> Next() const;
  // The answer to Next(), in any order. Errors: TdsMalformed for slices that are not
  // where they were asked for.
  Status Answer(std::vector<Slice> slices);
  // Requires that nothing is wished for. The first chunk is open below, the last ends
  // at max + 1, each begins where the one before ends.
  std::vector<KeyRange> Chunks() const;

 private:
  struct Piece {
    std::int64_t first_key = 0;  // Of the slice, as cut.
    std::int64_t row_count = 0;
    std::optional<SliceWish> finer;  // It has too many rows: count these.
  };

  SliceWish Grid(std::int64_t min, std::int64_t max, std::int64_t rows) const;

  std::int64_t max_;
  std::int64_t chunk_rows_;
  std::vector<Piece> pieces_;  // Ascending.
};

// Asks for the key that `skip_count` rows in `range` precede; with skip_count 0, for
// the first key there.
struct SeekWish {
  KeyRange range;
  std::int64_t skip_count = 0;

  bool operator==(const SeekWish&) const = default;
};

// Chunks of any other key: each ends `chunk_rows` keys after the one before, found by
// seeks below the largest key. Where a value repeats, or is cut off to the microsecond,
// the bound found may lie at the chunk's own beginning; then twice the rows are
// skipped, so that a value is never split.
class SeekPlanner {
 public:
  // nullopt: the table has no rows or no key, and is one chunk.
  SeekPlanner(std::optional<Key> max, bool is_unique, std::int64_t chunk_rows);

  std::optional<SeekWish> Next() const;
  // The answer to Next(): nullopt if there are not so many rows.
  void Answer(std::optional<Key> key);
  // The last chunk is open: what is above the largest key is looked up before each
  // wave.
  std::vector<KeyRange> Chunks() const;

 private:
  enum class State : std::uint8_t { kSeek, kCheckNotEmpty, kDone };

  void Close(Key bound);

  std::optional<Key> max_;
  bool is_unique_;
  std::int64_t chunk_rows_;
  std::int64_t skip_count_;
  State state_ = State::kSeek;
  std::optional<Key> from_;   // Where the chunk in hand begins.
  std::optional<Key> bound_;  // Found, not yet checked.
  std::vector<KeyRange> chunks_;
};

}  // namespace mssql_cdc::pipeline

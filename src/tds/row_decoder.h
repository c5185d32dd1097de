// Rows of one result set to record batches, from bytes that come in pieces.
//
// Whole rows are taken in place by the row loop (row_fast.h). The row that the bytes
// end in is left to be given again along with more, if there is little of it; else it
// is taken value by value: a short value waits in a small buffer until it is whole, a
// long one goes into its column piece by piece.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/limits.h"
#include "columns/batch.h"
#include "tds/reply_limits.h"
#include "tds/row_fast.h"
#include "tds/row_plan.h"

namespace mssql_cdc::tds {

// Taking a row value by value costs several times what decoding it again does.
inline constexpr std::size_t kRowWaitsSizeBytesMax = 8192;

class RowDecoder {
 public:
  RowDecoder(RowPlan plan, const ReplyLimits& limits);

  const columns::SchemaPtr& schema() const { return plan_.schema; }
  bool in_row() const { return stage_ != Stage::kBetweenRows; }
  bool has_rows() const { return row_ != 0; }
  bool batch_is_full() const { return batch_is_full_; }
  // The front of a row was left unconsumed.
  bool row_waits() const { return row_waits_; }

  // Decodes from the front of `payload` until the batch is full, something other than a
  // row follows, or the bytes end; gives the bytes consumed. `offset` is where the
  // payload stands in the reply, for errors. With `more_follows` what is left of the
  // payload may be the front of a row, at most kRowWaitsSizeBytesMax of it.
  // Requires !batch_is_full().
  Result<std::size_t> Decode(std::span<const std::uint8_t> payload,
                             std::uint64_t offset, bool more_follows);

  // The whole rows so far. Requires !in_row().
  columns::RecordBatch TakeBatch();

 private:
  // What the row at hand waits for.
  enum class Stage : std::uint8_t {
    kBetweenRows,
    kBitmap,
    kValue,         // Of a short kind, or the decision which kind it is.
    kPartialTotal,  // PLP.
    kChunkSize,
    kChunkBytes,
    kTextPointer,  // text, ntext, image.
    kTextBytes,
  };
  struct Input {
    const std::uint8_t* at;
    const std::uint8_t* end;
    std::size_t size() const { return static_cast<std::size_t>(end - at); }
  };

  bool IsFull() const;
  // How far the row loop may go from `in` on, with room for its rows.
  RowCursor PlanAhead(const Input& in);
  // Runs the row loop, and begins the row that it had to leave or lets it wait.
  Status DecodeInPlace(Input& in, bool more_follows);
  std::size_t SizeBytes() const;
  void ReserveRows(std::size_t row_count);
  void StopInRow(const RowCursor& cursor);
  // Takes back what the row loop wrote of the row it stopped in.
  void TakeBackRow();

  // Takes up the row at hand. False: the bytes end inside it, all are consumed.
  Result<bool> ResumeRow(Input& in);
  Result<bool> ResumeBitmap(Input& in);
  Result<bool> ResumeValue(Input& in);
  Result<bool> ResumeShort(Input& in, PlannedColumn& column);
  Result<bool> ResumePartialTotal(Input& in, PlannedColumn& column);
  Result<bool> ResumeChunkSize(Input& in, PlannedColumn& column);
  Result<bool> ResumeTextPointer(Input& in, PlannedColumn& column);
  Result<bool> ResumeBytes(Input& in, PlannedColumn& column);
  Status EndLong(PlannedColumn& column);
  Status TakeText(PlannedColumn& column, const std::uint8_t* at, std::size_t size);
  Status TakePiece(PlannedColumn& column, const std::uint8_t* at, std::size_t size);
  void NextColumn();

  // The next `count` bytes in one piece, with slack behind them, not yet consumed; null
  // if the input ends before (what there was is kept). Between two calls to Drop,
  // `count` only grows.
  const std::uint8_t* Peek(Input& in, std::size_t count);
  void Drop(Input& in, std::size_t count);

  Error Malformed(const Input& in, std::string_view what) const;
  Error Annotated(Error error, const std::uint8_t* at) const;

  RowPlan plan_;
  ReplyLimits limits_;
  std::size_t row_ = 0;  // Of the batch at hand; whole ones before it.
  std::size_t row_capacity_ = 0;
  std::size_t row_capacity_first_;
  bool batch_is_full_ = false;
  bool row_waits_ = false;

  Stage stage_ = Stage::kBetweenRows;
  bool has_bitmap_ = false;
  std::size_t column_ = 0;
  std::vector<std::uint8_t> bitmap_;
  std::unique_ptr<std::uint8_t[]> kept_;  // Bytes of a short value or a length.
  std::size_t kept_size_ = 0;

  // Of a long value.
  std::optional<std::uint64_t> long_total_;
  std::uint64_t long_received_ = 0;
  std::size_t piece_left_ = 0;
  std::array<std::uint8_t, 4> character_{};  // The front of one that continues.
  std::size_t character_size_ = 0;

  // Of the payload at hand, for the offsets in errors.
  const std::uint8_t* payload_ = nullptr;
  std::uint64_t payload_offset_ = 0;
};

}  // namespace mssql_cdc::tds

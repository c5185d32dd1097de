#include "tds/row_decoder.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::size_t kRowCapacityMin = 16;
constexpr std::size_t kRowsSizeBytesFirst = 256u << 10;
// A byte of text becomes at most three.
constexpr std::size_t kTextGrowth = 3;

bool IsRowToken(std::uint8_t id) {
  return id == static_cast<std::uint8_t>(TokenId::kRow) ||
         id == static_cast<std::uint8_t>(TokenId::kNbcRow);
}

}  // namespace

RowDecoder::RowDecoder(RowPlan plan, const ReplyLimits& limits)
    : plan_(std::move(plan)), limits_(limits) {
  CHECK(!plan_.columns.empty());
  limits_.row_count_max = std::max<std::int64_t>(limits_.row_count_max, 1);
  limits_.size_bytes_max = std::min(limits_.size_bytes_max, kBatchSizeBytesMax);
  row_capacity_first_ =
      std::clamp<std::size_t>(kRowsSizeBytesFirst / plan_.row_width_bytes,
                              kRowCapacityMin, std::size_t{1} << 16);
  bitmap_.resize(plan_.bitmap_size_bytes);
}

std::size_t RowDecoder::SizeBytes() const {
  std::size_t size = row_ * plan_.row_width_bytes;
  for (const PlannedColumn& column : plan_.columns) size += column.raw.bytes_size;
  return size;
}

void RowDecoder::ReserveRows(std::size_t row_count) {
  row_count = std::min(row_count, static_cast<std::size_t>(limits_.row_count_max));
  for (PlannedColumn& column : plan_.columns) {
    columns::ColumnAccess::ReserveRows(
        *column.builder, static_cast<std::int64_t>(row_count), column.raw);
  }
  row_capacity_ = row_count;
}

bool RowDecoder::IsFull() const {
  return row_ != 0 && (row_ >= static_cast<std::size_t>(limits_.row_count_max) ||
                       SizeBytes() >= limits_.size_bytes_max);
}

RowCursor RowDecoder::PlanAhead(const Input& in) {
  if (row_ == row_capacity_) ReserveRows(std::max(2 * row_, row_capacity_first_));
  // Half of what is left for rows and half for their text, so that the limit is neared
  // in ever smaller steps and passed by one row at most.
  const std::size_t size = SizeBytes();
  const std::size_t left =
      size >= limits_.size_bytes_max ? 0 : (limits_.size_bytes_max - size) / 2;
  RowCursor cursor;
  cursor.row = row_;
  cursor.row_end = std::min(row_capacity_, row_ + 1 + left / plan_.row_width_bytes);
  cursor.at = in.at;
  cursor.stop_at = in.at + std::min(in.size(), 1 + left / kTextGrowth);
  cursor.end_address = reinterpret_cast<std::uintptr_t>(in.end);
  return cursor;
}

void RowDecoder::StopInRow(const RowCursor& cursor) {
  stage_ = Stage::kValue;
  column_ = cursor.column;
  has_bitmap_ = cursor.bitmap != nullptr;
  if (has_bitmap_) {
    std::copy_n(cursor.bitmap, plan_.bitmap_size_bytes, bitmap_.begin());
  }
}

// Values of known size are written over as they are; bytes are appended.
void RowDecoder::TakeBackRow() {
  for (PlannedColumn& column : plan_.columns) {
    if (column.raw.offsets == nullptr) continue;
    column.raw.bytes_size = static_cast<std::size_t>(column.raw.offsets[row_]);
  }
}

Result<std::size_t> RowDecoder::Decode(std::span<const std::uint8_t> payload,
                                       std::uint64_t offset, bool more_follows) {
  row_waits_ = false;
  payload_ = payload.data();
  payload_offset_ = offset;
  Input in{payload.data(), payload.data() + payload.size()};
  while (true) {
    if (in_row()) {
      TRY_ASSIGN(const bool is_whole, ResumeRow(in));
      if (!is_whole) return payload.size();
      ++row_;
      if (row_ % NullBlock::kRowCount == 0) plan_.nulls.Flush(plan_.columns, row_);
    }
    batch_is_full_ = IsFull();
    const bool row_follows = in.size() != 0 && IsRowToken(*in.at);
    if (batch_is_full_ || !row_follows) break;
    TRY(DecodeInPlace(in, more_follows));
    if (row_waits_) break;
  }
  return static_cast<std::size_t>(in.at - payload.data());
}

Status RowDecoder::DecodeInPlace(Input& in, bool more_follows) {
  RowCursor cursor = PlanAhead(in);
  DecodeRows(plan_, cursor);
  row_ = cursor.row;
  in.at = cursor.at;
  const bool stopped_between = cursor.stop == RowStop::kBetweenRows;
  // Either the bounds ended the loop, or the next row may not be all there.
  const bool row_is_cut = stopped_between && cursor.row < cursor.row_end &&
                          in.at < cursor.stop_at && IsRowToken(*in.at);
  if (more_follows && (row_is_cut || cursor.stop == RowStop::kInsideRow) &&
      static_cast<std::size_t>(in.end - cursor.row_at) <= kRowWaitsSizeBytesMax) {
    TakeBackRow();
    in.at = cursor.row_at;
    row_waits_ = true;
    return Unit{};
  }
  if (!stopped_between) StopInRow(cursor);
  switch (cursor.stop) {
    case RowStop::kInsideRow:
      break;
    case RowStop::kMalformed:
      return Malformed(in, "value");
    case RowStop::kNotText:
      return Annotated(Error(ErrorId::kTextUndecodable), in.at);
    case RowStop::kBetweenRows:
      if (row_is_cut) {
        has_bitmap_ = *in.at == static_cast<std::uint8_t>(TokenId::kNbcRow);
        stage_ = has_bitmap_ ? Stage::kBitmap : Stage::kValue;
        column_ = 0;
        ++in.at;
      }
      break;
  }
  return Unit{};
}

columns::RecordBatch RowDecoder::TakeBatch() {
  CHECK(!in_row());
  if (row_ % NullBlock::kRowCount != 0) plan_.nulls.Flush(plan_.columns, row_);
  columns::RecordBatch batch{plan_.schema, static_cast<std::int64_t>(row_), {}};
  batch.columns.reserve(plan_.columns.size());
  for (PlannedColumn& column : plan_.columns) {
    batch.columns.push_back(
        std::make_shared<const columns::Column>(columns::ColumnAccess::Finish(
            *column.builder, static_cast<std::int64_t>(row_), column.raw)));
  }
  // The next batch is likely to be about as large.
  row_capacity_first_ = std::max(row_ + row_ / 8, kRowCapacityMin);
  row_ = 0;
  row_capacity_ = 0;
  batch_is_full_ = false;
  return batch;
}

Error RowDecoder::Annotated(Error error, const std::uint8_t* at) const {
  error.Add("token", has_bitmap_ ? "NBCROW" : "ROW");
  error.Add("column", plan_.schema->fields[column_].name);
  error.Add("offset", std::to_string(payload_offset_ +
                                     static_cast<std::uint64_t>(at - payload_)));
  return error;
}

Error RowDecoder::Malformed(const Input& in, std::string_view what) const {
  Error error(ErrorId::kTdsMalformed);
  error.Add("what", std::string(what));
  return Annotated(std::move(error), in.at);
}

}  // namespace mssql_cdc::tds

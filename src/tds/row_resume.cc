// The part of RowDecoder that takes a row value by value, from bytes cut anywhere.

#include <algorithm>
#include <cstring>
#include <string>

#include "tds/row_decoder.h"

namespace mssql_cdc::tds {
namespace {

constexpr std::uint64_t kPartialNull = ~std::uint64_t{0};
constexpr std::uint64_t kPartialUnknown = kPartialNull - 1;
constexpr std::uint16_t kShortNull = 0xFFFF;
constexpr std::size_t kTextTimestampSize = 8;
// The largest short value with its length, and what vector loads may reach past it.
constexpr std::size_t kKeptSizeMax = 2 + 0xFFFF + kReadSlackBytes;
constexpr std::size_t kColumnBytesMax = INT32_MAX;

template <typename T>
T LoadLe(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

Error TooLong(std::uint64_t size) {
  return Error(ErrorId::kTdsLimitExceeded)
      .With("size_bytes", std::to_string(size))
      .With("size_bytes_max", std::to_string(kTdsValueSizeBytesMax));
}

}  // namespace

const std::uint8_t* RowDecoder::Peek(Input& in, std::size_t count) {
  if (kept_size_ == 0 && in.size() >= count + kReadSlackBytes) return in.at;
  if (kept_ == nullptr) {
    kept_ = std::make_unique_for_overwrite<std::uint8_t[]>(kKeptSizeMax);
  }
  const std::size_t missing = count > kept_size_ ? count - kept_size_ : 0;
  const std::size_t taken = std::min(missing, in.size());
  if (taken != 0) std::memcpy(kept_.get() + kept_size_, in.at, taken);
  in.at += taken;
  kept_size_ += taken;
  return taken == missing ? kept_.get() : nullptr;
}

void RowDecoder::Drop(Input& in, std::size_t count) {
  if (kept_size_ == 0) {
    in.at += count;
  } else {
    kept_size_ = 0;
  }
}

void RowDecoder::NextColumn() {
  ++column_;
  stage_ = column_ == plan_.columns.size() ? Stage::kBetweenRows : Stage::kValue;
}

Result<bool> RowDecoder::ResumeRow(Input& in) {
  while (in_row()) {
    TRY_ASSIGN(const bool goes_on,
               stage_ == Stage::kBitmap ? ResumeBitmap(in) : ResumeValue(in));
    if (!goes_on) return false;
  }
  return true;
}

Result<bool> RowDecoder::ResumeBitmap(Input& in) {
  const std::uint8_t* bits = Peek(in, plan_.bitmap_size_bytes);
  if (bits == nullptr) return false;
  std::copy_n(bits, plan_.bitmap_size_bytes, bitmap_.begin());
  Drop(in, plan_.bitmap_size_bytes);
  stage_ = Stage::kValue;
  return true;
}

Result<bool> RowDecoder::ResumeValue(Input& in) {
  PlannedColumn& column = plan_.columns[column_];
  switch (stage_) {
    case Stage::kBetweenRows:
    case Stage::kBitmap:
      break;
    case Stage::kValue:
      if (has_bitmap_ && (bitmap_[column_ / 8] >> (column_ % 8) & 1) != 0) {
        if (!column.nullable) return Malformed(in, "value");
        WriteNull(column, row_);
        NextColumn();
        return true;
      }
      long_received_ = 0;
      character_size_ = 0;
      if (column.type.framing == Framing::kPartial) {
        stage_ = Stage::kPartialTotal;
      } else if (column.type.framing == Framing::kTextPointer) {
        stage_ = Stage::kTextPointer;
      } else {
        return ResumeShort(in, column);
      }
      return true;
    case Stage::kPartialTotal:
      return ResumePartialTotal(in, column);
    case Stage::kChunkSize:
      return ResumeChunkSize(in, column);
    case Stage::kTextPointer:
      return ResumeTextPointer(in, column);
    case Stage::kChunkBytes:
    case Stage::kTextBytes:
      return ResumeBytes(in, column);
  }
  return Error(ErrorId::kInternalError).With("stage", "no row");
}

Result<bool> RowDecoder::ResumeShort(Input& in, PlannedColumn& column) {
  std::size_t size = column.size;
  if (column.type.framing == Framing::kByteLength) {
    const std::uint8_t* at = Peek(in, 1);
    if (at == nullptr) return false;
    if (*at > column.size) return Malformed(in, "value");
    size = 1 + std::size_t{*at};
  } else if (column.type.framing == Framing::kShortLength) {
    const std::uint8_t* at = Peek(in, 2);
    if (at == nullptr) return false;
    const auto length = LoadLe<std::uint16_t>(at);
    if (length != kShortNull && length > column.size) return Malformed(in, "value");
    size = 2 + std::size_t{length == kShortNull ? std::uint16_t{0} : length};
  }
  const std::uint8_t* at = Peek(in, size);
  if (at == nullptr) return false;
  RowCursor cursor;
  cursor.at = at;
  cursor.end_address = reinterpret_cast<std::uintptr_t>(at) + size + column.need_after;
  cursor.row = row_;
  cursor.column = column_;
  DecodeValue(plan_, cursor);
  if (cursor.stop == RowStop::kNotText) {
    return Annotated(Error(ErrorId::kTextUndecodable), in.at);
  }
  if (cursor.stop != RowStop::kBetweenRows) return Malformed(in, "value");
  Drop(in, size);
  NextColumn();
  return true;
}

Result<bool> RowDecoder::ResumePartialTotal(Input& in, PlannedColumn& column) {
  const std::uint8_t* at = Peek(in, sizeof(std::uint64_t));
  if (at == nullptr) return false;
  const auto total = LoadLe<std::uint64_t>(at);
  Drop(in, sizeof(total));
  if (total == kPartialNull) {
    if (!column.nullable) return Malformed(in, "value");
    WriteNull(column, row_);
    NextColumn();
    return true;
  }
  long_total_.reset();
  if (total != kPartialUnknown) {
    if (total > kTdsValueSizeBytesMax) return Annotated(TooLong(total), in.at);
    long_total_ = total;
  }
  stage_ = Stage::kChunkSize;
  return true;
}

Result<bool> RowDecoder::ResumeChunkSize(Input& in, PlannedColumn& column) {
  const std::uint8_t* at = Peek(in, sizeof(std::uint32_t));
  if (at == nullptr) return false;
  const auto chunk = LoadLe<std::uint32_t>(at);
  Drop(in, sizeof(chunk));
  if (chunk == 0) {
    if (long_total_ && *long_total_ != long_received_) return Malformed(in, "total");
    TRY(EndLong(column));
    return true;
  }
  const std::uint64_t received = long_received_ + chunk;
  if (long_total_ && received > *long_total_) return Malformed(in, "total");
  if (received > kTdsValueSizeBytesMax) return Annotated(TooLong(received), in.at);
  piece_left_ = chunk;
  stage_ = Stage::kChunkBytes;
  return true;
}

// u8 pointer length, the pointer, 8 bytes of timestamp, u32 length.
Result<bool> RowDecoder::ResumeTextPointer(Input& in, PlannedColumn& column) {
  const std::uint8_t* at = Peek(in, 1);
  if (at == nullptr) return false;
  const std::size_t pointer_size = *at;
  if (pointer_size == 0) {
    if (!column.nullable) return Malformed(in, "value");
    Drop(in, 1);
    WriteNull(column, row_);
    NextColumn();
    return true;
  }
  const std::size_t head =
      1 + pointer_size + kTextTimestampSize + sizeof(std::uint32_t);
  at = Peek(in, head);
  if (at == nullptr) return false;
  const auto size = LoadLe<std::uint32_t>(at + head - sizeof(std::uint32_t));
  Drop(in, head);
  if (size > kTdsValueSizeBytesMax) return Annotated(TooLong(size), in.at);
  if (size == 0) {
    TRY(EndLong(column));
    return true;
  }
  piece_left_ = size;
  stage_ = Stage::kTextBytes;
  return true;
}

Result<bool> RowDecoder::ResumeBytes(Input& in, PlannedColumn& column) {
  const std::size_t size = std::min(piece_left_, in.size());
  TRY(TakeText(column, in.at, size));
  in.at += size;
  piece_left_ -= size;
  long_received_ += size;
  if (piece_left_ != 0) return false;
  if (stage_ == Stage::kChunkBytes) {
    stage_ = Stage::kChunkSize;
  } else {
    TRY(EndLong(column));
  }
  return true;
}

Status RowDecoder::TakeText(PlannedColumn& column, const std::uint8_t* at,
                            std::size_t size) {
  while (size != 0) {
    if (character_size_ != 0) {
      // Byte by byte until the character that was cut is whole.
      character_[character_size_++] = *at++;
      --size;
      const std::size_t held = character_size_;
      character_size_ = 0;
      std::array<std::uint8_t, 4> character = character_;
      TRY(TakePiece(column, character.data(), held));
      if (character_size_ == character_.size()) {
        return Annotated(Error(ErrorId::kTextUndecodable), payload_);
      }
      continue;
    }
    const std::size_t piece = std::min(size, limits_.piece_size_bytes);
    TRY(TakePiece(column, at, piece));
    at += piece;
    size -= piece;
  }
  return Unit{};
}

// Converts what is whole and keeps the rest in character_. Requires it to be empty.
Status RowDecoder::TakePiece(PlannedColumn& column, const std::uint8_t* at,
                             std::size_t size) {
  const std::size_t needed = column.raw.bytes_size + ConvertedSizeMax(size);
  if (needed > kColumnBytesMax) return Annotated(TooLong(needed), payload_);
  if (needed > column.raw.bytes_capacity) GrowBytes(column, needed);
  const std::optional<Converted> piece =
      ConvertPiece(column.codec, at, size, column.raw.values + column.raw.bytes_size);
  if (!piece || size - piece->used >= character_.size()) {
    return Annotated(Error(ErrorId::kTextUndecodable), payload_);
  }
  column.raw.bytes_size += piece->written;
  character_size_ = size - piece->used;
  std::copy_n(at + piece->used, character_size_, character_.begin());
  return Unit{};
}

Status RowDecoder::EndLong(PlannedColumn& column) {
  const std::size_t needed = column.raw.bytes_size + ConvertedSizeMax(character_size_);
  if (needed > kColumnBytesMax) return Annotated(TooLong(needed), payload_);
  if (needed > column.raw.bytes_capacity) GrowBytes(column, needed);
  const std::optional<std::size_t> written =
      ConvertEnd(column.codec, character_.data(), character_size_,
                 column.raw.values + column.raw.bytes_size);
  if (!written) {
    // Half a unit breaks the protocol; half a character is the text's own fault.
    return Annotated(
        Error(column.codec.encoding == Encoding::kUtf16 ? ErrorId::kTdsMalformed
                                                        : ErrorId::kTextUndecodable),
        payload_);
  }
  column.raw.bytes_size += *written;
  column.raw.offsets[row_ + 1] = static_cast<std::int32_t>(column.raw.bytes_size);
  NextColumn();
  return Unit{};
}

}  // namespace mssql_cdc::tds

#include <algorithm>

#include "base/check.h"
#include "columns/batch.h"
#include "columns/column_access.h"

namespace mssql_cdc::columns {
namespace {

constexpr std::int64_t kRowCapacityMin = 64;
constexpr std::size_t kBytesSizeHintMax = 16u << 20;

bool HasOffsets(Kind kind) { return kind == Kind::kUtf8 || kind == Kind::kBinary; }

std::size_t BitmapSizeBytes(std::int64_t row_count) {
  return static_cast<std::size_t>((row_count + 7) / 8);
}

// The bits that are 1. What the compiler has for it without an instruction set that
// counts is a call of a function for every word.
std::int64_t BitCount(std::uint64_t bits) {
  bits -= bits >> 1 & 0x5555555555555555;
  bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
  bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return static_cast<std::int64_t>(bits * 0x0101010101010101 >> 56);
}

// Grows `bits` for `row_count` rows; the bytes gained are all `fill`.
void ReserveBits(Buffer& bits, std::int64_t row_count, int fill) {
  const std::size_t filled = bits.capacity_bytes();
  bits.Reserve(BitmapSizeBytes(row_count));
  if (bits.capacity_bytes() > filled) {
    std::memset(bits.data() + filled, fill, bits.capacity_bytes() - filled);
  }
}

}  // namespace

std::size_t ValueWidthBytes(Kind kind) {
  switch (kind) {
    case Kind::kBool:
    case Kind::kUtf8:
    case Kind::kBinary:
      return 0;
    case Kind::kInt16:
      return 2;
    case Kind::kInt32:
    case Kind::kFloat32:
    case Kind::kDate32:
      return 4;
    case Kind::kInt64:
    case Kind::kFloat64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return 8;
    case Kind::kDecimal128:
      return 16;
  }
  return 0;
}

std::size_t RecordBatch::SizeBytes() const {
  std::size_t size = 0;
  for (const auto& column : columns) {
    size += column->validity.size_bytes() + column->offsets.size_bytes() +
            column->values.size_bytes();
  }
  return size;
}

ColumnBuilder::ColumnBuilder(Type type, std::int64_t row_capacity)
    : type_(type), row_capacity_hint_(std::max(row_capacity, kRowCapacityMin)) {}

std::size_t ColumnBuilder::SizeBytes() const {
  const auto rows = static_cast<std::size_t>(row_count_);
  std::size_t size = null_count_ == 0 ? 0 : BitmapSizeBytes(row_count_);
  if (HasOffsets(type_.kind)) {
    size += (rows + 1) * sizeof(std::int32_t) + bytes_size_;
  } else if (type_.kind == Kind::kBool) {
    size += BitmapSizeBytes(row_count_);
  } else {
    size += rows * ValueWidthBytes(type_.kind);
  }
  return size;
}

void ColumnBuilder::ReserveRows(std::int64_t row_count) {
  if (row_count <= row_capacity_) return;
  std::int64_t grown = std::max(row_capacity_ * 2, row_capacity_hint_);
  grown = std::max(grown, row_count);
  const auto rows = static_cast<std::size_t>(grown);
  ReserveBits(validity_, grown, 0xFF);
  if (HasOffsets(type_.kind)) {
    const bool first = offsets_.capacity_bytes() == 0;
    offsets_.Reserve((rows + 1) * sizeof(std::int32_t));
    if (first) {
      std::memset(offsets_.data(), 0, sizeof(std::int32_t));
      values_.Reserve(bytes_size_hint_);
    }
  } else if (type_.kind == Kind::kBool) {
    ReserveBits(values_, grown, 0);
  } else {
    values_.Reserve(rows * ValueWidthBytes(type_.kind));
  }
  row_capacity_ = grown;
}

void ColumnBuilder::AppendNull() {
  if (row_count_ == row_capacity_) ReserveRows(row_count_ + 1);
  const auto row = static_cast<std::size_t>(row_count_);
  validity_.data()[row / 8] &= static_cast<std::uint8_t>(~(1u << (row % 8)));
  if (HasOffsets(type_.kind)) {
    const auto offset = static_cast<std::int32_t>(bytes_size_);
    std::memcpy(offsets_.data() + (row + 1) * sizeof(offset), &offset, sizeof(offset));
  } else if (type_.kind != Kind::kBool) {
    const std::size_t width = ValueWidthBytes(type_.kind);
    std::memset(values_.data() + row * width, 0, width);
  }
  ++null_count_;
  ++row_count_;
}

void ColumnBuilder::AppendBool(bool value) {
  if (row_count_ == row_capacity_) ReserveRows(row_count_ + 1);
  const auto row = static_cast<std::size_t>(row_count_);
  values_.data()[row / 8] |= static_cast<std::uint8_t>(unsigned{value} << (row % 8));
  ++row_count_;
}

void ColumnBuilder::AppendBytes(std::string_view value) {
  if (row_count_ == row_capacity_) ReserveRows(row_count_ + 1);
  CHECK(value.size() <= std::size_t{INT32_MAX} - bytes_size_);
  values_.Reserve(bytes_size_ + value.size());
  if (!value.empty()) {
    std::memcpy(values_.data() + bytes_size_, value.data(), value.size());
  }
  bytes_size_ += value.size();
  ++row_count_;
  const auto offset = static_cast<std::int32_t>(bytes_size_);
  std::memcpy(offsets_.data() + static_cast<std::size_t>(row_count_) * sizeof(offset),
              &offset, sizeof(offset));
}

Column ColumnBuilder::Finish() {
  // Every finished column has its buffers, an empty one too.
  ReserveRows(1);
  Column column;
  column.type = type_;
  column.row_count = row_count_;
  column.null_count = null_count_;
  const auto rows = static_cast<std::size_t>(row_count_);
  if (null_count_ != 0) {
    const std::size_t size = BitmapSizeBytes(row_count_);
    validity_.SetSize(size);
    if (rows % 8 != 0) {
      validity_.data()[size - 1] &= static_cast<std::uint8_t>((1u << (rows % 8)) - 1);
    }
    column.validity = std::move(validity_);
    validity_ = Buffer();
  }
  if (HasOffsets(type_.kind)) {
    offsets_.SetSize((rows + 1) * sizeof(std::int32_t));
    values_.SetSize(bytes_size_);
    column.offsets = std::move(offsets_);
    bytes_size_hint_ = std::min(bytes_size_ + bytes_size_ / 8, kBytesSizeHintMax);
  } else if (type_.kind == Kind::kBool) {
    values_.SetSize(BitmapSizeBytes(row_count_));
  } else {
    values_.SetSize(rows * ValueWidthBytes(type_.kind));
  }
  column.values = std::move(values_);
  row_count_ = row_capacity_ = null_count_ = 0;
  bytes_size_ = 0;
  return column;
}

Column ColumnAccess::Finish(ColumnBuilder& builder, std::int64_t row_count, Raw& raw) {
  std::int64_t valid_count = 0;
  std::int64_t byte = 0;
  for (; byte + 8 <= row_count / 8; byte += 8) {
    std::uint64_t word;
    std::memcpy(&word, raw.validity + byte, sizeof(word));
    valid_count += word == ~std::uint64_t{0} ? 64 : BitCount(word);
  }
  for (; byte < row_count / 8; ++byte) valid_count += BitCount(raw.validity[byte]);
  if (row_count % 8 != 0) {
    const unsigned last = raw.validity[row_count / 8] & ((1u << (row_count % 8)) - 1);
    valid_count += BitCount(last);
  }
  builder.row_count_ = row_count;
  builder.null_count_ = row_count - valid_count;
  builder.bytes_size_ = raw.bytes_size;
  raw = Raw{};
  return builder.Finish();
}

}  // namespace mssql_cdc::columns

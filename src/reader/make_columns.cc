#include "reader/make_columns.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mssql_cdc::reader {
namespace {

using columns::Buffer;
using columns::Column;
using columns::Kind;
using columns::Type;

constexpr std::size_t kLsnSizeBytes = 10;
constexpr std::size_t kLsnTextSizeBytes = 22;

// "00" to "FF".
constexpr std::array<char, 512> MakeHexPairs() {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::array<char, 512> pairs{};
  for (std::size_t i = 0; i < 256; ++i) {
    pairs[i * 2] = kDigits[i >> 4];
    pairs[i * 2 + 1] = kDigits[i & 15];
  }
  return pairs;
}
constexpr std::array<char, 512> kHexPairs = MakeHexPairs();

void WriteLsnText(const std::uint8_t* lsn, std::uint8_t* text) {
  text[0] = '0';
  text[1] = 'x';
  for (std::size_t i = 0; i < kLsnSizeBytes; ++i) {
    std::memcpy(text + 2 + i * 2, &kHexPairs[std::size_t{lsn[i]} * 2], 2);
  }
}

void Resize(Buffer& buffer, std::size_t size_bytes) {
  buffer.Reserve(size_bytes);
  buffer.SetSize(size_bytes);
}

Column EmptyColumn(const Type& type, std::int64_t row_count) {
  Column column;
  column.type = type;
  column.row_count = row_count;
  return column;
}

// Offsets of values that all have the same size.
void FillOffsets(Buffer& offsets, std::size_t row_count, std::size_t value_size_bytes) {
  Resize(offsets, (row_count + 1) * 4);
  auto* out = reinterpret_cast<std::int32_t*>(offsets.data());
  for (std::size_t i = 0; i <= row_count; ++i) {
    out[i] = static_cast<std::int32_t>(i * value_size_bytes);
  }
}

template <typename T>
ColumnPtr NumberConstant(Kind kind, T value, std::int64_t row_count) {
  Column column = EmptyColumn({kind}, row_count);
  Resize(column.values, static_cast<std::size_t>(row_count) * sizeof(T));
  auto* out = reinterpret_cast<T*>(column.values.data());
  std::fill(out, out + row_count, value);
  return std::make_shared<const Column>(std::move(column));
}

}  // namespace

ColumnPtr TextConstant(std::string_view text, std::int64_t row_count) {
  const auto rows = static_cast<std::size_t>(row_count);
  Column column = EmptyColumn({Kind::kUtf8}, row_count);
  FillOffsets(column.offsets, rows, text.size());
  Resize(column.values, rows * text.size());
  for (std::size_t i = 0; i < rows && !text.empty(); ++i) {
    std::memcpy(column.values.data() + i * text.size(), text.data(), text.size());
  }
  return std::make_shared<const Column>(std::move(column));
}

ColumnPtr Int32Constant(std::int32_t value, std::int64_t row_count) {
  return NumberConstant<std::int32_t>(Kind::kInt32, value, row_count);
}

ColumnPtr TimestampConstant(std::int64_t utc_us, std::int64_t row_count) {
  return NumberConstant<std::int64_t>(Kind::kTimestampNtz, utc_us, row_count);
}

ColumnPtr NullColumn(const Type& type, std::int64_t row_count) {
  const auto rows = static_cast<std::size_t>(row_count);
  Column column = EmptyColumn(type, row_count);
  column.null_count = row_count;
  const auto zeroes = [](Buffer& buffer, std::size_t size_bytes) {
    Resize(buffer, size_bytes);
    if (size_bytes != 0) std::memset(buffer.data(), 0, size_bytes);
  };
  zeroes(column.validity, (rows + 7) / 8);
  if (type.kind == Kind::kUtf8 || type.kind == Kind::kBinary) {
    zeroes(column.offsets, (rows + 1) * 4);
  }
  const std::size_t value_size = columns::ValueWidthBytes(type.kind);
  zeroes(column.values, type.kind == Kind::kBool ? (rows + 7) / 8 : rows * value_size);
  return std::make_shared<const Column>(std::move(column));
}

Result<LsnColumn> LsnTexts(const Column& binary) {
  LsnColumn result;
  const auto rows = static_cast<std::size_t>(binary.row_count);
  const auto* offsets = reinterpret_cast<const std::int32_t*>(binary.offsets.data());
  bool ten_each = binary.type.kind == Kind::kBinary && binary.null_count == 0;
  for (std::size_t i = 0; ten_each && i < rows; ++i) {
    ten_each = offsets[i + 1] - offsets[i] == static_cast<std::int32_t>(kLsnSizeBytes);
  }
  if (!ten_each) {
    return Error(ErrorId::kTdsMalformed)
        .With("reason", "a log position is not binary(10)");
  }

  Column column = EmptyColumn({Kind::kUtf8}, binary.row_count);
  FillOffsets(column.offsets, rows, kLsnTextSizeBytes);
  Resize(column.values, rows * kLsnTextSizeBytes);
  std::uint8_t* out = column.values.data();
  if (rows != 0) WriteLsnText(binary.values.data() + offsets[0], out);
  // Rows of one transaction follow each other: most values repeat the one before.
  for (std::size_t i = 1; i < rows; ++i) {
    const std::uint8_t* lsn = binary.values.data() + offsets[i];
    std::uint8_t* text = out + i * kLsnTextSizeBytes;
    const int order = std::memcmp(lsn, lsn - kLsnSizeBytes, kLsnSizeBytes);
    if (order == 0) {
      std::memcpy(text, text - kLsnTextSizeBytes, kLsnTextSizeBytes);
    } else {
      WriteLsnText(lsn, text);
      result.ascending = result.ascending && order > 0;
    }
  }
  result.texts = std::make_shared<const Column>(std::move(column));
  return result;
}

cdc::Lsn LsnAt(const Column& binary, std::int64_t row) {
  cdc::Lsn lsn;
  const auto* offsets = reinterpret_cast<const std::int32_t*>(binary.offsets.data());
  std::memcpy(lsn.bytes.data(), binary.values.data() + offsets[row], kLsnSizeBytes);
  return lsn;
}

Result<CommitTimes> CommitTimesUtc(const Column& server_times,
                                   const cdc::CommitClock& clock) {
  if (server_times.type.kind != Kind::kTimestampNtz || server_times.null_count != 0) {
    return Error(ErrorId::kTdsMalformed).With("reason", "a commit time is no datetime");
  }
  CommitTimes times;
  Column column = EmptyColumn({Kind::kTimestampNtz}, server_times.row_count);
  const auto rows = static_cast<std::size_t>(server_times.row_count);
  Resize(column.values, rows * 8);
  const auto* in = reinterpret_cast<const std::int64_t*>(server_times.values.data());
  auto* out = reinterpret_cast<std::int64_t*>(column.values.data());
  for (std::size_t i = 0; i < rows; ++i) {
    if (i != 0 && in[i] == in[i - 1]) {
      out[i] = out[i - 1];
      continue;
    }
    out[i] = cdc::CommitUtcUs(clock, in[i]);
    times.min_us = times.min_us ? std::min(*times.min_us, out[i]) : out[i];
    times.max_us = times.max_us ? std::max(*times.max_us, out[i]) : out[i];
  }
  times.column = std::make_shared<const Column>(std::move(column));
  return times;
}

std::string SqlTypeName(const columns::Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return "bit";
    case Kind::kInt16:
      return "smallint";
    case Kind::kInt32:
      return "int";
    case Kind::kInt64:
      return "bigint";
    case Kind::kFloat32:
      return "real";
    case Kind::kFloat64:
      return "float";
    case Kind::kDecimal128:
      return "decimal(" + std::to_string(type.precision) + ", " +
             std::to_string(type.scale) + ")";
    case Kind::kDate32:
      return "date";
    case Kind::kTimestampNtz:
      return "datetime2(6)";
    case Kind::kTimestampUtc:
      return "datetimeoffset(6)";
    case Kind::kUtf8:
      return "nvarchar(max)";
    case Kind::kBinary:
      return "varbinary(max)";
  }
  return "";
}

}  // namespace mssql_cdc::reader

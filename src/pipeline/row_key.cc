#include "pipeline/row_key.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/case_fold.h"
#include "columns/take.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::Column;
using columns::Kind;

template <typename T>
void AppendRaw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

template <typename T>
T Canonical(T value) {
  if (std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
  return value + T{0};  // -0 becomes 0.
}

void AppendValue(std::string& out, const Column& column, std::int64_t row) {
  switch (column.type.kind) {
    case Kind::kBool:
      out += columns::BoolValue(column, row) ? '\1' : '\0';
      return;
    case Kind::kInt16:
      return AppendRaw(out, columns::FixedValue<std::int16_t>(column, row));
    case Kind::kInt32:
    case Kind::kDate32:
      return AppendRaw(out, columns::FixedValue<std::int32_t>(column, row));
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return AppendRaw(out, columns::FixedValue<std::int64_t>(column, row));
    case Kind::kFloat32:
      return AppendRaw(out, Canonical(columns::FixedValue<float>(column, row)));
    case Kind::kFloat64:
      return AppendRaw(out, Canonical(columns::FixedValue<double>(column, row)));
    case Kind::kDecimal128:
      return AppendRaw(out, columns::FixedValue<__int128>(column, row));
    case Kind::kUtf8:
    case Kind::kBinary: {
      const std::string_view bytes = columns::BytesValue(column, row);
      AppendRaw(out, static_cast<std::uint32_t>(bytes.size()));
      out.append(bytes);
      return;
    }
  }
}

}  // namespace

Result<RowKeys> RowKeys::Of(const columns::RecordBatch& batch,
                            const std::vector<std::string>& names) {
  std::vector<const Column*> found;
  for (const std::string& name : names) {
    const Column* column = nullptr;
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      if (EqualsIgnoringCase(batch.schema->fields[i].name, name)) {
        column = batch.columns[i].get();
      }
    }
    if (column == nullptr) {
      return Error(ErrorId::kSilverKeyInvalid).With("column", name);
    }
    found.push_back(column);
  }
  return RowKeys(std::move(found));
}

std::string_view RowKeys::At(std::int64_t row) {
  bytes_.clear();
  for (const Column* column : columns_) {
    const bool is_null = columns::IsNull(*column, row);
    bytes_ += is_null ? '\0' : '\1';
    if (!is_null) AppendValue(bytes_, *column, row);
  }
  return bytes_;
}

std::optional<std::int64_t> RowKeys::Number(std::int64_t row) const {
  const Column& column = *columns_.front();
  if (columns::IsNull(column, row)) return std::nullopt;
  switch (column.type.kind) {
    case Kind::kInt16:
      return columns::FixedValue<std::int16_t>(column, row);
    case Kind::kInt32:
    case Kind::kDate32:
      return columns::FixedValue<std::int32_t>(column, row);
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return columns::FixedValue<std::int64_t>(column, row);
    default:
      return std::nullopt;
  }
}

std::uint64_t HashOf(std::string_view bytes) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  std::uint64_t hash = bytes.size() * kOdd;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left != 0) {
    std::uint64_t word = 0;
    const std::size_t taken = left < 8 ? left : 8;
    std::memcpy(&word, at, taken);
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 29;
    at += taken;
    left -= taken;
  }
  hash *= 0xBF58476D1CE4E5B9;
  return hash ^ (hash >> 32);
}

}  // namespace mssql_cdc::pipeline

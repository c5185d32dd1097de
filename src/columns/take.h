// Rows chosen out of a column, copied into a new one.
//
// For what keeps a few rows of many batches; whole batches are passed on, not copied.

#pragma once

#include <cstdint>
#include <span>

#include "columns/batch.h"

namespace mssql_cdc::columns {

// The values of `rows`, in that order. Requires every row to be in the column.
Column Take(const Column& column, std::span<const std::int64_t> rows);

// `row_count` NULLs.
Column NullColumn(const Type& type, std::int64_t row_count);

// Whether the value is NULL.
inline bool IsNull(const Column& column, std::int64_t row) {
  return column.null_count != 0 &&
         (column.validity.data()[row / 8] >> (row % 8) & 1) == 0;
}

// The value of a column of fixed width, whose width T has.
template <typename T>
T FixedValue(const Column& column, std::int64_t row) {
  T value;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(T),
              sizeof(T));
  return value;
}

// Of kUtf8 and kBinary.
inline std::string_view BytesValue(const Column& column, std::int64_t row) {
  std::int32_t bounds[2];
  std::memcpy(bounds, column.offsets.data() + static_cast<std::size_t>(row) * 4, 8);
  return {reinterpret_cast<const char*>(column.values.data()) + bounds[0],
          static_cast<std::size_t>(bounds[1] - bounds[0])};
}

inline bool BoolValue(const Column& column, std::int64_t row) {
  return (column.values.data()[row / 8] >> (row % 8) & 1) != 0;
}

}  // namespace mssql_cdc::columns

// Single values out of a finished column, by position. Nothing is checked: the caller
// knows the column's kind and that it has the row.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "columns/batch.h"

namespace mssql_cdc::columns {

inline bool BitAt(const std::uint8_t* bits, std::size_t row) {
  return (bits[row / 8] >> (row % 8) & 1) != 0;
}

inline bool IsNull(const Column& column, std::size_t row) {
  return column.null_count != 0 && !BitAt(column.validity.data(), row);
}

// Of a fixed width.
template <typename T>
T ValueAt(const Column& column, std::size_t row) {
  T value;
  std::memcpy(&value, column.values.data() + row * sizeof(T), sizeof(T));
  return value;
}

// Of kUtf8 and kBinary.
inline std::string_view BytesAt(const Column& column, std::size_t row) {
  std::int32_t bounds[2];
  std::memcpy(bounds, column.offsets.data() + row * 4, 8);
  return {reinterpret_cast<const char*>(column.values.data()) + bounds[0],
          static_cast<std::size_t>(bounds[1] - bounds[0])};
}

}  // namespace mssql_cdc::columns

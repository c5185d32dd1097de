// A column under construction, opened up for a decoder that writes its buffers in
// place.
//
// The decoder works on plain pointers (Raw), asks for room through Reserve calls, which
// move the pointers, and says at the end what it wrote. Only for src/tds.

#pragma once

#include <cstdint>

#include "columns/batch.h"

namespace mssql_cdc::columns {

class ColumnAccess {
 public:
  struct Raw {
    std::uint8_t* values = nullptr;    // Fixed-width values, bits of kBool, or bytes.
    std::uint8_t* validity = nullptr;  // Bits of rows not yet written are 1.
    std::int32_t* offsets = nullptr;   // Null unless the column is kUtf8 or kBinary.
    std::size_t bytes_size = 0;        // Of kUtf8 and kBinary: bytes written so far.
    std::size_t bytes_capacity = 0;
  };

  // Room for `row_count` rows in all; points `raw` at the buffers.
  static void ReserveRows(ColumnBuilder& builder, std::int64_t row_count, Raw& raw) {
    builder.row_capacity_hint_ = row_count;
    builder.ReserveRows(row_count);
    Point(builder, raw);
  }
  // Room for `size_bytes` bytes of values in all.
  static void ReserveBytes(ColumnBuilder& builder, std::size_t size_bytes, Raw& raw) {
    builder.values_.Reserve(size_bytes);
    Point(builder, raw);
  }
  // The first `row_count` rows are written; `raw` has the bytes' size. Nulls are those
  // whose validity bit was cleared.
  static Column Finish(ColumnBuilder& builder, std::int64_t row_count, Raw& raw);

 private:
  static void Point(ColumnBuilder& builder, Raw& raw) {
    raw.values = builder.values_.data();
    raw.validity = builder.validity_.data();
    raw.offsets = reinterpret_cast<std::int32_t*>(builder.offsets_.data());
    raw.bytes_capacity = builder.values_.capacity_bytes();
  }
};

}  // namespace mssql_cdc::columns

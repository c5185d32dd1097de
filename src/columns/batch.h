// Record batches in Arrow's memory layout, built column by column without a copy, and
// handed on through the Arrow C interfaces.
//
// A ColumnBuilder owns growing buffers that decoders write into directly; Finish turns
// them into an immutable Column. A RecordBatch shares its columns' buffers with every
// ArrowArray exported from it.

#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/arrow_abi.h"
#include "columns/buffer.h"
#include "columns/schema.h"

namespace mssql_cdc::columns {

// One finished column. `validity` has one bit a row, LSB first, 1 = value present; it
// is empty when null_count is 0. `offsets` (row count + 1 of them) only for kUtf8 and
// kBinary. kBool packs one bit a row in `values`, LSB first; kDecimal128 16 bytes a
// row, little-endian two's complement.
struct Column {
  Type type;
  std::int64_t row_count = 0;
  std::int64_t null_count = 0;
  Buffer validity;
  Buffer offsets;
  Buffer values;
};

struct RecordBatch {
  SchemaPtr schema;
  std::int64_t row_count = 0;
  std::vector<std::shared_ptr<const Column>> columns;  // One per field, in order.

  // Bytes in all buffers.
  std::size_t SizeBytes() const;
};

// A stream of batches that all have `schema()`. Pulled by one thread.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  virtual SchemaPtr schema() const = 0;
  // The next batch, never empty of rows, or nullopt at the end. After an error or the
  // end it must not be called again.
  virtual Result<std::optional<RecordBatch>> Next() = 0;
};

// Builds one column. Append calls must match the type's kind: this is not checked,
// since it is the innermost loop.
class ColumnBuilder {
 public:
  // `row_capacity` rows fit without growing; more grow it.
  ColumnBuilder(Type type, std::int64_t row_capacity);

  const Type& type() const { return type_; }
  std::int64_t row_count() const { return row_count_; }
  std::size_t SizeBytes() const;

  void AppendNull();
  void AppendBool(bool value);
  void AppendInt16(std::int16_t value) { AppendFixed(value); }
  void AppendInt32(std::int32_t value) { AppendFixed(value); }  // kInt32 and kDate32.
  void AppendInt64(std::int64_t value) {
    AppendFixed(value);
  }  // kInt64, both timestamps.
  void AppendFloat32(float value) { AppendFixed(value); }
  void AppendFloat64(double value) { AppendFixed(value); }
  void AppendDecimal(__int128 unscaled) { AppendFixed(unscaled); }
  // kUtf8 (valid UTF-8 by contract) and kBinary. The column's bytes in one batch stay
  // below 2 GiB: callers end the batch at kBatchSizeBytesMax, a single value fits.
  void AppendBytes(std::string_view value);

  // The column so far; the builder is empty and reusable afterwards.
  Column Finish();

 private:
  template <typename T>
  void AppendFixed(T value) {
    if (row_count_ == row_capacity_) ReserveRows(row_count_ + 1);
    std::memcpy(values_.data() + static_cast<std::size_t>(row_count_) * sizeof(T),
                &value, sizeof(T));
    ++row_count_;
  }
  // Room for `row_count` rows in all (of kUtf8 and kBinary: without their bytes).
  void ReserveRows(std::int64_t row_count);

  Type type_;
  std::int64_t row_count_ = 0;
  std::int64_t row_capacity_ = 0;
  std::int64_t row_capacity_hint_;
  std::int64_t null_count_ = 0;
  std::size_t bytes_size_ = 0;       // Of kUtf8 and kBinary: bytes of all values.
  std::size_t bytes_size_hint_ = 0;  // What the last batch came to.
  Buffer validity_;  // Bits of rows not yet appended are 1 up to row_capacity_.
  Buffer offsets_;   // Room for row_capacity_ + 1; the first one is 0.
  Buffer values_;    // Of kBool, bits of rows not yet appended are 0.

  friend class ColumnAccess;  // The TDS decoders, which write the buffers themselves.
};

// The width of one value in `Column::values`; 0 for kBool, kUtf8 and kBinary.
std::size_t ValueWidthBytes(Kind kind);

// A reader over batches that are already in memory. Requires at least a schema.
std::unique_ptr<BatchReader> ReadBatches(SchemaPtr schema,
                                         std::vector<RecordBatch> batches);

// Exports; the consumer calls release. The exported array keeps the columns alive.
void ExportSchema(const Schema& schema, ArrowSchema* out);
void ExportBatch(const RecordBatch& batch, ArrowArray* out);
// The stream owns `reader`. A failing Next() returns EIO and its Error's Text() as
// get_last_error; the Error itself is kept in `failure` when that is given, which must
// outlive the stream.
void ExportStream(std::unique_ptr<BatchReader> reader, ArrowArrayStream* out,
                  std::optional<Error>* failure);

// Imports a stream made by somebody else. Errors: InternalError for a schema outside
// the closed set of columns/schema.h (large_utf8 and large_binary are not in it).
Result<std::unique_ptr<BatchReader>> ImportStream(ArrowArrayStream* stream);

}  // namespace mssql_cdc::columns

#include <charconv>
#include <string>

#include "columns/batch.h"

namespace mssql_cdc::columns {
namespace {

Error NotInTheSet(std::string_view what, std::string_view name) {
  return Error(ErrorId::kInternalError)
      .With("arrow", std::string(what))
      .With("column", std::string(name));
}

// "d:P,S" or "d:P,S,128".
std::optional<Type> ParseDecimal(std::string_view format) {
  unsigned numbers[3] = {0, 0, 128};
  const char* at = format.data() + 2;
  const char* end = format.data() + format.size();
  std::size_t count = 0;
  while (count < 3) {
    const auto [next, failed] = std::from_chars(at, end, numbers[count]);
    if (failed != std::errc{}) return std::nullopt;
    ++count;
    at = next;
    if (at == end) break;
    if (*at++ != ',') return std::nullopt;
  }
  if (at != end || count < 2 || numbers[2] != 128) return std::nullopt;
  if (numbers[0] < 1 || numbers[0] > 38 || numbers[1] > numbers[0]) return std::nullopt;
  return Type{Kind::kDecimal128, static_cast<std::uint8_t>(numbers[0]),
              static_cast<std::uint8_t>(numbers[1])};
}

std::optional<Type> ParseFormat(std::string_view format) {
  if (format.starts_with("d:")) return ParseDecimal(format);
  if (format == "tsu:+00:00" || format == "tsu:Etc/UTC")
    return Type{Kind::kTimestampUtc};
  for (const Kind kind :
       {Kind::kBool, Kind::kInt16, Kind::kInt32, Kind::kInt64, Kind::kFloat32,
        Kind::kFloat64, Kind::kDate32, Kind::kTimestampNtz, Kind::kTimestampUtc,
        Kind::kUtf8, Kind::kBinary}) {
    if (format == ArrowFormat({kind})) return Type{kind};
  }
  return std::nullopt;
}

// The value of metadata key "comment", or nothing.
std::string CommentOf(const char* metadata) {
  if (metadata == nullptr) return {};
  const auto number = [&metadata] {
    std::int32_t value;
    std::memcpy(&value, metadata, sizeof(value));
    metadata += sizeof(value);
    return value;
  };
  const auto text = [&metadata, &number] {
    const auto size = static_cast<std::size_t>(number());
    const std::string_view value(metadata, size);
    metadata += size;
    return value;
  };
  for (std::int32_t left = number(); left > 0; --left) {
    const std::string_view key = text();
    const std::string_view value = text();
    if (key == "comment") return std::string(value);
  }
  return {};
}

Result<Schema> ParseSchema(const ArrowSchema& root) {
  if (std::string_view(root.format) != "+s") return NotInTheSet(root.format, "");
  Schema schema;
  for (std::int64_t i = 0; i < root.n_children; ++i) {
    const ArrowSchema& child = *root.children[i];
    const std::string_view name = child.name == nullptr ? "" : child.name;
    const std::optional<Type> type = ParseFormat(child.format);
    if (!type || child.dictionary != nullptr) return NotInTheSet(child.format, name);
    schema.fields.push_back({std::string(name), *type,
                             (child.flags & ARROW_FLAG_NULLABLE) != 0,
                             CommentOf(child.metadata)});
  }
  return schema;
}

bool BitAt(const void* bits, std::int64_t index) {
  return (static_cast<const std::uint8_t*>(bits)[index / 8] >> (index % 8) & 1) != 0;
}

// Copies `count` bits from bit `first` on into a buffer that starts at bit 0.
Buffer CopyBits(const void* bits, std::int64_t first, std::int64_t count) {
  Buffer copy;
  const auto size = static_cast<std::size_t>((count + 7) / 8);
  copy.Reserve(size);
  copy.SetSize(size);
  if (first % 8 == 0 && size != 0) {
    std::memcpy(copy.data(), static_cast<const std::uint8_t*>(bits) + first / 8, size);
    return copy;
  }
  if (size != 0) std::memset(copy.data(), 0, size);
  for (std::int64_t i = 0; i < count; ++i) {
    const unsigned bit = BitAt(bits, first + i) ? 1u : 0u;
    copy.data()[i / 8] |= static_cast<std::uint8_t>(bit << (i % 8));
  }
  return copy;
}

std::int64_t CountNulls(const Buffer& validity, std::int64_t row_count) {
  std::int64_t nulls = 0;
  for (std::int64_t i = 0; i < row_count; ++i)
    nulls += BitAt(validity.data(), i) ? 0 : 1;
  return nulls;
}

// One column's rows [first, first + row_count) as a Column of ours.
std::shared_ptr<const Column> CopyColumn(const Type& type, const ArrowArray& array,
                                         std::int64_t first, std::int64_t row_count) {
  auto column = std::make_shared<Column>();
  column->type = type;
  column->row_count = row_count;
  const auto rows = static_cast<std::size_t>(row_count);
  if (array.null_count != 0 && array.buffers[0] != nullptr) {
    column->validity = CopyBits(array.buffers[0], first, row_count);
    column->null_count = CountNulls(column->validity, row_count);
    if (column->null_count == 0) column->validity = Buffer();
  }
  if (type.kind == Kind::kBool) {
    column->values = CopyBits(array.buffers[1], first, row_count);
  } else if (const std::size_t width = ValueWidthBytes(type.kind); width != 0) {
    if (rows != 0) {
      column->values.Append(static_cast<const std::uint8_t*>(array.buffers[1]) +
                                static_cast<std::size_t>(first) * width,
                            rows * width);
    }
  } else {
    const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]);
    column->offsets.Reserve((rows + 1) * sizeof(std::int32_t));
    column->offsets.SetSize((rows + 1) * sizeof(std::int32_t));
    auto* rebased = reinterpret_cast<std::int32_t*>(column->offsets.data());
    // An array of no rows may come without offsets.
    const std::int32_t base = rows == 0 ? 0 : offsets[first];
    rebased[0] = 0;
    for (std::size_t i = 1; i <= rows; ++i) {
      rebased[i] = offsets[static_cast<std::size_t>(first) + i] - base;
    }
    if (rebased[rows] != 0) {
      column->values.Append(static_cast<const std::uint8_t*>(array.buffers[2]) + base,
                            static_cast<std::size_t>(rebased[rows]));
    }
  }
  return column;
}

class ImportedReader final : public BatchReader {
 public:
  ImportedReader(ArrowArrayStream stream, SchemaPtr schema)
      : stream_(stream), schema_(std::move(schema)) {}
  ~ImportedReader() override { stream_.release(&stream_); }
  ImportedReader(const ImportedReader&) = delete;
  ImportedReader& operator=(const ImportedReader&) = delete;

  SchemaPtr schema() const override { return schema_; }

  Result<std::optional<RecordBatch>> Next() override {
    for (;;) {
      ArrowArray array{};
      if (stream_.get_next(&stream_, &array) != 0) {
        const char* text = stream_.get_last_error(&stream_);
        return Error(ErrorId::kInternalError)
            .With("stream", text == nullptr ? "failed" : text);
      }
      if (array.release == nullptr) return std::optional<RecordBatch>();
      auto batch = Copy(array);
      array.release(&array);
      if (!batch.ok()) return std::move(batch).error();
      if (batch.value().row_count != 0) return std::optional(std::move(batch).value());
    }
  }

 private:
  Result<RecordBatch> Copy(const ArrowArray& array) const {
    if (array.n_children != static_cast<std::int64_t>(schema_->fields.size()) ||
        (array.null_count > 0 && array.n_buffers > 0 && array.buffers[0] != nullptr)) {
      return NotInTheSet("array unlike its schema", "");
    }
    RecordBatch batch{schema_, array.length, {}};
    for (std::size_t i = 0; i < schema_->fields.size(); ++i) {
      const ArrowArray& child = *array.children[i];
      batch.columns.push_back(CopyColumn(schema_->fields[i].type, child,
                                         child.offset + array.offset, array.length));
    }
    return batch;
  }

  ArrowArrayStream stream_;
  SchemaPtr schema_;
};

class MemoryReader final : public BatchReader {
 public:
  MemoryReader(SchemaPtr schema, std::vector<RecordBatch> batches)
      : schema_(std::move(schema)), batches_(std::move(batches)) {}

  SchemaPtr schema() const override { return schema_; }

  Result<std::optional<RecordBatch>> Next() override {
    while (next_ < batches_.size()) {
      RecordBatch batch = std::move(batches_[next_++]);
      if (batch.row_count != 0) return std::optional(std::move(batch));
    }
    return std::optional<RecordBatch>();
  }

 private:
  SchemaPtr schema_;
  std::vector<RecordBatch> batches_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<BatchReader> ReadBatches(SchemaPtr schema,
                                         std::vector<RecordBatch> batches) {
  return std::make_unique<MemoryReader>(std::move(schema), std::move(batches));
}

Result<std::unique_ptr<BatchReader>> ImportStream(ArrowArrayStream* stream) {
  // The stream is ours from here on, whatever happens.
  ArrowArrayStream owned = *stream;
  stream->release = nullptr;
  ArrowSchema root{};
  if (owned.get_schema(&owned, &root) != 0) {
    const char* text = owned.get_last_error(&owned);
    Error error = Error(ErrorId::kInternalError)
                      .With("stream", text == nullptr ? "failed" : text);
    owned.release(&owned);
    return error;
  }
  auto schema = ParseSchema(root);
  root.release(&root);
  if (!schema.ok()) {
    owned.release(&owned);
    return std::move(schema).error();
  }
  return std::unique_ptr<BatchReader>(std::make_unique<ImportedReader>(
      owned, std::make_shared<const Schema>(std::move(schema).value())));
}

}  // namespace mssql_cdc::columns

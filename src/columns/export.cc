#include <cerrno>
#include <string>

#include "columns/batch.h"

namespace mssql_cdc::columns {
namespace {

// What an exported ArrowSchema owns.
struct SchemaHeld {
  std::string format;
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> child_pointers;
};

void ReleaseSchema(ArrowSchema* schema) {
  auto* held = static_cast<SchemaHeld*>(schema->private_data);
  for (ArrowSchema& child : held->children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete held;
  schema->release = nullptr;
}

void FillSchema(SchemaHeld* held, std::int64_t flags, ArrowSchema* out) {
  for (ArrowSchema& child : held->children) held->child_pointers.push_back(&child);
  *out = ArrowSchema{
      .format = held->format.c_str(),
      .name = held->name.c_str(),
      .metadata = held->metadata.empty() ? nullptr : held->metadata.data(),
      .flags = flags,
      .n_children = static_cast<std::int64_t>(held->children.size()),
      .children = held->children.empty() ? nullptr : held->child_pointers.data(),
      .dictionary = nullptr,
      .release = ReleaseSchema,
      .private_data = held,
  };
}

// Arrow's encoding of key/value pairs: counts and lengths as native int32.
std::string EncodeMetadata(const std::string& key, const std::string& value) {
  std::string encoded;
  const auto put = [&encoded](std::size_t number) {
    const auto number32 = static_cast<std::int32_t>(number);
    encoded.append(reinterpret_cast<const char*>(&number32), sizeof(number32));
  };
  put(1);
  put(key.size());
  encoded += key;
  put(value.size());
  encoded += value;
  return encoded;
}

// What an exported ArrowArray owns: the struct array's children, or one column.
struct ArrayHeld {
  std::shared_ptr<const Column> column;
  const void* buffers[3] = {nullptr, nullptr, nullptr};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
};

void ReleaseArray(ArrowArray* array) {
  auto* held = static_cast<ArrayHeld*>(array->private_data);
  for (ArrowArray& child : held->children) {
    if (child.release != nullptr) child.release(&child);
  }
  delete held;
  array->release = nullptr;
}

void ExportColumn(const std::shared_ptr<const Column>& column, ArrowArray* out) {
  auto* held = new ArrayHeld;
  held->column = column;
  const bool has_offsets =
      column->type.kind == Kind::kUtf8 || column->type.kind == Kind::kBinary;
  if (column->null_count != 0) held->buffers[0] = column->validity.data();
  held->buffers[1] = has_offsets ? column->offsets.data() : column->values.data();
  if (has_offsets) held->buffers[2] = column->values.data();
  // Consumers may refuse a missing data buffer, even of no bytes.
  for (std::size_t i = 1; i < (has_offsets ? 3u : 2u); ++i) {
    static const std::int64_t kNothing[2] = {0, 0};
    if (held->buffers[i] == nullptr) held->buffers[i] = kNothing;
  }
  *out = ArrowArray{
      .length = column->row_count,
      .null_count = column->null_count,
      .offset = 0,
      .n_buffers = has_offsets ? 3 : 2,
      .n_children = 0,
      .buffers = held->buffers,
      .children = nullptr,
      .dictionary = nullptr,
      .release = ReleaseArray,
      .private_data = held,
  };
}

struct StreamHeld {
  std::unique_ptr<BatchReader> reader;
  std::optional<Error>* failure;
  std::string last_error;
};

StreamHeld* HeldBy(ArrowArrayStream* stream) {
  return static_cast<StreamHeld*>(stream->private_data);
}

int FailStream(StreamHeld* held, Error error) {
  held->last_error = error.Text();
  if (held->failure != nullptr) *held->failure = std::move(error);
  return EIO;
}

// The C edge: an exception here would cross into another language.
int StreamSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  StreamHeld* held = HeldBy(stream);
  try {
    ExportSchema(*held->reader->schema(), out);
    return 0;
  } catch (const std::bad_alloc&) {
    return FailStream(held, Error(ErrorId::kOutOfMemory));
  } catch (...) {
    return FailStream(held, Error(ErrorId::kInternalError));
  }
}

int StreamNext(ArrowArrayStream* stream, ArrowArray* out) {
  StreamHeld* held = HeldBy(stream);
  try {
    auto next = held->reader->Next();
    if (!next.ok()) return FailStream(held, std::move(next).error());
    if (!next.value().has_value()) {
      *out = ArrowArray{};  // The end, as the stream interface marks it.
      return 0;
    }
    ExportBatch(*next.value(), out);
    return 0;
  } catch (const std::bad_alloc&) {
    return FailStream(held, Error(ErrorId::kOutOfMemory));
  } catch (...) {
    return FailStream(held, Error(ErrorId::kInternalError));
  }
}

const char* StreamLastError(ArrowArrayStream* stream) {
  const StreamHeld* held = HeldBy(stream);
  return held->last_error.empty() ? nullptr : held->last_error.c_str();
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete HeldBy(stream);
  stream->release = nullptr;
}

}  // namespace

void ExportSchema(const Schema& schema, ArrowSchema* out) {
  auto root = std::make_unique<SchemaHeld>();
  root->format = "+s";
  root->children.resize(schema.fields.size());
  root->child_pointers.reserve(schema.fields.size());
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    const Field& field = schema.fields[i];
    auto held = std::make_unique<SchemaHeld>();
    held->format = ArrowFormat(field.type);
    held->name = field.name;
    if (!field.comment.empty())
      held->metadata = EncodeMetadata("comment", field.comment);
    FillSchema(held.release(), field.nullable ? ARROW_FLAG_NULLABLE : 0,
               &root->children[i]);
  }
  FillSchema(root.release(), 0, out);
}

void ExportBatch(const RecordBatch& batch, ArrowArray* out) {
  auto held = std::make_unique<ArrayHeld>();
  held->children.resize(batch.columns.size());
  held->child_pointers.reserve(batch.columns.size());
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    ExportColumn(batch.columns[i], &held->children[i]);
    held->child_pointers.push_back(&held->children[i]);
  }
  ArrayHeld* owned = held.release();
  *out = ArrowArray{
      .length = batch.row_count,
      .null_count = 0,
      .offset = 0,
      .n_buffers = 1,
      .n_children = static_cast<std::int64_t>(owned->children.size()),
      .buffers = owned->buffers,
      .children = owned->child_pointers.data(),
      .dictionary = nullptr,
      .release = ReleaseArray,
      .private_data = owned,
  };
}

void ExportStream(std::unique_ptr<BatchReader> reader, ArrowArrayStream* out,
                  std::optional<Error>* failure) {
  *out = ArrowArrayStream{
      .get_schema = StreamSchema,
      .get_next = StreamNext,
      .get_last_error = StreamLastError,
      .release = ReleaseStream,
      .private_data = new StreamHeld{std::move(reader), failure, {}},
  };
}

}  // namespace mssql_cdc::columns

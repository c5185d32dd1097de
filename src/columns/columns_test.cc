// Builders, and what goes out through the Arrow C interfaces and comes in again.

#include <gtest/gtest.h>

#include <cerrno>
#include <limits>

#include "columns/batch.h"
#include "columns/column_access.h"

namespace mssql_cdc::columns {
namespace {

const Type kAllTypes[] = {
    {Kind::kBool},
    {Kind::kInt16},
    {Kind::kInt32},
    {Kind::kInt64},
    {Kind::kFloat32},
    {Kind::kFloat64},
    {Kind::kDecimal128, 38, 10},
    {Kind::kDate32},
    {Kind::kTimestampNtz},
    {Kind::kTimestampUtc},
    {Kind::kUtf8},
    {Kind::kBinary},
};

// Appends a value that is different for every row.
void AppendRow(ColumnBuilder& builder, int row) {
  switch (builder.type().kind) {
    case Kind::kBool:
      return builder.AppendBool(row % 3 == 0);
    case Kind::kInt16:
      return builder.AppendInt16(static_cast<std::int16_t>(row - 5));
    case Kind::kInt32:
    case Kind::kDate32:
      return builder.AppendInt32(row * 1000 - 7);
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return builder.AppendInt64(std::int64_t{row} << 40);
    case Kind::kFloat32:
      return builder.AppendFloat32(static_cast<float>(row) / 4);
    case Kind::kFloat64:
      return builder.AppendFloat64(row / 8.0);
    case Kind::kDecimal128:
      return builder.AppendDecimal(-(static_cast<__int128>(row) << 90));
    case Kind::kUtf8:
    case Kind::kBinary:
      return builder.AppendBytes(std::string(static_cast<std::size_t>(row % 20), 'x') +
                                 std::to_string(row));
  }
}

bool IsNullRow(int row) { return row % 7 == 3; }

RecordBatch MakeBatch(int row_count, bool with_nulls) {
  auto schema = std::make_shared<Schema>();
  RecordBatch batch{nullptr, row_count, {}};
  for (const Type& type : kAllTypes) {
    schema->fields.push_back({"column " + DeltaTypeName(type), type, with_nulls,
                              with_nulls ? "ein Wort" : ""});
    ColumnBuilder builder(type, 1);
    for (int row = 0; row < row_count; ++row) {
      if (with_nulls && IsNullRow(row)) {
        builder.AppendNull();
      } else {
        AppendRow(builder, row);
      }
    }
    EXPECT_EQ(builder.row_count(), row_count);
    const std::size_t size = builder.SizeBytes();
    batch.columns.push_back(std::make_shared<const Column>(builder.Finish()));
    const Column& column = *batch.columns.back();
    EXPECT_EQ(size, column.validity.size_bytes() + column.offsets.size_bytes() +
                        column.values.size_bytes());
    EXPECT_EQ(builder.row_count(), 0);
  }
  batch.schema = std::move(schema);
  return batch;
}

std::string BytesOf(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size_bytes());
}

void ExpectSame(const RecordBatch& a, const RecordBatch& b) {
  ASSERT_EQ(*a.schema, *b.schema);
  ASSERT_EQ(a.row_count, b.row_count);
  for (std::size_t i = 0; i < a.columns.size(); ++i) {
    SCOPED_TRACE(a.schema->fields[i].name);
    EXPECT_EQ(a.columns[i]->type, b.columns[i]->type);
    EXPECT_EQ(a.columns[i]->null_count, b.columns[i]->null_count);
    EXPECT_EQ(BytesOf(a.columns[i]->validity), BytesOf(b.columns[i]->validity));
    EXPECT_EQ(BytesOf(a.columns[i]->offsets), BytesOf(b.columns[i]->offsets));
    EXPECT_EQ(BytesOf(a.columns[i]->values), BytesOf(b.columns[i]->values));
  }
}

std::vector<RecordBatch> TwoBatches() {
  std::vector<RecordBatch> batches;
  batches.push_back(MakeBatch(100, true));
  batches.push_back(MakeBatch(3, true));
  batches[1].schema = batches[0].schema;
  return batches;
}

TEST(ColumnBuilder, NullsAreBitsAndNoNullsNeedNone) {
  for (const Type& type : kAllTypes) {
    SCOPED_TRACE(DeltaTypeName(type));
    ColumnBuilder builder(type, 4);
    for (int row = 0; row < 9; ++row) AppendRow(builder, row);
    EXPECT_EQ(builder.Finish().validity.size_bytes(), 0u);
    // The next batch of the same builder.
    for (int row = 0; row < 9; ++row)
      row == 8 ? builder.AppendNull() : AppendRow(builder, row);
    const Column column = builder.Finish();
    EXPECT_EQ(column.null_count, 1);
    ASSERT_EQ(column.validity.size_bytes(), 2u);
    EXPECT_EQ(column.validity.data()[0], 0xFF);
    EXPECT_EQ(column.validity.data()[1], 0);
  }
}

TEST(ColumnBuilder, AnEmptyColumnHasItsFirstOffset) {
  ColumnBuilder builder({Kind::kUtf8}, 10);
  const Column column = builder.Finish();
  EXPECT_EQ(BytesOf(column.offsets), std::string(4, '\0'));
  EXPECT_EQ(column.values.size_bytes(), 0u);
}

TEST(ColumnBuilder, BoolsArePackedFromTheLowestBit) {
  ColumnBuilder builder({Kind::kBool}, 1);
  for (int row = 0; row < 10; ++row) builder.AppendBool(row == 1 || row == 9);
  EXPECT_EQ(BytesOf(builder.Finish().values), std::string("\x02\x02"));
}

TEST(Buffer, KeepsItsBytesWhileGrowingFromTheHeapIntoMappedPages) {
  Buffer buffer;
  std::size_t size = 0;
  const std::string piece(1'000'003, 'p');
  while (size < (80u << 20)) {
    buffer.Append(piece.data(), piece.size());
    size += piece.size();
  }
  ASSERT_EQ(buffer.size_bytes(), size);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
  for (std::size_t at = 0; at < size; at += 4099) ASSERT_EQ(buffer.data()[at], 'p');
  EXPECT_EQ(buffer.data()[size - 1], 'p');
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.size_bytes(), size);
}

TEST(ColumnAccess, NullsAreCountedFromTheirBits) {
  ColumnBuilder builder({Kind::kInt32}, 0);
  ColumnAccess::Raw raw;
  ColumnAccess::ReserveRows(builder, 100, raw);
  std::memset(raw.values, 0, 400);
  raw.validity[0] = 0xFE;
  raw.validity[2] = 0xFB;
  const Column column = ColumnAccess::Finish(builder, 19, raw);
  EXPECT_EQ(column.row_count, 19);
  EXPECT_EQ(column.null_count, 2);
  EXPECT_EQ(BytesOf(column.validity), std::string("\xFE\xFF\x03"));
}

TEST(ArrowStream, WhatIsExportedIsImportedAsItWas) {
  for (const bool with_nulls : {false, true}) {
    std::vector<RecordBatch> batches;
    batches.push_back(MakeBatch(1000, with_nulls));
    const RecordBatch same = batches[0];
    ArrowArrayStream stream;
    ExportStream(ReadBatches(same.schema, std::move(batches)), &stream, nullptr);
    auto imported = ImportStream(&stream);
    ASSERT_TRUE(imported.ok()) << imported.error().Text();
    EXPECT_EQ(stream.release, nullptr);
    BatchReader& reader = *imported.value();
    auto first = reader.Next();
    ASSERT_TRUE(first.ok() && first.value().has_value());
    ExpectSame(*first.value(), same);
    auto end = reader.Next();
    ASSERT_TRUE(end.ok());
    EXPECT_FALSE(end.value().has_value());
  }
}

TEST(ArrowStream, SlicesAreTakenFromTheirOffset) {
  for (int first = 0; first < 20; ++first) {
    const RecordBatch batch = MakeBatch(40, true);
    ArrowArray array;
    ExportBatch(batch, &array);
    for (std::int64_t i = 0; i < array.n_children; ++i) {
      array.children[i]->offset = first;
      array.children[i]->length = 40 - first;
    }
    array.length = 40 - first;
    // A stream of that one array.
    struct Source {
      ArrowArray array;
      SchemaPtr schema;
    };
    ArrowArrayStream stream{};
    stream.private_data = new Source{array, batch.schema};
    stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
      ExportSchema(*static_cast<Source*>(self->private_data)->schema, out);
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
      auto* source = static_cast<Source*>(self->private_data);
      *out = source->array;
      source->array.release = nullptr;
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
    stream.release = [](ArrowArrayStream* self) {
      delete static_cast<Source*>(self->private_data);
      self->release = nullptr;
    };
    auto imported = ImportStream(&stream);
    ASSERT_TRUE(imported.ok());
    auto next = imported.value()->Next();
    ASSERT_TRUE(next.ok() && next.value().has_value());
    const RecordBatch& slice = *next.value();
    ASSERT_EQ(slice.row_count, 40 - first);
    const Column& texts = *slice.columns[10];
    const Column& numbers = *slice.columns[2];
    for (int row = first; row < 40; ++row) {
      const auto at = static_cast<std::size_t>(row - first);
      const bool is_null = (numbers.validity.data()[at / 8] >> (at % 8) & 1) == 0;
      ASSERT_EQ(is_null, IsNullRow(row)) << row;
      std::int32_t number;
      std::memcpy(&number, numbers.values.data() + at * 4, 4);
      std::int32_t ends[2];
      std::memcpy(ends, texts.offsets.data() + at * 4, 8);
      const std::string text(
          reinterpret_cast<const char*>(texts.values.data()) + ends[0],
          static_cast<std::size_t>(ends[1] - ends[0]));
      if (!is_null) {
        ASSERT_EQ(number, row * 1000 - 7);
        ASSERT_EQ(text, std::string(static_cast<std::size_t>(row % 20), 'x') +
                            std::to_string(row));
      }
    }
  }
}

class FailingReader final : public BatchReader {
 public:
  SchemaPtr schema() const override { return std::make_shared<const Schema>(); }
  Result<std::optional<RecordBatch>> Next() override {
    return Error(ErrorId::kConnectionLost).With("host", "db1");
  }
};

TEST(ArrowStream, AFailureIsTextForTheConsumerAndAnErrorForUs) {
  std::optional<Error> failure;
  ArrowArrayStream stream;
  ExportStream(std::make_unique<FailingReader>(), &stream, &failure);
  ArrowArray array{};
  EXPECT_EQ(stream.get_next(&stream, &array), EIO);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->id(), ErrorId::kConnectionLost);
  EXPECT_EQ(stream.get_last_error(&stream), failure->Text());
  stream.release(&stream);
}

TEST(ArrowStream, ASchemaOutsideTheSetIsRefused) {
  for (const char* format :
       {"U", "Z", "d:38,10,256", "d:39,0", "tsn:", "tsu:Europe/Berlin", "+l", "C"}) {
    SCOPED_TRACE(format);
    ArrowArrayStream stream;
    auto schema = std::make_shared<Schema>();
    schema->fields.push_back({"x", {Kind::kInt32}, true, {}});
    ExportStream(ReadBatches(schema, {}), &stream, nullptr);
    static const char* wanted;
    wanted = format;
    static int (*exported)(ArrowArrayStream*, ArrowSchema*);
    exported = stream.get_schema;
    stream.get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
      const int failed = exported(self, out);
      out->children[0]->format = wanted;
      return failed;
    };
    const auto imported = ImportStream(&stream);
    ASSERT_FALSE(imported.ok());
    EXPECT_EQ(imported.error().id(), ErrorId::kInternalError);
    EXPECT_EQ(imported.error().Fact("column"), "x");
  }
}

TEST(ArrowStream, BatchesWithoutRowsAreLeftOut) {
  std::vector<RecordBatch> batches = TwoBatches();
  const SchemaPtr schema = batches[0].schema;
  RecordBatch empty = MakeBatch(0, true);
  batches.insert(batches.begin(), std::move(empty));
  const auto reader = ReadBatches(schema, std::move(batches));
  for (const std::int64_t row_count : {100, 3}) {
    auto next = reader->Next();
    ASSERT_TRUE(next.ok() && next.value().has_value());
    EXPECT_EQ(next.value()->row_count, row_count);
  }
  EXPECT_FALSE(reader->Next().value().has_value());
}

}  // namespace
}  // namespace mssql_cdc::columns

#include "lake/memory_rows.h"

#include <cstring>
#include <memory>
#include <utility>

#include "base/text.h"

namespace mssql_cdc::lake {
namespace {

using columns::Column;
using columns::ColumnBuilder;
using columns::Kind;

const Column* FindColumn(const columns::RecordBatch& batch, std::string_view name) {
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    if (EqualsIgnoringAsciiCase(batch.schema->fields[i].name, name)) {
      return batch.columns[i].get();
    }
  }
  return nullptr;
}

bool Bit(const columns::Buffer& bits, std::int64_t row) {
  return (bits.data()[row / 8] >> (row % 8) & 1) != 0;
}

bool IsNull(const Column& column, std::int64_t row) {
  return column.null_count != 0 && !Bit(column.validity, row);
}

template <typename T>
T Value(const Column& column, std::int64_t row) {
  T value;
  std::memcpy(&value, column.values.data() + static_cast<std::size_t>(row) * sizeof(T),
              sizeof(T));
  return value;
}

std::string_view Bytes(const Column& column, std::int64_t row) {
  std::int32_t bounds[2];
  std::memcpy(bounds, column.offsets.data() + static_cast<std::size_t>(row) * 4, 8);
  return {reinterpret_cast<const char*>(column.values.data()) + bounds[0],
          static_cast<std::size_t>(bounds[1] - bounds[0])};
}

void CopyValue(const Column& column, std::int64_t row, ColumnBuilder& out) {
  switch (column.type.kind) {
    case Kind::kBool:
      return out.AppendBool(Bit(column.values, row));
    case Kind::kInt16:
      return out.AppendInt16(Value<std::int16_t>(column, row));
    case Kind::kInt32:
    case Kind::kDate32:
      return out.AppendInt32(Value<std::int32_t>(column, row));
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return out.AppendInt64(Value<std::int64_t>(column, row));
    case Kind::kFloat32:
      return out.AppendFloat32(Value<float>(column, row));
    case Kind::kFloat64:
      return out.AppendFloat64(Value<double>(column, row));
    case Kind::kDecimal128:
      return out.AppendDecimal(Value<__int128>(column, row));
    case Kind::kUtf8:
    case Kind::kBinary:
      return out.AppendBytes(Bytes(column, row));
  }
}

bool Meets(const columns::RecordBatch& batch, std::int64_t row,
           const std::vector<Condition>& conditions) {
  for (const Condition& condition : conditions) {
    const Column* column = FindColumn(batch, condition.column);
    const bool is_null = column == nullptr || IsNull(*column, row);
    switch (condition.op) {
      case Condition::Operator::kEqual:
        if (is_null || Bytes(*column, row) != condition.text) return false;
        break;
      case Condition::Operator::kIsNull:
        if (!is_null) return false;
        break;
      case Condition::Operator::kIsNotNull:
        if (is_null) return false;
        break;
    }
  }
  return true;
}

}  // namespace

std::optional<columns::RecordBatch> SelectRows(
    const columns::RecordBatch& batch, const columns::SchemaPtr& schema,
    const std::vector<Condition>& conditions) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < batch.row_count; ++row) {
    if (Meets(batch, row, conditions)) rows.push_back(row);
  }
  if (rows.empty()) return std::nullopt;
  columns::RecordBatch selected{schema, static_cast<std::int64_t>(rows.size()), {}};
  for (const columns::Field& field : schema->fields) {
    const Column* column = FindColumn(batch, field.name);
    ColumnBuilder builder(field.type, selected.row_count);
    for (const std::int64_t row : rows) {
      if (column == nullptr || IsNull(*column, row)) {
        builder.AppendNull();
      } else {
        CopyValue(*column, row, builder);
      }
    }
    selected.columns.push_back(std::make_shared<const Column>(builder.Finish()));
  }
  return selected;
}

}  // namespace mssql_cdc::lake

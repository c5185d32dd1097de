#include "columns/take.h"

namespace mssql_cdc::columns {
namespace {

template <typename Append>
void TakeEach(const Column& column, std::span<const std::int64_t> rows,
              ColumnBuilder& out, Append append) {
  for (const std::int64_t row : rows) {
    if (IsNull(column, row)) {
      out.AppendNull();
    } else {
      append(row);
    }
  }
}

}  // namespace

Column Take(const Column& column, std::span<const std::int64_t> rows) {
  ColumnBuilder out(column.type, static_cast<std::int64_t>(rows.size()));
  switch (column.type.kind) {
    case Kind::kBool:
      TakeEach(column, rows, out,
               [&](std::int64_t row) { out.AppendBool(BoolValue(column, row)); });
      break;
    case Kind::kInt16:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendInt16(FixedValue<std::int16_t>(column, row));
      });
      break;
    case Kind::kInt32:
    case Kind::kDate32:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendInt32(FixedValue<std::int32_t>(column, row));
      });
      break;
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendInt64(FixedValue<std::int64_t>(column, row));
      });
      break;
    case Kind::kFloat32:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendFloat32(FixedValue<float>(column, row));
      });
      break;
    case Kind::kFloat64:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendFloat64(FixedValue<double>(column, row));
      });
      break;
    case Kind::kDecimal128:
      TakeEach(column, rows, out, [&](std::int64_t row) {
        out.AppendDecimal(FixedValue<__int128>(column, row));
      });
      break;
    case Kind::kUtf8:
    case Kind::kBinary:
      TakeEach(column, rows, out,
               [&](std::int64_t row) { out.AppendBytes(BytesValue(column, row)); });
      break;
  }
  return out.Finish();
}

Column NullColumn(const Type& type, std::int64_t row_count) {
  ColumnBuilder out(type, row_count);
  for (std::int64_t row = 0; row < row_count; ++row) out.AppendNull();
  return out.Finish();
}

}  // namespace mssql_cdc::columns

#include "cdc/cells.h"

#include <span>

#include "base/text.h"
#include "columns/cell_access.h"

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;

Error WrongKind(const columns::Column& column) {
  return Error(ErrorId::kTdsMalformed)
      .With("reason", "an answer has a column of another type than expected")
      .With("type", columns::DeltaTypeName(column.type));
}

}  // namespace

Result<std::size_t> ColumnIndex(const columns::Schema& schema, std::string_view name) {
  for (std::size_t i = 0; i < schema.fields.size(); ++i) {
    if (EqualsIgnoringAsciiCase(schema.fields[i].name, name)) return i;
  }
  return Error(ErrorId::kTdsMalformed)
      .With("reason", "an answer lacks a column")
      .With("column", std::string(name));
}

Result<std::optional<std::string_view>> TextCell(const columns::Column& column,
                                                 std::int64_t row) {
  if (column.type.kind != Kind::kUtf8) return WrongKind(column);
  const auto at = static_cast<std::size_t>(row);
  if (columns::IsNull(column, at)) return std::optional<std::string_view>();
  return std::optional<std::string_view>(columns::BytesAt(column, at));
}

Result<std::optional<std::int64_t>> IntegerCell(const columns::Column& column,
                                                std::int64_t row) {
  const auto at = static_cast<std::size_t>(row);
  std::optional<std::int64_t> value;
  switch (column.type.kind) {
    case Kind::kBool:
      if (!columns::IsNull(column, at)) {
        value = columns::BitAt(column.values.data(), at) ? 1 : 0;
      }
      return value;
    case Kind::kInt16:
      if (!columns::IsNull(column, at)) {
        value = columns::ValueAt<std::int16_t>(column, at);
      }
      return value;
    case Kind::kInt32:
      if (!columns::IsNull(column, at)) {
        value = columns::ValueAt<std::int32_t>(column, at);
      }
      return value;
    case Kind::kInt64:
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      if (!columns::IsNull(column, at)) {
        value = columns::ValueAt<std::int64_t>(column, at);
      }
      return value;
    case Kind::kFloat32:
    case Kind::kFloat64:
    case Kind::kDecimal128:
    case Kind::kDate32:
    case Kind::kUtf8:
    case Kind::kBinary:
      return WrongKind(column);
  }
  return WrongKind(column);
}

Result<std::optional<Lsn>> LsnCell(const columns::Column& column, std::int64_t row) {
  if (column.type.kind != Kind::kBinary) return WrongKind(column);
  const auto at = static_cast<std::size_t>(row);
  if (columns::IsNull(column, at)) return std::optional<Lsn>();
  const std::string_view bytes = columns::BytesAt(column, at);
  TRY_ASSIGN(const Lsn lsn,
             Lsn::FromBytes(std::span(
                 reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
  if (lsn.IsZero()) return std::optional<Lsn>();
  return std::optional<Lsn>(lsn);
}

Result<std::optional<std::string>> RowView::Text(std::string_view column) const {
  TRY_ASSIGN(const std::size_t index, ColumnIndex(*batch_.schema, column));
  TRY_ASSIGN(const std::optional<std::string_view> text,
             TextCell(*batch_.columns[index], row_));
  if (!text) return std::optional<std::string>();
  return std::optional<std::string>(*text);
}

Result<std::optional<std::int64_t>> RowView::Integer(std::string_view column) const {
  TRY_ASSIGN(const std::size_t index, ColumnIndex(*batch_.schema, column));
  return IntegerCell(*batch_.columns[index], row_);
}

Result<std::optional<Lsn>> RowView::LsnOf(std::string_view column) const {
  TRY_ASSIGN(const std::size_t index, ColumnIndex(*batch_.schema, column));
  return LsnCell(*batch_.columns[index], row_);
}

}  // namespace mssql_cdc::cdc

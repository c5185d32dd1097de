#include "lake/memory_rows.h"

#include <memory>
#include <utility>

#include "base/text.h"
#include "columns/take.h"

namespace mssql_cdc::lake {
namespace {

using columns::BytesValue;
using columns::Column;
using columns::FixedValue;
using columns::IsNull;

const Column* FindColumn(const columns::RecordBatch& batch, std::string_view name) {
  for (std::size_t i = 0; i < batch.columns.size(); ++i) {
    if (EqualsIgnoringAsciiCase(batch.schema->fields[i].name, name)) {
      return batch.columns[i].get();
    }
  }
  return nullptr;
}

bool Meets(const columns::RecordBatch& batch, std::int64_t row,
           const std::vector<Condition>& conditions) {
  for (const Condition& condition : conditions) {
    const Column* column = FindColumn(batch, condition.column);
    const bool is_null = column == nullptr || IsNull(*column, row);
    switch (condition.op) {
      case Condition::Operator::kEqual:
        if (is_null || BytesValue(*column, row) != condition.text) return false;
        break;
      case Condition::Operator::kAbove:
        if (is_null || BytesValue(*column, row) <= condition.text) return false;
        break;
      case Condition::Operator::kAtLeast:
        if (is_null || BytesValue(*column, row) < condition.text) return false;
        break;
      case Condition::Operator::kNumberIs:
        if (is_null || FixedValue<std::int32_t>(*column, row) != condition.number) {
          return false;
        }
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
    selected.columns.push_back(std::make_shared<const Column>(
        column == nullptr ? columns::NullColumn(field.type, selected.row_count)
                          : columns::Take(*column, rows)));
  }
  return selected;
}

}  // namespace mssql_cdc::lake

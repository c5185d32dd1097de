#include "sim/sql/written_columns.h"

#include "sim/sql/identifier.h"

namespace mssql_cdc::sim {

std::size_t ColumnIndex(const TableSource& source, const std::string& name,
                        Environment& environment) {
  const auto& columns = source.columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (SameIdentifier(columns[i].name, name, environment)) return i;
  }
  RaiseSql(207, 16, 1, "Invalid column name '" + name + "'.");
}

void CheckAssignable(const ColumnInfo& column) {
  if (column.computed) {
    RaiseSql(
        271, 16, 1,
        "The column \"" + column.name +
            "\" cannot be modified because it is either a computed column or is the "
            "result of a UNION operator.");
  }
  if (column.type.id == TypeId::kRowVersion) {
    RaiseSql(272, 16, 1, "Cannot update a timestamp column.");
  }
}

}  // namespace mssql_cdc::sim

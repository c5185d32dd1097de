#include "sim/engine/stored_row.h"

namespace mssql_cdc::sim {

std::string InsertText(const TableMeta& table) {
  std::string names;
  std::string marks;
  for (const ColumnMeta& column : table.columns) {
    names += (names.empty() ? "" : ",") + column.physical;
    marks += marks.empty() ? "?" : ",?";
    if (column.sort_physical.empty()) continue;
    names += "," + column.sort_physical;
    marks += ",?";
  }
  return "INSERT INTO " + table.physical + "(" + names + ") VALUES(" + marks + ")";
}

void EncodeRow(const TableMeta& table, const std::vector<Value>& row,
               std::vector<Cell>& cells) {
  cells.resize(row.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    EncodeCell(table.columns[i].type, row[i], cells[i]);
  }
}

void BindRow(Statement& insert, const TableMeta& table,
             const std::string& database_collation, const std::vector<Value>& row,
             const std::vector<Cell>& cells) {
  int index = 1;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    BindCell(insert, index++, cells[i]);
    if (table.columns[i].sort_physical.empty()) continue;
    BindSortKey(insert, index++, table.columns[i], database_collation, row[i]);
  }
}

void BindSortKey(Statement& statement, int index, const ColumnMeta& column,
                 const std::string& database_collation, const Value& value) {
  const auto* text = std::get_if<Text>(&value.held);
  if (text == nullptr) return statement.BindNull(index);
  const std::string key = TextSortKey(*text, column.type.collation, database_collation);
  statement.BindBlob(index, key.data(), key.size());
}

}  // namespace mssql_cdc::sim

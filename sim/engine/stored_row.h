// A row of a table as it is stored: a cell for each column, and behind the cell of a
// key column of text its sort key (cell.h).

#pragma once

#include <string>
#include <vector>

#include "sim/engine/catalog.h"
#include "sim/engine/cell.h"
#include "sim/engine/sqlite.h"

namespace mssql_cdc::sim {

// An INSERT of a whole row, which BindRow fills.
std::string InsertText(const TableMeta& table);
// The cells of a row. Requires values of the columns' types.
void EncodeRow(const TableMeta& table, const std::vector<Value>& row,
               std::vector<Cell>& cells);
void BindRow(Statement& insert, const TableMeta& table,
             const std::string& database_collation, const std::vector<Value>& row,
             const std::vector<Cell>& cells);
// The cell that sorts `value`, a value of `column`.
void BindSortKey(Statement& statement, int index, const ColumnMeta& column,
                 const std::string& database_collation, const Value& value);

}  // namespace mssql_cdc::sim

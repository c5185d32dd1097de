// From a table's description to SQLite's tables and indexes, and from one layout to
// another when a key, a type or a column changes.

#pragma once

#include <functional>
#include <string>

#include "sim/engine/catalog.h"
#include "sim/engine/sqlite.h"

namespace mssql_cdc::sim {

// Chooses the layout and the physical names and creates table and indexes. False:
// SQLite refused.
bool CreateStorage(Connection& connection, TableMeta& table);
bool DropStorage(Connection& connection, const TableMeta& table);
// Gives a value of the new table's column `position` for a stored row of the old one,
// or nullptr to take the old column of the same id.
using ColumnFill = std::function<bool(std::size_t position,
                                      const std::vector<Value>& old, Value& value)>;
enum class RebuildResult : std::uint8_t { kDone, kDuplicate, kFailed };
// Creates storage for `next`, copies all rows of `old` into it, drops the old storage.
RebuildResult Rebuild(Connection& connection, const Catalog& catalog,
                      const TableMeta& old, TableMeta& next, const ColumnFill& fill);

// A column of the engine's own tables.
ColumnMeta PlainColumn(std::string name, SqlType type, bool nullable);
// Adds a column with the next id.
ColumnMeta& AddColumn(TableMeta& table, ColumnMeta column);
SqlType IntType();
SqlType BitType();
SqlType BigIntType();
SqlType BinaryType(std::int32_t length);
SqlType VarBinaryOf(std::int32_t length);
SqlType DateTimeType();

}  // namespace mssql_cdc::sim

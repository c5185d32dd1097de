#include "sim/engine/table_layout.h"

#include <algorithm>

#include "sim/engine/stored_row.h"

namespace mssql_cdc::sim {
namespace {

bool IsIntegerKey(TypeId id) {
  return id == TypeId::kTinyInt || id == TypeId::kSmallInt || id == TypeId::kInt ||
         id == TypeId::kBigInt;
}

Layout LayoutOf(const TableMeta& table) {
  const IndexMeta* clustered = table.ClusteredIndex();
  if (clustered == nullptr || !clustered->unique) return Layout::kHeap;
  const bool nullable = std::any_of(clustered->parts.begin(), clustered->parts.end(),
                                    [&](const IndexMeta::Part& p) {
                                      return table.ColumnById(p.column_id)->nullable;
                                    });
  // SQLite's WITHOUT ROWID keys take no NULL.
  if (nullable) return Layout::kHeap;
  if (clustered->parts.size() == 1 && !clustered->parts[0].descending &&
      IsIntegerKey(table.ColumnById(clustered->parts[0].column_id)->type.id)) {
    return Layout::kIntegerKey;
  }
  return Layout::kClustered;
}

std::string PartList(const TableMeta& table, const IndexMeta& index) {
  std::string text;
  for (const IndexMeta::Part& part : index.parts) {
    text += (text.empty() ? "" : ",") +
            table.ColumnById(part.column_id)->OrderColumn() +
            (part.descending ? " DESC" : "");
  }
  return text;
}

void NameColumns(TableMeta& table) {
  for (ColumnMeta& column : table.columns) {
    column.physical = "c" + std::to_string(column.column_id);
    const bool keyed = std::any_of(
        table.indexes.begin(), table.indexes.end(), [&](const IndexMeta& index) {
          return std::any_of(
              index.parts.begin(), index.parts.end(),
              [&](const auto& part) { return part.column_id == column.column_id; });
        });
    column.sort_physical = keyed && IsTextType(column.type.id)
                               ? "k" + std::to_string(column.column_id)
                               : std::string();
  }
}

}  // namespace

bool CreateStorage(Connection& connection, TableMeta& table) {
  table.layout = LayoutOf(table);
  NameColumns(table);
  // A rebuilt table gets a new name: readers may still hold the old one.
  int version = 1;
  const std::string stem = "t" + std::to_string(table.object_id) + "_";
  while (stem + std::to_string(version) == table.physical) ++version;
  table.physical = stem + std::to_string(version);
  const IndexMeta* clustered = table.ClusteredIndex();
  std::string text;
  for (const ColumnMeta& column : table.columns) {
    text += (text.empty() ? "" : ",") + column.physical;
    if (table.layout == Layout::kIntegerKey &&
        clustered->parts[0].column_id == column.column_id) {
      text += " INTEGER PRIMARY KEY";
    }
    if (!column.sort_physical.empty()) text += "," + column.sort_physical;
  }
  if (table.layout == Layout::kClustered) {
    text += ",PRIMARY KEY(" + PartList(table, *clustered) + "))WITHOUT ROWID";
  } else {
    text += ")";
  }
  if (!connection.Execute("CREATE TABLE " + table.physical + "(" + text)) return false;
  for (const IndexMeta& index : table.indexes) {
    if (index.clustered && table.layout != Layout::kHeap) continue;
    const std::string sql = std::string("CREATE ") + (index.unique ? "UNIQUE " : "") +
                            "INDEX " + table.physical + "_" +
                            std::to_string(index.index_id) + " ON " + table.physical +
                            "(" + PartList(table, index) + ")";
    if (!connection.Execute(sql)) return false;
  }
  return true;
}

bool DropStorage(Connection& connection, const TableMeta& table) {
  return connection.Execute("DROP TABLE IF EXISTS " + table.physical);
}

RebuildResult Rebuild(Connection& connection, const Catalog& catalog,
                      const TableMeta& old, TableMeta& next, const ColumnFill& fill) {
  next.physical = old.physical;
  if (!CreateStorage(connection, next)) return RebuildResult::kFailed;
  std::string names;
  for (const ColumnMeta& column : old.columns) {
    names += (names.empty() ? "" : ",") + column.physical;
  }
  {
    Statement read = connection.Prepare("SELECT " + names + " FROM " + old.physical);
    Statement insert = connection.Prepare(InsertText(next));
    if (!read || !insert) return RebuildResult::kFailed;
    std::vector<Value> row(old.columns.size());
    std::vector<Value> values(next.columns.size());
    std::vector<Cell> cells;
    while (read.Next() == Step::kRow) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        DecodeColumn(old.columns[i].type, read, static_cast<int>(i), row[i]);
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = Value{};
        if (fill != nullptr && fill(i, row, values[i])) continue;
        const auto position = old.IndexOf(next.columns[i].column_id);
        if (position) values[i] = row[*position];
      }
      EncodeRow(next, values, cells);
      BindRow(insert, next, catalog.collation, values, cells);
      const Step step = insert.Run();
      if (step == Step::kUnique) return RebuildResult::kDuplicate;
      if (step != Step::kDone) return RebuildResult::kFailed;
    }
  }
  connection.DropCache();
  return DropStorage(connection, old) ? RebuildResult::kDone : RebuildResult::kFailed;
}

ColumnMeta PlainColumn(std::string name, SqlType type, bool nullable) {
  ColumnMeta column;
  column.name = std::move(name);
  column.type_name = SystemTypeName(type.id);
  column.type = std::move(type);
  column.nullable = nullable;
  return column;
}

ColumnMeta& AddColumn(TableMeta& table, ColumnMeta column) {
  column.column_id = table.next_column_id++;
  table.columns.push_back(std::move(column));
  return table.columns.back();
}

namespace {

SqlType Of(TypeId id, std::int32_t length = 0) {
  SqlType type;
  type.id = id;
  type.length = length;
  return type;
}

}  // namespace

SqlType IntType() { return Of(TypeId::kInt); }
SqlType BitType() { return Of(TypeId::kBit); }
SqlType BigIntType() { return Of(TypeId::kBigInt); }
SqlType BinaryType(std::int32_t length) { return Of(TypeId::kBinary, length); }
SqlType VarBinaryOf(std::int32_t length) { return Of(TypeId::kVarBinary, length); }
SqlType DateTimeType() { return Of(TypeId::kDateTime); }

}  // namespace mssql_cdc::sim

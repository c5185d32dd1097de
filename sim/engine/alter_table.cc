// ALTER TABLE, and what it means to the capture instances of a tracked table.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/definitions.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

std::vector<ColumnInfo> InfosOf(const TableMeta& table) {
  std::vector<ColumnInfo> infos;
  for (const ColumnMeta& column : table.columns) {
    ColumnInfo info;
    info.name = column.name;
    info.type = column.type;
    info.nullable = column.nullable;
    infos.push_back(std::move(info));
  }
  return infos;
}

[[noreturn]] void RaiseAccessed(const char* action, const std::string& column,
                                const std::string& object) {
  (void)object;
  RaiseSql(4922, 16, 9,
           std::string("ALTER TABLE ") + action + " " + column +
               " failed because one or more objects access this column.");
}

// Fills the columns that ADD brings: defaults where NULL is not allowed, identity
// numbers, computed values.
class AddedColumns {
 public:
  AddedColumns(Session& session, WriteTransaction& transaction, const TableMeta& old,
               const TableMeta& next)
      : transaction_(transaction), old_(old), next_(next) {
    for (std::size_t i = old.columns.size(); i < next.columns.size(); ++i) {
      const ColumnMeta& column = next.columns[i];
      std::unique_ptr<RowExpression> expression;
      if (column.computed()) {
        expression = BindRowExpression(ParseExpression(column.computed_text),
                                       InfosOf(next), column.type, session);
      } else if (!column.default_text.empty() && !column.nullable) {
        expression = BindRowExpression(ParseExpression(column.default_text), {},
                                       column.type, session);
      }
      expressions_.push_back(std::move(expression));
    }
  }

  bool Fill(std::size_t position, const std::vector<Value>& old, Value& value) {
    if (position < old_.columns.size()) return false;
    const ColumnMeta& column = next_.columns[position];
    RowExpression* expression = expressions_[position - old_.columns.size()].get();
    if (column.identity) {
      const auto last = transaction_.LastIdentity(next_.object_id);
      const std::int64_t number = last ? *last + column.increment : column.seed;
      transaction_.SetIdentity(next_.object_id, number);
      value.held = number;
    } else if (column.type.id == TypeId::kRowVersion) {
      const std::string bytes = BigEndian64(transaction_.NextRowVersion());
      value.held = Bytes(bytes.begin(), bytes.end());
    } else if (expression != nullptr) {
      Row row = old;
      row.resize(next_.columns.size());
      value = expression->Evaluate(column.computed() ? row : Row{});
    } else if (!column.nullable) {
      RaiseSql(4901, 16, 1,
               "ALTER TABLE only allows columns to be added that can contain nulls, or "
               "have a DEFAULT definition specified, or the column being added is an "
               "identity or timestamp column, or alternatively if none of the previous "
               "conditions are satisfied the table must be empty to allow addition of "
               "this column. Column '" +
                   column.name + "' cannot be added to non-empty table '" + next_.name +
                   "' because it does not satisfy these conditions.");
    }
    return true;
  }

 private:
  WriteTransaction& transaction_;
  const TableMeta& old_;
  const TableMeta& next_;
  std::vector<std::unique_ptr<RowExpression>> expressions_;
};

void AddToTable(Session& session, const std::shared_ptr<Database>& database,
                const TablePtr& table, const ast::AddColumns& action) {
  WriteTransaction& transaction = session.Write(database);
  TableMeta next = *table;
  if (!Does(Behaviour::kReaddedColumnNew)) {
    next.next_column_id = next.columns.back().column_id + 1;
  }
  for (const ast::ColumnDefinition& column : action.columns) {
    AddColumnDefinition(session, next, column, "ALTER TABLE");
  }
  AddConstraints(session, database, next, action.constraints);
  AddedColumns added(session, transaction, *table, next);
  ReplaceTable(session, transaction, *table, next,
               [&](std::size_t position, const std::vector<Value>& old, Value& value) {
                 return added.Fill(position, old, value);
               });
}

bool IsKeyColumn(const TableMeta& table, std::int32_t column_id) {
  return std::any_of(
      table.indexes.begin(), table.indexes.end(), [&](const auto& index) {
        return std::any_of(
            index.parts.begin(), index.parts.end(),
            [&](const auto& part) { return part.column_id == column_id; });
      });
}

ColumnMeta AlterInTable(Session& session, const std::shared_ptr<Database>& database,
                        const TablePtr& table, const ast::AlterColumn& action) {
  TableMeta next = *table;
  const CatalogPtr catalog = session.CatalogOf(database);
  const auto found = std::find_if(
      next.columns.begin(), next.columns.end(), [&](const ColumnMeta& column) {
        return catalog->SameName(column.name, action.column.name);
      });
  if (found == next.columns.end()) {
    RaiseSql(4924, 16, 1,
             "ALTER TABLE ALTER COLUMN failed because column '" + action.column.name +
                 "' does not exist in table '" + table->name + "'.");
  }
  ColumnMeta& column = *found;
  if (column.computed() || column.type.id == TypeId::kRowVersion) {
    RaiseSql(4928, 16, 1,
             "Cannot alter column '" + column.name + "' because it is '" +
                 (column.computed() ? "COMPUTED" : "timestamp") + "'.");
  }
  const SqlType type = ResolveType(action.column.type, session);
  if (IsKeyColumn(*table, column.column_id) && type.id != column.type.id) {
    RaiseAccessed("ALTER COLUMN", column.name, table->name);
  }
  const SqlType before = column.type;
  column.type = type;
  column.type.collation =
      action.column.collation.empty() ? before.collation : action.column.collation;
  column.type_name = SystemTypeName(type.id);
  column.nullable = action.column.nullable.value_or(true);
  const auto position = static_cast<std::size_t>(found - next.columns.begin());
  auto reference = std::make_shared<ast::Expression>();
  reference->node = ast::ColumnReference{{column.name}};
  const auto cast = BindRowExpression(reference, InfosOf(*table), column.type, session);
  const ColumnMeta result = column;
  ReplaceTable(session, session.Write(database), *table, std::move(next),
               [&](std::size_t at, const std::vector<Value>& old, Value& value) {
                 if (at != position) return false;
                 value = cast->Evaluate(old);
                 if (value.IsNull() && !result.nullable) {
                   RaiseSql(515, 16, 2,
                            "Cannot insert the value NULL into column '" + result.name +
                                "', table '" + database->name() + "." +
                                table->FullName() +
                                "'; column does not allow nulls. UPDATE fails.");
                 }
                 return true;
               });
  return result;
}

void DropConstraint(const Catalog& catalog, TableMeta& next, const std::string& name) {
  auto same = [&](const auto& item) { return catalog.SameName(item.name, name); };
  if (const IndexMeta* index = next.FindIndex(name);
      index != nullptr && index->constraint) {
    for (const CaptureInstance* instance : catalog.InstancesOf(next.object_id)) {
      if (!instance->index_name || !catalog.SameName(*instance->index_name, name)) {
        continue;
      }
      RaiseSql(22979, 16, 1,
               "The unique index '" + name + "' on source table '" + next.FullName() +
                   "' is used by Change Data Capture. The constraint using the index "
                   "cannot be dropped or disabled.");
    }
    std::erase_if(next.indexes, same);
    return;
  }
  if (std::erase_if(next.checks, same) > 0) return;
  if (std::erase_if(next.foreign_keys, same) > 0) return;
  for (ColumnMeta& column : next.columns) {
    if (!catalog.SameName(column.default_name, name)) continue;
    column.default_name.clear();
    column.default_text.clear();
    return;
  }
  RaiseSql(3728, 16, 1, "'" + name + "' is not a constraint.");
}

void DropFromTable(Session& session, const std::shared_ptr<Database>& database,
                   const TablePtr& table, const ast::DropColumns& action) {
  WriteTransaction& transaction = session.Write(database);
  TableMeta next = *table;
  for (const std::string& name : action.constraints) {
    DropConstraint(*transaction.catalog(), next, name);
  }
  for (const std::string& name : action.columns) {
    const ColumnMeta* column = next.FindColumn(name);
    if (column == nullptr) {
      if (action.if_exists) continue;
      RaiseSql(4924, 16, 1,
               "ALTER TABLE DROP COLUMN failed because column '" + name +
                   "' does not exist in table '" + table->name + "'.");
    }
    if (IsKeyColumn(next, column->column_id) || !column->default_text.empty()) {
      RaiseAccessed("DROP COLUMN", column->name, table->name);
    }
    const std::int32_t id = column->column_id;
    std::erase_if(next.columns, [&](const ColumnMeta& c) { return c.column_id == id; });
  }
  ReplaceTable(session, transaction, *table, std::move(next), nullptr);
}

// A primary key's or another used index's column may not change under an instance.
void CheckTrackedAlter(const Catalog& catalog, const TableMeta& table,
                       const std::string& column_name) {
  const ColumnMeta* column = table.FindColumn(column_name);
  if (column == nullptr) return;
  for (const CaptureInstance* instance : catalog.InstancesOf(table.object_id)) {
    const auto& keys = instance->key_column_ids;
    if (std::find(keys.begin(), keys.end(), column->column_id) == keys.end()) continue;
    RaiseSql(4928, 16, 1,
             "Cannot alter column '" + column->name +
                 "' because it is 'REPLICATED' or used by Change Data Capture.");
  }
}

}  // namespace

void AlterTable(Session& session, const ast::AlterTable& statement,
                const std::string& text) {
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.name);
  const TablePtr table = TableToAlter(session, database, statement.name);
  WriteTransaction& transaction = session.Write(database);
  if (const auto* add = std::get_if<ast::AddColumns>(&statement.action)) {
    AddToTable(session, database, table, *add);
    LogDefinition(session, transaction, *table, text, nullptr);
    return;
  }
  if (const auto* alter = std::get_if<ast::AlterColumn>(&statement.action)) {
    CheckTrackedAlter(*transaction.catalog(), *table, alter->column.name);
    const ColumnMeta altered = AlterInTable(session, database, table, *alter);
    LogDefinition(session, transaction, *table, text, &altered);
    return;
  }
  if (const auto* drop = std::get_if<ast::DropColumns>(&statement.action)) {
    for (const std::string& column : drop->columns) {
      CheckTrackedAlter(*transaction.catalog(), *table, column);
    }
    DropFromTable(session, database, table, *drop);
    LogDefinition(session, transaction, *table, text, nullptr);
    return;
  }
  if (const auto* option = std::get_if<ast::AlterTableOption>(&statement.action)) {
    if (!option->words.empty() &&
        EqualsIgnoringAsciiCase(option->words[0], "REBUILD")) {
      return;
    }
    RaiseSql(102, 15, 1,
             "Incorrect syntax near '" +
                 (option->words.empty() ? std::string() : option->words[0]) + "'.");
  }
  const auto& partition = std::get<ast::SwitchPartition>(statement.action);
  SwitchTable(session, database, table, partition.target);
}

}  // namespace mssql_cdc::sim

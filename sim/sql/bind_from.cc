// FROM: tables, views, derived tables, table functions, joins.

#include <algorithm>

#include "sim/sql/binder.h"
#include "sim/sql/identifier.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/table_hints.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

void Binder::AddTable(std::shared_ptr<BoundTable> table, Scope& scope) {
  const std::string& own = table->alias.empty() ? table->name.object : table->alias;
  for (const auto& other : scope.tables) {
    const std::string& name = other->alias.empty() ? other->name.object : other->alias;
    const bool both_named = !table->alias.empty() || !other->alias.empty();
    const bool same_schema =
        SameIdentifier(table->name.schema, other->name.schema, environment_);
    if (SameIdentifier(own, name, environment_) && (both_named || same_schema)) {
      if (both_named && !table->alias.empty() && !other->alias.empty()) {
        RaiseSql(1011, 16, 1,
                 "The correlation name '" + own +
                     "' is specified multiple times in a FROM clause.");
      }
      RaiseSql(1013, 16, 1,
               "The objects \"" + name + "\" and \"" + own +
                   "\" in the FROM clause have the same exposed names. Use correlation "
                   "names to distinguish them.");
    }
  }
  table->used.assign(table->columns.size(), false);
  scope.tables.push_back(std::move(table));
}

FromPtr Binder::BindFrom(const std::vector<ast::TableReferencePtr>& from,
                         Scope& scope) {
  FromPtr whole;
  for (const ast::TableReferencePtr& table : from) {
    FromPtr next = BindTable(*table, scope);
    if (!whole) {
      whole = std::move(next);
      continue;
    }
    auto join = std::make_unique<FromNode>();
    join->kind = FromNode::Kind::kJoin;
    join->join = ast::JoinKind::kCross;
    join->begin = whole->begin;
    join->end = next->end;
    join->left = std::move(whole);
    join->right = std::move(next);
    whole = std::move(join);
  }
  return whole;
}

FromPtr Binder::BindTable(const ast::TableReference& table, Scope& scope) {
  try {
    const auto& node = table.node;
    if (const auto* named = std::get_if<ast::NamedTable>(&node)) {
      return BindNamed(table, *named, scope);
    }
    if (const auto* variable = std::get_if<ast::VariableTable>(&node)) {
      const auto at = variables_.tables.find(variable->name);
      if (at == variables_.tables.end()) {
        RaiseSql(1087, 15, 2,
                 "Must declare the table variable \"" + variable->name + "\".");
      }
      ObjectName name;
      name.object = variable->name;
      return BindTarget(at->second, name, table.alias, scope);
    }
    if (const auto* function = std::get_if<ast::FunctionTable>(&node)) {
      return BindFunction(table, *function, scope);
    }
    if (const auto* derived = std::get_if<ast::DerivedTable>(&node)) {
      return BindDerived(*derived->select, table.alias, table.column_aliases,
                         scope.outer, scope);
    }
    if (const auto* values = std::get_if<ast::ValuesTable>(&node)) {
      return BindRows(*values, table, scope);
    }
    return BindJoin(std::get<ast::Join>(node), scope);
  } catch (SqlError& error) {
    if (error.message.line == 0) error.message.line = table.line;
    throw;
  }
}

FromPtr Binder::BindTarget(std::shared_ptr<TableSource> source, const ObjectName& name,
                           const std::string& alias, Scope& scope) {
  auto node = std::make_unique<FromNode>();
  node->kind = FromNode::Kind::kTable;
  node->begin = next_slot_;
  auto table = std::make_shared<BoundTable>();
  table->alias = alias;
  table->name = name;
  for (const ColumnInfo& info : source->columns()) {
    OutputColumn column;
    column.name = info.name;
    column.type = info.type;
    column.nullable = info.nullable;
    column.identity = info.identity;
    column.computed = info.computed;
    column.slot = NewSlot();
    table->columns.push_back(std::move(column));
  }
  node->end = next_slot_;
  node->table = table;
  node->source = std::move(source);
  AddTable(std::move(table), scope);
  return node;
}

FromPtr Binder::BindNamed(const ast::TableReference& table,
                          const ast::NamedTable& named, Scope& scope) {
  const std::string alias = table.alias.empty() ? std::string() : table.alias;
  if (const ast::CommonTable* common = FindCommonTable(named.name)) {
    // Inside it, only the common tables before it are seen.
    const auto mine = std::find(common_tables_.begin(), common_tables_.end(), common);
    std::vector<const ast::CommonTable*> kept(mine, common_tables_.end());
    common_tables_.erase(mine, common_tables_.end());
    FromPtr node =
        BindDerived(*common->select, alias.empty() ? named.name.object : alias,
                    common->columns, nullptr, scope);
    common_tables_.insert(common_tables_.end(), kept.begin(), kept.end());
    return node;
  }
  if (auto view = environment_.FindView(named.name)) {
    if (++view_depth_ > 32) {
      RaiseSql(4413, 16, 1,
               "Could not use view or function '" + named.name.Text() +
                   "' because of binding errors.");
    }
    const auto kept = std::make_shared<ast::CreateModule>(std::move(*view));
    kept_.push_back(kept);
    std::vector<const ast::CommonTable*> hidden;
    std::swap(hidden, common_tables_);
    FromPtr node = BindDerived(*kept->view, alias.empty() ? named.name.object : alias,
                               kept->columns, nullptr, scope);
    std::swap(hidden, common_tables_);
    --view_depth_;
    return node;
  }
  std::shared_ptr<TableSource> source =
      environment_.FindTable(named.name, ReadAccess(named.hints));
  if (!source) {
    RaiseSql(208, 16, 1, "Invalid object name '" + named.name.Text() + "'.");
  }
  return BindTarget(std::move(source), named.name, alias, scope);
}

FromPtr Binder::BindDerived(const ast::Select& select, const std::string& alias,
                            const std::vector<std::string>& columns, const Scope* outer,
                            Scope& scope) {
  const bool limited = select.offset != nullptr;
  const auto* query = std::get_if<ast::QuerySpecification>(&select.body->node);
  if (!select.order_by.empty() && !limited && (query == nullptr || !query->top)) {
    RaiseSql(
        1033, 15, 1,
        "The ORDER BY clause is invalid in views, inline functions, derived tables, "
        "subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is "
        "also specified.");
  }
  auto node = std::make_unique<FromNode>();
  node->kind = FromNode::Kind::kQuery;
  node->begin = next_slot_;
  node->query = BindSelect(select, outer);
  node->end = next_slot_;
  node->free_slots = node->query->free_slots;
  auto table = std::make_shared<BoundTable>();
  table->alias = alias;
  table->name.object = alias;
  table->columns = node->query->columns;
  if (!columns.empty() && columns.size() != table->columns.size()) {
    RaiseSql(columns.size() > table->columns.size() ? 8159 : 8158, 16, 1,
             "'" + alias + "' has " +
                 (columns.size() > table->columns.size() ? "fewer" : "more") +
                 " columns than were specified in the column list.");
  }
  for (std::size_t i = 0; i < table->columns.size(); ++i) {
    if (!columns.empty()) table->columns[i].name = columns[i];
    if (table->columns[i].name.empty()) {
      RaiseSql(8155, 16, 2,
               "No column name was specified for column " + std::to_string(i + 1) +
                   " of '" + alias + "'.");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (SameIdentifier(table->columns[i].name, table->columns[j].name,
                         environment_)) {
        RaiseSql(8156, 16, 1,
                 "The column '" + table->columns[i].name +
                     "' was specified multiple times for '" + alias + "'.");
      }
    }
  }
  node->table = table;
  AddTable(std::move(table), scope);
  return node;
}

FromPtr Binder::BindRows(const ast::ValuesTable& values, const ast::TableReference& ref,
                         Scope& scope) {
  auto node = std::make_unique<FromNode>();
  node->kind = FromNode::Kind::kValues;
  node->begin = next_slot_;
  const std::size_t mark = reads_.size();
  const Slot first = next_slot_;
  for (const auto& row : values.rows) {
    std::vector<Bound> bound;
    for (const ast::ExpressionPtr& item : row) bound.push_back(Bind(item, scope.outer));
    node->rows.push_back(std::move(bound));
  }
  node->free_slots = FreeSince(mark, first);
  auto table = std::make_shared<BoundTable>();
  table->alias = ref.alias;
  const std::size_t count = node->rows[0].size();
  if (ref.column_aliases.size() != count) {
    RaiseSql(ref.column_aliases.size() > count ? 8159 : 8158, 16, 1,
             "'" + ref.alias + "' has " +
                 (ref.column_aliases.size() > count ? "fewer" : "more") +
                 " columns than were specified in the column list.");
  }
  std::vector<OutputColumn> columns;
  for (std::size_t i = 0; i < count; ++i) {
    OutputColumn column;
    column.name = ref.column_aliases[i];
    std::vector<Bound> cells;
    for (const auto& row : node->rows) cells.push_back(row[i]);
    column.type = BranchType(cells);
    if (column.type.id == TypeId::kNull) column.type = TypeOf(TypeId::kInt);
    for (auto& row : node->rows) row[i] = Convert(row[i], column.type);
    columns.push_back(std::move(column));
  }
  // Slots in a row, after those of subqueries among the values.
  for (OutputColumn& column : columns) column.slot = NewSlot();
  node->end = next_slot_;
  table->columns = std::move(columns);
  node->table = table;
  AddTable(std::move(table), scope);
  return node;
}

FromPtr Binder::BindFunction(const ast::TableReference& ref,
                             const ast::FunctionTable& function, Scope& scope) {
  const auto found = environment_.FindTableFunction(function.name);
  if (!found) {
    RaiseSql(208, 16, 1, "Invalid object name '" + function.name.Text() + "'.");
  }
  if (function.arguments.size() < found->argument_count_min ||
      function.arguments.size() > found->parameters.size()) {
    const bool few = function.arguments.size() < found->argument_count_min;
    RaiseSql(
        few ? 313 : 8144, 16, 3,
        few ? "An insufficient number of arguments were supplied for the procedure "
              "or function " +
                  function.name.Text() + " ... ."
            : "Procedure or function " + function.name.Text() +
                  " has too many arguments specified.");
  }
  auto node = std::make_unique<FromNode>();
  node->kind = FromNode::Kind::kFunction;
  const std::size_t mark = reads_.size();
  node->begin = next_slot_;
  std::vector<Bound> arguments;
  for (std::size_t i = 0; i < function.arguments.size(); ++i) {
    if (std::holds_alternative<ast::DefaultKeyword>(function.arguments[i]->node)) {
      arguments.push_back(nullptr);
      continue;
    }
    Bound argument = Bind(function.arguments[i], scope.outer);
    if (found->parameters[i].id != TypeId::kNull) {
      argument = Convert(argument, found->parameters[i]);
    }
    arguments.push_back(std::move(argument));
  }
  node->free_slots = FreeSince(mark, node->begin);
  auto table = std::make_shared<BoundTable>();
  table->alias = ref.alias;
  table->name = function.name;
  for (std::size_t i = 0; i < found->columns.size(); ++i) {
    OutputColumn column;
    const ColumnInfo& info = found->columns[i];
    column.name = i < ref.column_aliases.size() ? ref.column_aliases[i] : info.name;
    column.type = info.type;
    column.nullable = info.nullable;
    column.slot = NewSlot();
    table->columns.push_back(std::move(column));
  }
  node->end = next_slot_;
  node->open = [arguments, call = found->call](Context& context) {
    std::vector<std::optional<TypedValue>> values;
    for (const Bound& argument : arguments) {
      values.emplace_back();
      if (argument) values.back() = TypedValue{argument->type, argument->Get(context)};
    }
    return call(values);
  };
  node->table = table;
  AddTable(std::move(table), scope);
  return node;
}

FromPtr Binder::BindJoin(const ast::Join& join, Scope& scope) {
  auto node = std::make_unique<FromNode>();
  node->kind = FromNode::Kind::kJoin;
  node->join = join.kind;
  // An ON sees the tables of its own join only, not those further left in FROM.
  Scope inner;
  inner.outer = scope.outer;
  node->left = BindTable(*join.left, inner);
  const bool apply = join.kind == ast::JoinKind::kCrossApply ||
                     join.kind == ast::JoinKind::kOuterApply;
  if (apply) {
    // The right side sees the left one, as a subquery sees its outer query.
    Scope right;
    right.outer = &inner;
    node->right = BindTable(*join.right, right);
    for (auto& table : right.tables) {
      std::vector<bool> used = table->used;
      AddTable(table, inner);
      table->used = std::move(used);
    }
  } else {
    node->right = BindTable(*join.right, inner);
  }
  node->begin = node->left->begin;
  node->end = node->right->end;
  if (join.on) SplitConditions(BindCondition(join.on, &inner), node->on);
  for (auto& table : inner.tables) {
    std::vector<bool> used = table->used;
    AddTable(table, scope);
    table->used = std::move(used);
  }
  return node;
}

}  // namespace mssql_cdc::sim

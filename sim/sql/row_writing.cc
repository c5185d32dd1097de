#include "sim/sql/row_writing.h"

#include <algorithm>

#include "base/text.h"
#include "sim/sql/types.h"
#include "sim/sql/written_columns.h"

namespace mssql_cdc::sim {

void Check(bool wanted) {
  if (!wanted) throw StopRequested{};
}

std::shared_ptr<TableSource> FindTarget(const ObjectName& name,
                                        const std::string& variable, Access access,
                                        const Run& run) {
  if (!variable.empty()) {
    const auto at = run.variables.tables.find(variable);
    if (at == run.variables.tables.end()) {
      RaiseSql(1087, 15, 2, "Must declare the table variable \"" + variable + "\".");
    }
    return at->second;
  }
  std::shared_ptr<TableSource> source = run.environment.FindTable(name, access);
  if (!source) RaiseSql(208, 16, 1, "Invalid object name '" + name.Text() + "'.");
  return source;
}

Bound Assigned(Binder& binder, const Bound& value, const ColumnInfo& column,
               const std::string& table) {
  const SqlType from = value->type;
  binder.SuggestType(value, column.type);
  if (from.id == TypeId::kNull) return binder.Convert(value, column.type);
  CheckConversion(from, column.type, false);
  ConvertOptions options = binder.Options();
  options.assignment = true;
  auto bound = std::make_shared<BoundExpression>(*value);
  bound->type = column.type;
  bound->slot.reset();
  bound->evaluate = [value, from, column, table, options](Context& context,
                                                          Value& out) {
    value->evaluate(context, out);
    if (out.IsNull()) return;
    if (WouldTruncate(out, from, column.type)) {
      std::string shown;
      if (const auto* text = std::get_if<Text>(&out.held)) {
        shown = Utf8(text->substr(0, static_cast<std::size_t>(column.type.length)));
      }
      RaiseSql(2628, 16, 1,
               "String or binary data would be truncated in table '" + table +
                   "', column '" + column.name + "'. Truncated value: '" + shown +
                   "'.");
    }
    out = ConvertValue(out, from, column.type, options);
  };
  return bound;
}

Output::Output(const std::optional<ast::OutputClause>& clause, TableSource& target,
               Binder& binder, const Run& run)
    : run_(run) {
  if (!clause) return;
  present_ = true;
  AddPseudoTable("inserted", target, binder, inserted_);
  AddPseudoTable("deleted", target, binder, deleted_);
  for (const ast::SelectItem& item : clause->items) AddItem(item, binder);
  if (!clause->into && clause->into_variable.empty()) return;
  into_ = FindTarget(clause->into.value_or(ObjectName{}), clause->into_variable,
                     Access::kInsert, run);
  BindInto(*clause, binder);
}

void Output::Begin() {
  if (sends_rows())
    Check(run_.sink->Columns(ResultColumns(columns_, run_.environment)));
}

void Output::Add(Context& context, const Row* deleted, const Row* inserted) {
  Fill(context, deleted_, deleted);
  Fill(context, inserted_, inserted);
  Row row;
  for (const Bound& item : items_) row.push_back(item->Get(context));
  if (into_) {
    rows_.push_back(std::move(row));
  } else {
    Check(run_.sink->Row(row));
  }
}

void Output::End() {
  if (!into_) return;
  InsertRequest request;
  request.columns = into_columns_;
  std::size_t at = 0;
  request.feed = [&](Row& row) {
    if (at == rows_.size()) return false;
    row = rows_[at++];
    return true;
  };
  into_->Insert(request);
}

void Output::AddPseudoTable(const std::string& name, TableSource& target,
                            Binder& binder, Pseudo& pseudo) {
  auto table = std::make_shared<BoundTable>();
  table->alias = name;
  table->any_case = true;
  for (const ColumnInfo& info : target.columns()) {
    OutputColumn column;
    column.name = info.name;
    column.type = info.type;
    column.nullable = info.nullable;
    column.slot = binder.NewSlot();
    pseudo.slots.push_back(column.slot);
    table->columns.push_back(std::move(column));
  }
  table->used.assign(table->columns.size(), true);
  scope_.tables.push_back(std::move(table));
}

void Output::AddItem(const ast::SelectItem& item, Binder& binder) {
  if (!item.star) {
    const Bound bound = binder.Bind(item.expression, &scope_);
    items_.push_back(bound);
    columns_.push_back({item.alias.empty() ? bound->name : item.alias, bound->type,
                        bound->nullable, false, false, 0});
    return;
  }
  for (const auto& table : scope_.tables) {
    if (item.star_of.empty() ||
        !EqualsIgnoringAsciiCase(table->alias, item.star_of.back())) {
      continue;
    }
    for (const OutputColumn& column : table->columns) {
      items_.push_back(Binder::SlotReference(column));
      columns_.push_back(column);
    }
  }
}

void Output::BindInto(const ast::OutputClause& clause, Binder& binder) {
  for (const std::string& name : clause.into_columns) {
    into_columns_.push_back(ColumnIndex(*into_, name, run_.environment));
  }
  for (std::size_t i = 0; clause.into_columns.empty() && i < into_->columns().size();
       ++i) {
    const ColumnInfo& column = into_->columns()[i];
    if (!column.identity && !column.computed) into_columns_.push_back(i);
  }
  if (into_columns_.size() != items_.size()) {
    RaiseSql(213, 16, 1,
             "Column name or number of supplied values does not match table "
             "definition.");
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    items_[i] =
        Assigned(binder, items_[i], into_->columns()[into_columns_[i]], into_->name());
  }
}

void Output::Fill(Context& context, const Pseudo& pseudo, const Row* row) {
  for (std::size_t i = 0; i < pseudo.slots.size(); ++i) {
    context.slots[pseudo.slots[i]] = row != nullptr ? (*row)[i] : Value();
  }
}

std::uint64_t TopOf(const std::optional<ast::Top>& top, Binder& binder,
                    Context& context) {
  if (!top) return UINT64_MAX;
  return RowCountOf(binder.Bind(top->count, nullptr), context, false);
}

void BoundAssignments::Bind(const std::vector<ast::Assignment>& assignments,
                            TableSource& target, const Scope& scope, Binder& binder) {
  for (const ast::Assignment& assignment : assignments) {
    if (!assignment.variable.empty()) binder.SetVariablesChange();
  }
  for (const ast::Assignment& assignment : assignments) {
    if (assignment.column.empty()) {
      RaiseSql(102, 15, 1, "Incorrect syntax near '" + assignment.variable + "'.");
    }
    const std::size_t index =
        ColumnIndex(target, assignment.column, binder.environment());
    const ColumnInfo& column = target.columns()[index];
    CheckAssignable(column);
    if (column.identity) {
      RaiseSql(8102, 16, 1, "Cannot update identity column '" + column.name + "'.");
    }
    if (std::find(columns.begin(), columns.end(), index) != columns.end()) {
      RaiseSql(264, 16, 1,
               "The column name '" + column.name +
                   "' is specified more than once in the SET clause or column list of "
                   "an INSERT. A column cannot be assigned more than one value in the "
                   "same clause.");
    }
    if (std::holds_alternative<ast::DefaultKeyword>(assignment.value->node)) {
      RaiseSql(156, 15, 1, "Incorrect syntax near the keyword 'DEFAULT'.");
    }
    Bound value = binder.Bind(assignment.value, &scope);
    if (assignment.op != ast::BinaryOperator::kEqual) {
      auto reference = std::make_shared<ast::Expression>();
      reference->node = ast::ColumnReference{{assignment.column}};
      value = binder.Arithmetic(assignment.op, binder.Bind(reference, &scope), value);
    }
    columns.push_back(index);
    values.push_back(Assigned(binder, value, column, target.name()));
    StoreVariable(assignment, binder);
  }
}

Row BoundAssignments::Evaluate(Context& context) const {
  Row row;
  for (const Bound& value : values) row.push_back(value->Get(context));
  return row;
}

void BoundAssignments::StoreVariable(const ast::Assignment& assignment,
                                     Binder& binder) {
  if (assignment.variable.empty()) return;
  const auto at = binder.variables().values.find(assignment.variable);
  if (at == binder.variables().values.end()) {
    RaiseSql(137, 15, 2,
             "Must declare the scalar variable \"" + assignment.variable + "\".");
  }
  const Bound inner = values.back();
  auto stores = std::make_shared<BoundExpression>(*inner);
  stores->evaluate = [inner, held = &at->second, options = binder.Options()](
                         Context& context, Value& out) {
    inner->evaluate(context, out);
    held->value = ConvertValue(out, inner->type, held->type, options);
  };
  values.back() = stores;
}

}  // namespace mssql_cdc::sim

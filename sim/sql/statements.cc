#include "sim/sql/statements.h"

#include <algorithm>

#include "base/text.h"
#include "sim/sql/types.h"
#include "sim/sql/written_columns.h"

namespace mssql_cdc::sim {
namespace {

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

// The value as the column stores it; text that does not fit is an error.
Bound Assigned(Binder& binder, const Bound& value, const ColumnInfo& column,
               const std::string& table) {
  const SqlType from = value->type;
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

// OUTPUT: where its rows go.
class Output {
 public:
  Output(const std::optional<ast::OutputClause>& clause, TableSource& target,
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

  bool present() const { return present_; }
  bool sends_rows() const { return present_ && !into_; }

  void Begin() {
    if (sends_rows())
      Check(run_.sink->Columns(ResultColumns(columns_, run_.environment)));
  }
  void Add(Context& context, const Row* deleted, const Row* inserted) {
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
  void End() {
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

 private:
  struct Pseudo {
    std::vector<Slot> slots;
  };

  void AddPseudoTable(const std::string& name, TableSource& target, Binder& binder,
                      Pseudo& pseudo) {
    auto table = std::make_shared<BoundTable>();
    table->alias = name;
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

  void AddItem(const ast::SelectItem& item, Binder& binder) {
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

  void BindInto(const ast::OutputClause& clause, Binder& binder) {
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
      items_[i] = Assigned(binder, items_[i], into_->columns()[into_columns_[i]],
                           into_->name());
    }
  }

  static void Fill(Context& context, const Pseudo& pseudo, const Row* row) {
    for (std::size_t i = 0; i < pseudo.slots.size(); ++i) {
      context.slots[pseudo.slots[i]] = row != nullptr ? (*row)[i] : Value();
    }
  }

  const Run& run_;
  bool present_ = false;
  Scope scope_;
  Pseudo inserted_, deleted_;
  std::vector<Bound> items_;
  std::vector<OutputColumn> columns_;
  std::shared_ptr<TableSource> into_;
  std::vector<std::size_t> into_columns_;
  std::vector<Row> rows_;
};

std::uint64_t TopOf(const std::optional<ast::Top>& top, Binder& binder,
                    Context& context) {
  if (!top) return UINT64_MAX;
  return RowCountOf(binder.Bind(top->count, nullptr), context, false);
}

// Receives what INSERT ... EXEC's procedure sends.
class Capture final : public ReplySink {
 public:
  explicit Capture(ReplySink& sink) : sink_(sink) {}
  bool Columns(const std::vector<ResultColumn>& columns) override {
    columns_ = columns;
    return true;
  }
  bool Row(const std::vector<Value>& values) override {
    rows.push_back(values);
    types.clear();
    for (const ResultColumn& column : columns_) types.push_back(column.type);
    return true;
  }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const Message& message) override {
    return sink_.SendMessage(message);
  }
  bool DatabaseChanged(const std::string& from, const std::string& to) override {
    return sink_.DatabaseChanged(from, to);
  }
  bool TransactionBegan(std::uint64_t id) override {
    return sink_.TransactionBegan(id);
  }
  bool TransactionEnded(std::uint64_t id, bool committed) override {
    return sink_.TransactionEnded(id, committed);
  }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

  std::vector<std::vector<Value>> rows;
  std::vector<SqlType> types;

 private:
  ReplySink& sink_;
  std::vector<ResultColumn> columns_;
};

// INSERT, in the forms of its source.
class Inserter {
 public:
  Inserter(const ast::Insert& insert, const Run& run)
      : insert_(insert),
        run_(run),
        binder_(run.environment, run.session, run.variables) {}

  std::int64_t Run() {
    binder_.PushCommonTables(insert_.with);
    target_ =
        FindTarget(insert_.target, insert_.target_variable, Access::kInsert, run_);
    ResolveColumns();
    Output output(insert_.output, *target_, binder_, run_);
    if (insert_.execute) return FromProcedure(output);
    if (insert_.select) return FromSelect(output);
    if (insert_.default_values) {
      columns_.clear();
      return FromRows({{}}, {{}}, output);
    }
    return FromValues(output);
  }

 private:
  void ResolveColumns() {
    for (const std::string& name : insert_.columns) {
      const std::size_t index = ColumnIndex(*target_, name, run_.environment);
      if (std::find(columns_.begin(), columns_.end(), index) != columns_.end()) {
        RaiseSql(
            264, 16, 1,
            "The column name '" + name +
                "' is specified more than once in the SET clause or column list of "
                "an INSERT. A column cannot be assigned more than one value in the "
                "same clause. Modify the clause to make sure that a column is "
                "updated only once. If this statement updates or inserts columns "
                "into a view, column aliasing can conceal the duplication in your "
                "code.");
      }
      const ColumnInfo& column = target_->columns()[index];
      if (column.type.id == TypeId::kRowVersion) {
        RaiseSql(273, 16, 1,
                 "Cannot insert an explicit value into a timestamp column. Use INSERT "
                 "with a column list to exclude the timestamp column, or insert a "
                 "DEFAULT into the timestamp column.");
      }
      CheckAssignable(column);
      columns_.push_back(index);
    }
    for (std::size_t i = 0; insert_.columns.empty() && i < target_->columns().size();
         ++i) {
      const ColumnInfo& column = target_->columns()[i];
      // A rowversion needs a place in the list: DEFAULT.
      if (!column.identity && !column.computed) columns_.push_back(i);
    }
  }

  void CheckCount(std::size_t count) const {
    if (count == columns_.size()) return;
    if (insert_.columns.empty()) {
      RaiseSql(213, 16, 1,
               "Column name or number of supplied values does not match table "
               "definition.");
    }
    const bool more = columns_.size() > count;
    if (insert_.select) {
      RaiseSql(
          more ? 120 : 121, 15, 1,
          std::string("The select list for the INSERT statement contains ") +
              (more ? "fewer" : "more") +
              " items than the insert list. The number of SELECT values must match "
              "the number of INSERT columns.");
    }
    RaiseSql(
        more ? 109 : 110, 15, 1,
        std::string("There are ") + (more ? "more" : "fewer") +
            " columns in the INSERT statement than values specified in the VALUES "
            "clause. The number of values in the VALUES clause must match the number "
            "of columns specified in the INSERT statement.");
  }

  // VALUES: rows with DEFAULT in different places are inserted piece by piece.
  std::int64_t FromValues(Output& output) {
    std::vector<std::vector<std::size_t>> columns;
    std::vector<std::vector<Bound>> rows;
    for (const auto& values : insert_.values) {
      CheckCount(values.size());
      std::vector<std::size_t> present;
      std::vector<Bound> row;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const ColumnInfo& column = target_->columns()[columns_[i]];
        if (std::holds_alternative<ast::DefaultKeyword>(values[i]->node)) continue;
        if (column.type.id == TypeId::kRowVersion) {
          RaiseSql(
              273, 16, 1,
              "Cannot insert an explicit value into a timestamp column. Use INSERT "
              "with a column list to exclude the timestamp column, or insert a "
              "DEFAULT into the timestamp column.");
        }
        present.push_back(columns_[i]);
        row.push_back(Assigned(binder_, binder_.Bind(values[i], nullptr), column,
                               target_->name()));
      }
      columns.push_back(std::move(present));
      rows.push_back(std::move(row));
    }
    return FromRows(columns, rows, output);
  }

  std::int64_t FromRows(const std::vector<std::vector<std::size_t>>& columns,
                        const std::vector<std::vector<Bound>>& rows, Output& output) {
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    const std::uint64_t top = TopOf(insert_.top, binder_, context);
    context.slots.resize(binder_.slot_count());
    // Every value before the first insert: an error leaves nothing behind.
    std::vector<Row> values;
    for (const auto& row : rows) {
      if (values.size() >= top) break;
      Row evaluated;
      for (const Bound& cell : row) evaluated.push_back(cell->Get(context));
      values.push_back(std::move(evaluated));
    }
    output.Begin();
    std::uint64_t count = 0;
    std::size_t at = 0;
    while (at < values.size()) {
      const std::vector<std::size_t>& present = columns[at];
      count += Insert(
          present,
          [&](Row& row) {
            if (at == values.size() || columns[at] != present) return false;
            row = std::move(values[at++]);
            return true;
          },
          output, context);
    }
    output.End();
    return static_cast<std::int64_t>(count);
  }

  std::uint64_t Insert(const std::vector<std::size_t>& columns, RowFeed feed,
                       Output& output, Context& context) {
    InsertRequest request;
    request.columns = columns;
    request.feed = std::move(feed);
    if (output.present()) {
      request.output = [&](const Row& row) { output.Add(context, nullptr, &row); };
    }
    return target_->Insert(request);
  }

  std::int64_t FromSelect(Output& output) {
    const QueryPtr query = binder_.BindSelect(*insert_.select, nullptr);
    CheckCount(query->columns.size());
    std::vector<Bound> cells;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      cells.push_back(Assigned(binder_, Binder::SlotReference(query->columns[i]),
                               target_->columns()[columns_[i]], target_->name()));
    }
    OperatorPtr plan = query->Plan({}).op;
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    const std::uint64_t top = TopOf(insert_.top, binder_, context);
    context.slots.resize(binder_.slot_count());
    plan->Open(context);
    // Read to the end first, so that the statement does not see its own rows.
    std::vector<Row> rows;
    while (rows.size() < top && plan->Next(context)) {
      Row row;
      for (const Bound& cell : cells) row.push_back(cell->Get(context));
      rows.push_back(std::move(row));
    }
    output.Begin();
    std::size_t at = 0;
    const std::uint64_t count = Insert(
        columns_,
        [&](Row& row) {
          if (at == rows.size()) return false;
          row = std::move(rows[at++]);
          return true;
        },
        output, context);
    output.End();
    return static_cast<std::int64_t>(count);
  }

  std::int64_t FromProcedure(Output& output) {
    if (run_.bind_only) return 0;
    Capture capture(*run_.sink);
    run_.execute(*insert_.execute, capture);
    Context context = binder_.MakeContext();
    ConvertOptions options = binder_.Options();
    std::size_t at = 0;
    const std::uint64_t count = Insert(
        columns_,
        [&](Row& row) {
          if (at == capture.rows.size()) return false;
          row = std::move(capture.rows[at++]);
          CheckCount(row.size());
          for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = ConvertValue(row[i], capture.types[i],
                                  target_->columns()[columns_[i]].type, options);
          }
          return true;
        },
        output, context);
    return static_cast<std::int64_t>(count);
  }

  const ast::Insert& insert_;
  const struct Run& run_;
  Binder binder_;
  std::shared_ptr<TableSource> target_;
  std::vector<std::size_t> columns_;
};

// The part UPDATE and DELETE have in common: which rows of which table.
class TargetRows {
 public:
  TargetRows(Binder& binder, const Run& run) : binder_(binder), run_(run) {}

  // The target may be an alias of FROM.
  void Bind(const ObjectName& target, const std::string& variable,
            const std::vector<ast::TableReferencePtr>& from,
            const ast::ExpressionPtr& where, Access access) {
    if (from.empty()) {
      source = FindTarget(target, variable, access, run_);
      ObjectName name = target;
      if (!variable.empty()) name.object = variable;
      from_ = binder_.BindTarget(source, name, "", scope);
      node_ = from_.get();
    } else {
      from_ = binder_.BindFrom(from, scope);
      node_ = FindNode(*from_, target, variable);
      if (node_ == nullptr) {
        source = FindTarget(target, variable, access, run_);
        RaiseSql(
            4104, 16, 1,
            "The multi-part identifier \"" + target.Text() + "\" could not be bound.");
      }
      source = node_->source;
      // The right to change is asked for under the table's own name.
      if (variable.empty()) {
        FindTarget(node_->table->name, "", access, run_);
      }
    }
    row_id = std::make_shared<RowId>();
    node_->row_id = row_id;
    if (where) SplitConditions(binder_.BindCondition(where, &scope), conditions_);
  }

  void Plan() { plan_ = PlanFrom(*from_, conditions_, {}).op; }

  // Calls `each` once for every row of the target that qualifies.
  void ForEach(Context& context, std::uint64_t top, const std::function<void()>& each) {
    std::map<RowId, bool> seen;
    plan_->Open(context);
    while (seen.size() < top && plan_->Next(context)) {
      if (!seen.try_emplace(*row_id, true).second) continue;
      each();
    }
  }

  Scope scope;
  std::shared_ptr<TableSource> source;
  std::shared_ptr<RowId> row_id;

 private:
  static FromNode* FindNode(FromNode& node, const ObjectName& target,
                            const std::string& variable) {
    if (node.kind == FromNode::Kind::kJoin) {
      FromNode* left = FindNode(*node.left, target, variable);
      return left != nullptr ? left : FindNode(*node.right, target, variable);
    }
    if (node.kind != FromNode::Kind::kTable) return nullptr;
    const std::string& wanted = variable.empty() ? target.object : variable;
    const bool matches = EqualsIgnoringAsciiCase(node.table->alias, wanted) ||
                         EqualsIgnoringAsciiCase(node.table->name.object, wanted);
    return matches ? &node : nullptr;
  }

  Binder& binder_;
  const Run& run_;
  FromPtr from_;
  FromNode* node_ = nullptr;
  std::vector<Bound> conditions_;
  OperatorPtr plan_;
};

// SET column = expression of UPDATE and MERGE.
struct BoundAssignments {
  std::vector<std::size_t> columns;
  std::vector<Bound> values;

  void Bind(const std::vector<ast::Assignment>& assignments, TableSource& target,
            const Scope& scope, Binder& binder) {
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
        RaiseSql(
            264, 16, 1,
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

  Row Evaluate(Context& context) const {
    Row row;
    for (const Bound& value : values) row.push_back(value->Get(context));
    return row;
  }

 private:
  // SET @x = column = expression.
  void StoreVariable(const ast::Assignment& assignment, Binder& binder) {
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
};

}  // namespace

std::vector<ResultColumn> ResultColumns(const std::vector<OutputColumn>& columns,
                                        Environment& environment) {
  std::vector<ResultColumn> result;
  for (const OutputColumn& column : columns) {
    ResultColumn shown{column.name, column.type, column.nullable, column.identity,
                       column.computed};
    if (IsText(shown.type.id) && shown.type.collation.empty()) {
      shown.type.collation = environment.database_collation();
    }
    result.push_back(std::move(shown));
  }
  return result;
}

std::int64_t RunSelect(const ast::Select& select, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  const QueryPtr query = binder.BindSelect(select, nullptr);
  OperatorPtr plan = query->Plan({}).op;
  const bool sends = !query->assigns_variables && run.sink != nullptr;
  if (sends) Check(run.sink->Columns(ResultColumns(query->columns, run.environment)));
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::int64_t limit = run.environment.settings().rowcount;
  plan->Open(context);
  Row row(query->columns.size());
  std::int64_t count = 0;
  while ((limit == 0 || count < limit) && plan->Next(context)) {
    ++count;
    if (!sends) continue;
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::swap(row[i], context.slots[query->columns[i].slot]);
    }
    Check(run.sink->Row(row));
  }
  return count;
}

std::int64_t RunInsert(const ast::Insert& insert, const Run& run) {
  return Inserter(insert, run).Run();
}

std::int64_t RunUpdate(const ast::Update& update, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  binder.PushCommonTables(update.with);
  TargetRows rows(binder, run);
  rows.Bind(update.target, update.target_variable, update.from, update.where,
            Access::kUpdate);
  BoundAssignments assignments;
  assignments.Bind(update.assignments, *rows.source, rows.scope, binder);
  Output output(update.output, *rows.source, binder, run);
  rows.Plan();
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::uint64_t top = TopOf(update.top, binder, context);
  context.slots.resize(binder.slot_count());
  std::vector<std::pair<RowId, Row>> changes;
  rows.ForEach(context, top, [&] {
    changes.emplace_back(*rows.row_id, assignments.Evaluate(context));
  });
  UpdateRequest request;
  request.columns = assignments.columns;
  std::size_t at = 0;
  request.feed = [&](RowId& id, Row& row) {
    if (at == changes.size()) return false;
    id = changes[at].first;
    row = std::move(changes[at++].second);
    return true;
  };
  if (output.present()) {
    request.output = [&](const Row& deleted, const Row& inserted) {
      output.Add(context, &deleted, &inserted);
    };
  }
  output.Begin();
  const std::uint64_t count = rows.source->Update(request);
  output.End();
  return static_cast<std::int64_t>(count);
}

std::int64_t RunDelete(const ast::Delete& remove, const Run& run) {
  Binder binder(run.environment, run.session, run.variables);
  binder.PushCommonTables(remove.with);
  TargetRows rows(binder, run);
  rows.Bind(remove.target, remove.target_variable, remove.from, remove.where,
            Access::kDelete);
  Output output(remove.output, *rows.source, binder, run);
  rows.Plan();
  if (run.bind_only) return 0;
  Context context = binder.MakeContext();
  const std::uint64_t top = TopOf(remove.top, binder, context);
  context.slots.resize(binder.slot_count());
  std::vector<RowId> ids;
  rows.ForEach(context, top, [&] { ids.push_back(*rows.row_id); });
  DeleteRequest request;
  std::size_t at = 0;
  request.feed = [&](RowId& id) {
    if (at == ids.size()) return false;
    id = ids[at++];
    return true;
  };
  if (output.present()) {
    request.output = [&](const Row& deleted) {
      output.Add(context, &deleted, nullptr);
    };
  }
  output.Begin();
  const std::uint64_t count = rows.source->Delete(request);
  output.End();
  return static_cast<std::int64_t>(count);
}

namespace {

// MERGE: the source joined to the target, then one action for each row.
class Merger {
 public:
  Merger(const ast::Merge& merge, const Run& run)
      : merge_(merge),
        run_(run),
        binder_(run.environment, run.session, run.variables) {}

  std::int64_t Run() {
    Bind();
    Output output(merge_.output, *target_, binder_, run_);
    OperatorPtr plan = PlanFrom(*from_, {}, {}).op;
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    Decide(*plan, context);
    output.Begin();
    const std::uint64_t count = Apply(output, context);
    output.End();
    return static_cast<std::int64_t>(count);
  }

 private:
  struct Action {
    const ast::MergeAction* node;
    Bound condition;
    BoundAssignments assignments;
    std::vector<std::size_t> insert_columns;
    std::vector<Bound> insert_values;
    std::vector<std::pair<RowId, Row>> updates;
    std::vector<Row> inserts;
    std::vector<RowId> deletes;
  };

  void Bind() {
    binder_.PushCommonTables(merge_.with);
    from_ = std::make_unique<FromNode>();
    from_->kind = FromNode::Kind::kJoin;
    from_->join = ast::JoinKind::kLeft;
    from_->left = binder_.BindFrom({merge_.source}, scope_);
    target_ = FindTarget(merge_.target, "", Access::kUpdate, run_);
    from_->right =
        binder_.BindTarget(target_, merge_.target, merge_.target_alias, scope_);
    from_->begin = from_->left->begin;
    from_->end = from_->right->end;
    row_id_ = std::make_shared<RowId>();
    from_->right->row_id = row_id_;
    SplitConditions(binder_.BindCondition(merge_.on, &scope_), from_->on);
    for (const ast::MergeAction& node : merge_.actions) {
      if (node.when == ast::MergeAction::When::kNotMatchedBySource) {
        RaiseSql(102, 15, 1, "Incorrect syntax near 'SOURCE'.");
      }
      Action action{&node, nullptr, {}, {}, {}, {}, {}, {}};
      if (node.condition) {
        action.condition = binder_.BindCondition(node.condition, &scope_);
      }
      action.assignments.Bind(node.assignments, *target_, scope_, binder_);
      BindInsert(node, action);
      actions_.push_back(std::move(action));
    }
  }

  void BindInsert(const ast::MergeAction& node, Action& action) {
    if (node.when != ast::MergeAction::When::kNotMatched) return;
    std::vector<std::size_t> columns;
    for (const std::string& name : node.insert_columns) {
      columns.push_back(ColumnIndex(*target_, name, run_.environment));
      CheckAssignable(target_->columns()[columns.back()]);
    }
    for (std::size_t i = 0;
         node.insert_columns.empty() && i < target_->columns().size(); ++i) {
      const ColumnInfo& column = target_->columns()[i];
      if (!column.identity && !column.computed) columns.push_back(i);
    }
    if (columns.size() != node.insert_values.size()) {
      RaiseSql(213, 16, 1,
               "Column name or number of supplied values does not match table "
               "definition.");
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (std::holds_alternative<ast::DefaultKeyword>(node.insert_values[i]->node)) {
        continue;
      }
      action.insert_columns.push_back(columns[i]);
      action.insert_values.push_back(
          Assigned(binder_, binder_.Bind(node.insert_values[i], &scope_),
                   target_->columns()[columns[i]], target_->name()));
    }
  }

  // Reads everything before the first change.
  void Decide(Operator& plan, Context& context) {
    std::map<RowId, bool> touched;
    plan.Open(context);
    while (plan.Next(context)) {
      const bool matched =
          std::all_of(from_->on.begin(), from_->on.end(), [&](const Bound& condition) {
            return condition->test(context) == Truth::kTrue;
          });
      for (Action& action : actions_) {
        const bool wants = action.node->when == ast::MergeAction::When::kMatched;
        if (wants != matched) continue;
        if (action.condition && action.condition->test(context) != Truth::kTrue)
          continue;
        if (matched && !touched.try_emplace(*row_id_, true).second) {
          RaiseSql(
              8672, 16, 1,
              "The MERGE statement attempted to UPDATE or DELETE the same row more "
              "than once. This happens when a target row matches more than one "
              "source row.");
        }
        Note(action, context);
        break;
      }
    }
  }

  void Note(Action& action, Context& context) {
    if (action.node->when == ast::MergeAction::When::kNotMatched) {
      Row row;
      for (const Bound& value : action.insert_values)
        row.push_back(value->Get(context));
      action.inserts.push_back(std::move(row));
    } else if (action.node->remove) {
      action.deletes.push_back(*row_id_);
    } else {
      action.updates.emplace_back(*row_id_, action.assignments.Evaluate(context));
    }
  }

  std::uint64_t Apply(Output& output, Context& context) {
    std::uint64_t count = 0;
    for (Action& action : actions_) {
      std::size_t at = 0;
      UpdateRequest update;
      update.of_merge = true;
      update.columns = action.assignments.columns;
      update.feed = [&](RowId& id, Row& row) {
        if (at == action.updates.size()) return false;
        id = action.updates[at].first;
        row = std::move(action.updates[at++].second);
        return true;
      };
      DeleteRequest remove;
      remove.feed = [&](RowId& id) {
        if (at == action.deletes.size()) return false;
        id = action.deletes[at++];
        return true;
      };
      InsertRequest insert;
      insert.columns = action.insert_columns;
      insert.feed = [&](Row& row) {
        if (at == action.inserts.size()) return false;
        row = std::move(action.inserts[at++]);
        return true;
      };
      if (output.present()) {
        update.output = [&](const Row& deleted, const Row& inserted) {
          output.Add(context, &deleted, &inserted);
        };
        remove.output = [&](const Row& row) { output.Add(context, &row, nullptr); };
        insert.output = [&](const Row& row) { output.Add(context, nullptr, &row); };
      }
      if (!action.updates.empty()) count += target_->Update(update);
      if (!action.deletes.empty()) count += target_->Delete(remove);
      if (!action.inserts.empty()) count += target_->Insert(insert);
    }
    return count;
  }

  const ast::Merge& merge_;
  const struct Run& run_;
  Binder binder_;
  Scope scope_;
  FromPtr from_;
  std::shared_ptr<TableSource> target_;
  std::shared_ptr<RowId> row_id_;
  std::vector<Action> actions_;
};

}  // namespace

std::int64_t RunMerge(const ast::Merge& merge, const Run& run) {
  return Merger(merge, run).Run();
}

}  // namespace mssql_cdc::sim

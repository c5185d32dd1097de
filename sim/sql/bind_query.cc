// Queries: FROM, SELECT lists, grouping, set operations.

#include <algorithm>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

struct OrderKey {
  SortKeySpec spec;
  std::optional<Slot> slot;  // Of a plain output column or table column.
};

std::optional<std::int64_t> IntegerLiteral(const ast::Expression& expression) {
  const auto* literal = std::get_if<ast::Literal>(&expression.node);
  if (literal == nullptr) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(&literal->value.held);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::vector<DistinctColumn> DistinctColumns(const std::vector<OutputColumn>& columns,
                                            const Binder& binder) {
  std::vector<DistinctColumn> distinct;
  for (const OutputColumn& column : columns) {
    if (IsLargeObject(column.type.id) || column.type.id == TypeId::kXml) {
      RaiseSql(421, 16, 1,
               "The " + TypeWord(column.type) +
                   " data type cannot be selected as DISTINCT because it is not "
                   "comparable.");
    }
    distinct.push_back({column.slot, column.type, binder.RuleFor(column.type)});
  }
  return distinct;
}

std::vector<Slot> SlotsOf(const std::vector<OutputColumn>& columns) {
  std::vector<Slot> slots;
  for (const OutputColumn& column : columns) slots.push_back(column.slot);
  return slots;
}

void CheckSortable(const SqlType& type) {
  if (!IsLargeObject(type.id) && type.id != TypeId::kXml) return;
  RaiseSql(306, 16, 2,
           "The text, ntext, and image data types cannot be compared or sorted, except "
           "when using IS NULL or LIKE operator.");
}

// ORDER BY, TOP and OFFSET over a planned input.
struct Tail {
  std::vector<OrderKey> order;
  LimitSpec limit;
  bool has_limit = false;

  Planned Apply(OperatorPtr input, bool ordered, std::vector<Slot> slots) {
    if (!order.empty() && !ordered) {
      std::vector<SortKeySpec> keys;
      for (const OrderKey& key : order) keys.push_back(key.spec);
      std::function<std::optional<std::uint64_t>(Context&)> most;
      if (has_limit && limit.count && !limit.percent && limit.ties.empty()) {
        most = [count = limit.count, offset = limit.offset,
                fetch = limit.fetch](Context& context) -> std::optional<std::uint64_t> {
          const std::uint64_t skipped = offset ? RowCountOf(offset, context, true) : 0;
          return skipped + RowCountOf(count, context, fetch);
        };
      }
      input = MakeSort(std::move(input), std::move(keys), slots, std::move(most));
    }
    if (has_limit) {
      limit.slots = std::move(slots);
      input = MakeLimit(std::move(input), std::move(limit));
    }
    return {std::move(input), true};
  }
};

// SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY.
class QueryBlock final : public BoundQuery {
 public:
  Planned Plan(const std::vector<WantedOrder>& wanted) override {
    std::vector<WantedOrder> inner = InnerOrder(wanted);
    const bool single = grouped && grouping.keys.empty() &&
                        grouping.aggregates.size() == 1 && IsExtreme();
    if (single) {
      inner = {{*grouping.aggregates[0].argument->slot,
                grouping.aggregates[0].kind == AggregateKind::kMaximum}};
    }
    Planned planned{MakeSingleRow(), true};
    if (from) {
      planned = PlanFrom(*from, conditions, inner);
    } else {
      planned.op = MakeFilter(std::move(planned.op), conditions);
    }
    if (inner.empty() && from) planned.ordered = false;
    OperatorPtr op = std::move(planned.op);
    bool ordered = planned.ordered && !inner.empty();
    if (grouped) {
      const bool first_row = single && ordered;
      op = MakeAggregate(std::move(op), grouping.keys, grouping.aggregates,
                         grouping.keys.empty(), first_row);
      ordered = false;
      if (having) op = MakeFilter(std::move(op), {having});
    }
    if (!windows.empty()) {
      op = MakeWindow(std::move(op), windows, RowSlots());
      ordered = false;
    }
    op = MakeProject(std::move(op), projections);
    if (distinct) op = MakeDistinct(std::move(op), distinct_columns);
    std::vector<Slot> slots = SlotsOf(columns);
    // WITH TIES looks at its keys again after the sort.
    if (!tail.limit.ties.empty() && !distinct) {
      for (const Slot slot : RowSlots()) slots.push_back(slot);
    }
    if (!tail.order.empty()) {
      const bool delivered = tail.Satisfies(wanted_of_order, wanted);
      Planned done = tail.Apply(std::move(op), ordered && !order_unknown, slots);
      done.ordered = delivered;
      return done;
    }
    const bool limited = tail.has_limit;
    Planned done = tail.Apply(std::move(op), true, std::move(slots));
    done.ordered = ordered && !limited;
    return done;
  }

  struct BlockTail : Tail {
    // Whether rows in our own order are in the order wanted outside.
    static bool Satisfies(const std::vector<WantedOrder>& own,
                          const std::vector<WantedOrder>& wanted) {
      return wanted.size() <= own.size() &&
             std::equal(wanted.begin(), wanted.end(), own.begin());
    }
  };

  FromPtr from;
  std::vector<Bound> conditions;
  bool grouped = false;
  Grouping grouping;
  Bound having;
  std::vector<WindowSpec> windows;
  std::vector<Projection> projections;
  bool distinct = false;
  std::vector<DistinctColumn> distinct_columns;
  BlockTail tail;
  // The ORDER BY as output slots, where it consists of plain columns only.
  std::vector<WantedOrder> wanted_of_order;
  bool order_unknown = false;

 private:
  bool IsExtreme() const {
    const AggregateSpec& spec = grouping.aggregates[0];
    return (spec.kind == AggregateKind::kMinimum ||
            spec.kind == AggregateKind::kMaximum) &&
           spec.argument->slot.has_value();
  }

  // What FROM should deliver, in its own slots; empty if nothing helps.
  std::vector<WantedOrder> InnerOrder(const std::vector<WantedOrder>& wanted) const {
    if (grouped || !windows.empty() || order_unknown) return {};
    const std::vector<WantedOrder>& source =
        tail.order.empty() ? wanted : wanted_of_order;
    if (tail.order.empty() && tail.has_limit) return {};
    std::vector<WantedOrder> inner;
    for (const WantedOrder& item : source) {
      WantedOrder mapped = item;
      for (const Projection& projection : projections) {
        if (projection.slot != item.slot) continue;
        if (!projection.expression->slot) return {};
        mapped.slot = *projection.expression->slot;
      }
      inner.push_back(mapped);
    }
    return inner;
  }

  // All slots a row consists of before it is projected.
  std::vector<Slot> RowSlots() const {
    std::vector<Slot> slots;
    if (grouped) {
      for (const GroupKeySpec& key : grouping.keys) slots.push_back(key.slot);
      for (const AggregateSpec& spec : grouping.aggregates) slots.push_back(spec.slot);
    } else if (from) {
      CollectSlots(*from, slots);
    }
    return slots;
  }
};

class SetQuery final : public BoundQuery {
 public:
  Planned Plan(const std::vector<WantedOrder>& wanted) override {
    OperatorPtr a = MakeProject(left->Plan({}).op, left_projections);
    OperatorPtr b = MakeProject(right->Plan({}).op, right_projections);
    OperatorPtr whole;
    if (op == ast::SetOperator::kUnionAll || op == ast::SetOperator::kUnion) {
      std::vector<OperatorPtr> inputs;
      inputs.push_back(std::move(a));
      inputs.push_back(std::move(b));
      whole = MakeAppend(std::move(inputs));
      if (op == ast::SetOperator::kUnion) {
        whole = MakeDistinct(std::move(whole), distinct_columns);
      }
    } else {
      whole = MakeSetDifference(std::move(a), std::move(b), distinct_columns,
                                op == ast::SetOperator::kIntersect);
    }
    Planned done = tail.Apply(std::move(whole), false, SlotsOf(columns));
    done.ordered = wanted.empty();
    return done;
  }

  ast::SetOperator op = ast::SetOperator::kUnionAll;
  QueryPtr left, right;
  std::vector<Projection> left_projections, right_projections;
  std::vector<DistinctColumn> distinct_columns;
  Tail tail;
};

}  // namespace

// Builds one QueryBlock.
class QueryBlockBinder {
 public:
  QueryBlockBinder(Binder& binder, const ast::QuerySpecification& query,
                   const ast::Select* select, const Scope* outer)
      : binder_(binder), query_(query), select_(select) {
    scope_.outer = outer;
  }

  QueryPtr Run() {
    if (query_.into) {
      RaiseSql(156, 15, 1, "Incorrect syntax near the keyword 'INTO'.");
    }
    if (!query_.from.empty()) block_->from = binder_.BindFrom(query_.from, scope_);
    if (query_.where) {
      scope_.clause = "WHERE clause";
      SplitConditions(binder_.BindCondition(query_.where, &scope_), block_->conditions);
    }
    BindGrouping();
    BindItems();
    if (block_->distinct) {
      block_->distinct_columns = DistinctColumns(block_->columns, binder_);
    }
    BindOrder();
    BindLimit();
    return block_;
  }

 private:
  void BindGrouping() {
    bool grouped = !query_.group_by.empty() || query_.having != nullptr;
    for (const ast::SelectItem& item : query_.items) {
      grouped = grouped || (item.expression && ContainsAggregate(*item.expression));
    }
    if (select_ != nullptr) {
      for (const ast::OrderItem& item : select_->order_by) {
        grouped = grouped || ContainsAggregate(*item.expression);
      }
    }
    block_->grouped = grouped;
    if (!grouped) return;
    Grouping& grouping = block_->grouping;
    for (const ast::ExpressionPtr& expression : query_.group_by) {
      if (ContainsAggregate(*expression)) {
        RaiseSql(144, 15, 1,
                 "Cannot use an aggregate or a subquery in an expression used for the "
                 "group by list of a GROUP BY clause.");
      }
      if (std::holds_alternative<ast::Literal>(expression->node)) {
        RaiseSql(
            164, 15, 1,
            "Each GROUP BY expression must contain at least one column that is not "
            "an outer reference.");
      }
      const Bound key = binder_.Bind(expression, &scope_);
      CheckSortable(key->type);
      grouping.keys.push_back({key, binder_.NewSlot(), binder_.RuleFor(key->type)});
      grouping.key_texts.push_back(NormalText(*expression));
    }
    scope_.grouping = &grouping;
    if (query_.having) {
      scope_.clause = "HAVING clause";
      block_->having = binder_.BindCondition(query_.having, &scope_);
    }
  }

  void BindItems() {
    scope_.clause = "select list";
    scope_.windows = &block_->windows;
    block_->distinct = query_.distinct;
    bool assigns = false, reads = false;
    for (const ast::SelectItem& item : query_.items) {
      assigns = assigns || !item.variable.empty();
      reads = reads || item.variable.empty();
    }
    if (assigns && reads) {
      RaiseSql(141, 15, 1,
               "A SELECT statement that assigns a value to a variable must not be "
               "combined with data-retrieval operations.");
    }
    block_->assigns_variables = assigns;
    if (assigns) binder_.SetVariablesChange();
    for (const ast::SelectItem& item : query_.items) {
      if (item.star) {
        BindStar(item);
      } else {
        BindItem(item);
      }
    }
  }

  void BindItem(const ast::SelectItem& item) {
    Bound bound = binder_.Bind(item.expression, &scope_);
    if (!item.variable.empty()) {
      bound = BindAssignment(item, bound);
    } else if (bound->type.id == TypeId::kNull) {
      bound = binder_.Convert(bound, TypeOf(TypeId::kInt));
    }
    OutputColumn column;
    column.name = !item.alias.empty() ? item.alias : bound->name;
    column.type = bound->type;
    if (column.type.id == TypeId::kInt) column.type.precision = 0;
    column.nullable = bound->nullable;
    column.identity = bound->identity;
    column.computed = bound->computed;
    column.slot = binder_.NewSlot();
    block_->projections.push_back({bound, column.slot});
    block_->columns.push_back(std::move(column));
  }

  // SELECT @x = expression: the value is stored as the row goes by.
  Bound BindAssignment(const ast::SelectItem& item, Bound bound) {
    const auto at = binder_.variables().values.find(item.variable);
    if (at == binder_.variables().values.end()) {
      RaiseSql(137, 15, 1,
               "Must declare the scalar variable \"" + item.variable + "\".");
    }
    if (item.assignment != ast::BinaryOperator::kEqual) {
      ast::Expression variable;
      variable.node = ast::Variable{item.variable};
      bound = binder_.Arithmetic(
          item.assignment,
          binder_.Bind(std::make_shared<ast::Expression>(variable), &scope_), bound);
    }
    bound = binder_.Convert(bound, at->second.type);
    auto assign = std::make_shared<BoundExpression>(*bound);
    assign->is_volatile = true;
    assign->slot.reset();
    assign->evaluate = [bound, held = &at->second](Context& context, Value& out) {
      bound->evaluate(context, out);
      held->value = out;
    };
    return assign;
  }

  void BindStar(const ast::SelectItem& item) {
    if (scope_.tables.empty()) {
      RaiseSql(263, 16, 1, "Must specify table to select from.");
    }
    bool found = false;
    for (const auto& table : scope_.tables) {
      if (!item.star_of.empty()) {
        const std::string& own =
            table->alias.empty() ? table->name.object : table->alias;
        if (!EqualsIgnoringAsciiCase(own, item.star_of.back())) continue;
      }
      found = true;
      for (std::size_t i = 0; i < table->columns.size(); ++i) {
        const Bound bound = binder_.ColumnOf(scope_, *table, i);
        OutputColumn column = table->columns[i];
        column.slot = binder_.NewSlot();
        block_->projections.push_back({bound, column.slot});
        block_->columns.push_back(std::move(column));
      }
    }
    if (!found) {
      std::string name;
      for (const std::string& part : item.star_of) {
        name += (name.empty() ? "" : ".") + part;
      }
      RaiseSql(
          107, 15, 1,
          "The column prefix '" + name +
              "' does not match with a table name or alias name used in the query.");
    }
  }

  void BindOrder() {
    if (select_ == nullptr) return;
    scope_.clause = "ORDER BY clause";
    for (const ast::OrderItem& item : select_->order_by) {
      OrderKey key;
      key.spec.descending = item.descending;
      key.spec.expression = OrderExpression(item.expression);
      CheckSortable(key.spec.expression->type);
      key.spec.rule = binder_.RuleFor(key.spec.expression->type);
      key.slot = key.spec.expression->slot;
      if (key.slot) {
        block_->wanted_of_order.push_back({*key.slot, item.descending});
      } else {
        block_->order_unknown = true;
      }
      block_->tail.order.push_back(std::move(key));
    }
  }

  // An alias or a position means the output column; anything else is an expression.
  Bound OrderExpression(const ast::ExpressionPtr& expression) {
    if (const auto position = IntegerLiteral(*expression)) {
      if (*position < 1 ||
          *position > static_cast<std::int64_t>(block_->columns.size())) {
        RaiseSql(108, 15, 1,
                 "The ORDER BY position number " + std::to_string(*position) +
                     " is out of range of the number of items in the select list.");
      }
      return Output(static_cast<std::size_t>(*position - 1));
    }
    if (std::holds_alternative<ast::Literal>(expression->node)) {
      RaiseSql(
          408, 16, 1,
          "A constant expression was encountered in the ORDER BY list, position 1.");
    }
    if (const auto* column = std::get_if<ast::ColumnReference>(&expression->node)) {
      std::optional<std::size_t> found;
      for (std::size_t i = 0; i < block_->columns.size(); ++i) {
        if (column->parts.size() != 1 ||
            !EqualsIgnoringAsciiCase(block_->columns[i].name, column->parts[0])) {
          continue;
        }
        if (found) {
          RaiseSql(209, 16, 1, "Ambiguous column name '" + column->parts[0] + "'.");
        }
        found = i;
      }
      if (found) return Output(*found);
    }
    Bound bound = binder_.Bind(expression, &scope_);
    if (!block_->distinct) return bound;
    for (std::size_t i = 0; i < block_->projections.size(); ++i) {
      const Bound& item = block_->projections[i].expression;
      if (bound->slot && item->slot == bound->slot) return Output(i);
    }
    RaiseSql(145, 15, 1,
             "ORDER BY items must appear in the select list if SELECT DISTINCT is "
             "specified.");
  }

  Bound Output(std::size_t index) {
    return Binder::SlotReference(block_->columns[index]);
  }

  void BindLimit() {
    LimitSpec& limit = block_->tail.limit;
    if (query_.top) {
      limit.count = binder_.Bind(query_.top->count, nullptr);
      limit.percent = query_.top->percent;
      block_->tail.has_limit = true;
      if (query_.top->with_ties) {
        if (block_->tail.order.empty()) {
          RaiseSql(1062, 15, 1,
                   "The TOP N WITH TIES clause is not allowed without a corresponding "
                   "ORDER BY clause.");
        }
        for (const OrderKey& key : block_->tail.order) limit.ties.push_back(key.spec);
      }
    }
    if (select_ == nullptr || !select_->offset) return;
    if (query_.top) {
      RaiseSql(10741, 15, 1,
               "A TOP can not be used in the same query or sub-query as a OFFSET.");
    }
    limit.offset = binder_.Bind(select_->offset, nullptr);
    if (select_->fetch) limit.count = binder_.Bind(select_->fetch, nullptr);
    limit.fetch = true;
    block_->tail.has_limit = true;
  }

  Binder& binder_;
  const ast::QuerySpecification& query_;
  const ast::Select* select_;
  Scope scope_;
  std::shared_ptr<QueryBlock> block_ = std::make_shared<QueryBlock>();
};

std::vector<Slot> Binder::FreeSince(std::size_t mark, Slot first) const {
  std::vector<Slot> free;
  for (std::size_t i = mark; i < reads_.size(); ++i) {
    if (reads_[i] < first) free.push_back(reads_[i]);
  }
  std::sort(free.begin(), free.end());
  free.erase(std::unique(free.begin(), free.end()), free.end());
  return free;
}

void Binder::PushCommonTables(const std::vector<ast::CommonTable>& tables) {
  for (const ast::CommonTable& table : tables) common_tables_.push_back(&table);
}

const ast::CommonTable* Binder::FindCommonTable(const ObjectName& name) const {
  if (!name.schema.empty()) return nullptr;
  for (std::size_t i = common_tables_.size(); i-- > 0;) {
    if (EqualsIgnoringAsciiCase(common_tables_[i]->name, name.object)) {
      return common_tables_[i];
    }
  }
  return nullptr;
}

QueryPtr Binder::BindSelect(const ast::Select& select, const Scope* outer) {
  const std::size_t common = common_tables_.size();
  const std::size_t mark = reads_.size();
  const Slot first = next_slot_;
  PushCommonTables(select.with);
  QueryPtr query;
  try {
    query = BindBody(*select.body, &select, outer);
  } catch (SqlError& error) {
    if (error.message.line == 0) error.message.line = select.line;
    throw;
  }
  common_tables_.resize(common);
  query->free_slots = FreeSince(mark, first);
  return query;
}

QueryPtr Binder::BindBody(const ast::QueryExpression& body, const ast::Select* select,
                          const Scope* outer) {
  if (const auto* query = std::get_if<ast::QuerySpecification>(&body.node)) {
    return QueryBlockBinder(*this, *query, select, outer).Run();
  }
  return BindSetOperation(std::get<ast::SetOperation>(body.node), select, outer);
}

QueryPtr Binder::BindSetOperation(const ast::SetOperation& operation,
                                  const ast::Select* select, const Scope* outer) {
  auto query = std::make_shared<SetQuery>();
  query->op = operation.op;
  query->left = BindBody(*operation.left, nullptr, outer);
  query->right = BindBody(*operation.right, nullptr, outer);
  const auto& left = query->left->columns;
  const auto& right = query->right->columns;
  if (left.size() != right.size()) {
    RaiseSql(
        205, 16, 1,
        "All queries combined using a UNION, INTERSECT or EXCEPT operator must have "
        "an equal number of expressions in their target lists.");
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    OutputColumn column = left[i];
    column.type = CommonType(left[i].type, right[i].type);
    column.nullable = left[i].nullable || right[i].nullable;
    column.identity = false;
    column.slot = NewSlot();
    query->left_projections.push_back(
        {Convert(SlotReference(left[i]), column.type), column.slot});
    query->right_projections.push_back(
        {Convert(SlotReference(right[i]), column.type), column.slot});
    query->columns.push_back(std::move(column));
  }
  if (operation.op != ast::SetOperator::kUnionAll) {
    query->distinct_columns = DistinctColumns(query->columns, *this);
  }
  if (select == nullptr) return query;
  for (const ast::OrderItem& item : select->order_by) {
    std::optional<std::size_t> found;
    if (const auto position = IntegerLiteral(*item.expression)) {
      if (*position >= 1 && *position <= static_cast<std::int64_t>(left.size())) {
        found = static_cast<std::size_t>(*position - 1);
      }
    }
    const auto* name = std::get_if<ast::ColumnReference>(&item.expression->node);
    for (std::size_t i = 0; name != nullptr && i < query->columns.size(); ++i) {
      if (EqualsIgnoringAsciiCase(query->columns[i].name, name->parts.back()))
        found = i;
    }
    if (!found) {
      if (name != nullptr) {
        RaiseSql(207, 16, 1, "Invalid column name '" + name->parts.back() + "'.");
      }
      RaiseSql(
          104, 16, 1,
          "ORDER BY items must appear in the select list if the statement contains "
          "a UNION, INTERSECT or EXCEPT operator.");
    }
    OrderKey key;
    key.spec = {SlotReference(query->columns[*found]), item.descending,
                RuleFor(query->columns[*found].type)};
    query->tail.order.push_back(std::move(key));
  }
  if (select->offset) {
    query->tail.limit.offset = Bind(select->offset, nullptr);
    if (select->fetch) query->tail.limit.count = Bind(select->fetch, nullptr);
    query->tail.limit.fetch = true;
    query->tail.has_limit = true;
  }
  return query;
}

void Binder::AddTable(std::shared_ptr<BoundTable> table, Scope& scope) {
  const std::string& own = table->alias.empty() ? table->name.object : table->alias;
  for (const auto& other : scope.tables) {
    const std::string& name = other->alias.empty() ? other->name.object : other->alias;
    const bool both_named = !table->alias.empty() || !other->alias.empty();
    const bool same_schema =
        EqualsIgnoringAsciiCase(table->name.schema, other->name.schema);
    if (EqualsIgnoringAsciiCase(own, name) && (both_named || same_schema)) {
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
      environment_.FindTable(named.name, Access::kSelect);
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
      if (EqualsIgnoringAsciiCase(table->columns[i].name, table->columns[j].name)) {
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

// Queries: FROM, SELECT lists, grouping, set operations.

#include <algorithm>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/identifier.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/table_hints.h"
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

  std::optional<GrowingQuery> Growing() const override {
    const bool plain = from != nullptr && !grouped && windows.empty() && !distinct &&
                       !tail.has_limit && !order_unknown && !assigns_variables;
    if (!plain) return std::nullopt;
    return GrowingQueryOf(*from, conditions, projections, wanted_of_order);
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
    for (const ast::SelectItem& item : query_.items) {
      if (!item.variable.empty()) binder_.SetVariablesChange();
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
    } else if (bound->type.id == TypeId::kNull && bound->undeclared.empty()) {
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
        if (!SameIdentifier(own, item.star_of.back(), binder_.environment())) continue;
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
            !SameIdentifier(block_->columns[i].name, column->parts[0],
                            binder_.environment())) {
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
      binder_.SuggestType(limit.count, TypeOf(TypeId::kBigInt));
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
    if (SameIdentifier(common_tables_[i]->name, name.object, environment_)) {
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

// ORDER BY of a set operation names an output column or its position.
std::size_t Binder::SetOrderColumn(const ast::Expression& expression,
                                   const std::vector<OutputColumn>& columns) const {
  if (const auto position = IntegerLiteral(expression)) {
    if (*position >= 1 && *position <= static_cast<std::int64_t>(columns.size())) {
      return static_cast<std::size_t>(*position - 1);
    }
  }
  const auto* name = std::get_if<ast::ColumnReference>(&expression.node);
  if (name == nullptr) {
    RaiseSql(104, 16, 1,
             "ORDER BY items must appear in the select list if the statement contains "
             "a UNION, INTERSECT or EXCEPT operator.");
  }
  for (std::size_t i = columns.size(); i-- > 0;) {
    if (SameIdentifier(columns[i].name, name->parts.back(), environment_)) return i;
  }
  RaiseSql(207, 16, 1, "Invalid column name '" + name->parts.back() + "'.");
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
    const OutputColumn& column =
        query->columns[SetOrderColumn(*item.expression, query->columns)];
    OrderKey key;
    key.spec = {SlotReference(column), item.descending, RuleFor(column.type)};
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

}  // namespace mssql_cdc::sim

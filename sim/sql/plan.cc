// From FROM and WHERE to operators: which conditions an index can take, in which order
// tables are joined, and how.

#include <algorithm>
#include <cmath>

#include "sim/sql/binder.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

struct Range {
  Slot begin, end;
  bool Has(Slot slot) const { return slot >= begin && slot < end; }
};

class Planner {
 public:
  Planner(Slot begin, Slot end) : block_{begin, end} {}

  // Takes the conditions it has applied out of `conditions`.
  Planned PlanNode(FromNode& node, std::vector<Bound>& conditions,
                   const std::vector<Range>& bound,
                   const std::vector<WantedOrder>& wanted) {
    if (node.kind != FromNode::Kind::kJoin) {
      return PlanLeaf(node, Take(conditions, node, bound), wanted);
    }
    switch (node.join) {
      case ast::JoinKind::kInner:
      case ast::JoinKind::kCross:
        return PlanInner(node, conditions, bound, wanted);
      case ast::JoinKind::kRight: {
        std::swap(node.left, node.right);
        node.join = ast::JoinKind::kLeft;
        return PlanLeft(node, conditions, bound, wanted);
      }
      case ast::JoinKind::kLeft:
        return PlanLeft(node, conditions, bound, wanted);
      case ast::JoinKind::kCrossApply:
      case ast::JoinKind::kOuterApply:
        return PlanApply(node, conditions, bound, wanted);
      case ast::JoinKind::kFull:
        return PlanFull(node, conditions, bound);
    }
    return {};
  }

 private:
  struct Access {
    ScanShape shape;
    std::vector<ScanConstraintSpec> constraints;
    ScanAnswer answer;
    bool seeks_bound = false;  // An index is used with values of tables to the left.
  };

  // Slots outside the block belong to outer queries and are always known.
  bool Applicable(const Bound& condition, const FromNode& node,
                  const std::vector<Range>& bound) const {
    return std::all_of(condition->slots.begin(), condition->slots.end(),
                       [&](Slot slot) {
                         if (!block_.Has(slot) || Range{node.begin, node.end}.Has(slot))
                           return true;
                         return IsBound(slot, bound);
                       });
  }
  static bool IsBound(Slot slot, const std::vector<Range>& bound) {
    return std::any_of(bound.begin(), bound.end(),
                       [&](const Range& range) { return range.Has(slot); });
  }
  bool Reads(const Bound& expression, const FromNode& node) const {
    const Range range{node.begin, node.end};
    return std::any_of(expression->slots.begin(), expression->slots.end(),
                       [&](Slot slot) { return range.Has(slot); });
  }

  std::vector<Bound> Take(std::vector<Bound>& conditions, const FromNode& node,
                          const std::vector<Range>& bound) const {
    std::vector<Bound> taken, rest;
    for (Bound& condition : conditions) {
      (Applicable(condition, node, bound) ? taken : rest)
          .push_back(std::move(condition));
    }
    conditions = std::move(rest);
    return taken;
  }

  static std::optional<std::size_t> ColumnOf(const Bound& side, const FromNode& node) {
    if (!side->slot || node.kind != FromNode::Kind::kTable) return std::nullopt;
    if (!Range{node.begin, node.end}.Has(*side->slot)) return std::nullopt;
    return *side->slot - node.begin;
  }

  // The constraint a comparison puts on a column of `node`, if it does.
  std::optional<ScanConstraintSpec> ConstraintOf(const Bound& condition,
                                                 const FromNode& node) const {
    if (condition->shape != BoundExpression::Shape::kComparison) return std::nullopt;
    for (const bool mirrored : {false, true}) {
      const Bound& side = mirrored ? condition->right : condition->left;
      const Bound& other = mirrored ? condition->left : condition->right;
      const auto column = ColumnOf(side, node);
      if (!column || Reads(other, node) || other->is_volatile) continue;
      const SqlType& type = node.source->columns()[*column].type;
      if (!Narrows(type, *condition)) continue;
      return ScanConstraintSpec{
          *column, mirrored ? Mirrored(condition->comparison) : condition->comparison,
          other, condition->compared_type, condition->rule};
    }
    return std::nullopt;
  }

  // True where order and equality of the compared type are the column's own.
  static bool Narrows(const SqlType& column, const BoundExpression& condition) {
    const TypeId compared = condition.compared_type.id;
    if (column.id == TypeId::kSqlVariant || compared == TypeId::kSqlVariant)
      return false;
    if (IsText(column.id)) return IsText(compared);
    if (IsBinary(column.id)) return IsBinary(compared);
    if (IsDateTime(column.id)) {
      return IsDateTime(compared) &&
             (column.id == TypeId::kTime) == (compared == TypeId::kTime);
    }
    if (column.id == TypeId::kUniqueIdentifier) return compared == column.id;
    return IsNumber(column.id) && IsNumber(compared);
  }

  // "(k < 20 OR k IS NULL)" narrows like "k < 20" where k cannot be NULL here.
  std::optional<ScanConstraintSpec> OrNullConstraint(
      const Bound& condition, const FromNode& node,
      const std::vector<ScanConstraintSpec>& others) const {
    if (condition->shape != BoundExpression::Shape::kOr) return std::nullopt;
    Bound test = condition->left, null = condition->right;
    if (test->shape == BoundExpression::Shape::kIsNull) std::swap(test, null);
    if (null->shape != BoundExpression::Shape::kIsNull) return std::nullopt;
    const auto column = ColumnOf(null->left, node);
    const auto constraint = ConstraintOf(test, node);
    if (!column || !constraint || constraint->column != *column) return std::nullopt;
    const bool known = std::any_of(
        others.begin(), others.end(),
        [&](const ScanConstraintSpec& other) { return other.column == *column; });
    if (!known && node.source->columns()[*column].nullable) return std::nullopt;
    return constraint;
  }

  Access AccessOf(const FromNode& node, const std::vector<Bound>& conditions,
                  const std::vector<Range>& bound,
                  const std::vector<WantedOrder>& wanted) const {
    Access access;
    for (const Bound& condition : conditions) {
      if (const auto constraint = ConstraintOf(condition, node)) {
        access.constraints.push_back(*constraint);
      }
    }
    for (const Bound& condition : conditions) {
      if (const auto constraint =
              OrNullConstraint(condition, node, access.constraints)) {
        access.constraints.push_back(*constraint);
      }
    }
    for (const ScanConstraintSpec& constraint : access.constraints) {
      access.shape.constraints.push_back({constraint.column, constraint.comparison});
    }
    for (std::size_t i = 0; i < node.table->used.size(); ++i) {
      if (node.table->used[i]) access.shape.columns.push_back(i);
    }
    access.shape.row_ids = node.row_id != nullptr;
    for (const WantedOrder& item : wanted) {
      if (!Range{node.begin, node.end}.Has(item.slot)) {
        access.shape.order.clear();
        break;
      }
      access.shape.order.push_back({item.slot - node.begin, item.descending});
    }
    access.answer = node.source->Plan(access.shape);
    if (access.shape.order.empty()) access.answer.ordered = false;
    for (std::size_t i = 0; i < access.answer.seeks.size(); ++i) {
      if (!access.answer.seeks[i]) continue;
      const Bound& value = access.constraints[i].value;
      access.seeks_bound = access.seeks_bound ||
                           std::any_of(value->slots.begin(), value->slots.end(),
                                       [&](Slot slot) { return IsBound(slot, bound); });
    }
    return access;
  }

  Planned PlanLeaf(FromNode& node, std::vector<Bound> conditions,
                   const std::vector<WantedOrder>& wanted) {
    Planned planned;
    switch (node.kind) {
      case FromNode::Kind::kTable: {
        Access access = AccessOf(node, conditions, {}, wanted);
        planned.ordered = access.answer.ordered;
        planned.op = MakeScan(node.source, node.begin, std::move(access.shape),
                              std::move(access.constraints), node.row_id);
        break;
      }
      case FromNode::Kind::kQuery: {
        const bool inside =
            std::all_of(wanted.begin(), wanted.end(), [&](const WantedOrder& item) {
              return Range{node.begin, node.end}.Has(item.slot);
            });
        planned = node.query->Plan(inside ? wanted : std::vector<WantedOrder>{});
        planned.ordered = planned.ordered && inside;
        break;
      }
      case FromNode::Kind::kFunction:
        planned.op = MakeCursorScan(node.open, node.table->columns[0].slot,
                                    node.table->columns.size());
        break;
      case FromNode::Kind::kValues:
        planned.op = MakeValues(node.rows, node.table->columns[0].slot);
        break;
      case FromNode::Kind::kJoin:
        break;
    }
    planned.op = MakeFilter(std::move(planned.op), std::move(conditions));
    return planned;
  }

  static void Flatten(FromNode& node, std::vector<FromNode*>& leaves,
                      std::vector<Bound>& conditions) {
    const bool inner =
        node.kind == FromNode::Kind::kJoin &&
        (node.join == ast::JoinKind::kInner || node.join == ast::JoinKind::kCross);
    if (!inner) {
      leaves.push_back(&node);
      return;
    }
    Flatten(*node.left, leaves, conditions);
    Flatten(*node.right, leaves, conditions);
    conditions.insert(conditions.end(), node.on.begin(), node.on.end());
  }

  Planned PlanInner(FromNode& node, std::vector<Bound>& conditions,
                    const std::vector<Range>& bound,
                    const std::vector<WantedOrder>& wanted) {
    std::vector<FromNode*> leaves;
    Flatten(node, leaves, conditions);
    const std::vector<std::size_t> order = JoinOrder(leaves, conditions, bound, wanted);
    std::vector<Range> known = bound;
    FromNode& first = *leaves[order[0]];
    Planned planned = PlanNode(first, conditions, known, wanted);
    known.push_back({first.begin, first.end});
    for (std::size_t i = 1; i < order.size(); ++i) {
      FromNode& next = *leaves[order[i]];
      planned.op = JoinWith(std::move(planned.op), next, Take(conditions, next, known),
                            known, false);
      known.push_back({next.begin, next.end});
    }
    return planned;
  }

  // Which table drives: the one from which the rest is cheapest. As written, unless
  // another is clearly better.
  std::vector<std::size_t> JoinOrder(const std::vector<FromNode*>& leaves,
                                     const std::vector<Bound>& conditions,
                                     const std::vector<Range>& bound,
                                     const std::vector<WantedOrder>& wanted) const {
    std::vector<std::size_t> best;
    double best_cost = 0;
    for (std::size_t driver = 0; driver < leaves.size() && driver < 6; ++driver) {
      std::vector<std::size_t> order;
      const double cost = CostFrom(driver, leaves, conditions, bound, wanted, order);
      if (best.empty() || cost < best_cost / 2) {
        best = order;
        best_cost = cost;
      }
    }
    return best;
  }

  double CostFrom(std::size_t driver, const std::vector<FromNode*>& leaves,
                  const std::vector<Bound>& conditions, const std::vector<Range>& bound,
                  const std::vector<WantedOrder>& wanted,
                  std::vector<std::size_t>& order) const {
    std::vector<Range> known = bound;
    std::vector<bool> done(leaves.size(), false);
    double rows = 1;
    double cost = 0;
    for (std::size_t step = 0; step < leaves.size(); ++step) {
      std::optional<std::size_t> next;
      bool seeks = false;
      double next_rows = 0;
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        if (done[i] || (step == 0 && i != driver)) continue;
        const FromNode& leaf = *leaves[i];
        double leaf_rows = 1000;
        bool leaf_seeks = false;
        bool ordered = false;
        if (leaf.kind == FromNode::Kind::kTable) {
          std::vector<Bound> usable;
          for (const Bound& condition : conditions) {
            if (Applicable(condition, leaf, known)) usable.push_back(condition);
          }
          const Access access = AccessOf(
              leaf, usable, known, step == 0 ? wanted : std::vector<WantedOrder>{});
          leaf_rows = std::max(access.answer.row_count, 1.0);
          leaf_seeks = access.seeks_bound;
          ordered = access.answer.ordered;
        }
        if (step == 0 && !wanted.empty() && !ordered) {
          leaf_rows *= 1 + std::log2(1 + leaf_rows);
        }
        if (!next || (leaf_seeks && !seeks)) {
          next = i;
          seeks = leaf_seeks;
          next_rows = leaf_rows;
        }
      }
      order.push_back(*next);
      done[*next] = true;
      known.push_back({leaves[*next]->begin, leaves[*next]->end});
      // A hash table costs memory too.
      cost += step == 0 ? next_rows : seeks ? rows * next_rows : rows + 3 * next_rows;
      rows = step == 0 ? next_rows
             : seeks   ? rows * next_rows
                       : std::max(rows, next_rows);
    }
    return cost;
  }

  // The slots of others that decide which rows of `right` qualify; absent: it is
  // decided anew each time.
  static std::optional<std::vector<Slot>> DependenciesOf(
      const FromNode& right, const std::vector<Bound>& conditions) {
    std::vector<Slot> slots;
    for (const Bound& condition : conditions) {
      if (condition->is_volatile) return std::nullopt;
      for (const Slot slot : condition->slots) {
        if (!Range{right.begin, right.end}.Has(slot)) slots.push_back(slot);
      }
    }
    return slots;
  }

  // Joins `right` to what is planned so far. `conditions` hold for right and known
  // slots.
  OperatorPtr JoinWith(OperatorPtr left, FromNode& right, std::vector<Bound> conditions,
                       const std::vector<Range>& known, bool keeps_left) {
    std::vector<Slot> slots;
    CollectSlots(right, slots);
    if (right.kind == FromNode::Kind::kTable) {
      Access access = AccessOf(right, conditions, known, {});
      if (access.seeks_bound) {
        const auto dependencies = DependenciesOf(right, conditions);
        OperatorPtr inner =
            MakeFilter(MakeScan(right.source, right.begin, std::move(access.shape),
                                std::move(access.constraints), right.row_id),
                       std::move(conditions));
        if (dependencies && right.row_id == nullptr) {
          inner = MakeRemembered(std::move(inner), *dependencies, slots);
        }
        return MakeNestedLoop(std::move(left), std::move(inner), {}, keeps_left,
                              std::move(slots));
      }
    }
    // Conditions on the right side alone go below the join.
    std::vector<Bound> own, both;
    std::vector<HashKeySpec> keys;
    for (Bound& condition : conditions) {
      const bool alone = std::none_of(
          condition->slots.begin(), condition->slots.end(),
          [&](Slot slot) { return IsBound(slot, known) && block_.Has(slot); });
      if (alone) {
        own.push_back(condition);
        continue;
      }
      if (const auto key = HashKeyOf(condition, right)) {
        keys.push_back(*key);
      } else {
        both.push_back(condition);
      }
    }
    OperatorPtr inner = PlanNode(right, own, {}, {}).op;
    inner = MakeFilter(std::move(inner), std::move(own));
    if (!keys.empty()) {
      return MakeHashJoin(std::move(left), std::move(inner), std::move(keys),
                          std::move(both), keeps_left, std::move(slots));
    }
    inner = MakeSpool(std::move(inner), slots);
    return MakeNestedLoop(std::move(left), std::move(inner), std::move(both),
                          keeps_left, std::move(slots));
  }

  std::optional<HashKeySpec> HashKeyOf(const Bound& condition,
                                       const FromNode& right) const {
    if (condition->shape != BoundExpression::Shape::kComparison ||
        condition->comparison != Comparison::kEqual ||
        condition->compared_type.id == TypeId::kSqlVariant) {
      return std::nullopt;
    }
    const bool left_reads = Reads(condition->left, right);
    const bool right_reads = Reads(condition->right, right);
    if (left_reads == right_reads) return std::nullopt;
    const Bound& mine = left_reads ? condition->left : condition->right;
    const Bound& other = left_reads ? condition->right : condition->left;
    const Range range{right.begin, right.end};
    const bool only_mine =
        std::all_of(mine->slots.begin(), mine->slots.end(),
                    [&](Slot slot) { return range.Has(slot) || !block_.Has(slot); });
    if (!only_mine || mine->is_volatile || other->is_volatile) return std::nullopt;
    return HashKeySpec{Converted(other, condition->compared_type),
                       Converted(mine, condition->compared_type),
                       condition->compared_type, condition->rule};
  }

  static Bound Converted(const Bound& side, const SqlType& type) {
    const bool same = side->type.id == type.id && side->type.scale == type.scale;
    if (same || (IsText(side->type.id) && IsText(type.id)) ||
        (IsBinary(side->type.id) && IsBinary(type.id))) {
      return side;
    }
    auto bound = std::make_shared<BoundExpression>(*side);
    bound->type = type;
    bound->slot.reset();
    bound->evaluate = [side, type](Context& context, Value& out) {
      side->evaluate(context, out);
      ConvertOptions options;
      options.dateformat = context.environment.settings().dateformat;
      options.collation = context.environment.database_collation();
      if (!out.IsNull()) out = ConvertValue(out, side->type, type, options);
    };
    return bound;
  }

  Planned PlanLeft(FromNode& node, std::vector<Bound>& conditions,
                   const std::vector<Range>& bound,
                   const std::vector<WantedOrder>& wanted) {
    std::vector<Bound> on_left = Take(conditions, *node.left, bound);
    Planned planned = PlanNode(*node.left, on_left, bound, wanted);
    planned.op = MakeFilter(std::move(planned.op), std::move(on_left));
    std::vector<Range> known = bound;
    known.push_back({node.left->begin, node.left->end});
    // A condition of ON that reads only the left side still decides about a match.
    planned.op = JoinWith(std::move(planned.op), *node.right, node.on, known, true);
    planned.op =
        MakeFilter(std::move(planned.op), Take(conditions, WholeOf(node), bound));
    return planned;
  }

  // A stand-in with the node's slots, whichever side they came from.
  static FromNode WholeOf(const FromNode& node) {
    FromNode whole;
    whole.begin = std::min(node.left->begin, node.right->begin);
    whole.end = std::max(node.left->end, node.right->end);
    return whole;
  }

  Planned PlanApply(FromNode& node, std::vector<Bound>& conditions,
                    const std::vector<Range>& bound,
                    const std::vector<WantedOrder>& wanted) {
    std::vector<Bound> on_left = Take(conditions, *node.left, bound);
    Planned planned = PlanNode(*node.left, on_left, bound, wanted);
    planned.op = MakeFilter(std::move(planned.op), std::move(on_left));
    std::vector<Bound> none;
    OperatorPtr right = PlanNode(*node.right, none, bound, {}).op;
    std::vector<Slot> slots;
    CollectSlots(*node.right, slots);
    planned.op =
        MakeNestedLoop(std::move(planned.op), std::move(right), {},
                       node.join == ast::JoinKind::kOuterApply, std::move(slots));
    planned.op =
        MakeFilter(std::move(planned.op), Take(conditions, WholeOf(node), bound));
    return planned;
  }

  Planned PlanFull(FromNode& node, std::vector<Bound>& conditions,
                   const std::vector<Range>& bound) {
    std::vector<Bound> none;
    std::vector<Slot> left_slots, right_slots;
    CollectSlots(*node.left, left_slots);
    CollectSlots(*node.right, right_slots);
    OperatorPtr left = PlanNode(*node.left, none, bound, {}).op;
    OperatorPtr right = PlanNode(*node.right, none, bound, {}).op;
    Planned planned;
    planned.op = MakeFullJoin(std::move(left), std::move(right), node.on,
                              std::move(left_slots), std::move(right_slots));
    planned.op =
        MakeFilter(std::move(planned.op), Take(conditions, WholeOf(node), bound));
    return planned;
  }

  Range block_;
};

}  // namespace

Comparison Mirrored(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return Comparison::kEqual;
    case Comparison::kLess:
      return Comparison::kGreater;
    case Comparison::kLessOrEqual:
      return Comparison::kGreaterOrEqual;
    case Comparison::kGreater:
      return Comparison::kLess;
    case Comparison::kGreaterOrEqual:
      return Comparison::kLessOrEqual;
  }
  return comparison;
}

void SplitConditions(const Bound& condition, std::vector<Bound>& conditions) {
  if (condition->shape == BoundExpression::Shape::kAnd) {
    SplitConditions(condition->left, conditions);
    SplitConditions(condition->right, conditions);
    return;
  }
  conditions.push_back(condition);
}

void CollectSlots(const FromNode& from, std::vector<Slot>& slots) {
  if (from.kind == FromNode::Kind::kJoin) {
    CollectSlots(*from.left, slots);
    CollectSlots(*from.right, slots);
    return;
  }
  for (std::size_t i = 0; i < from.table->columns.size(); ++i) {
    if (from.table->used[i]) slots.push_back(from.table->columns[i].slot);
  }
}

Planned PlanFrom(FromNode& from, std::vector<Bound> conditions,
                 const std::vector<WantedOrder>& wanted) {
  Planner planner(from.begin, from.end);
  Planned planned = planner.PlanNode(from, conditions, {}, wanted);
  planned.op = MakeFilter(std::move(planned.op), std::move(conditions));
  return planned;
}

}  // namespace mssql_cdc::sim

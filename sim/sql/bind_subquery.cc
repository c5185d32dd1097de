// Queries inside expressions: EXISTS, IN, scalar and quantified ones.

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/conditions.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

using ast::BinaryOperator;

// A subquery as part of an expression: planned once, opened for each evaluation.
struct Subplan {
  OperatorPtr op;
  std::vector<OutputColumn> columns;
  bool correlated = false;
};

std::shared_ptr<Subplan> MakeSubplan(const QueryPtr& query) {
  auto plan = std::make_shared<Subplan>();
  plan->op = query->Plan({}).op;
  plan->columns = query->columns;
  plan->correlated = !query->free_slots.empty();
  return plan;
}

void RequireOneColumn(const BoundQuery& query) {
  if (query.columns.size() == 1) return;
  RaiseSql(116, 16, 1,
           "Only one expression can be specified in the select list when the subquery "
           "is not introduced with EXISTS.");
}

}  // namespace

Bound Binder::BindExists(const ast::Exists& node, const Scope* scope) {
  const QueryPtr query = BindSelect(*node.select, scope);
  const auto plan = MakeSubplan(query);
  auto kept = std::make_shared<std::optional<Truth>>();
  const bool once = !plan->correlated && !variables_change_;
  Bound bound = NewCondition({}, [plan, kept, once](Context& context) {
    if (once && *kept) return **kept;
    plan->op->Open(context);
    const Truth truth = Of(plan->op->Next(context));
    if (once) *kept = truth;
    return truth;
  });
  bound->slots = query->free_slots;
  bound->is_volatile = true;
  return bound;
}

Bound Binder::BindScalarSelect(const ast::ScalarSelect& node, const Scope* scope) {
  const QueryPtr query = BindSelect(*node.select, scope);
  RequireOneColumn(*query);
  const auto plan = MakeSubplan(query);
  auto bound = std::make_shared<BoundExpression>();
  bound->type = query->columns[0].type;
  bound->slots = query->free_slots;
  bound->coercibility = BoundExpression::Coercibility::kImplicit;
  // Evaluated once where nothing outside changes its result.
  auto kept = std::make_shared<std::optional<Value>>();
  const bool once = !plan->correlated && !variables_change_;
  bound->is_volatile = !once;
  bound->evaluate = [plan, kept, once](Context& context, Value& out) {
    if (once && *kept) {
      out = **kept;
      return;
    }
    Value value;
    plan->op->Open(context);
    if (plan->op->Next(context)) {
      value = context.slots[plan->columns[0].slot];
      if (plan->op->Next(context)) {
        RaiseSql(
            512, 16, 1,
            "Subquery returned more than 1 value. This is not permitted when the "
            "subquery follows =, !=, <, <= , >, >= or when the subquery is used as "
            "an expression.");
      }
    }
    if (once) *kept = value;
    out = std::move(value);
  };
  return bound;
}

Bound Binder::BindInSelect(const ast::InSelect& node, const Scope* scope) {
  ast::Quantified quantified{BinaryOperator::kEqual, node.operand, node.select, false};
  const Bound any = BindQuantified(quantified, scope);
  if (!node.negated) return any;
  return NewCondition({any},
                      [any](Context& context) { return Not(any->test(context)); });
}

Bound Binder::BindQuantified(const ast::Quantified& node, const Scope* scope) {
  const Bound operand = Bind(node.operand, scope);
  const QueryPtr query = BindSelect(*node.select, scope);
  RequireOneColumn(*query);
  const auto plan = MakeSubplan(query);
  const Bound test = Compare(node.op, operand, SlotReference(query->columns[0]));
  // The values of a subquery that nothing changes are kept, as a set where = is asked.
  struct Kept {
    bool filled = false;
    bool has_null = false;
    std::unordered_set<std::string> keys;
  };
  auto kept = std::make_shared<Kept>();
  const SqlType type = CommonType(operand->type, query->columns[0].type);
  const bool as_set = !plan->correlated && !variables_change_ &&
                      node.op == BinaryOperator::kEqual && !node.all &&
                      type.id != TypeId::kSqlVariant;
  Bound bound;
  if (as_set) {
    SqlType wide = test->compared_type;
    const auto convert = [&](const Bound& side) {
      const bool same = (IsText(side->type.id) && IsText(wide.id)) ||
                        (IsBinary(side->type.id) && IsBinary(wide.id));
      return same ? side : Convert(side, wide);
    };
    const Bound probe = convert(operand);
    const Bound item = convert(SlotReference(query->columns[0]));
    bound = NewCondition({operand}, [plan, kept, probe, item, wide,
                                     rule = test->rule](Context& context) {
      if (!kept->filled) {
        kept->filled = true;
        plan->op->Open(context);
        while (plan->op->Next(context)) {
          const Value value = item->Get(context);
          kept->has_null = kept->has_null || value.IsNull();
          std::string key;
          AppendHashKey(value, wide, rule, key);
          if (!value.IsNull()) kept->keys.insert(std::move(key));
        }
      }
      const Value value = probe->Get(context);
      if (kept->keys.empty() && !kept->has_null) return Truth::kFalse;
      if (value.IsNull()) return Truth::kUnknown;
      std::string key;
      AppendHashKey(value, wide, rule, key);
      if (kept->keys.contains(key)) return Truth::kTrue;
      return kept->has_null ? Truth::kUnknown : Truth::kFalse;
    });
  } else {
    bound = NewCondition({operand}, [plan, test, all = node.all](Context& context) {
      Truth truth = Of(all);
      plan->op->Open(context);
      while (plan->op->Next(context)) {
        const Truth one = test->test(context);
        if (one == Of(!all)) return one;
        if (one == Truth::kUnknown) truth = one;
      }
      return truth;
    });
  }
  bound->slots.insert(bound->slots.end(), query->free_slots.begin(),
                      query->free_slots.end());
  bound->is_volatile = true;
  return bound;
}

}  // namespace mssql_cdc::sim

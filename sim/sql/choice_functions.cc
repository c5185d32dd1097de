// Built-in functions that choose among values, or tell what a value is.

#include "base/text.h"
#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {
namespace {

Bound NotNullCondition(const Bound& operand) {
  auto bound = std::make_shared<BoundExpression>();
  bound->slots = operand->slots;
  bound->is_volatile = operand->is_volatile;
  bound->test = [operand](Context& context) {
    return operand->Get(context).IsNull() ? Truth::kFalse : Truth::kTrue;
  };
  return bound;
}

Bound Coalesce(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 254);
  std::vector<std::pair<Bound, Bound>> branches;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    branches.emplace_back(NotNullCondition(arguments[i]), arguments[i]);
  }
  return binder.Branches(std::move(branches), arguments.back());
}

Bound IsNullFunction(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  SqlType type = arguments[0]->type;
  if (type.id == TypeId::kNull) type = arguments[1]->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  Bound bound = binder.Function(
      type, {binder.Convert(arguments[0], type), binder.Convert(arguments[1], type)},
      [](Context&, Values& v) { return v[v[0].IsNull() ? 1 : 0]; }, true);
  bound->nullable = arguments[1]->nullable;
  bound->coercibility = arguments[0]->coercibility;
  return binder.Fold(bound);
}

Bound NullIf(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound equal =
      binder.Compare(ast::BinaryOperator::kEqual, arguments[0], arguments[1]);
  Bound null = binder.Constant(arguments[0]->type, Value());
  return binder.Branches({{equal, null}}, arguments[0]);
}

Bound IfElse(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  return binder.Branches({{arguments[0], arguments[1]}}, arguments[2]);
}

Bound Choose(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 254);
  const Bound index = AsInt(binder, arguments[0]);
  std::vector<std::pair<Bound, Bound>> branches;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    branches.emplace_back(
        binder.Compare(
            ast::BinaryOperator::kEqual, index,
            binder.Constant(TypeOf(TypeId::kBigInt), Of(static_cast<std::int64_t>(i)))),
        arguments[i]);
  }
  return binder.Branches(std::move(branches), nullptr);
}

Bound Extreme(Binder& binder, const ast::Call& call, Arguments& arguments, int sign) {
  Require(call, 1, 254);
  const SqlType type = binder.BranchType(arguments);
  Arguments parts;
  for (const Bound& argument : arguments)
    parts.push_back(binder.Convert(argument, type));
  return binder.Fold(binder.Function(
      type, parts,
      [type, sign, rule = binder.RuleFor(type)](Context&, Values& v) {
        Value best;
        for (Value& value : v) {
          if (value.IsNull()) continue;
          if (best.IsNull() || CompareValues(value, best, type, rule) * sign > 0) {
            best = value;
          }
        }
        return best;
      },
      true));
}
Bound Greatest(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Extreme(binder, call, arguments, 1);
}
Bound Least(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Extreme(binder, call, arguments, -1);
}

Bound Attempt(Binder& binder, const ast::Call& call, Arguments& arguments,
              const SqlType& to) {
  Require(call, 1, 1);
  const SqlType from = arguments[0]->type;
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {arguments[0]},
      [from, to, options = binder.Options()](Context&, Values& v) {
        if (v[0].IsNull()) return Of(std::int64_t{0});
        if (IsText(from.id) && Trim(Utf8(TextOf(v[0]))).empty()) {
          return Of(std::int64_t{0});
        }
        try {
          ConvertValue(v[0], from, to, options);
          return Of(std::int64_t{1});
        } catch (const SqlError&) {
          return Of(std::int64_t{0});
        }
      },
      true));
}
Bound IsDate(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Attempt(binder, call, arguments, TypeOf(TypeId::kDateTime));
}
Bound IsNumeric(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Attempt(binder, call, arguments, TypeOf(TypeId::kFloat));
}

}  // namespace

std::span<const FunctionEntry> ChoiceFunctions() {
  static constexpr FunctionEntry kEntries[] = {
      {"COALESCE", Coalesce}, {"ISNULL", IsNullFunction}, {"NULLIF", NullIf},
      {"IIF", IfElse},        {"CHOOSE", Choose},         {"GREATEST", Greatest},
      {"LEAST", Least},       {"ISDATE", IsDate},         {"ISNUMERIC", IsNumeric},
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin

// CASE, CONVERT, COLLATE, AT TIME ZONE.

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/conditions.h"
#include "sim/sql/dates.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/time_zone.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

using ast::BinaryOperator;

SqlType Binder::BranchType(std::span<const Bound> branches) {
  SqlType type = TypeOf(TypeId::kNull);
  for (const Bound& branch : branches) {
    if (branch) type = CommonType(type, branch->type);
  }
  if (type.id == TypeId::kInt) type.precision = 0;
  return type;
}

// CASE and its kin: the first branch whose condition holds.
Bound Binder::Branches(std::vector<std::pair<Bound, Bound>> branches, Bound otherwise) {
  std::vector<Bound> results;
  for (const auto& branch : branches) results.push_back(branch.second);
  results.push_back(otherwise);
  const SqlType type = BranchType(results);
  if (type.id == TypeId::kNull) {
    RaiseSql(
        8133, 16, 1,
        "At least one of the result expressions in a CASE specification must be an "
        "expression other than the NULL constant.");
  }
  auto bound = std::make_shared<BoundExpression>();
  bound->type = type;
  for (auto& [condition, result] : branches) {
    result = Convert(result, type);
    AddSlots(condition, *bound);
    AddSlots(result, *bound);
    bound->coercibility = std::min(bound->coercibility, result->coercibility);
  }
  if (otherwise) {
    otherwise = Convert(otherwise, type);
    AddSlots(otherwise, *bound);
  }
  bound->evaluate = [branches, otherwise](Context& context, Value& out) {
    for (const auto& [condition, result] : branches) {
      if (condition->test(context) != Truth::kTrue) continue;
      result->evaluate(context, out);
      return;
    }
    out = Value();
    if (otherwise) otherwise->evaluate(context, out);
  };
  return bound;
}

Bound Binder::BindCase(const ast::Case& node, const Scope* scope) {
  std::vector<std::pair<Bound, Bound>> branches;
  const Bound operand = node.operand ? Bind(node.operand, scope) : nullptr;
  for (const auto& [when, then] : node.branches) {
    Bound condition = Bind(when, scope);
    if (operand) condition = Compare(BinaryOperator::kEqual, operand, condition);
    branches.emplace_back(std::move(condition), Bind(then, scope));
  }
  Bound otherwise = node.otherwise ? Bind(node.otherwise, scope) : nullptr;
  return Branches(std::move(branches), std::move(otherwise));
}

Bound Binder::BindConvert(const ast::Convert& node, const Scope* scope) {
  Bound operand = Bind(node.operand, scope);
  SqlType to = ResolveType(node.type, environment_, true);
  SuggestType(operand, to);
  if (operand->type.id != TypeId::kNull) CheckConversion(operand->type, to, true);
  if (IsText(to.id) && IsText(operand->type.id)) to.collation = operand->type.collation;
  Bound style = node.style ? Bind(node.style, scope) : nullptr;
  if (style) style = Convert(style, TypeOf(TypeId::kInt));
  auto bound = std::make_shared<BoundExpression>();
  bound->type = to;
  bound->nullable = operand->nullable || node.attempt;
  bound->coercibility = IsText(operand->type.id)
                            ? operand->coercibility
                            : BoundExpression::Coercibility::kDefault;
  AddSlots(operand, *bound);
  AddSlots(style, *bound);
  if (operand->type.id == TypeId::kNull) {
    bound->evaluate = [](Context&, Value& out) { out = Value(); };
    return bound;
  }
  bound->evaluate = [operand, style, from = operand->type, to, options = Options(),
                     attempt = node.attempt](Context& context, Value& out) {
    operand->evaluate(context, out);
    if (out.IsNull()) return;
    ConvertOptions with_style = options;
    if (style) {
      const Value value = style->Get(context);
      if (value.IsNull()) {
        out = Value();
        return;
      }
      with_style.style = static_cast<int>(std::get<std::int64_t>(value.held));
    }
    if (!attempt) {
      out = ConvertValue(out, from, to, with_style);
      return;
    }
    try {
      out = ConvertValue(out, from, to, with_style);
    } catch (const SqlError&) {
      out = Value();
    }
  };
  return Fold(bound);
}

Bound Binder::BindCollate(const ast::Collate& node, const Scope* scope) {
  Bound operand = Bind(node.operand, scope);
  if (operand->type.id == TypeId::kNull) operand->type = VarCharType(1);
  if (!IsText(operand->type.id)) {
    RaiseSql(447, 16, 0,
             "Expression type " + TypeWord(operand->type) +
                 " is invalid for COLLATE clause.");
  }
  std::string collation = node.collation;
  if (EqualsIgnoringAsciiCase(collation, "database_default") ||
      EqualsIgnoringAsciiCase(collation, "catalog_default")) {
    collation = environment_.database_collation();
  } else if (!IsCollation(collation)) {
    RaiseSql(448, 16, 3, "Invalid collation '" + collation + "'.");
  }
  auto bound = std::make_shared<BoundExpression>(*operand);
  bound->type.collation = collation;
  bound->coercibility = BoundExpression::Coercibility::kExplicit;
  bound->slot.reset();
  // Between code pages the text itself may change.
  return bound;
}

Bound Binder::BindAtTimeZone(const ast::AtTimeZone& node, const Scope* scope) {
  Bound operand = Bind(node.operand, scope);
  const Bound zone = Convert(Bind(node.zone, scope), NVarCharType(128));
  if (IsText(operand->type.id)) operand = Convert(operand, TypeOf(TypeId::kDateTime2));
  if (!IsDateTime(operand->type.id) || operand->type.id == TypeId::kDate ||
      operand->type.id == TypeId::kTime) {
    RaiseSql(8116, 16, 1,
             "Argument data type " + TypeWord(operand->type) +
                 " is invalid for argument 1 of AT TIME ZONE function.");
  }
  SqlType type = TypeOf(TypeId::kDateTimeOffset);
  type.scale = operand->type.id == TypeId::kDateTime        ? std::uint8_t{3}
               : operand->type.id == TypeId::kSmallDateTime ? std::uint8_t{0}
                                                            : operand->type.scale;
  const bool has_offset = operand->type.id == TypeId::kDateTimeOffset;
  return Fold(Function(
      type, {operand, zone}, [has_offset](Context&, std::vector<Value>& values) {
        const std::string name = Utf8(std::get<Text>(values[1].held));
        const TimeZone* found = FindTimeZone(name);
        if (found == nullptr) {
          RaiseSql(9820, 16, 1,
                   "The time zone parameter '" + name +
                       "' provided to AT TIME ZONE clause is invalid.");
        }
        auto& date = std::get<DateTimeValue>(values[0].held);
        int offset = 0;
        if (has_offset) {
          const auto utc = AddTicks(date, -date.offset_minutes * kTicksPerMinute);
          offset = OffsetAtUtc(*found, utc.value_or(date));
          const auto local = AddTicks(utc.value_or(date), offset * kTicksPerMinute);
          date = local.value_or(date);
        } else {
          offset = OffsetAtLocal(*found, date);
        }
        date.offset_minutes = static_cast<std::int16_t>(offset);
        return std::move(values[0]);
      }));
}

}  // namespace mssql_cdc::sim

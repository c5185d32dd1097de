// Comparison and arithmetic: the types' rules and what they compute.

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/conditions.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

using ast::BinaryOperator;

bool Holds(BinaryOperator op, int order) {
  switch (op) {
    case BinaryOperator::kEqual:
      return order == 0;
    case BinaryOperator::kNotEqual:
      return order != 0;
    case BinaryOperator::kLess:
      return order < 0;
    case BinaryOperator::kLessOrEqual:
      return order <= 0;
    case BinaryOperator::kGreater:
      return order > 0;
    case BinaryOperator::kGreaterOrEqual:
      return order >= 0;
    default:
      return false;
  }
}

std::optional<Comparison> ComparisonOf(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kEqual:
      return Comparison::kEqual;
    case BinaryOperator::kLess:
      return Comparison::kLess;
    case BinaryOperator::kLessOrEqual:
      return Comparison::kLessOrEqual;
    case BinaryOperator::kGreater:
      return Comparison::kGreater;
    case BinaryOperator::kGreaterOrEqual:
      return Comparison::kGreaterOrEqual;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void RaiseOverflow(const SqlType& type) {
  RaiseSql(8115, 16, 2,
           "Arithmetic overflow error converting expression to data type " +
               TypeWord(type) + ".");
}

[[noreturn]] void RaiseDivideByZero() {
  RaiseSql(8134, 16, 1, "Divide by zero error encountered.");
}

Value IntegerResult(BinaryOperator op, std::int64_t a, std::int64_t b,
                    const SqlType& type) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOperator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOperator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOperator::kDivide:
    case BinaryOperator::kModulo:
      if (b == 0) RaiseDivideByZero();
      if (b == -1) {
        if (op == BinaryOperator::kModulo) break;
        overflow = __builtin_sub_overflow(std::int64_t{0}, a, &result);
        break;
      }
      result = op == BinaryOperator::kDivide ? a / b : a % b;
      break;
    case BinaryOperator::kBitAnd:
      result = a & b;
      break;
    case BinaryOperator::kBitOr:
      result = a | b;
      break;
    case BinaryOperator::kBitXor:
      result = a ^ b;
      break;
    default:
      break;
  }
  switch (type.id) {
    case TypeId::kTinyInt:
      overflow = overflow || result < 0 || result > 255;
      break;
    case TypeId::kSmallInt:
      overflow = overflow || result < INT16_MIN || result > INT16_MAX;
      break;
    case TypeId::kInt:
      overflow = overflow || result < INT32_MIN || result > INT32_MAX;
      break;
    default:
      break;
  }
  if (overflow) RaiseOverflow(type);
  Value value;
  value.held = result;
  return value;
}

Value DoubleResult(BinaryOperator op, double a, double b, const SqlType& type) {
  double result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      result = a + b;
      break;
    case BinaryOperator::kSubtract:
      result = a - b;
      break;
    case BinaryOperator::kMultiply:
      result = a * b;
      break;
    default:
      if (b == 0) RaiseDivideByZero();
      result = a / b;
      break;
  }
  if (type.id == TypeId::kReal)
    result = static_cast<double>(static_cast<float>(result));
  if (!std::isfinite(result)) RaiseOverflow(type);
  Value value;
  value.held = result;
  return value;
}

Value DecimalResult(BinaryOperator op, const Decimal& a, const Decimal& b,
                    const SqlType& type) {
  const std::uint8_t scale = type.id == TypeId::kDecimal ? type.scale : std::uint8_t{4};
  std::optional<Decimal> result;
  const bool divides = op == BinaryOperator::kDivide || op == BinaryOperator::kModulo;
  if (divides && b.unscaled == 0) RaiseDivideByZero();
  switch (op) {
    case BinaryOperator::kAdd:
      result = AddDecimals(a, b, scale);
      break;
    case BinaryOperator::kSubtract:
      result = AddDecimals(a, {-b.unscaled, b.scale}, scale);
      break;
    case BinaryOperator::kMultiply:
      result = MultiplyDecimals(a, b, scale);
      break;
    case BinaryOperator::kDivide:
      result = DivideDecimals(a, b, scale);
      break;
    default:
      result = ModuloDecimals(a, b, scale);
      break;
  }
  const bool money = IsMoney(type.id);
  const __int128 high = type.id == TypeId::kSmallMoney ? INT32_MAX : INT64_MAX;
  if (!result || (money && (result->unscaled > high || result->unscaled < -high - 1))) {
    RaiseOverflow(type);
  }
  Value value;
  value.held = *result;
  return value;
}

// datetime plus or minus a number of days, or another datetime as such a number.
Value DateResult(BinaryOperator op, const DateTimeValue& a, const DateTimeValue& b,
                 const SqlType& type) {
  const __int128 base = __int128{kDaysOf1900} * kTicksPerDay;
  const __int128 difference = TotalTicks(b) - base;
  const __int128 total =
      TotalTicks(a) + (op == BinaryOperator::kAdd ? difference : -difference);
  DateTimeValue moment;
  const __int128 days = total / kTicksPerDay;
  if (total < 0 || days > kDaysMax) RaiseOverflow(type);
  moment.days = static_cast<std::int32_t>(days);
  moment.ticks = static_cast<std::int64_t>(total % kTicksPerDay);
  const auto rounded = RoundTo(moment, type);
  if (!rounded) RaiseOverflow(type);
  Value value;
  value.held = *rounded;
  return value;
}

// What both sides are compared as. Raises 305, 402, 468.
SqlType ComparedType(BinaryOperator op, const BoundExpression& left,
                     const BoundExpression& right, const std::string& database) {
  SqlType type = CommonType(left.type, right.type);
  if (IsLargeObject(type.id) || type.id == TypeId::kXml) {
    RaiseSql(type.id == TypeId::kXml ? 305 : 402, 16, 1,
             type.id == TypeId::kXml
                 ? std::string("The XML data type cannot be compared or sorted, except "
                               "when using the IS NULL operator.")
                 : "The data types " + TypeWord(left.type) + " and " +
                       TypeWord(right.type) + " are incompatible in the " +
                       OperatorName(op) + " operator.");
  }
  if (!IsText(type.id) || !IsText(left.type.id) || !IsText(right.type.id)) return type;
  using enum BoundExpression::Coercibility;
  const auto named = [&](const BoundExpression& side) {
    return side.type.collation.empty() ? database : side.type.collation;
  };
  const std::string a = named(left);
  const std::string b = named(right);
  if (left.coercibility == right.coercibility && left.coercibility != kDefault &&
      !EqualsIgnoringAsciiCase(a, b)) {
    RaiseSql(468, 16, 9,
             "Cannot resolve the collation conflict between \"" + b + "\" and \"" + a +
                 "\" in the " + OperatorName(op) + " operation.");
  }
  type.collation = left.coercibility <= right.coercibility ? a : b;
  return type;
}

// Lengths do not matter in a comparison; without them nothing is cut off.
SqlType WithoutLength(SqlType type) {
  if (IsText(type.id)) {
    type.id = IsNationalText(type.id) ? TypeId::kNVarChar : TypeId::kVarChar;
    type.length = kMax;
  } else if (IsBinary(type.id) && type.id != TypeId::kRowVersion) {
    type.id = TypeId::kVarBinary;
    type.length = kMax;
  }
  return type;
}

Bound JoinTexts(Binder& binder, const SqlType& type, const Bound& left,
                const Bound& right) {
  SqlType wide = type;
  wide.length = kMax;
  const bool null_yields_null = binder.environment().settings().concat_null_yields_null;
  Bound bound = binder.Function(
      type, {binder.Convert(left, wide), binder.Convert(right, wide)},
      [type](Context&, std::vector<Value>& values) {
        Value value;
        Text text;
        for (Value& part : values) {
          if (!part.IsNull()) text += std::get<Text>(part.held);
        }
        if (type.length != kMax &&
            text.size() > static_cast<std::size_t>(type.length)) {
          text.resize(static_cast<std::size_t>(type.length));
        }
        value.held = std::move(text);
        return value;
      },
      !null_yields_null);
  bound->coercibility = std::min(left->coercibility, right->coercibility);
  return binder.Fold(bound);
}

Bound JoinBytes(Binder& binder, const SqlType& type, const Bound& left,
                const Bound& right) {
  return binder.Fold(binder.Function(
      type, {left, right}, [type](Context&, std::vector<Value>& values) {
        Bytes bytes = std::get<Bytes>(values[0].held);
        const Bytes& more = std::get<Bytes>(values[1].held);
        bytes.insert(bytes.end(), more.begin(), more.end());
        if (type.length != kMax && bytes.size() > 8000) bytes.resize(8000);
        Value value;
        value.held = std::move(bytes);
        return value;
      }));
}

}  // namespace

Bound Binder::Compare(BinaryOperator op, Bound left, Bound right) {
  SuggestType(left, right->type);
  SuggestType(right, left->type);
  const SqlType compared =
      ComparedType(op, *left, *right, environment_.database_collation());
  const CollationRule rule = RuleFor(compared);
  const SqlType wide = WithoutLength(compared);
  const auto as_compared = [&](const Bound& side) {
    const bool same_family = (IsText(side->type.id) && IsText(wide.id)) ||
                             (IsBinary(side->type.id) && IsBinary(wide.id));
    return same_family ? side : Convert(side, wide);
  };
  const Bound a = as_compared(left);
  const Bound b = as_compared(right);
  auto bound = std::make_shared<BoundExpression>();
  AddSlots(a, *bound);
  AddSlots(b, *bound);
  const auto test_values = [op, wide, rule](const Value& x, const Value& y) {
    if (x.IsNull() || y.IsNull()) return Truth::kUnknown;
    return Of(Holds(op, CompareValues(x, y, wide, rule)));
  };
  // Columns are compared where they are, without a copy, and with what depends on no
  // row as it was the first time.
  const bool constant = b->slots.empty() && !b->is_volatile && !variables_change_;
  if (a->slot && constant) {
    bound->test = [test_values, slot = *a->slot, b,
                   kept = std::make_shared<std::optional<Value>>()](Context& context) {
      if (!*kept) *kept = b->Get(context);
      return test_values(context.slots[slot], **kept);
    };
  } else if (a->slot && !b->slot) {
    bound->test = [test_values, slot = *a->slot, b](Context& context) {
      Value y;
      b->evaluate(context, y);
      return test_values(context.slots[slot], y);
    };
  } else if (a->slot && b->slot) {
    bound->test = [test_values, x = *a->slot, y = *b->slot](Context& context) {
      return test_values(context.slots[x], context.slots[y]);
    };
  } else {
    bound->test = [test_values, a, b](Context& context) {
      Value x, y;
      a->evaluate(context, x);
      b->evaluate(context, y);
      return test_values(x, y);
    };
  }
  if (const auto comparison = ComparisonOf(op)) {
    bound->shape = BoundExpression::Shape::kComparison;
    bound->comparison = *comparison;
    bound->left = left;
    bound->right = right;
    bound->compared_type = wide;
    bound->rule = rule;
  }
  return bound;
}

Bound Binder::Arithmetic(BinaryOperator op, Bound left, Bound right) {
  SuggestType(left, right->type);
  SuggestType(right, left->type);
  const SqlType type = ArithmeticType(op, left->type, right->type);
  if (IsText(type.id)) return JoinTexts(*this, type, left, right);
  if (IsBinary(type.id) && !IsInteger(left->type.id)) {
    return JoinBytes(*this, type, left, right);
  }
  if (type.id == TypeId::kDecimal) {
    const auto as_decimal = [&](const Bound& side) {
      if (side->type.id == TypeId::kDecimal) return side;
      SqlType own = IsExactNumber(side->type.id) ? AsDecimal(side->type) : type;
      if (IsText(side->type.id)) {
        own = left->type.id == TypeId::kDecimal ? left->type : right->type;
      }
      return Convert(side, own);
    };
    left = as_decimal(left);
    right = as_decimal(right);
  } else {
    left = Convert(left, type, true);
    right = Convert(right, type, true);
  }
  return Fold(
      Function(type, {left, right}, [op, type](Context&, std::vector<Value>& values) {
        const auto& x = values[0].held;
        const auto& y = values[1].held;
        if (const auto* integer = std::get_if<std::int64_t>(&x)) {
          return IntegerResult(op, *integer, std::get<std::int64_t>(y), type);
        }
        if (const auto* number = std::get_if<double>(&x)) {
          return DoubleResult(op, *number, std::get<double>(y), type);
        }
        if (const auto* date = std::get_if<DateTimeValue>(&x)) {
          return DateResult(op, *date, std::get<DateTimeValue>(y), type);
        }
        return DecimalResult(op, std::get<Decimal>(x), std::get<Decimal>(y), type);
      }));
}

Bound Binder::BindUnary(const ast::Unary& node, const Scope* scope) {
  Bound operand = Bind(node.operand, scope);
  if (node.op == ast::UnaryOperator::kNot) {
    return NewCondition(
        {operand}, [operand](Context& context) { return Not(operand->test(context)); });
  }
  if (node.op == ast::UnaryOperator::kPlus) return operand;
  const SqlType type =
      operand->type.id == TypeId::kNull ? TypeOf(TypeId::kInt) : operand->type;
  const bool minus = node.op == ast::UnaryOperator::kMinus;
  const bool fits =
      minus ? IsNumber(type.id) && type.id != TypeId::kBit : IsInteger(type.id);
  if (!fits) {
    RaiseSql(8117, 16, 1,
             "Operand data type " + TypeWord(type) + " is invalid for " +
                 (minus ? "minus" : "'~'") + " operator.");
  }
  if (!minus) {
    return Fold(Function(type, {operand}, [type](Context&, std::vector<Value>& values) {
      std::int64_t& number = std::get<std::int64_t>(values[0].held);
      number = type.id == TypeId::kBit       ? 1 - number
               : type.id == TypeId::kTinyInt ? (~number & 0xFF)
                                             : ~number;
      return std::move(values[0]);
    }));
  }
  Bound bound = Function(type, {operand}, [type](Context&, std::vector<Value>& values) {
    Value& value = values[0];
    if (auto* integer = std::get_if<std::int64_t>(&value.held)) {
      return IntegerResult(BinaryOperator::kSubtract, 0, *integer, type);
    }
    if (auto* number = std::get_if<double>(&value.held)) {
      *number = -*number;
    } else {
      auto& decimal = std::get<Decimal>(value.held);
      decimal.unscaled = -decimal.unscaled;
    }
    return std::move(value);
  });
  // -2147483648 is written as minus 2147483648, which is a decimal: SQL Server says int
  // only where the literal fits, and so does this.
  return Fold(bound);
}

Bound Binder::BindBinary(const ast::Binary& node, const Scope* scope) {
  Bound left = Bind(node.left, scope);
  Bound right = Bind(node.right, scope);
  if (node.op == BinaryOperator::kAnd || node.op == BinaryOperator::kOr) {
    const bool both = node.op == BinaryOperator::kAnd;
    const Truth decides = both ? Truth::kFalse : Truth::kTrue;
    Bound bound = NewCondition({left, right}, [left, right, decides](Context& context) {
      const Truth first = left->test(context);
      if (first == decides) return first;
      const Truth second = right->test(context);
      if (second == decides) return second;
      return first == Truth::kUnknown ? first : second;
    });
    bound->shape = both ? BoundExpression::Shape::kAnd : BoundExpression::Shape::kOr;
    bound->left = left;
    bound->right = right;
    return bound;
  }
  if (node.op >= BinaryOperator::kEqual) {
    return Compare(node.op, std::move(left), std::move(right));
  }
  return Arithmetic(node.op, std::move(left), std::move(right));
}

}  // namespace mssql_cdc::sim

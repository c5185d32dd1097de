// Built-in functions over numbers.

#include <algorithm>
#include <cmath>

#include "sim/sql/decimals.h"
#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {
namespace {

Bound NumberFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                     double (*f)(double)) {
  Require(call, 1, 1);
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kFloat), {binder.Convert(arguments[0], TypeOf(TypeId::kFloat))},
      [f](Context&, Values& v) {
        const double result = f(std::get<double>(v[0].held));
        if (!std::isfinite(result)) {
          RaiseSql(3623, 16, 1, "An invalid floating point operation occurred.");
        }
        return OfDouble(result);
      }));
}

// The type of ABS, CEILING, FLOOR, ROUND and SIGN.
Bound AsNumber(Binder& binder, const Bound& argument, const ast::Call& call) {
  const SqlType& type = argument->type;
  if (IsText(type.id) || type.id == TypeId::kNull) {
    return binder.Convert(argument, TypeOf(TypeId::kFloat));
  }
  if (!IsNumber(type.id)) RaiseArgument(type, 1, call);
  if (type.id == TypeId::kBit) return binder.Convert(argument, TypeOf(TypeId::kFloat));
  if (type.id == TypeId::kTinyInt || type.id == TypeId::kSmallInt) {
    return binder.Convert(argument, TypeOf(TypeId::kInt));
  }
  if (type.id == TypeId::kReal) return binder.Convert(argument, TypeOf(TypeId::kFloat));
  if (type.id == TypeId::kSmallMoney) {
    return binder.Convert(argument, TypeOf(TypeId::kMoney));
  }
  return argument;
}

enum class Rounding : std::uint8_t { kAbsolute, kCeiling, kFloor, kSign };

Value Rounded(Value value, Rounding how) {
  if (auto* integer = std::get_if<std::int64_t>(&value.held)) {
    if (how == Rounding::kAbsolute && *integer < 0) *integer = -*integer;
    if (how == Rounding::kSign) *integer = (*integer > 0) - (*integer < 0);
    return value;
  }
  if (auto* number = std::get_if<double>(&value.held)) {
    switch (how) {
      case Rounding::kAbsolute:
        *number = std::fabs(*number);
        break;
      case Rounding::kCeiling:
        *number = std::ceil(*number);
        break;
      case Rounding::kFloor:
        *number = std::floor(*number);
        break;
      case Rounding::kSign:
        *number = (*number > 0) - (*number < 0);
        break;
    }
    return value;
  }
  auto& decimal = std::get<Decimal>(value.held);
  const __int128 unit = PowerOfTen(decimal.scale);
  switch (how) {
    case Rounding::kAbsolute:
      if (decimal.unscaled < 0) decimal.unscaled = -decimal.unscaled;
      break;
    case Rounding::kSign:
      decimal.unscaled = unit * ((decimal.unscaled > 0) - (decimal.unscaled < 0));
      break;
    default: {
      __int128 whole = decimal.unscaled / unit;
      const __int128 rest = decimal.unscaled % unit;
      if (how == Rounding::kCeiling && rest > 0) ++whole;
      if (how == Rounding::kFloor && rest < 0) --whole;
      decimal.unscaled = whole * unit;
      break;
    }
  }
  return value;
}

Bound RoundingFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                       Rounding how) {
  Require(call, 1, 1);
  const Bound number = AsNumber(binder, arguments[0], call);
  SqlType type = number->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  const bool whole = how == Rounding::kCeiling || how == Rounding::kFloor;
  if (type.id == TypeId::kDecimal && whole) type = DecimalType(type.precision, 0);
  const bool drop = type.id == TypeId::kDecimal && whole;
  return binder.Fold(binder.Function(type, {number}, [how, drop](Context&, Values& v) {
    Value value = Rounded(std::move(v[0]), how);
    if (drop) value.held = *Rescale(std::get<Decimal>(value.held), 0);
    return value;
  }));
}
Bound Absolute(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kAbsolute);
}
Bound Ceiling(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kCeiling);
}
Bound Floor(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kFloor);
}
Bound SignOf(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return RoundingFunction(binder, call, arguments, Rounding::kSign);
}

Bound Round(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 3);
  const Bound number = AsNumber(binder, arguments[0], call);
  Arguments parts{number, AsInt(binder, arguments[1])};
  if (arguments.size() > 2) parts.push_back(AsInt(binder, arguments[2]));
  SqlType type = number->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  return binder.Fold(binder.Function(type, parts, [type](Context&, Values& v) {
    const std::int64_t digits = std::clamp<std::int64_t>(IntOf(v[1]), -38, 38);
    const bool truncate = v.size() > 2 && IntOf(v[2]) != 0;
    if (auto* real = std::get_if<double>(&v[0].held)) {
      const double unit = std::pow(10.0, static_cast<double>(digits));
      *real = (truncate ? std::trunc(*real * unit) : std::round(*real * unit)) / unit;
      return std::move(v[0]);
    }
    const bool integer = IsInteger(type.id);
    Decimal decimal = integer ? Decimal{IntOf(v[0]), 0} : std::get<Decimal>(v[0].held);
    const std::uint8_t scale = decimal.scale;
    if (digits < 0) {
      // To tens and hundreds: move the point, round, move it back.
      const __int128 unit =
          PowerOfTen(static_cast<unsigned>(std::min<std::int64_t>(scale - digits, 38)));
      const __int128 rest = decimal.unscaled % unit;
      decimal.unscaled -= rest;
      const __int128 twice = 2 * (rest < 0 ? -rest : rest);
      if (!truncate && twice >= unit) decimal.unscaled += rest < 0 ? -unit : unit;
    } else if (digits < scale) {
      decimal = *Rescale(*Rescale(decimal, static_cast<std::uint8_t>(digits), truncate),
                         scale);
    }
    if (integer) {
      if (type.id == TypeId::kInt &&
          (decimal.unscaled > INT32_MAX || decimal.unscaled < INT32_MIN)) {
        RaiseSql(8115, 16, 2,
                 "Arithmetic overflow error converting expression to data type int.");
      }
      return Of(static_cast<std::int64_t>(decimal.unscaled));
    }
    v[0].held = decimal;
    return std::move(v[0]);
  }));
}

Bound Power(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const Bound base = AsNumber(binder, arguments[0], call);
  SqlType type = base->type;
  if (type.id == TypeId::kInt) type.precision = 0;
  if (type.id == TypeId::kDecimal) type = DecimalType(38, type.scale);
  const SqlType real = TypeOf(TypeId::kFloat);
  const Bound result = binder.Function(
      real, {binder.Convert(base, real), binder.Convert(arguments[1], real)},
      [](Context&, Values& v) {
        const double power =
            std::pow(std::get<double>(v[0].held), std::get<double>(v[1].held));
        if (!std::isfinite(power)) {
          RaiseSql(3623, 16, 1, "An invalid floating point operation occurred.");
        }
        return OfDouble(power);
      });
  return binder.Convert(binder.Fold(result), type);
}
double SquareOf(double x) { return x * x; }
Bound Sqrt(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::sqrt);
}
Bound Square(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, SquareOf);
}
Bound Exp(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::exp);
}
Bound Log(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::log);
}
Bound Log10(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::log10);
}
Bound Sin(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::sin);
}
Bound Cos(Binder& b, const ast::Call& c, Arguments& a) {
  return NumberFunction(b, c, a, std::cos);
}
Bound Pi(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return binder.Constant(TypeOf(TypeId::kFloat), OfDouble(3.14159265358979323846));
}

}  // namespace

std::span<const FunctionEntry> NumberFunctions() {
  static constexpr FunctionEntry kEntries[] = {
      {"ABS", Absolute}, {"CEILING", Ceiling}, {"FLOOR", Floor}, {"SIGN", SignOf},
      {"ROUND", Round},  {"POWER", Power},     {"SQRT", Sqrt},   {"SQUARE", Square},
      {"EXP", Exp},      {"LOG", Log},         {"LOG10", Log10}, {"SIN", Sin},
      {"COS", Cos},      {"PI", Pi},
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin

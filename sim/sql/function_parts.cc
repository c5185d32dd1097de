#include "sim/sql/function_parts.h"

#include "base/text.h"
#include "sim/sql/dates.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {

Value Of(std::int64_t number) {
  Value value;
  value.held = number;
  return value;
}
Value Of(Text text) {
  Value value;
  value.held = std::move(text);
  return value;
}
Value Of(const DateTimeValue& date) {
  Value value;
  value.held = date;
  return value;
}
Value OfDouble(double number) {
  Value value;
  value.held = number;
  return value;
}
const Text& TextOf(const Value& value) { return std::get<Text>(value.held); }
std::int64_t IntOf(const Value& value) { return std::get<std::int64_t>(value.held); }

std::string Shown(const ast::Call& call) { return LowerAscii(call.name[0]); }

void Require(const ast::Call& call, std::size_t least, std::size_t most) {
  const std::size_t count = call.arguments.size() + (call.date_part.empty() ? 0 : 1);
  if (count >= least && count <= most) return;
  if (least == most) {
    RaiseSql(174, 15, 1,
             "The " + Shown(call) + " function requires " + std::to_string(least) +
                 " argument(s).");
  }
  RaiseSql(189, 15, 1,
           "The " + Shown(call) + " function requires " + std::to_string(least) +
               " to " + std::to_string(most) + " arguments.");
}

[[noreturn]] void RaiseArgument(const SqlType& type, int number,
                                const ast::Call& call) {
  RaiseSql(8116, 16, 1,
           "Argument data type " + TypeWord(type) + " is invalid for argument " +
               std::to_string(number) + " of " + Shown(call) + " function.");
}

Bound AsText(Binder& binder, const Bound& argument) {
  if (IsText(argument->type.id) && !IsLargeObject(argument->type.id)) return argument;
  const bool national = IsNationalText(argument->type.id);
  SqlType type = national ? NVarCharType(IsLargeObject(argument->type.id) ? kMax : 4000)
                          : VarCharType(IsLargeObject(argument->type.id) ? kMax : 8000);
  return binder.Convert(argument, type, IsMoney(argument->type.id));
}
Bound AsInt(Binder& binder, const Bound& argument) {
  return binder.Convert(argument, TypeOf(TypeId::kBigInt), true);
}

SqlType Varying(SqlType type) {
  if (type.id == TypeId::kChar || type.id == TypeId::kText) type.id = TypeId::kVarChar;
  if (type.id == TypeId::kNChar || type.id == TypeId::kNText) {
    type.id = TypeId::kNVarChar;
  }
  return type;
}
SqlType Longest(SqlType type) {
  type = Varying(type);
  if (type.length != kMax) type.length = IsNationalText(type.id) ? 4000 : 8000;
  return type;
}

DateTimeValue Local(DateTimeValue now) {
  now.offset_minutes = 0;
  return now;
}
DateTimeValue Utc(const DateTimeValue& now) {
  return Local(AddTicks(now, -now.offset_minutes * kTicksPerMinute).value_or(now));
}

}  // namespace mssql_cdc::sim::builtin

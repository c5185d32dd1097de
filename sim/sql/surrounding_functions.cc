// Built-in functions of what surrounds a statement: clock, dice, the error that was
// caught, transaction and row count.

#include "sim/sql/dates.h"
#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {
namespace {

template <typename F>
Bound ClockFunction(Binder& binder, const SqlType& type, F f) {
  Bound bound = binder.Function(type, {}, [f, type](Context& context, Values&) {
    return Of(*RoundTo(f(context.Now()), type));
  });
  bound->is_volatile = true;
  bound->nullable = false;
  return bound;
}
Bound GetDate(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime), Local);
}
Bound GetUtcDate(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime), Utc);
}
Bound SysDateTime(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime2), Local);
}
Bound SysUtcDateTime(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTime2), Utc);
}
Bound SysDateTimeOffset(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  return ClockFunction(binder, TypeOf(TypeId::kDateTimeOffset),
                       [](const DateTimeValue& now) { return now; });
}

Bound NewId(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(TypeOf(TypeId::kUniqueIdentifier), {},
                                [](Context& context, Values&) {
                                  Value value;
                                  value.held = context.environment.NewGuid();
                                  return value;
                                });
  bound->is_volatile = true;
  return bound;
}
Bound Rand(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(
      TypeOf(TypeId::kFloat), {},
      [](Context& context, Values&) { return OfDouble(context.environment.Random()); });
  bound->is_volatile = true;
  return binder.Fold(bound);
}

template <typename F>
Bound ErrorFunction(Binder& binder, const ast::Call& call, const SqlType& type, F f) {
  Require(call, 0, 0);
  Bound bound = binder.Function(type, {}, [f](Context& context, Values&) {
    if (context.session.caught.empty()) return Value();
    return f(context.session.caught.back());
  });
  bound->is_volatile = true;
  return bound;
}
Bound ErrorNumber(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.number}); });
}
Bound ErrorSeverity(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.severity}); });
}
Bound ErrorState(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.state}); });
}
Bound ErrorLine(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, TypeOf(TypeId::kInt),
                       [](const Message& m) { return Of(std::int64_t{m.line}); });
}
Bound ErrorMessage(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, NVarCharType(4000),
                       [](const Message& m) { return Of(Utf16(m.text)); });
}
Bound ErrorProcedure(Binder& binder, const ast::Call& call, Arguments&) {
  return ErrorFunction(binder, call, NVarCharType(128), [](const Message& m) {
    return m.procedure.empty() ? Value() : Of(Utf16(m.procedure));
  });
}
Bound TransactionState(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound =
      binder.Function(TypeOf(TypeId::kSmallInt), {}, [](Context& context, Values&) {
        return Of(std::int64_t{context.environment.transaction_state()});
      });
  bound->is_volatile = true;
  return bound;
}
Bound RowCountBig(Binder& binder, const ast::Call& call, Arguments&) {
  Require(call, 0, 0);
  Bound bound = binder.Function(
      TypeOf(TypeId::kBigInt), {},
      [](Context& context, Values&) { return Of(context.session.row_count); });
  bound->is_volatile = true;
  return bound;
}

}  // namespace

std::span<const FunctionEntry> SurroundingFunctions() {
  static constexpr FunctionEntry kEntries[] = {
      {"GETDATE", GetDate},
      {"CURRENT_TIMESTAMP", GetDate},
      {"GETUTCDATE", GetUtcDate},
      {"SYSDATETIME", SysDateTime},
      {"SYSUTCDATETIME", SysUtcDateTime},
      {"SYSDATETIMEOFFSET", SysDateTimeOffset},
      {"NEWID", NewId},
      {"RAND", Rand},
      {"ERROR_NUMBER", ErrorNumber},
      {"ERROR_SEVERITY", ErrorSeverity},
      {"ERROR_STATE", ErrorState},
      {"ERROR_LINE", ErrorLine},
      {"ERROR_MESSAGE", ErrorMessage},
      {"ERROR_PROCEDURE", ErrorProcedure},
      {"XACT_STATE", TransactionState},
      {"ROWCOUNT_BIG", RowCountBig},
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin

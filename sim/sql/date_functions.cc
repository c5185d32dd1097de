// Built-in functions over dates and times.

#include <optional>

#include "sim/sql/dates.h"
#include "sim/sql/function_parts.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim::builtin {
namespace {

DatePart PartOf(const ast::Call& call) {
  const auto part = ParseDatePart(call.date_part);
  if (!part) {
    RaiseSql(
        155, 15, 1,
        "'" + call.date_part + "' is not a recognized " + Shown(call) + " option.");
  }
  return *part;
}

// A date argument: text is read as datetime2 or datetimeoffset.
Bound AsDate(Binder& binder, const Bound& argument, const ast::Call& call, int number) {
  if (IsDateTime(argument->type.id)) return argument;
  if (IsText(argument->type.id) || argument->type.id == TypeId::kNull) {
    return binder.Convert(argument, TypeOf(TypeId::kDateTimeOffset));
  }
  if (IsNumber(argument->type.id)) {
    return binder.Convert(argument, TypeOf(TypeId::kDateTime));
  }
  RaiseArgument(argument->type, number, call);
}

Bound DateAdd(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  const DatePart part = PartOf(call);
  Bound date = arguments[1];
  if (IsText(date->type.id) || date->type.id == TypeId::kNull ||
      IsNumber(date->type.id)) {
    date = binder.Convert(date, TypeOf(TypeId::kDateTime));
  } else if (!IsDateTime(date->type.id)) {
    RaiseArgument(date->type, 3, call);
  }
  const SqlType type = date->type;
  const bool is_time = part >= DatePart::kHour;
  if ((type.id == TypeId::kDate && is_time) || (type.id == TypeId::kTime && !is_time) ||
      part == DatePart::kTzOffset) {
    RaiseSql(9810, 16, 1,
             "The datepart " + call.date_part +
                 " is not supported by date function dateadd for data type " +
                 TypeWord(type) + ".");
  }
  const Bound count = binder.Convert(arguments[0], TypeOf(TypeId::kBigInt), true);
  return binder.Fold(
      binder.Function(type, {count, date}, [part, type](Context&, Values& v) {
        const auto& from = std::get<DateTimeValue>(v[1].held);
        auto moved = AddDatePart(from, part, IntOf(v[0]));
        if (type.id == TypeId::kTime) {
          // A time goes round the clock.
          auto day = from;
          day.days = 700'000;
          moved = AddDatePart(day, part, IntOf(v[0]));
          if (moved) moved->days = 0;
        }
        if (moved) {
          const std::int16_t offset = moved->offset_minutes;
          moved = RoundTo(*moved, type);
          if (moved && type.id == TypeId::kDateTimeOffset) {
            moved->offset_minutes = offset;
          }
        }
        if (!moved) {
          RaiseSql(517, 16, 1,
                   "Adding a value to a '" + TypeWord(type) +
                       "' column caused an overflow.");
        }
        return Of(*moved);
      }));
}

DateTimeValue Moment(const Value& value, bool utc) {
  DateTimeValue date = std::get<DateTimeValue>(value.held);
  return utc ? Utc(date) : date;
}

Bound Difference(Binder& binder, const ast::Call& call, Arguments& arguments,
                 bool big) {
  Require(call, 3, 3);
  const DatePart part = PartOf(call);
  const Bound from = AsDate(binder, arguments[0], call, 2);
  const Bound to = AsDate(binder, arguments[1], call, 3);
  const SqlType type = TypeOf(big ? TypeId::kBigInt : TypeId::kInt);
  // Moments with offsets are compared in UTC.
  return binder.Fold(
      binder.Function(type, {from, to}, [part, big, call](Context&, Values& v) {
        const std::int64_t number =
            DateDifference(Moment(v[0], true), Moment(v[1], true), part);
        if (!big && (number > INT32_MAX || number < INT32_MIN)) {
          RaiseSql(535, 16, 0,
                   "The datediff function resulted in an overflow. The number of "
                   "dateparts separating two date/time instances is too large. Try to "
                   "use datediff with a less precise datepart.");
        }
        return Of(number);
      }));
}
Bound DateDiff(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Difference(binder, call, arguments, false);
}
Bound DateDiffBig(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return Difference(binder, call, arguments, true);
}

Bound PartFunction(Binder& binder, const ast::Call& call, const Bound& argument,
                   DatePart part) {
  const Bound date = AsDate(binder, argument, call, 2);
  if (part == DatePart::kTzOffset && date->type.id != TypeId::kDateTimeOffset &&
      date->type.id != TypeId::kDateTime2) {
    RaiseSql(9810, 16, 5,
             "The datepart " + call.date_part + " is not supported by date function " +
                 Shown(call) + " for data type " + TypeWord(date->type) + ".");
  }
  const bool datetime = date->type.id == TypeId::kDateTime;
  return binder.Fold(binder.Function(
      TypeOf(TypeId::kInt), {date}, [part, datetime](Context& context, Values& v) {
        DateTimeValue value = std::get<DateTimeValue>(v[0].held);
        // A datetime's thirds of a millisecond count as rounded.
        if (datetime && part == DatePart::kMillisecond) {
          value.ticks = (value.ticks + 5'000) / 10'000 * 10'000;
        }
        return Of(DatePartOf(value, part, context.environment.settings().datefirst));
      }));
}
Bound DatePartFunction(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  return PartFunction(binder, call, arguments[0], PartOf(call));
}
Bound Year(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kYear);
}
Bound Month(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kMonth);
}
Bound Day(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 1);
  return PartFunction(binder, call, arguments[0], DatePart::kDay);
}
Bound DateName(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 2, 2);
  const DatePart part = PartOf(call);
  const Bound date = AsDate(binder, arguments[0], call, 2);
  return binder.Fold(
      binder.Function(NVarCharType(30), {date}, [part](Context& context, Values& v) {
        const auto& value = std::get<DateTimeValue>(v[0].held);
        if (part == DatePart::kMonth) {
          return Of(Utf16(MonthName(PartsOf(value).month)));
        }
        if (part == DatePart::kWeekday) {
          return Of(Utf16(WeekdayName(DayOfWeek(value.days))));
        }
        if (part == DatePart::kTzOffset)
          return Of(Utf16(OffsetText(value.offset_minutes)));
        return Of(Utf16(std::to_string(
            DatePartOf(value, part, context.environment.settings().datefirst))));
      }));
}
Bound EndOfMonth(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 1, 2);
  Arguments parts{binder.Convert(arguments[0], TypeOf(TypeId::kDate))};
  if (arguments.size() > 1) parts.push_back(AsInt(binder, arguments[1]));
  return binder.Fold(
      binder.Function(TypeOf(TypeId::kDate), parts, [](Context&, Values& v) {
        const auto moved =
            AddDatePart(std::get<DateTimeValue>(v[0].held), DatePart::kMonth,
                        v.size() > 1 ? IntOf(v[1]) : 0);
        if (!moved) {
          RaiseSql(517, 16, 1, "Adding a value to a 'date' column caused an overflow.");
        }
        const CalendarParts at = PartsOf(*moved);
        return Of(DateTimeValue{
            DaysOfDate(at.year, at.month, DaysInMonth(at.year, at.month)), 0, 0});
      }));
}
Bound DateFromParts(Binder& binder, const ast::Call& call, Arguments& arguments) {
  Require(call, 3, 3);
  Arguments parts;
  for (const Bound& argument : arguments) parts.push_back(AsInt(binder, argument));
  return binder.Fold(
      binder.Function(TypeOf(TypeId::kDate), parts, [](Context&, Values& v) {
        const std::int64_t y = IntOf(v[0]), m = IntOf(v[1]), d = IntOf(v[2]);
        if (y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 ||
            d > DaysInMonth(static_cast<int>(y), static_cast<int>(m))) {
          RaiseSql(289, 16, 1,
                   "Cannot construct data type date, some of the arguments have values "
                   "which are not valid.");
        }
        return Of(DateTimeValue{
            DaysOfDate(static_cast<int>(y), static_cast<int>(m), static_cast<int>(d)),
            0, 0});
      }));
}
Bound OffsetFunction(Binder& binder, const ast::Call& call, Arguments& arguments,
                     bool switches) {
  Require(call, 2, 2);
  const Bound date = switches
                         ? binder.Convert(arguments[0], TypeOf(TypeId::kDateTimeOffset))
                         : AsDate(binder, arguments[0], call, 1);
  SqlType type = TypeOf(TypeId::kDateTimeOffset);
  if (date->type.id != TypeId::kDateTime) type.scale = date->type.scale;
  const bool number = IsNumber(arguments[1]->type.id);
  const Bound zone =
      number ? AsInt(binder, arguments[1]) : AsText(binder, arguments[1]);
  return binder.Fold(
      binder.Function(type, {date, zone}, [switches, number](Context&, Values& v) {
        std::optional<int> offset;
        if (number) {
          const std::int64_t minutes = IntOf(v[1]);
          if (minutes >= -840 && minutes <= 840) offset = static_cast<int>(minutes);
        } else {
          offset = ParseOffset(Utf8(TextOf(v[1])));
        }
        if (!offset) {
          RaiseSql(9812, 16, 0,
                   "The timezone provided to builtin function is invalid.");
        }
        DateTimeValue value = std::get<DateTimeValue>(v[0].held);
        if (switches) {
          value = AddTicks(value, (*offset - value.offset_minutes) * kTicksPerMinute)
                      .value_or(value);
        }
        value.offset_minutes = static_cast<std::int16_t>(*offset);
        return Of(value);
      }));
}
Bound SwitchOffset(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return OffsetFunction(binder, call, arguments, true);
}
Bound ToDateTimeOffset(Binder& binder, const ast::Call& call, Arguments& arguments) {
  return OffsetFunction(binder, call, arguments, false);
}

}  // namespace

std::span<const FunctionEntry> DateFunctions() {
  static constexpr FunctionEntry kEntries[] = {
      {"DATEADD", DateAdd},
      {"DATEDIFF", DateDiff},
      {"DATEDIFF_BIG", DateDiffBig},
      {"DATEPART", DatePartFunction},
      {"DATENAME", DateName},
      {"YEAR", Year},
      {"MONTH", Month},
      {"DAY", Day},
      {"EOMONTH", EndOfMonth},
      {"DATEFROMPARTS", DateFromParts},
      {"SWITCHOFFSET", SwitchOffset},
      {"TODATETIMEOFFSET", ToDateTimeOffset},
  };
  return kEntries;
}

}  // namespace mssql_cdc::sim::builtin

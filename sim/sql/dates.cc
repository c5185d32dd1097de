#include "sim/sql/dates.h"

#include <array>
#include <cstdio>

#include "base/text.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kDaysOf1970 = 719'162;

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kWeekdays = {
    "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

}  // namespace

std::int32_t DaysOfDate(int year, int month, int day) {
  return static_cast<std::int32_t>(
      DaysFromCivil(year, static_cast<unsigned>(month), static_cast<unsigned>(day)) +
      kDaysOf1970);
}

CalendarParts PartsOf(const DateTimeValue& value) {
  const CivilDate date = CivilFromDays(value.days - kDaysOf1970);
  CalendarParts parts;
  parts.year = static_cast<int>(date.year);
  parts.month = static_cast<int>(date.month);
  parts.day = static_cast<int>(date.day);
  std::int64_t rest = value.ticks;
  parts.fraction = rest % kTicksPerSecond;
  rest /= kTicksPerSecond;
  parts.second = static_cast<int>(rest % 60);
  parts.minute = static_cast<int>(rest / 60 % 60);
  parts.hour = static_cast<int>(rest / 3600);
  return parts;
}

bool IsLeapYear(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int DaysInMonth(int year, int month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeapYear(year) ? 29 : kDays[month - 1];
}

// 0001-01-01 was a Monday.
int DayOfWeek(std::int32_t days) { return (days + 1) % 7; }

__int128 TotalTicks(const DateTimeValue& value) {
  return static_cast<__int128>(value.days) * kTicksPerDay + value.ticks;
}

std::optional<DateTimeValue> AddTicks(const DateTimeValue& value, std::int64_t ticks) {
  const __int128 total = TotalTicks(value) + ticks;
  if (total < 0) return std::nullopt;
  const __int128 days = total / kTicksPerDay;
  if (days > kDaysMax) return std::nullopt;
  DateTimeValue result = value;
  result.days = static_cast<std::int32_t>(days);
  result.ticks = static_cast<std::int64_t>(total % kTicksPerDay);
  return result;
}

std::optional<DateTimeValue> RoundTo(const DateTimeValue& value, const SqlType& type) {
  DateTimeValue result = value;
  const auto round_day = [&](std::int64_t ticks) -> std::optional<DateTimeValue> {
    DateTimeValue whole = value;
    whole.ticks = 0;
    whole.offset_minutes = result.offset_minutes;
    return AddTicks(whole, ticks);
  };
  switch (type.id) {
    case TypeId::kDate:
      return DateTimeValue{value.days, 0, 0};
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset: {
      std::int64_t unit = 1;
      for (int i = type.scale; i < 7; ++i) unit *= 10;
      const std::int64_t rounded = (value.ticks + unit / 2) / unit * unit;
      if (type.id == TypeId::kTime) {
        // A time that rounds up to midnight stays before it.
        return DateTimeValue{0, rounded >= kTicksPerDay ? kTicksPerDay - unit : rounded,
                             0};
      }
      if (type.id == TypeId::kDateTime2) result.offset_minutes = 0;
      return round_day(rounded);
    }
    case TypeId::kDateTime: {
      const std::int64_t units = (value.ticks * 3 + 50'000) / 100'000;
      result.offset_minutes = 0;
      const auto rounded = round_day((units * 100'000 + 1) / 3);
      if (!rounded || rounded->days < kDaysOf1753) return std::nullopt;
      return rounded;
    }
    case TypeId::kSmallDateTime: {
      result.offset_minutes = 0;
      // 29.998 seconds and less are rounded down.
      const std::int64_t rounded =
          (value.ticks + 30 * kTicksPerSecond) / kTicksPerMinute * kTicksPerMinute;
      const auto day = round_day(rounded);
      if (!day || day->days < kDaysOf1900 || day->days > kDaysOf2079)
        return std::nullopt;
      return day;
    }
    default:
      return value;
  }
}

std::string OffsetText(int offset_minutes) {
  const int magnitude = offset_minutes < 0 ? -offset_minutes : offset_minutes;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%c%02d:%02d", offset_minutes < 0 ? '-' : '+',
                magnitude / 60, magnitude % 60);
  return buffer;
}

std::optional<int> ParseOffset(std::string_view text) {
  if (text.size() < 4 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto hours = ParseInt64(text.substr(1, colon - 1));
  const auto minutes = ParseInt64(text.substr(colon + 1));
  if (!hours || !minutes || *hours < 0 || *minutes < 0 || *minutes > 59) {
    return std::nullopt;
  }
  const std::int64_t total = *hours * 60 + *minutes;
  if (total > 14 * 60) return std::nullopt;
  return static_cast<int>(text[0] == '-' ? -total : total);
}

std::optional<DatePart> ParseDatePart(std::string_view lower) {
  struct Row {
    std::string_view name;
    DatePart part;
  };
  static constexpr Row kRows[] = {{"year", DatePart::kYear},
                                  {"yy", DatePart::kYear},
                                  {"yyyy", DatePart::kYear},
                                  {"quarter", DatePart::kQuarter},
                                  {"qq", DatePart::kQuarter},
                                  {"q", DatePart::kQuarter},
                                  {"month", DatePart::kMonth},
                                  {"mm", DatePart::kMonth},
                                  {"m", DatePart::kMonth},
                                  {"dayofyear", DatePart::kDayOfYear},
                                  {"dy", DatePart::kDayOfYear},
                                  {"y", DatePart::kDayOfYear},
                                  {"day", DatePart::kDay},
                                  {"dd", DatePart::kDay},
                                  {"d", DatePart::kDay},
                                  {"week", DatePart::kWeek},
                                  {"wk", DatePart::kWeek},
                                  {"ww", DatePart::kWeek},
                                  {"iso_week", DatePart::kIsoWeek},
                                  {"isowk", DatePart::kIsoWeek},
                                  {"isoww", DatePart::kIsoWeek},
                                  {"weekday", DatePart::kWeekday},
                                  {"dw", DatePart::kWeekday},
                                  {"w", DatePart::kWeekday},
                                  {"hour", DatePart::kHour},
                                  {"hh", DatePart::kHour},
                                  {"minute", DatePart::kMinute},
                                  {"mi", DatePart::kMinute},
                                  {"n", DatePart::kMinute},
                                  {"second", DatePart::kSecond},
                                  {"ss", DatePart::kSecond},
                                  {"s", DatePart::kSecond},
                                  {"millisecond", DatePart::kMillisecond},
                                  {"ms", DatePart::kMillisecond},
                                  {"microsecond", DatePart::kMicrosecond},
                                  {"mcs", DatePart::kMicrosecond},
                                  {"nanosecond", DatePart::kNanosecond},
                                  {"ns", DatePart::kNanosecond},
                                  {"tzoffset", DatePart::kTzOffset},
                                  {"tz", DatePart::kTzOffset}};
  for (const Row& row : kRows) {
    if (row.name == lower) return row.part;
  }
  return std::nullopt;
}

std::string_view MonthName(int month) {
  return kMonths[static_cast<std::size_t>(month - 1)];
}
std::string_view WeekdayName(int day_of_week) {
  return kWeekdays[static_cast<std::size_t>(day_of_week)];
}

std::int64_t DatePartOf(const DateTimeValue& value, DatePart part, int datefirst) {
  const CalendarParts parts = PartsOf(value);
  const std::int32_t first_of_year = DaysOfDate(parts.year, 1, 1);
  switch (part) {
    case DatePart::kYear:
      return parts.year;
    case DatePart::kQuarter:
      return (parts.month + 2) / 3;
    case DatePart::kMonth:
      return parts.month;
    case DatePart::kDayOfYear:
      return value.days - first_of_year + 1;
    case DatePart::kDay:
      return parts.day;
    case DatePart::kWeek: {
      const int first = (DayOfWeek(first_of_year) + 7 - datefirst % 7) % 7;
      return (value.days - first_of_year + first) / 7 + 1;
    }
    case DatePart::kIsoWeek: {
      // The week's Thursday decides the year.
      const std::int32_t thursday = value.days - (DayOfWeek(value.days) + 6) % 7 + 3;
      const CalendarParts of_thursday = PartsOf({thursday, 0, 0});
      return (thursday - DaysOfDate(of_thursday.year, 1, 1)) / 7 + 1;
    }
    case DatePart::kWeekday:
      return (DayOfWeek(value.days) + 7 - datefirst % 7) % 7 + 1;
    case DatePart::kHour:
      return parts.hour;
    case DatePart::kMinute:
      return parts.minute;
    case DatePart::kSecond:
      return parts.second;
    case DatePart::kMillisecond:
      return parts.fraction / 10'000;
    case DatePart::kMicrosecond:
      return parts.fraction / 10;
    case DatePart::kNanosecond:
      return parts.fraction * 100;
    case DatePart::kTzOffset:
      return value.offset_minutes;
  }
  return 0;
}

std::optional<DateTimeValue> AddDatePart(const DateTimeValue& value, DatePart part,
                                         std::int64_t count) {
  const auto months = [&](std::int64_t number) -> std::optional<DateTimeValue> {
    const CalendarParts parts = PartsOf(value);
    const std::int64_t total = std::int64_t{parts.year} * 12 + parts.month - 1 + number;
    if (total < 12 || total >= 10'000 * 12) return std::nullopt;
    const int year = static_cast<int>(total / 12);
    const int month = static_cast<int>(total % 12) + 1;
    DateTimeValue result = value;
    result.days =
        DaysOfDate(year, month, std::min(parts.day, DaysInMonth(year, month)));
    return result;
  };
  const auto days = [&](std::int64_t number) -> std::optional<DateTimeValue> {
    const std::int64_t total = value.days + number;
    if (total < 0 || total > kDaysMax) return std::nullopt;
    DateTimeValue result = value;
    result.days = static_cast<std::int32_t>(total);
    return result;
  };
  const auto units = [&](std::int64_t ticks) -> std::optional<DateTimeValue> {
    const __int128 total = TotalTicks(value) + static_cast<__int128>(ticks) * count;
    if (total < 0 || total / kTicksPerDay > kDaysMax) return std::nullopt;
    DateTimeValue result = value;
    result.days = static_cast<std::int32_t>(total / kTicksPerDay);
    result.ticks = static_cast<std::int64_t>(total % kTicksPerDay);
    return result;
  };
  if (count > 2'147'483'647 * std::int64_t{4'000'000} ||
      count < -9'000'000'000'000'000) {
    return std::nullopt;
  }
  switch (part) {
    case DatePart::kYear:
      return months(count * 12);
    case DatePart::kQuarter:
      return months(count * 3);
    case DatePart::kMonth:
      return months(count);
    case DatePart::kDayOfYear:
    case DatePart::kDay:
    case DatePart::kWeekday:
      return days(count);
    case DatePart::kWeek:
    case DatePart::kIsoWeek:
      return days(count * 7);
    case DatePart::kHour:
      return units(60 * kTicksPerMinute);
    case DatePart::kMinute:
      return units(kTicksPerMinute);
    case DatePart::kSecond:
      return units(kTicksPerSecond);
    case DatePart::kMillisecond:
      return units(10'000);
    case DatePart::kMicrosecond:
      return units(10);
    case DatePart::kNanosecond:
      return AddTicks(value, (count + (count < 0 ? -50 : 50)) / 100);
    case DatePart::kTzOffset:
      return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t DateDifference(const DateTimeValue& from, const DateTimeValue& to,
                            DatePart part) {
  const CalendarParts a = PartsOf(from);
  const CalendarParts b = PartsOf(to);
  const std::int64_t months = (std::int64_t{b.year} - a.year) * 12 + b.month - a.month;
  const auto units = [&](std::int64_t ticks) {
    return static_cast<std::int64_t>(TotalTicks(to) / ticks - TotalTicks(from) / ticks);
  };
  switch (part) {
    case DatePart::kYear:
      return std::int64_t{b.year} - a.year;
    case DatePart::kQuarter:
      return (std::int64_t{b.year} - a.year) * 4 + (b.month + 2) / 3 -
             (a.month + 2) / 3;
    case DatePart::kMonth:
      return months;
    case DatePart::kDayOfYear:
    case DatePart::kDay:
    case DatePart::kWeekday:
      return std::int64_t{to.days} - from.days;
    case DatePart::kWeek:
      // Weeks begin on Sunday here, whatever DATEFIRST says.
      return (std::int64_t{to.days} + 1) / 7 - (std::int64_t{from.days} + 1) / 7;
    case DatePart::kIsoWeek:
      return std::int64_t{to.days} / 7 - std::int64_t{from.days} / 7;
    case DatePart::kHour:
      return units(60 * kTicksPerMinute);
    case DatePart::kMinute:
      return units(kTicksPerMinute);
    case DatePart::kSecond:
      return units(kTicksPerSecond);
    case DatePart::kMillisecond:
      return units(10'000);
    case DatePart::kMicrosecond:
      return units(10);
    case DatePart::kNanosecond:
      return units(1) * 100;
    case DatePart::kTzOffset:
      return 0;
  }
  return 0;
}

}  // namespace mssql_cdc::sim

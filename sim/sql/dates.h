// Dates and times as SQL Server has them: calendar parts, text in the styles of
// CONVERT, parsing, rounding to a type's precision.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/value.h"

namespace mssql_cdc::sim {

inline constexpr std::int64_t kTicksPerSecond = 10'000'000;
inline constexpr std::int64_t kTicksPerMinute = 60 * kTicksPerSecond;
inline constexpr std::int64_t kTicksPerDay = 86'400 * kTicksPerSecond;
// 9999-12-31.
inline constexpr std::int32_t kDaysMax = 3'652'058;
// 1753-01-01, 1900-01-01 and 2079-06-06.
inline constexpr std::int32_t kDaysOf1753 = 639'905;
inline constexpr std::int32_t kDaysOf1900 = 693'595;
inline constexpr std::int32_t kDaysOf2079 = 759'130;

struct CalendarParts {
  int year = 1900, month = 1, day = 1;
  int hour = 0, minute = 0, second = 0;
  std::int64_t fraction = 0;  // Ticks of 100 ns within the second.
};

std::int32_t DaysOfDate(int year, int month, int day);
CalendarParts PartsOf(const DateTimeValue& value);
bool IsLeapYear(int year);
int DaysInMonth(int year, int month);
int DayOfWeek(std::int32_t days);  // 0 Sunday.

// Adds ticks and keeps `ticks` within a day; nullopt outside year 1 to 9999.
std::optional<DateTimeValue> AddTicks(const DateTimeValue& value, std::int64_t ticks);
// Ticks since 0001-01-01 of the local time.
__int128 TotalTicks(const DateTimeValue& value);

// To what a column of `type` can hold (1/300 s, minutes, scale); nullopt out of range.
std::optional<DateTimeValue> RoundTo(const DateTimeValue& value, const SqlType& type);

// nullopt: no date or time. `out_of_range` is set where the text has the form of a date
// but no such date exists (242 rather than 241).
std::optional<DateTimeValue> ParseDateTime(std::string_view text, int style,
                                           std::string_view dateformat,
                                           bool& out_of_range, bool& has_offset);
// The text of CONVERT with `style`; nullopt for a style that is none.
std::optional<std::string> DateTimeText(const DateTimeValue& value, const SqlType& type,
                                        int style);
std::string OffsetText(int offset_minutes);  // "+02:00"
// "+02:00", "-0330" is none; nullopt beyond 14 hours.
std::optional<int> ParseOffset(std::string_view text);

enum class DatePart : std::uint8_t {
  kYear,
  kQuarter,
  kMonth,
  kDayOfYear,
  kDay,
  kWeek,
  kIsoWeek,
  kWeekday,
  kHour,
  kMinute,
  kSecond,
  kMillisecond,
  kMicrosecond,
  kNanosecond,
  kTzOffset,
};
std::optional<DatePart> ParseDatePart(std::string_view lower);
std::int64_t DatePartOf(const DateTimeValue& value, DatePart part, int datefirst);
std::string_view MonthName(int month);
std::string_view WeekdayName(int day_of_week);
// nullopt: out of range (517).
std::optional<DateTimeValue> AddDatePart(const DateTimeValue& value, DatePart part,
                                         std::int64_t count);
// Boundaries crossed from `from` to `to`.
std::int64_t DateDifference(const DateTimeValue& from, const DateTimeValue& to,
                            DatePart part);

}  // namespace mssql_cdc::sim

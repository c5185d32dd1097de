#include "sim/sql/time_zone.h"

#include "base/text.h"
#include "sim/sql/dates.h"

namespace mssql_cdc::sim {

// The n-th Sunday of a month at a local hour; week 5 is the last one.
struct TimeZoneSwitch {
  int month = 0;
  int week = 0;
  int hour = 0;  // In the time that is left.
};

struct TimeZone {
  std::string_view name;
  int standard_minutes = 0;
  bool has_daylight = false;
  TimeZoneSwitch begin;  // Of daylight saving time: one hour more.
  TimeZoneSwitch end;
};

namespace {

constexpr TimeZoneSwitch kUsBegin{3, 2, 2}, kUsEnd{11, 1, 2};

// Europe changes everywhere at 01:00 UTC.
constexpr TimeZone Europe(std::string_view name, int hours) {
  return {name, hours * 60, true, {3, 5, 1 + hours}, {10, 5, 2 + hours}};
}
constexpr TimeZone America(std::string_view name, int hours) {
  return {name, hours * 60, true, kUsBegin, kUsEnd};
}
constexpr TimeZone Fixed(std::string_view name, int minutes) {
  return {name, minutes, false, {}, {}};
}

constexpr TimeZone kZones[] = {
    Fixed("UTC", 0),
    Fixed("Coordinated Universal Time", 0),
    Fixed("Greenwich Standard Time", 0),
    Europe("GMT Standard Time", 0),
    Europe("W. Europe Standard Time", 1),
    Europe("Central Europe Standard Time", 1),
    Europe("Central European Standard Time", 1),
    Europe("Romance Standard Time", 1),
    Europe("GTB Standard Time", 2),
    Europe("FLE Standard Time", 2),
    Europe("E. Europe Standard Time", 2),
    America("Eastern Standard Time", -5),
    America("Central Standard Time", -6),
    America("Mountain Standard Time", -7),
    America("Pacific Standard Time", -8),
    America("Alaskan Standard Time", -9),
    Fixed("US Mountain Standard Time", -420),
    Fixed("Hawaiian Standard Time", -600),
    Fixed("SA Pacific Standard Time", -300),
    Fixed("E. South America Standard Time", -180),
    Fixed("Argentina Standard Time", -180),
    Fixed("Russian Standard Time", 180),
    Fixed("Turkey Standard Time", 180),
    Fixed("Arab Standard Time", 180),
    Fixed("Arabian Standard Time", 240),
    Fixed("Pakistan Standard Time", 300),
    Fixed("India Standard Time", 330),
    Fixed("Nepal Standard Time", 345),
    Fixed("SE Asia Standard Time", 420),
    Fixed("China Standard Time", 480),
    Fixed("Singapore Standard Time", 480),
    Fixed("Tokyo Standard Time", 540),
    Fixed("Korea Standard Time", 540),
    Fixed("E. Australia Standard Time", 600),
    {"AUS Eastern Standard Time", 600, true, {10, 1, 2}, {4, 1, 3}},
    {"New Zealand Standard Time", 720, true, {9, 5, 2}, {4, 1, 3}},
};

// Ticks since 0001-01-01 of the local moment of a switch.
__int128 MomentOf(const TimeZoneSwitch& change, int year) {
  const std::int32_t first = DaysOfDate(year, change.month, 1);
  std::int32_t sunday = first + (7 - DayOfWeek(first)) % 7;
  sunday += 7 * (change.week - 1);
  while (sunday >= first + DaysInMonth(year, change.month)) sunday -= 7;
  return TotalTicks({sunday, change.hour * 60 * kTicksPerMinute, 0});
}

// True if daylight saving time holds at `ticks`, with both switches as given.
bool Between(__int128 ticks, __int128 begin, __int128 end) {
  return begin < end ? ticks >= begin && ticks < end : ticks >= begin || ticks < end;
}

}  // namespace

const TimeZone* FindTimeZone(std::string_view name) {
  for (const TimeZone& zone : kZones) {
    if (EqualsIgnoringAsciiCase(zone.name, name)) return &zone;
  }
  return nullptr;
}

int OffsetAtUtc(const TimeZone& zone, const DateTimeValue& utc) {
  if (!zone.has_daylight) return zone.standard_minutes;
  const __int128 standard =
      TotalTicks(utc) + zone.standard_minutes * __int128{kTicksPerMinute};
  const int year =
      PartsOf({static_cast<std::int32_t>(standard / kTicksPerDay), 0, 0}).year;
  // The end is told in daylight saving time, an hour ahead of standard.
  const bool daylight = Between(standard, MomentOf(zone.begin, year),
                                MomentOf(zone.end, year) - 60 * kTicksPerMinute);
  return zone.standard_minutes + (daylight ? 60 : 0);
}

int OffsetAtLocal(const TimeZone& zone, const DateTimeValue& local) {
  if (!zone.has_daylight) return zone.standard_minutes;
  const int year = PartsOf(local).year;
  const __int128 hour = 60 * kTicksPerMinute;
  // From an hour after the jump forward (inside the gap standard time still counts) to
  // the moment the clock goes back: Microsoft's page of AT TIME ZONE shows the repeated
  // hour with the offset before the change.
  const bool daylight = Between(TotalTicks(local), MomentOf(zone.begin, year) + hour,
                                MomentOf(zone.end, year));
  return zone.standard_minutes + (daylight ? 60 : 0);
}

}  // namespace mssql_cdc::sim

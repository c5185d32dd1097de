// The time zones AT TIME ZONE knows, by their Windows names, with today's rules for
// daylight saving time; earlier rules are not modelled.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/value.h"

namespace mssql_cdc::sim {

// Null: no such zone (9820).
struct TimeZone;
const TimeZone* FindTimeZone(std::string_view name);

// The offset of a moment given in UTC.
int OffsetAtUtc(const TimeZone& zone, const DateTimeValue& utc);
// The offset SQL Server takes for a local time: of a time that does not exist, the one
// before the gap; of a time that exists twice, the one before the change.
int OffsetAtLocal(const TimeZone& zone, const DateTimeValue& local);

}  // namespace mssql_cdc::sim

// From the server's clock to UTC.
//
// cdc.lsn_time_mapping keeps commit times as datetime on the server's own clock,
// without a zone. Which zone that is, the server says (2022 and later, Azure SQL), or
// the user, or only the current offset is known.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace mssql_cdc::cdc {

struct CommitClock {
  enum class Kind : std::uint8_t {
    kUtc,
    kFixedOffset,  // Every commit is taken to have the server's current offset.
    kNamedZone,    // The server converts, by its own rules of that zone.
  };
  Kind kind = Kind::kUtc;
  std::int64_t offset_minutes = 0;  // Of kFixedOffset: local minus UTC.
  std::string zone;                 // Of kNamedZone, a Windows name.

  bool operator==(const CommitClock&) const = default;

  // The zone the server must convert with, or nullopt where the client does it.
  std::optional<std::string> ServerZone() const {
    if (kind == Kind::kNamedZone) return zone;
    return std::nullopt;
  }
  // "UTC", "UTC-03:00", or the zone's name.
  std::string Text() const;
};

// What a server told about its clock.
struct ClockFacts {
  std::uint8_t major_version = 0;
  std::int64_t engine_edition = 0;
  std::optional<std::string> zone;  // CURRENT_TIMEZONE_ID(), where there is one.
  std::int64_t offset_minutes = 0;
};

// Whether CURRENT_TIMEZONE_ID() exists: SQL Server 2022, Azure SQL Database (edition 5)
// and Managed Instance (8).
bool ServerNamesItsZone(std::uint8_t major_version, std::int64_t engine_edition);

// The clock for option sourceTimeZone (`option` is "auto" in any case, or a name).
// Errors: OptionInvalid for a name with other characters than letters, digits, blank
// and
// ._+-/(), since it becomes part of a statement.
Result<CommitClock> ChooseClock(std::string_view option, const ClockFacts& facts);

// A time as the server sent it (microseconds on its clock, or already UTC for
// kNamedZone) as UTC, rounded to the millisecond. datetime counts 1/300 seconds, so
// .003333 is .003 and .006667 is .007, as datetime2(3) rounds it.
std::int64_t CommitUtcUs(const CommitClock& clock, std::int64_t server_us);

}  // namespace mssql_cdc::cdc

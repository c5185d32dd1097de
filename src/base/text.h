// Small conversions between numbers, bytes and text.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mssql_cdc {

// "0A0B": two upper-case digits a byte, no prefix.
std::string HexUpper(std::span<const std::uint8_t> bytes);
// ASCII only: A to Z become a to z, every other byte stays.
std::string LowerAscii(std::string_view text);
bool EqualsIgnoringAsciiCase(std::string_view a, std::string_view b);
// Without leading and trailing blanks, tabs and line ends.
std::string_view Trim(std::string_view text);
// A decimal integer with an optional sign, the whole of `text`; nullopt if it is
// anything else or does not fit.
std::optional<std::int64_t> ParseInt64(std::string_view text);
// "2026-11-20T08:40:00.000": UTC, exactly three fraction digits (truncated), no zone.
// Years 0001 to 9999.
std::string IsoMillis(std::int64_t utc_us);
// Reads what IsoMillis writes; the fraction may be missing or have up to nine digits,
// the T may be a blank. nullopt if it is no such text.
std::optional<std::int64_t> ParseIsoUs(std::string_view text);
// Days since 1970-01-01 of a proleptic Gregorian date.
std::int64_t DaysFromCivil(std::int64_t year, unsigned month, unsigned day);

struct CivilDate {
  std::int64_t year;
  unsigned month;
  unsigned day;
};
CivilDate CivilFromDays(std::int64_t days_since_1970);
// How many single-character edits turn `a` into `b`; for "did you mean".
std::size_t EditDistance(std::string_view a, std::string_view b);

}  // namespace mssql_cdc

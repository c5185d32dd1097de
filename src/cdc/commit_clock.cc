#include "cdc/commit_clock.h"

#include <algorithm>

#include "base/text.h"
#include "cdc/option_values.h"

namespace mssql_cdc::cdc {
namespace {

bool IsZoneCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view(" ._+-/()").find(c) != std::string_view::npos;
}

Result<CommitClock> NamedClock(std::string_view name) {
  if (EqualsIgnoringAsciiCase(name, "UTC")) return CommitClock{};
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsZoneCharacter)) {
    return OptionRefused("sourceTimeZone", name);
  }
  return CommitClock{CommitClock::Kind::kNamedZone, 0, std::string(name)};
}

}  // namespace

std::string CommitClock::Text() const {
  if (kind == Kind::kNamedZone) return zone;
  if (kind == Kind::kUtc || offset_minutes == 0) return "UTC";
  const std::int64_t size = offset_minutes < 0 ? -offset_minutes : offset_minutes;
  const auto two_digits = [](std::int64_t number) {
    return (number < 10 ? "0" : "") + std::to_string(number);
  };
  return std::string("UTC") + (offset_minutes < 0 ? '-' : '+') + two_digits(size / 60) +
         ':' + two_digits(size % 60);
}

bool ServerNamesItsZone(std::uint8_t major_version, std::int64_t engine_edition) {
  return major_version >= 16 || engine_edition == 5 || engine_edition == 8;
}

Result<CommitClock> ChooseClock(std::string_view option, const ClockFacts& facts) {
  if (!EqualsIgnoringAsciiCase(option, "auto")) return NamedClock(option);
  if (facts.zone) return NamedClock(*facts.zone);
  return CommitClock{CommitClock::Kind::kFixedOffset, facts.offset_minutes, ""};
}

std::int64_t CommitUtcUs(const CommitClock& clock, std::int64_t server_us) {
  std::int64_t milliseconds = (server_us + 500) / 1000;
  if ((server_us + 500) % 1000 < 0) --milliseconds;
  std::int64_t utc_us = milliseconds * 1000;
  if (clock.kind == CommitClock::Kind::kFixedOffset) {
    utc_us -= clock.offset_minutes * 60'000'000;
  }
  return utc_us;
}

}  // namespace mssql_cdc::cdc

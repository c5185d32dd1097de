// Dates and times of the wire to microseconds since 1970, and to text.

#pragma once

#include <cstddef>
#include <cstdint>

namespace mssql_cdc::tds {

// What a function below gives for bytes that are no date or time of SQL Server.
inline constexpr std::int64_t kNoTimestamp = INT64_MIN;

inline constexpr std::int64_t kUsPerDay = 86'400'000'000;
inline constexpr std::uint64_t kTicksPerDay = 864'000'000'000;  // Of 100 ns.
// Days are counted from 0001-01-01; the last one is 9999-12-31.
inline constexpr std::int32_t kDaysTo1970 = 719'162;
inline constexpr std::uint32_t kDaysMax = 3'652'058;

constexpr std::int64_t UsOfDays(std::uint64_t days) {
  return (static_cast<std::int64_t>(days) - kDaysTo1970) * kUsPerDay;
}

// smalldatetime: u16 days since 1900-01-01, u16 minutes.
constexpr std::int64_t UsOfSmallDateTime(std::uint32_t wire) {
  constexpr std::int64_t kDays1900To1970 = 25'567;
  const std::int64_t days = wire & 0xFFFF;
  const std::int64_t minutes = wire >> 16;
  if (minutes >= 24 * 60) return kNoTimestamp;
  return (days - kDays1900To1970) * kUsPerDay + minutes * 60'000'000;
}

// datetime: i32 days since 1900-01-01, u32 ticks of 1/300 s. As SQL Server shows it and
// Microsoft's drivers deliver it: rounded to the millisecond (.000, .003, .007).
constexpr std::int64_t UsOfDateTime(std::uint64_t wire) {
  constexpr std::int64_t kDays1900To1970 = 25'567;
  constexpr std::int64_t kFirstDay = -53'690;   // 1753-01-01.
  constexpr std::int64_t kLastDay = 2'958'463;  // 9999-12-31.
  const auto days = static_cast<std::int32_t>(wire & 0xFFFFFFFF);
  const std::uint64_t ticks = wire >> 32;
  if (days < kFirstDay || days > kLastDay || ticks >= 300ull * 86'400) {
    return kNoTimestamp;
  }
  const auto milliseconds = static_cast<std::int64_t>((ticks * 10 + 1) / 3);
  return (days - kDays1900To1970) * kUsPerDay + milliseconds * 1000;
}

// datetime2: a time of day in units of 10^-scale seconds, then u24 days. `size` bytes
// in all. Digits beyond microseconds are cut off.
std::int64_t UsOfDateTime2(const std::uint8_t* at, std::size_t size, unsigned scale);
// datetimeoffset: the same in UTC, then i16 minutes of offset, which do not matter.
std::int64_t UsOfDateTimeOffset(const std::uint8_t* at, std::size_t size,
                                unsigned scale);

// "13:50:01.123456700": always nine fraction digits. False: no time of day.
inline constexpr std::size_t kTimeTextSize = 18;
bool WriteTime(const std::uint8_t* at, std::size_t size, unsigned scale, char* out);

// "6F9619FF-8B86-D011-B42D-00C04FC964FF": the first three groups are little-endian on
// the wire.
inline constexpr std::size_t kGuidTextSize = 36;
void WriteGuid(const std::uint8_t* at, char* out);

}  // namespace mssql_cdc::tds

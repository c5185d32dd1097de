#include "tds/temporal.h"

#include <array>
#include <cstring>

namespace mssql_cdc::tds {
namespace {

constexpr std::uint64_t kPowersOfTen[] = {
    1,       10,        100,        1'000,       10'000,
    100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

std::uint64_t LoadUnsigned(const std::uint8_t* at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{at[i]} << (8 * i);
  return value;
}

constexpr auto kHexPairs = [] {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::array<std::array<char, 2>, 256> pairs{};
  for (std::size_t i = 0; i < 256; ++i) pairs[i] = {kDigits[i >> 4], kDigits[i & 15]};
  return pairs;
}();

void PutTwoDigits(std::uint64_t value, char* out) {
  out[0] = static_cast<char>('0' + value / 10);
  out[1] = static_cast<char>('0' + value % 10);
}

}  // namespace

std::int64_t UsOfDateTime2(const std::uint8_t* at, std::size_t size, unsigned scale) {
  const std::uint64_t units = LoadUnsigned(at, size - 3);
  const std::uint64_t days = LoadUnsigned(at + size - 3, 3);
  if (units >= 86'400 * kPowersOfTen[scale] || days > kDaysMax) return kNoTimestamp;
  const std::uint64_t us = scale == 7 ? units / 10 : units * kPowersOfTen[6 - scale];
  return UsOfDays(days) + static_cast<std::int64_t>(us);
}

std::int64_t UsOfDateTimeOffset(const std::uint8_t* at, std::size_t size,
                                unsigned scale) {
  constexpr std::int16_t kOffsetMinutesMax = 14 * 60;
  std::int16_t offset_minutes;
  std::memcpy(&offset_minutes, at + size - 2, sizeof(offset_minutes));
  if (offset_minutes < -kOffsetMinutesMax || offset_minutes > kOffsetMinutesMax) {
    return kNoTimestamp;
  }
  return UsOfDateTime2(at, size - 2, scale);
}

bool WriteTime(const std::uint8_t* at, std::size_t size, unsigned scale, char* out) {
  const std::uint64_t units = LoadUnsigned(at, size);
  const std::uint64_t seconds = units / kPowersOfTen[scale];
  if (seconds >= 86'400) {
    std::memset(out, '0', kTimeTextSize);
    return false;
  }
  PutTwoDigits(seconds / 3600, out);
  out[2] = ':';
  PutTwoDigits(seconds / 60 % 60, out + 3);
  out[5] = ':';
  PutTwoDigits(seconds % 60, out + 6);
  out[8] = '.';
  std::uint64_t fraction = units % kPowersOfTen[scale] * kPowersOfTen[9 - scale];
  for (std::size_t i = kTimeTextSize; i-- > 9;) {
    out[i] = static_cast<char>('0' + fraction % 10);
    fraction /= 10;
  }
  return true;
}

void WriteGuid(const std::uint8_t* at, char* out) {
  constexpr std::uint8_t kOrder[16] = {3, 2, 1,  0,  5,  4,  7,  6,
                                       8, 9, 10, 11, 12, 13, 14, 15};
  constexpr std::uint8_t kPlace[16] = {0,  2,  4,  6,  9,  11, 14, 16,
                                       19, 21, 24, 26, 28, 30, 32, 34};
  for (std::size_t i = 0; i < 16; ++i) {
    std::memcpy(out + kPlace[i], kHexPairs[at[kOrder[i]]].data(), 2);
  }
  out[8] = out[13] = out[18] = out[23] = '-';
}

}  // namespace mssql_cdc::tds

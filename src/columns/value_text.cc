#include "columns/value_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace mssql_cdc::columns {
namespace {

constexpr int kDecimalDigitsMax = 38;
constexpr std::int64_t kDayUs = 86'400'000'000;

constexpr std::array<Int128, kDecimalDigitsMax + 1> MakePowers() {
  std::array<Int128, kDecimalDigitsMax + 1> powers{};
  powers[0] = 1;
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}
constexpr auto kPowers = MakePowers();

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Digits(Int128 value) {
  std::string digits;
  for (; value != 0; value /= 10) {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  std::reverse(digits.begin(), digits.end());
  return digits.empty() ? "0" : digits;
}

std::string Padded(std::int64_t value, std::size_t width) {
  std::string text = std::to_string(value);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// Digits and exponent as std::to_chars has them, written as Arrow writes them.
std::string FromScientific(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  std::string_view exponent_text = text.substr(e + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  const int exponent = static_cast<int>(*ParseInt64(exponent_text));
  constexpr int kPlainLow = -6;
  constexpr int kPlainHigh = 10;
  std::string plain;
  if (exponent < kPlainLow || exponent >= kPlainHigh) {
    plain = digits.substr(0, 1);
    if (digits.size() > 1) plain += "." + digits.substr(1);
    plain += (exponent < 0 ? "e-" : "e+") + std::to_string(std::abs(exponent));
  } else if (exponent < 0) {
    plain = "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto before = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= before) {
      plain = digits + std::string(before - digits.size(), '0');
    } else {
      plain = digits.substr(0, before) + "." + digits.substr(before);
    }
  }
  return negative ? "-" + plain : plain;
}

template <typename T>
std::string ShortestText(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific);
  return FromScientific(std::string_view(buffer.data(), end.ptr));
}

template <typename T>
std::optional<T> ParseReal(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) return std::nullopt;
  }
  T value{};
  const char* end = text.data() + text.size();
  const auto [ptr, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || ptr != end || text.empty()) return std::nullopt;
  return value;
}

// Reads `count` digits off the front.
std::optional<std::int64_t> TakeDigits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!IsDigit(text[i])) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool TakeCharacter(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> TakeDate(std::string_view& text) {
  const auto year = TakeDigits(text, 4);
  if (!year || *year == 0 || !TakeCharacter(text, '-')) return std::nullopt;
  const auto month = TakeDigits(text, 2);
  if (!month || *month < 1 || *month > 12 || !TakeCharacter(text, '-')) {
    return std::nullopt;
  }
  const auto day = TakeDigits(text, 2);
  if (!day || *day < 1) return std::nullopt;
  const std::int64_t days =
      DaysFromCivil(*year, static_cast<unsigned>(*month), static_cast<unsigned>(*day));
  // A 30th of February is another date.
  if (CivilFromDays(days).month != static_cast<unsigned>(*month)) return std::nullopt;
  return days;
}

// One to `max` fraction digits as microseconds; those behind the sixth are left out.
std::optional<std::int64_t> TakeFraction(std::string_view& text, std::size_t max) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0 || end > max) return std::nullopt;
  std::int64_t us = 0;
  for (std::size_t i = 0; i < 6; ++i) us = us * 10 + (i < end ? text[i] - '0' : 0);
  text.remove_prefix(end);
  return us;
}

// hh[:mm[:ss[.fraction]]] in microseconds.
std::optional<std::int64_t> TakeTime(std::string_view& text, std::size_t fraction_max) {
  const auto hours = TakeDigits(text, 2);
  if (!hours || *hours > 23) return std::nullopt;
  std::int64_t seconds = *hours * 3600;
  if (TakeCharacter(text, ':')) {
    const auto minutes = TakeDigits(text, 2);
    if (!minutes || *minutes > 59) return std::nullopt;
    seconds += *minutes * 60;
    if (TakeCharacter(text, ':')) {
      const auto second = TakeDigits(text, 2);
      if (!second || *second > 59) return std::nullopt;
      seconds += *second;
      if (TakeCharacter(text, '.')) {
        const auto fraction = TakeFraction(text, fraction_max);
        if (!fraction) return std::nullopt;
        return seconds * 1'000'000 + *fraction;
      }
    }
  }
  return seconds * 1'000'000;
}

// Z, or a sign with hh, hhmm or hh:mm: minutes.
std::optional<std::int64_t> TakeZone(std::string_view& text) {
  if (TakeCharacter(text, 'Z')) return 0;
  const bool negative = text.starts_with('-');
  if (!negative && !text.starts_with('+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hours = TakeDigits(text, 2);
  if (!hours || *hours > 23) return std::nullopt;
  std::int64_t minutes = *hours * 60;
  const bool colon = TakeCharacter(text, ':');
  if (colon || !text.empty()) {
    const auto part = TakeDigits(text, 2);
    if (!part || *part > 59) return std::nullopt;
    minutes += *part;
  }
  return negative ? -minutes : minutes;
}

// "YYYY-MM-DD hh:mm:ss[.f{1,7}] +hh:mm", and nothing else.
std::optional<std::int64_t> ParseDriverOffset(std::string_view text) {
  constexpr std::size_t kSecondsSize = 19;
  constexpr std::size_t kZoneSize = 7;  // The blank and +hh:mm.
  if (text.size() < kSecondsSize + kZoneSize || text[10] != ' ') return std::nullopt;
  std::string_view zone = text.substr(text.size() - kZoneSize);
  if (zone[0] != ' ' || zone[4] != ':' || zone[1] == 'Z') return std::nullopt;
  std::string_view local = text.substr(0, text.size() - kZoneSize);
  zone.remove_prefix(1);
  const auto days = TakeDate(local);
  if (!days || !TakeCharacter(local, ' ')) return std::nullopt;
  const auto time = TakeTime(local, 7);
  const auto minutes = TakeZone(zone);
  if (!time || !minutes || !local.empty() || !zone.empty()) return std::nullopt;
  return *days * kDayUs + *time - *minutes * 60'000'000;
}

}  // namespace

Int128 PowerOfTen(int exponent) { return kPowers[static_cast<std::size_t>(exponent)]; }

int DigitCount(Int128 value) {
  int count = 0;
  for (; value != 0; value /= 10) ++count;
  return count;
}

std::string DecimalText(Int128 unscaled, int scale) {
  std::string digits = Digits(unscaled);
  const std::string sign = unscaled < 0 ? "-" : "";
  if (scale == 0) return sign + digits;
  const int exponent = static_cast<int>(digits.size()) - 1 - scale;
  if (exponent < -6) {
    if (digits.size() > 1) digits.insert(1, ".");
    return sign + digits + "E" + std::to_string(exponent);
  }
  const auto places = static_cast<std::size_t>(scale);
  if (digits.size() <= places) {
    digits.insert(0, std::string(places - digits.size() + 1, '0'));
  }
  digits.insert(digits.size() - places, ".");
  return sign + digits;
}

std::string FloatText(double value) { return ShortestText(value); }
std::string FloatText(float value) { return ShortestText(value); }

std::string DateText(std::int32_t days) {
  const CivilDate date = CivilFromDays(days);
  return Padded(date.year, 4) + "-" + Padded(date.month, 2) + "-" + Padded(date.day, 2);
}

std::string TimestampText(std::int64_t us) {
  std::int64_t days = us / kDayUs;
  std::int64_t rest = us % kDayUs;
  if (rest < 0) {
    rest += kDayUs;
    --days;
  }
  const std::int64_t seconds = rest / 1'000'000;
  return DateText(static_cast<std::int32_t>(days)) + " " + Padded(seconds / 3600, 2) +
         ":" + Padded(seconds / 60 % 60, 2) + ":" + Padded(seconds % 60, 2) + "." +
         Padded(rest % 1'000'000, 6);
}

std::optional<bool> ParseBoolText(std::string_view text) {
  if (text == "1" || EqualsIgnoringAsciiCase(text, "true")) return true;
  if (text == "0" || EqualsIgnoringAsciiCase(text, "false")) return false;
  return std::nullopt;
}

std::optional<std::int64_t> ParseIntegerText(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [ptr, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || ptr != end || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> ParseDoubleText(std::string_view text) {
  return ParseReal<double>(text);
}
std::optional<float> ParseFloatText(std::string_view text) {
  return ParseReal<float>(text);
}

std::optional<Int128> ParseDecimalText(std::string_view text, int precision,
                                       int scale) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits;
  std::int64_t point_shift = 0;  // How many of `digits` stand behind the point.
  bool has_point = false;
  std::size_t at = 0;
  for (; at < text.size() && (IsDigit(text[at]) || text[at] == '.'); ++at) {
    if (text[at] == '.') {
      if (has_point) return std::nullopt;
      has_point = true;
      continue;
    }
    digits += text[at];
    point_shift += has_point ? 1 : 0;
  }
  if (digits.empty()) return std::nullopt;
  std::string_view rest = text.substr(at);
  if (!rest.empty()) {
    if (rest[0] != 'e' && rest[0] != 'E') return std::nullopt;
    rest.remove_prefix(1);
    if (rest.starts_with('+')) {
      rest.remove_prefix(1);
      if (rest.starts_with('-')) return std::nullopt;
    }
    const auto exponent = ParseIntegerText(rest);
    constexpr std::int64_t kExponentMax = 100'000;
    if (!exponent || std::abs(*exponent) > kExponentMax) return std::nullopt;
    point_shift -= *exponent;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return Int128{0};
  // The digits mean digits * 10^-point_shift.
  const std::int64_t drop = point_shift - scale;
  if (drop > 0) {
    const auto count = static_cast<std::size_t>(drop);
    if (count >= digits.size() ||
        digits.find_last_not_of('0') + count >= digits.size()) {
      return std::nullopt;
    }
    digits.resize(digits.size() - count);
  }
  const std::int64_t zeros = std::max<std::int64_t>(0, -drop);
  if (static_cast<std::int64_t>(digits.size()) + zeros > precision) return std::nullopt;
  Int128 value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  value *= PowerOfTen(static_cast<int>(zeros));
  return negative ? -value : value;
}

std::optional<std::int32_t> ParseDateText(std::string_view text) {
  const auto days = TakeDate(text);
  if (!days || !text.empty()) return std::nullopt;
  return static_cast<std::int32_t>(*days);
}

std::optional<std::int64_t> ParseTimestampText(std::string_view text, ZoneOffset zone) {
  if (zone == ZoneOffset::kRequired) {
    if (const auto driver = ParseDriverOffset(text)) return driver;
  }
  const auto days = TakeDate(text);
  if (!days) return std::nullopt;
  std::int64_t us = *days * kDayUs;
  if (!text.empty()) {
    if (!TakeCharacter(text, ' ') && !TakeCharacter(text, 'T')) return std::nullopt;
    const auto time = TakeTime(text, 6);
    if (!time) return std::nullopt;
    us += *time;
    if (zone == ZoneOffset::kRequired) {
      const auto minutes = TakeZone(text);
      if (!minutes) return std::nullopt;
      us -= *minutes * 60'000'000;
    }
  } else if (zone == ZoneOffset::kRequired) {
    return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return us;
}

bool IsUtf8(std::string_view bytes) {
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  while (at < bytes.size()) {
    const unsigned first = byte(at);
    std::size_t size = 1;
    unsigned low = 0x80;
    unsigned high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
      size = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
      size = 3;
      if (first == 0xE0) low = 0xA0;   // No overlong form.
      if (first == 0xED) high = 0x9F;  // No surrogate.
    } else if (first >= 0xF0 && first <= 0xF4) {
      size = 4;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;  // Nothing above U+10FFFF.
    } else if (first >= 0x80) {
      return false;
    }
    if (bytes.size() - at < size) return false;
    for (std::size_t i = 1; i < size; ++i) {
      if (byte(at + i) < low || byte(at + i) > high) return false;
      low = 0x80;
      high = 0xBF;
    }
    at += size;
  }
  return true;
}

}  // namespace mssql_cdc::columns

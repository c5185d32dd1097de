// Single values as text and back, in the forms that Arrow's casts use.
//
// Parsers take the whole text or nothing: no blanks around it, no signs or separators
// beyond those named.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mssql_cdc::columns {

using Int128 = __int128;

// 10 to the power of `exponent`, 0 to 38.
Int128 PowerOfTen(int exponent);
// How many decimal digits `value` has; 0 has none.
int DigitCount(Int128 value);

// "1.50"; "1.000E-7" where the first digit stands more than six places behind the
// point.
std::string DecimalText(Int128 unscaled, int scale);
// The shortest digits that mean the value: "1.5", "1e+10", "1e-7", "nan", "-inf".
std::string FloatText(double value);
std::string FloatText(float value);
// "2026-01-31".
std::string DateText(std::int32_t days);
// "2026-01-31 10:20:30.123456".
std::string TimestampText(std::int64_t us);

// true, false, 1 or 0 in any case.
std::optional<bool> ParseBoolText(std::string_view text);
// Decimal digits, with - before them or not.
std::optional<std::int64_t> ParseIntegerText(std::string_view text);
// A decimal number with or without exponent, inf, infinity or nan; nullopt for one
// beyond the type's range.
std::optional<double> ParseDoubleText(std::string_view text);
std::optional<float> ParseFloatText(std::string_view text);
// A decimal number with or without exponent that has no digit below `scale` and fits
// `precision`; unscaled.
std::optional<Int128> ParseDecimalText(std::string_view text, int precision, int scale);
// "2026-01-31", years 0001 to 9999.
std::optional<std::int32_t> ParseDateText(std::string_view text);

enum class ZoneOffset : std::uint8_t { kForbidden, kRequired };
// ISO 8601 with T or a blank: date, then hours, hours and minutes, or seconds with up
// to six fraction digits, then with kRequired Z, +hh, +hhmm or +hh:mm. With kRequired
// also "2026-01-31 10:20:30.1234567 +01:30", cut to microseconds: how drivers write
// datetimeoffset. Microseconds since 1970, UTC.
std::optional<std::int64_t> ParseTimestampText(std::string_view text, ZoneOffset zone);

bool IsUtf8(std::string_view bytes);

}  // namespace mssql_cdc::columns

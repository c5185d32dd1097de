// To integers, floats, decimals and money.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "sim/sql/converter.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/environment.h"
#include "sim/sql/numbers.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

std::int64_t IntegerLow(TypeId id) {
  switch (id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
      return 0;
    case TypeId::kSmallInt:
      return INT16_MIN;
    case TypeId::kInt:
      return INT32_MIN;
    default:
      return INT64_MIN;
  }
}
std::int64_t IntegerHigh(TypeId id) {
  switch (id) {
    case TypeId::kBit:
      return 1;
    case TypeId::kTinyInt:
      return 255;
    case TypeId::kSmallInt:
      return INT16_MAX;
    case TypeId::kInt:
      return INT32_MAX;
    default:
      return INT64_MAX;
  }
}

}  // namespace

std::int64_t Converter::CheckedInteger(__int128 value) const {
  if (to_.id == TypeId::kBit) return value != 0 ? 1 : 0;
  if (value >= IntegerLow(to_.id) && value <= IntegerHigh(to_.id)) {
    return static_cast<std::int64_t>(value);
  }
  if (IsInteger(from_.id) && to_.id < TypeId::kInt) {
    RaiseSql(220, 16, 2,
             "Arithmetic overflow error for data type " + TypeWord(to_) +
                 ", value = " + DecimalText({value, 0}) + ".");
  }
  RaiseOverflow();
}

std::int64_t Converter::IntegerFromText(const std::string& written) const {
  const std::string text(Trim(written));
  if (to_.id == TypeId::kBit) {
    const std::string lower = LowerAscii(text);
    if (lower == "true") return 1;
    if (lower == "false") return 0;
  }
  if (text.empty()) return 0;
  const auto decimal = ParseDecimal(text);
  const bool digits = text.find_first_not_of("+-0123456789") == std::string::npos;
  if (!decimal || !digits) {
    if (to_.id == TypeId::kBigInt) RaiseConversion();
    RaiseText(written);
  }
  if (to_.id == TypeId::kBit) return decimal->unscaled != 0 ? 1 : 0;
  if (decimal->unscaled < IntegerLow(to_.id) ||
      decimal->unscaled > IntegerHigh(to_.id)) {
    if (to_.id == TypeId::kBigInt) RaiseConversion();
    if (to_.id == TypeId::kInt) {
      RaiseSql(248, 16, 1,
               "The conversion of the " + TypeWord(from_) + " value '" + written +
                   "' overflowed an int column.");
    }
    RaiseSql(244, 16, to_.id == TypeId::kTinyInt ? 1 : 2,
             "The conversion of the " + TypeWord(from_) + " value '" + written +
                 "' overflowed an " + (to_.id == TypeId::kTinyInt ? "INT1" : "INT2") +
                 " column. Use a larger integer column.");
  }
  return static_cast<std::int64_t>(decimal->unscaled);
}

std::int64_t Converter::ToInteger(const Value& value) const {
  if (IsInteger(from_.id)) return CheckedInteger(std::get<std::int64_t>(value.held));
  if (IsText(from_.id)) return IntegerFromText(Utf8Of(value));
  if (from_.id == TypeId::kReal || from_.id == TypeId::kFloat) {
    const double number = std::get<double>(value.held);
    if (to_.id == TypeId::kBit) return number != 0 ? 1 : 0;
    const double whole = std::trunc(number);
    if (!(whole >= -9.3e18 && whole <= 9.3e18)) RaiseOverflow();
    const auto wide = static_cast<__int128>(whole);
    if (wide < IntegerLow(to_.id) || wide > IntegerHigh(to_.id)) {
      if (to_.id == TypeId::kInt || to_.id == TypeId::kSmallInt ||
          to_.id == TypeId::kTinyInt) {
        char buffer[400];
        std::snprintf(buffer, sizeof buffer, "%f", number);
        RaiseSql(232, 16, 3,
                 "Arithmetic overflow error for type " + TypeWord(to_) +
                     ", value = " + buffer + ".");
      }
      RaiseOverflow();
    }
    return static_cast<std::int64_t>(wide);
  }
  if (IsBinary(from_.id)) {
    const Bytes& bytes = std::get<Bytes>(value.held);
    if (to_.id == TypeId::kBit) {
      return std::any_of(bytes.begin(), bytes.end(), [](auto b) { return b != 0; });
    }
    const std::size_t size = to_.id == TypeId::kBigInt     ? 8
                             : to_.id == TypeId::kInt      ? 4
                             : to_.id == TypeId::kSmallInt ? 2
                                                           : 1;
    std::uint64_t number = 0;
    const std::size_t first = bytes.size() > size ? bytes.size() - size : 0;
    for (std::size_t i = first; i < bytes.size(); ++i) number = number << 8 | bytes[i];
    if (size == 4) return static_cast<std::int32_t>(number);
    if (size == 2) return static_cast<std::int16_t>(number);
    return static_cast<std::int64_t>(number);
  }
  if (IsDateTime(from_.id)) return CheckedInteger(std::llround(DaysSince1900(value)));
  const Decimal& decimal = std::get<Decimal>(value.held);
  if (to_.id == TypeId::kBit) return decimal.unscaled != 0 ? 1 : 0;
  // decimal is cut off, money is rounded.
  const auto whole = Rescale(decimal, 0, from_.id == TypeId::kDecimal);
  return CheckedInteger(whole ? whole->unscaled : 0);
}

double Converter::DaysSince1900(const Value& value) {
  const auto& date = std::get<DateTimeValue>(value.held);
  return date.days - kDaysOf1900 +
         static_cast<double>(date.ticks) / static_cast<double>(kTicksPerDay);
}

double Converter::ToDouble(const Value& value) const {
  double number = 0;
  if (IsInteger(from_.id)) {
    number = static_cast<double>(std::get<std::int64_t>(value.held));
  } else if (const auto* held = std::get_if<double>(&value.held)) {
    number = *held;
  } else if (const auto* decimal = std::get_if<Decimal>(&value.held)) {
    number = DecimalToDouble(*decimal);
  } else if (IsText(from_.id)) {
    const std::string text(Trim(Utf8Of(value)));
    const bool plain = text.find_first_not_of("+-.0123456789eE") == std::string::npos;
    const std::optional<double> parsed = text.empty() ? 0
                                         : plain      ? ParseDouble(text)
                                                      : std::nullopt;
    if (!parsed) RaiseConversion();
    number = *parsed;
  } else if (IsDateTime(from_.id)) {
    number = DaysSince1900(value);
  } else {
    RaiseConversion();
  }
  if (to_.id == TypeId::kReal) {
    if (std::fabs(number) > 3.5e38) RaiseOverflow();
    number = static_cast<double>(static_cast<float>(number));
  }
  if (!std::isfinite(number)) RaiseOverflow();
  return number;
}

Decimal Converter::ToDecimal(const Value& value) const {
  std::optional<Decimal> decimal;
  if (IsInteger(from_.id)) {
    decimal = Rescale({std::get<std::int64_t>(value.held), 0}, to_.scale);
  } else if (const auto* held = std::get_if<Decimal>(&value.held)) {
    decimal = Rescale(*held, to_.scale);
  } else if (const auto* number = std::get_if<double>(&value.held)) {
    decimal = DecimalFromDouble(*number, to_.scale);
  } else if (IsText(from_.id)) {
    const std::string text = Utf8Of(value);
    const auto parsed = ParseDecimal(text);
    // An exponent is none of a decimal's.
    if (!parsed || text.find_first_of("eE") != std::string::npos) RaiseConversion();
    decimal = Rescale(*parsed, to_.scale);
  } else if (IsDateTime(from_.id)) {
    decimal = DecimalFromDouble(DaysSince1900(value), to_.scale);
  } else {
    RaiseConversion();
  }
  if (!decimal || !FitsPrecision(*decimal, to_.precision)) {
    RaiseSql(
        8115, 16, 8,
        "Arithmetic overflow error converting " +
            std::string(from_.id == TypeId::kDecimal ? "numeric" : TypeWord(from_)) +
            " to data type numeric.");
  }
  return *decimal;
}

Decimal Converter::ToMoney(const Value& value) const {
  std::optional<Decimal> decimal;
  if (IsInteger(from_.id)) {
    decimal = Rescale({std::get<std::int64_t>(value.held), 0}, 4);
  } else if (const auto* held = std::get_if<Decimal>(&value.held)) {
    decimal = Rescale(*held, 4);
  } else if (const auto* number = std::get_if<double>(&value.held)) {
    decimal = DecimalFromDouble(*number, 4);
  } else if (IsText(from_.id)) {
    std::string text(Trim(Utf8Of(value)));
    std::erase(text, ',');
    const bool negative = text.starts_with('-');
    const std::size_t sign = text.find('$');
    if (sign <= (negative ? 1u : 0u)) text.erase(sign, 1);
    const auto parsed = text.empty() ? Decimal{0, 0} : ParseDecimal(text);
    if (!parsed) {
      RaiseSql(235, 16, 0,
               "Cannot convert a char value to money. The char value has incorrect "
               "syntax.");
    }
    decimal = Rescale(*parsed, 4);
  } else if (IsDateTime(from_.id)) {
    decimal = DecimalFromDouble(DaysSince1900(value), 4);
  } else {
    const Bytes& bytes = std::get<Bytes>(value.held);
    std::uint64_t bits = 0;
    for (const std::uint8_t byte : bytes) bits = bits << 8 | byte;
    decimal = Decimal{static_cast<std::int64_t>(bits), 4};
  }
  const std::int64_t high = to_.id == TypeId::kMoney ? INT64_MAX : INT32_MAX;
  if (!decimal || decimal->unscaled > high || decimal->unscaled < -high - 1) {
    RaiseOverflow();
  }
  return *decimal;
}

}  // namespace mssql_cdc::sim

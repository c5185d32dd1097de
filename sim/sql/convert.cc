#include "sim/sql/convert.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/environment.h"
#include "sim/sql/numbers.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {
namespace {

std::uint16_t CodePage(const SqlType& type, const ConvertOptions& options) {
  const auto collation =
      wire::FindCollation(type.collation.empty() ? options.collation : type.collation);
  return collation ? wire::CodePageOf(collation->bytes) : std::uint16_t{1252};
}

bool IsVarying(TypeId id) {
  return id == TypeId::kVarChar || id == TypeId::kNVarChar || id == TypeId::kText ||
         id == TypeId::kNText || id == TypeId::kXml;
}

[[noreturn]] void RaiseOverflow(const SqlType& from, const SqlType& to) {
  const std::string source = IsText(from.id) || from.id == TypeId::kDecimal ||
                                     IsDateTime(from.id) || IsMoney(from.id)
                                 ? TypeWord(from)
                                 : "expression";
  RaiseSql(8115, 16, 2,
           "Arithmetic overflow error converting " + source + " to data type " +
               TypeWord(to) + ".");
}

[[noreturn]] void RaiseDateText() {
  RaiseSql(241, 16, 1,
           "Conversion failed when converting date and/or time from character string.");
}

[[noreturn]] void RaiseDateRange(const SqlType& from, const SqlType& to) {
  RaiseSql(242, 16, 3,
           "The conversion of a " + TypeWord(from) + " data type to a " + TypeWord(to) +
               " data type resulted in an out-of-range value.");
}

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

class Converter {
 public:
  Converter(const SqlType& from, const SqlType& to, const ConvertOptions& options)
      : from_(from), to_(to), options_(options) {}

  Value Run(const Value& value) const {
    if (IsInteger(to_.id)) return Held(ToInteger(value));
    switch (to_.id) {
      case TypeId::kReal:
      case TypeId::kFloat:
        return Held(ToDouble(value));
      case TypeId::kDecimal:
        return Held(ToDecimal(value));
      case TypeId::kMoney:
      case TypeId::kSmallMoney:
        return Held(ToMoney(value));
      case TypeId::kUniqueIdentifier:
        return Held(ToGuid(value));
      default:
        break;
    }
    if (IsDateTime(to_.id)) return Held(ToDateTime(value));
    if (IsBinary(to_.id)) return Held(Sized(ToBytes(value)));
    return Held(SizedText(ToText(value)));
  }

 private:
  template <typename T>
  static Value Held(T held) {
    Value value;
    value.held = std::move(held);
    return value;
  }

  std::string Utf8Of(const Value& value) const {
    return Utf8(std::get<Text>(value.held));
  }

  [[noreturn]] void RaiseText(const std::string& text) const {
    RaiseSql(245, 16, 1,
             "Conversion failed when converting the " + TypeWord(from_) + " value '" +
                 text + "' to data type " + TypeWord(to_) + ".");
  }
  [[noreturn]] void RaiseConversion() const {
    RaiseSql(
        8114, 16, 5,
        "Error converting data type " + TypeWord(from_) + " to " + TypeWord(to_) + ".");
  }

  std::int64_t CheckedInteger(__int128 value) const {
    if (to_.id == TypeId::kBit) return value != 0 ? 1 : 0;
    if (value >= IntegerLow(to_.id) && value <= IntegerHigh(to_.id)) {
      return static_cast<std::int64_t>(value);
    }
    if (IsInteger(from_.id) && to_.id < TypeId::kInt) {
      RaiseSql(220, 16, 2,
               "Arithmetic overflow error for data type " + TypeWord(to_) +
                   ", value = " + DecimalText({value, 0}) + ".");
    }
    RaiseOverflow(from_, to_);
  }

  std::int64_t IntegerFromText(const std::string& written) const {
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

  std::int64_t ToInteger(const Value& value) const {
    if (IsInteger(from_.id)) return CheckedInteger(std::get<std::int64_t>(value.held));
    if (IsText(from_.id)) return IntegerFromText(Utf8Of(value));
    if (from_.id == TypeId::kReal || from_.id == TypeId::kFloat) {
      const double number = std::get<double>(value.held);
      if (to_.id == TypeId::kBit) return number != 0 ? 1 : 0;
      const double whole = std::trunc(number);
      if (!(whole >= -9.3e18 && whole <= 9.3e18)) RaiseOverflow(from_, to_);
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
        RaiseOverflow(from_, to_);
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
      for (std::size_t i = first; i < bytes.size(); ++i)
        number = number << 8 | bytes[i];
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

  static double DaysSince1900(const Value& value) {
    const auto& date = std::get<DateTimeValue>(value.held);
    return date.days - kDaysOf1900 +
           static_cast<double>(date.ticks) / static_cast<double>(kTicksPerDay);
  }

  double ToDouble(const Value& value) const {
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
      if (std::fabs(number) > 3.5e38) RaiseOverflow(from_, to_);
      number = static_cast<double>(static_cast<float>(number));
    }
    if (!std::isfinite(number)) RaiseOverflow(from_, to_);
    return number;
  }

  Decimal ToDecimal(const Value& value) const {
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

  Decimal ToMoney(const Value& value) const {
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
      RaiseOverflow(from_, to_);
    }
    return *decimal;
  }

  Guid ToGuid(const Value& value) const {
    if (const auto* guid = std::get_if<Guid>(&value.held)) return *guid;
    Guid guid;
    if (const auto* bytes = std::get_if<Bytes>(&value.held)) {
      // As stored: the first three groups little-endian.
      Bytes stored = *bytes;
      stored.resize(16);
      static constexpr int kFrom[] = {3, 2, 1, 0, 5, 4, 7, 6};
      for (std::size_t i = 0; i < 16; ++i) {
        guid.bytes[i] = stored[i < 8 ? static_cast<std::size_t>(kFrom[i]) : i];
      }
      return guid;
    }
    std::string text(Trim(Utf8Of(value)));
    if (text.starts_with('{')) text = text.substr(1, 36);
    text = text.substr(0, 36);
    std::string digits;
    bool good = text.size() == 36;
    for (std::size_t i = 0; good && i < text.size(); ++i) {
      const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
      good = dash ? text[i] == '-' : std::isxdigit(static_cast<unsigned char>(text[i]));
      if (!dash) digits += text[i];
    }
    if (!good) {
      RaiseSql(8169, 16, 2,
               "Conversion failed when converting from a character string to "
               "uniqueidentifier.");
    }
    const Bytes bytes = BytesFromHex(digits);
    std::copy(bytes.begin(), bytes.end(), guid.bytes);
    return guid;
  }

  DateTimeValue ToDateTime(const Value& value) const {
    DateTimeValue date;
    if (const auto* held = std::get_if<DateTimeValue>(&value.held)) {
      date = *held;
      if (from_.id == TypeId::kTime && to_.id != TypeId::kTime) date.days = kDaysOf1900;
    } else if (IsText(from_.id)) {
      date = DateFromText(value);
    } else if (const auto* bytes = std::get_if<Bytes>(&value.held)) {
      Bytes padded = *bytes;
      padded.insert(padded.begin(), padded.size() < 8 ? 8 - padded.size() : 0, 0);
      std::uint32_t days = 0, units = 0;
      for (std::size_t i = 0; i < 4; ++i) days = days << 8 | padded[i];
      for (std::size_t i = 4; i < 8; ++i) units = units << 8 | padded[i];
      date.days = kDaysOf1900 + static_cast<std::int32_t>(days);
      date.ticks = (std::int64_t{units} * 100'000 + 1) / 3;
      if (date.ticks >= kTicksPerDay || date.days < 0 || date.days > kDaysMax) {
        RaiseOverflow(from_, to_);
      }
    } else {
      const double days = std::get<double>(
          ConvertValue(value, from_, TypeOf(TypeId::kFloat), options_).held);
      const double floor = std::floor(days);
      if (floor < -53690 || floor > 2958463) RaiseOverflow(from_, to_);
      date.days = kDaysOf1900 + static_cast<std::int32_t>(floor);
      date.ticks = std::llround((days - floor) * static_cast<double>(kTicksPerDay));
      const auto carried = AddTicks({date.days, 0, 0}, date.ticks);
      if (!carried) RaiseOverflow(from_, to_);
      date = *carried;
    }
    const auto rounded = RoundTo(date, to_);
    if (!rounded) RaiseDateRange(from_, to_);
    DateTimeValue result = *rounded;
    if (to_.id != TypeId::kDateTimeOffset) result.offset_minutes = 0;
    return result;
  }

  DateTimeValue DateFromText(const Value& value) const {
    const std::string text = Utf8Of(value);
    bool out_of_range = false;
    bool has_offset = false;
    const auto date = ParseDateTime(text, options_.style, options_.dateformat,
                                    out_of_range, has_offset);
    const bool old = to_.id == TypeId::kDateTime || to_.id == TypeId::kSmallDateTime;
    if (!date && out_of_range && old) RaiseDateRange(from_, to_);
    if (!date) RaiseDateText();
    if (has_offset && old) RaiseDateText();
    // datetime reads at most three digits of a fraction.
    if (old) {
      const std::size_t point = text.rfind('.');
      if (point != std::string::npos && text.find(':') < point) {
        std::size_t digits = 0;
        while (point + 1 + digits < text.size() &&
               std::isdigit(static_cast<unsigned char>(text[point + 1 + digits]))) {
          ++digits;
        }
        if (digits > 3) RaiseDateText();
      }
    }
    return *date;
  }

  Bytes ToBytes(const Value& value) const {
    if (const auto* bytes = std::get_if<Bytes>(&value.held)) return *bytes;
    if (const auto* text = std::get_if<Text>(&value.held)) return BytesFromText(*text);
    if (const auto* guid = std::get_if<Guid>(&value.held)) {
      static constexpr int kFrom[] = {3, 2, 1, 0, 5, 4, 7, 6};
      Bytes bytes(16);
      for (std::size_t i = 0; i < 16; ++i) {
        bytes[i] = guid->bytes[i < 8 ? static_cast<std::size_t>(kFrom[i]) : i];
      }
      return bytes;
    }
    std::uint64_t number = 0;
    std::size_t size = 8;
    if (IsInteger(from_.id)) {
      number = static_cast<std::uint64_t>(std::get<std::int64_t>(value.held));
      size = from_.id == TypeId::kBigInt     ? 8
             : from_.id == TypeId::kInt      ? 4
             : from_.id == TypeId::kSmallInt ? 2
                                             : 1;
    } else if (IsMoney(from_.id)) {
      number = static_cast<std::uint64_t>(std::get<Decimal>(value.held).unscaled);
      size = from_.id == TypeId::kMoney ? 8 : 4;
    } else if (from_.id == TypeId::kDateTime) {
      const auto& date = std::get<DateTimeValue>(value.held);
      const auto days = static_cast<std::uint32_t>(date.days - kDaysOf1900);
      number = std::uint64_t{days} << 32 |
               static_cast<std::uint64_t>((date.ticks * 3 + 50'000) / 100'000);
    } else if (from_.id == TypeId::kFloat) {
      std::memcpy(&number, &std::get<double>(value.held), 8);
    } else if (from_.id == TypeId::kReal) {
      const auto narrow = static_cast<float>(std::get<double>(value.held));
      std::uint32_t bits = 0;
      std::memcpy(&bits, &narrow, 4);
      number = bits;
      size = 4;
    } else {
      // The stored form of decimals and of the newer dates is not modelled.
      CheckConversion(from_, TypeOf(TypeId::kUniqueIdentifier), true);
    }
    Bytes bytes;
    for (std::size_t i = 0; i < size; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(number >> (8 * (size - 1 - i))));
    }
    // Numbers are padded on the left and lose their first bytes.
    const auto wanted = static_cast<std::size_t>(to_.length);
    if (to_.length != kMax && bytes.size() > wanted) {
      bytes.erase(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(wanted));
    } else if (to_.id == TypeId::kBinary && bytes.size() < wanted) {
      bytes.insert(bytes.begin(), wanted - bytes.size(), 0);
    }
    return bytes;
  }

  Bytes BytesFromText(const Text& text) const {
    Bytes bytes;
    if (options_.style == 1 || options_.style == 2) {
      std::string digits = Utf8(text);
      while (!digits.empty() && digits.back() == ' ') digits.pop_back();
      bool good = digits.size() % 2 == 0;
      if (options_.style == 1) {
        good = good && (digits.starts_with("0x") || digits.starts_with("0X"));
        digits.erase(0, std::min<std::size_t>(2, digits.size()));
      }
      good = good && std::all_of(digits.begin(), digits.end(),
                                 [](unsigned char c) { return std::isxdigit(c) != 0; });
      if (!good) RaiseConversion();
      return BytesFromHex(digits);
    }
    if (IsNationalText(from_.id) || from_.id == TypeId::kXml) {
      for (const char16_t unit : text) {
        bytes.push_back(static_cast<std::uint8_t>(unit & 0xFF));
        bytes.push_back(static_cast<std::uint8_t>(unit >> 8));
      }
      return bytes;
    }
    const std::string encoded = wire::EncodeText(text, CodePage(from_, options_));
    bytes.assign(encoded.begin(), encoded.end());
    return bytes;
  }

  Bytes Sized(Bytes bytes) const {
    const std::size_t length =
        to_.id == TypeId::kRowVersion ? 8 : static_cast<std::size_t>(to_.length);
    if (to_.length == kMax) return bytes;
    if (bytes.size() > length) bytes.resize(length);
    if (to_.id != TypeId::kVarBinary && to_.id != TypeId::kImage) bytes.resize(length);
    return bytes;
  }

  Text ToText(const Value& value) const {
    if (const auto* text = std::get_if<Text>(&value.held)) return *text;
    if (const auto* bytes = std::get_if<Bytes>(&value.held))
      return TextFromBytes(*bytes);
    std::string text;
    if (const auto* integer = std::get_if<std::int64_t>(&value.held)) {
      text = std::to_string(*integer);
    } else if (const auto* number = std::get_if<double>(&value.held)) {
      text = FloatText(*number, from_.id == TypeId::kReal, options_.style);
    } else if (const auto* decimal = std::get_if<Decimal>(&value.held)) {
      text = IsMoney(from_.id) ? MoneyText(*decimal) : DecimalText(*decimal);
    } else if (const auto* guid = std::get_if<Guid>(&value.held)) {
      text = GuidText(*guid);
      if (to_.length != kMax && to_.length < 36) {
        RaiseSql(
            8170, 16, 2,
            "Insufficient result space to convert uniqueidentifier value to char.");
      }
    } else {
      const auto& date = std::get<DateTimeValue>(value.held);
      const auto styled = DateTimeText(date, from_, options_.style);
      if (!styled) {
        RaiseSql(281, 16, 1,
                 std::to_string(options_.style) +
                     " is not a valid style number when converting from " +
                     TypeWord(from_) + " to a character string.");
      }
      text = *styled;
    }
    return CheckedNumberText(Utf16(text));
  }

  // A number whose text does not fit is an error, or a star for integers.
  Text CheckedNumberText(Text text) const {
    if (!IsNumber(from_.id) || to_.length == kMax ||
        text.size() <= static_cast<std::size_t>(to_.length)) {
      return text;
    }
    if (IsInteger(from_.id) && !IsNationalText(to_.id) && from_.id != TypeId::kBigInt) {
      return u"*";
    }
    if (IsMoney(from_.id)) {
      RaiseSql(234, 16, 2,
               "There is insufficient result space to convert a money value to " +
                   TypeWord(to_) + ".");
    }
    RaiseSql(8115, 16, 5,
             "Arithmetic overflow error converting " +
                 std::string(from_.id == TypeId::kDecimal ? "numeric" : "expression") +
                 " to data type " + TypeWord(to_) + ".");
  }

  std::string MoneyText(const Decimal& value) const {
    const bool four = options_.style == 2 || options_.style == 126;
    std::string text = DecimalText(*Rescale(value, four ? 4 : 2));
    if (options_.style == 1) {
      const std::size_t first = text.starts_with('-') ? 1 : 0;
      for (std::size_t at = text.find('.'); at > first + 3;) {
        at -= 3;
        text.insert(at, ",");
      }
    }
    return text;
  }

  Text TextFromBytes(const Bytes& bytes) const {
    if (options_.style == 1 || options_.style == 2) {
      return Utf16(BinaryText(bytes, options_.style));
    }
    if (IsNationalText(to_.id) || to_.id == TypeId::kXml) {
      Text text;
      for (std::size_t i = 0; i < bytes.size(); i += 2) {
        const unsigned high = i + 1 < bytes.size() ? bytes[i + 1] : 0u;
        text += static_cast<char16_t>(bytes[i] | high << 8);
      }
      return text;
    }
    return wire::DecodeText(bytes, CodePage(to_, options_));
  }

  Text SizedText(Text text) const {
    const bool narrow = !IsNationalText(to_.id) && to_.id != TypeId::kXml;
    std::size_t size = text.size();
    if (narrow && std::any_of(text.begin(), text.end(),
                              [](char16_t unit) { return unit >= 0x80; })) {
      // What the code page does not have becomes a question mark.
      const std::uint16_t page = CodePage(to_, options_);
      std::string encoded = wire::EncodeText(text, page);
      if (to_.length != kMax && encoded.size() > static_cast<std::size_t>(to_.length)) {
        encoded.resize(static_cast<std::size_t>(to_.length));
      }
      size = encoded.size();
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(encoded.data());
      text = wire::DecodeText({bytes, encoded.size()}, page);
    }
    if (to_.length == kMax) return text;
    const auto length = static_cast<std::size_t>(to_.length);
    if (size > length) text.resize(std::min(text.size(), length));
    if (!IsVarying(to_.id) && size < length) text.append(length - size, u' ');
    return text;
  }

  const SqlType& from_;
  const SqlType& to_;
  const ConvertOptions& options_;
};

Value FromVariant(const Value& value, const SqlType& to,
                  const ConvertOptions& options) {
  Value inner = value;
  inner.variant_type.reset();
  return ConvertValue(inner, *value.variant_type, to, options);
}

}  // namespace

Value ConvertValue(const Value& value, const SqlType& from, const SqlType& to,
                   const ConvertOptions& options) {
  if (value.IsNull()) return Value();
  if (to.id == TypeId::kSqlVariant) {
    if (from.id == TypeId::kSqlVariant) return value;
    Value variant = value;
    variant.variant_type = from;
    return variant;
  }
  if (from.id == TypeId::kSqlVariant) {
    return value.variant_type ? FromVariant(value, to, options) : Value();
  }
  const bool same =
      from.id == to.id && from.precision == to.precision && from.scale == to.scale;
  if (same &&
      (IsNumber(to.id) || IsDateTime(to.id) || to.id == TypeId::kUniqueIdentifier)) {
    return value;
  }
  return Converter(from, to, options).Run(value);
}

bool WouldTruncate(const Value& value, const SqlType& from, const SqlType& to) {
  if (value.IsNull() || to.length == kMax) return false;
  const auto length = static_cast<std::size_t>(to.length);
  if (IsText(to.id) && (IsText(from.id) || from.id == TypeId::kXml)) {
    const Text& text = std::get<Text>(value.held);
    // Blanks at the end may go without an error.
    const std::size_t last = text.find_last_not_of(u' ');
    const std::size_t size = last == Text::npos ? 0 : last + 1;
    if (IsNationalText(to.id) || !RuleOfCollation(to.collation).utf8) {
      return size > length;
    }
    return Utf8(std::u16string_view(text).substr(0, size)).size() > length;
  }
  if (IsBinary(to.id) && IsBinary(from.id) && to.id != TypeId::kRowVersion) {
    const Bytes& bytes = std::get<Bytes>(value.held);
    std::size_t size = bytes.size();
    while (size > 0 && bytes[size - 1] == 0) --size;
    return size > length;
  }
  return false;
}

namespace {

int CompareBytes(const Bytes& a, const Bytes& b) {
  const std::size_t common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  if (order != 0) return order < 0 ? -1 : 1;
  // The shorter one counts as padded with zeros.
  const Bytes& longer = a.size() > b.size() ? a : b;
  for (std::size_t i = common; i < longer.size(); ++i) {
    if (longer[i] != 0) return &longer == &a ? 1 : -1;
  }
  return 0;
}

// Bytes 10 to 15 first, then group by group backwards, as SQL Server sorts them.
constexpr std::size_t kGuidOrder[] = {10, 11, 12, 13, 14, 15, 8, 9,
                                      7,  6,  5,  4,  3,  2,  1, 0};

int CompareVariants(const Value& a, const Value& b, const CollationRule& rule) {
  const SqlType& type_a = *a.variant_type;
  const SqlType& type_b = *b.variant_type;
  const SqlType& high =
      Precedence(type_a.id) >= Precedence(type_b.id) ? type_a : type_b;
  const auto family = [](TypeId id) {
    return IsDateTime(id) ? 6
           : IsNumber(id) ? 5
           : IsText(id)   ? 3
           : IsBinary(id) ? 2
                          : 1;
  };
  if (family(type_a.id) != family(type_b.id)) {
    return family(type_a.id) < family(type_b.id) ? -1 : 1;
  }
  const ConvertOptions options;
  const SqlType common = CommonType(type_a, type_b);
  return CompareValues(ConvertValue(a, type_a, common, options),
                       ConvertValue(b, type_b, common, options),
                       high.id == common.id ? common : high, rule);
}

}  // namespace

int CompareValues(const Value& a, const Value& b, const SqlType& type,
                  const CollationRule& rule) {
  const auto order = [](const auto& x, const auto& y) {
    return x < y ? -1 : y < x ? 1 : 0;
  };
  if (type.id == TypeId::kSqlVariant) {
    if (a.variant_type && b.variant_type) {
      Value inner_a = a, inner_b = b;
      return CompareVariants(inner_a, inner_b, rule);
    }
    return 0;
  }
  switch (a.held.index()) {
    case 1:
      return order(std::get<1>(a.held), std::get<1>(b.held));
    case 2:
      return order(std::get<2>(a.held), std::get<2>(b.held));
    case 3:
      return CompareDecimals(std::get<3>(a.held), std::get<3>(b.held));
    case 4: {
      const auto& x = std::get<4>(a.held);
      const auto& y = std::get<4>(b.held);
      const auto moment = [](const DateTimeValue& v) {
        return TotalTicks(v) - v.offset_minutes * __int128{kTicksPerMinute};
      };
      if (x.offset_minutes == 0 && y.offset_minutes == 0) {
        return x.days != y.days ? order(x.days, y.days) : order(x.ticks, y.ticks);
      }
      return order(moment(x), moment(y));
    }
    case 5:
      return CompareText(std::get<5>(a.held), std::get<5>(b.held), rule);
    case 6:
      return CompareBytes(std::get<6>(a.held), std::get<6>(b.held));
    case 7: {
      for (const std::size_t i : kGuidOrder) {
        const std::uint8_t x = std::get<7>(a.held).bytes[i];
        const std::uint8_t y = std::get<7>(b.held).bytes[i];
        if (x != y) return x < y ? -1 : 1;
      }
      return 0;
    }
    default:
      return 0;
  }
}

void AppendHashKey(const Value& value, const SqlType& type, const CollationRule& rule,
                   std::string& key) {
  const auto put = [&](const void* data, std::size_t size) {
    key.append(static_cast<const char*>(data), size);
  };
  const auto sized = [&](std::string_view part) {
    const std::size_t size = part.size();
    put(&size, sizeof size);
    key += part;
  };
  key += static_cast<char>(value.held.index());
  switch (value.held.index()) {
    case 1:
      put(&std::get<1>(value.held), 8);
      break;
    case 2: {
      const double number = std::get<2>(value.held) + 0.0;  // -0 equals 0.
      put(&number, 8);
      break;
    }
    case 3: {
      // Without trailing zeros, so that 1.0 equals 1.00.
      Decimal decimal = std::get<3>(value.held);
      while (decimal.scale > 0 && decimal.unscaled % 10 == 0) {
        decimal.unscaled /= 10;
        --decimal.scale;
      }
      put(&decimal.unscaled, 16);
      put(&decimal.scale, 1);
      break;
    }
    case 4: {
      const auto& date = std::get<4>(value.held);
      const __int128 moment =
          TotalTicks(date) - date.offset_minutes * __int128{kTicksPerMinute};
      put(&moment, 16);
      break;
    }
    case 5:
      sized(SortKey(std::get<5>(value.held), rule));
      break;
    case 6: {
      const Bytes& bytes = std::get<6>(value.held);
      std::size_t size = bytes.size();
      while (size > 0 && bytes[size - 1] == 0) --size;
      sized({reinterpret_cast<const char*>(bytes.data()), size});
      break;
    }
    case 7:
      put(std::get<7>(value.held).bytes, 16);
      break;
    default:
      break;
  }
  (void)type;
}

std::string BinaryText(const Bytes& bytes, int style) {
  return (style == 1 ? "0x" : "") + HexUpper(bytes);
}

std::string GuidText(const Guid& guid) {
  std::string text = HexUpper(guid.bytes);
  for (const std::size_t at : {8u, 13u, 18u, 23u}) text.insert(at, "-");
  return text;
}

// Style 0 shows six digits, 1 eight and 2 sixteen in scientific form, 3 all that
// matter.
std::string FloatText(double value, bool real, int style) {
  char buffer[64];
  if (style == 1) {
    std::snprintf(buffer, sizeof buffer, "%.7e", value);
  } else if (style == 2) {
    std::snprintf(buffer, sizeof buffer, "%.15e", value);
  } else if (style == 3) {
    std::snprintf(buffer, sizeof buffer, real ? "%.8e" : "%.16e", value);
  } else {
    std::snprintf(buffer, sizeof buffer, "%.6g", value);
  }
  std::string text = buffer;
  // The exponent has three digits.
  const std::size_t e = text.find('e');
  if (e != std::string::npos) {
    while (text.size() - e - 2 < 3) text.insert(e + 2, "0");
  }
  return text;
}

}  // namespace mssql_cdc::sim

// To texts.

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "sim/sql/converter.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/environment.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {
namespace {

bool IsVarying(TypeId id) {
  return id == TypeId::kVarChar || id == TypeId::kNVarChar || id == TypeId::kText ||
         id == TypeId::kNText || id == TypeId::kXml;
}

}  // namespace

Text Converter::ToText(const Value& value) const {
  if (const auto* text = std::get_if<Text>(&value.held)) return *text;
  if (const auto* bytes = std::get_if<Bytes>(&value.held)) return TextFromBytes(*bytes);
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
      RaiseSql(8170, 16, 2,
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

Text Converter::CheckedNumberText(Text text) const {
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

std::string Converter::MoneyText(const Decimal& value) const {
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

Text Converter::TextFromBytes(const Bytes& bytes) const {
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
  return wire::DecodeText(bytes, CodePage(to_));
}

Text Converter::SizedText(Text text) const {
  const bool narrow = !IsNationalText(to_.id) && to_.id != TypeId::kXml;
  std::size_t size = text.size();
  if (narrow && std::any_of(text.begin(), text.end(),
                            [](char16_t unit) { return unit >= 0x80; })) {
    // What the code page does not have becomes a question mark.
    const std::uint16_t page = CodePage(to_);
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

// To binaries and uniqueidentifier.

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "sim/sql/converter.h"
#include "sim/sql/dates.h"
#include "sim/sql/environment.h"
#include "sim/sql/numbers.h"
#include "sim/sql/types.h"
#include "sim/wire/collation.h"

namespace mssql_cdc::sim {

Guid Converter::ToGuid(const Value& value) const {
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

Bytes Converter::ToBytes(const Value& value) const {
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

Bytes Converter::BytesFromText(const Text& text) const {
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
  const std::string encoded = wire::EncodeText(text, CodePage(from_));
  bytes.assign(encoded.begin(), encoded.end());
  return bytes;
}

Bytes Converter::Sized(Bytes bytes) const {
  const std::size_t length =
      to_.id == TypeId::kRowVersion ? 8 : static_cast<std::size_t>(to_.length);
  if (to_.length == kMax) return bytes;
  if (bytes.size() > length) bytes.resize(length);
  if (to_.id != TypeId::kVarBinary && to_.id != TypeId::kImage) bytes.resize(length);
  return bytes;
}

}  // namespace mssql_cdc::sim

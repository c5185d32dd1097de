// The bytes of values that have a fixed size, of dates as text, and of sql_variant.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "sim/wire/column.h"

namespace mssql_cdc::sim::wire {
namespace {

constexpr std::int32_t kDaysTo1900 = 693'595;  // From 0001-01-01.
constexpr std::int32_t kDaysTo1970 = 719'162;
constexpr std::int64_t kTicksPerDay = 864'000'000'000;
constexpr std::int64_t kTicksPerMinute = 600'000'000;
constexpr std::int64_t kTicksPerSecond = 10'000'000;
constexpr std::int64_t kPartsPerDay = 86'400 * 300;  // datetime counts 1/300 s.

std::int64_t TicksPerUnit(std::uint8_t scale) {
  std::int64_t ticks = 1;
  for (std::uint8_t i = scale; i < 7; ++i) ticks *= 10;
  return ticks;
}

void WriteTime(std::int64_t ticks, std::uint8_t scale, ByteBuffer& out) {
  out.Low(static_cast<std::uint64_t>(ticks / TicksPerUnit(scale)),
          TimeSizeBytes(scale));
}

void WriteDate(std::int32_t days, ByteBuffer& out) {
  out.Low(static_cast<std::uint64_t>(static_cast<std::int64_t>(days)), 3);
}

void WriteDateTime(const DateTimeValue& value, ByteBuffer& out) {
  std::int32_t days = value.days - kDaysTo1900;
  std::int64_t parts = (value.ticks * 3 + 50'000) / 100'000;
  if (parts >= kPartsPerDay) {  // 23:59:59.999 rounds to the next midnight.
    parts -= kPartsPerDay;
    ++days;
  }
  out.I32(days);
  out.U32(static_cast<std::uint32_t>(parts));
}

// On the wire it is UTC and the offset; held is local time.
void WriteDateTimeOffset(const DateTimeValue& value, std::uint8_t scale,
                         ByteBuffer& out) {
  std::int64_t ticks = value.ticks - value.offset_minutes * kTicksPerMinute;
  std::int32_t days = value.days;
  if (ticks < 0) {
    ticks += kTicksPerDay;
    --days;
  } else if (ticks >= kTicksPerDay) {
    ticks -= kTicksPerDay;
    ++days;
  }
  WriteTime(ticks, scale, out);
  WriteDate(days, out);
  out.U16(static_cast<std::uint16_t>(value.offset_minutes));
}

void WriteDecimal(const Decimal& value, std::size_t size, ByteBuffer& out) {
  const bool positive = value.unscaled >= 0;
  const auto magnitude = positive ? static_cast<unsigned __int128>(value.unscaled)
                                  : -static_cast<unsigned __int128>(value.unscaled);
  out.U8(positive ? 1 : 0);
  ByteBuffer number;
  number.U64(static_cast<std::uint64_t>(magnitude));
  number.U64(static_cast<std::uint64_t>(magnitude >> 64));
  out.Raw(std::string_view(number.bytes()).substr(0, size - 1));
}

void WriteGuid(const Guid& guid, ByteBuffer& out) {
  static constexpr std::size_t kOrder[16] = {3, 2, 1,  0,  5,  4,  7,  6,
                                             8, 9, 10, 11, 12, 13, 14, 15};
  for (const std::size_t i : kOrder) out.U8(guid.bytes[i]);
}

// The type of a variant's content when the engine did not say.
SqlType TypeOf(const Value& value) {
  SqlType type;
  if (value.variant_type) return *value.variant_type;
  switch (value.held.index()) {
    case 2:
      type.id = TypeId::kFloat;
      break;
    case 3:
      type.id = TypeId::kDecimal;
      type.precision = 38;
      type.scale = std::get<Decimal>(value.held).scale;
      break;
    case 4:
      type.id = TypeId::kDateTime2;
      type.scale = 7;
      break;
    case 5:
      type.id = TypeId::kNVarChar;
      type.length = 4000;
      break;
    case 6:
      type.id = TypeId::kVarBinary;
      type.length = 8000;
      break;
    case 7:
      type.id = TypeId::kUniqueIdentifier;
      break;
    default:
      type.id = TypeId::kBigInt;
      break;
  }
  return type;
}

tds::DataType VariantToken(TypeId id) {
  switch (id) {
    case TypeId::kBit:
      return tds::DataType::kBit;
    case TypeId::kTinyInt:
      return tds::DataType::kInt1;
    case TypeId::kSmallInt:
      return tds::DataType::kInt2;
    case TypeId::kInt:
      return tds::DataType::kInt4;
    case TypeId::kBigInt:
      return tds::DataType::kInt8;
    case TypeId::kReal:
      return tds::DataType::kFloat4;
    case TypeId::kFloat:
      return tds::DataType::kFloat8;
    case TypeId::kDecimal:
      return tds::DataType::kNumericN;
    case TypeId::kMoney:
      return tds::DataType::kMoney;
    case TypeId::kSmallMoney:
      return tds::DataType::kMoney4;
    case TypeId::kDate:
      return tds::DataType::kDate;
    case TypeId::kTime:
      return tds::DataType::kTime;
    case TypeId::kDateTime:
      return tds::DataType::kDateTime;
    case TypeId::kSmallDateTime:
      return tds::DataType::kDateTime4;
    case TypeId::kDateTime2:
      return tds::DataType::kDateTime2;
    case TypeId::kDateTimeOffset:
      return tds::DataType::kDateTimeOffset;
    case TypeId::kUniqueIdentifier:
      return tds::DataType::kGuid;
    case TypeId::kChar:
      return tds::DataType::kBigChar;
    case TypeId::kVarChar:
      return tds::DataType::kBigVarChar;
    case TypeId::kNChar:
      return tds::DataType::kNChar;
    case TypeId::kNVarChar:
      return tds::DataType::kNVarChar;
    case TypeId::kBinary:
    case TypeId::kRowVersion:
      return tds::DataType::kBigBinary;
    case TypeId::kVarBinary:
      return tds::DataType::kBigVarBinary;
    case TypeId::kText:
    case TypeId::kNText:
    case TypeId::kXml:
    case TypeId::kImage:
    case TypeId::kSqlVariant:
    case TypeId::kNull:
      break;
  }
  return tds::DataType::kNull;  // Nothing a variant can hold.
}

bool IsUnicode(TypeId id) { return id == TypeId::kNChar || id == TypeId::kNVarChar; }

// Properties and bytes of text or binary in a variant: collation, then length.
bool WriteVariantBytes(const SqlType& type, const Value& value, const Dialect& dialect,
                       ByteBuffer& out) {
  std::string bytes;
  Collation collation = dialect.collation;
  if (const Text* text = std::get_if<Text>(&value.held)) {
    if (!type.collation.empty()) {
      collation = FindCollation(type.collation).value_or(collation);
    }
    if (IsUnicode(type.id)) {
      bytes.assign(reinterpret_cast<const char*>(text->data()), text->size() * 2);
    } else {
      bytes = EncodeText(*text, collation.code_page);
    }
    out.U8(7);
    out.Raw(std::span<const std::uint8_t>(collation.bytes));
  } else if (const Bytes* raw = std::get_if<Bytes>(&value.held)) {
    bytes.assign(raw->begin(), raw->end());
    out.U8(2);
  } else {
    return false;
  }
  if (bytes.size() > 8000) return false;
  const std::int32_t units = type.length > 0 ? type.length : 8000;
  const std::int64_t declared = IsUnicode(type.id) ? units * 2ll : units;
  const auto size_max = std::max(static_cast<std::int64_t>(bytes.size()),
                                 std::min<std::int64_t>(declared, 8000));
  out.U16(static_cast<std::uint16_t>(size_max));
  out.Raw(bytes);
  return true;
}

}  // namespace

std::uint8_t DecimalSizeBytes(std::uint8_t precision) {
  return precision <= 9 ? 5 : precision <= 19 ? 9 : precision <= 28 ? 13 : 17;
}

std::uint8_t TimeSizeBytes(std::uint8_t scale) {
  return scale <= 2 ? 3 : scale <= 4 ? 4 : 5;
}

void WriteScalar(const SqlType& type, const Value& value, ByteBuffer& out) {
  switch (type.id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
      out.U8(static_cast<std::uint8_t>(std::get<std::int64_t>(value.held)));
      break;
    case TypeId::kSmallInt:
      out.U16(static_cast<std::uint16_t>(std::get<std::int64_t>(value.held)));
      break;
    case TypeId::kInt:
      out.U32(static_cast<std::uint32_t>(std::get<std::int64_t>(value.held)));
      break;
    case TypeId::kBigInt:
      out.U64(static_cast<std::uint64_t>(std::get<std::int64_t>(value.held)));
      break;
    case TypeId::kReal:
      out.U32(std::bit_cast<std::uint32_t>(
          static_cast<float>(std::get<double>(value.held))));
      break;
    case TypeId::kFloat:
      out.U64(std::bit_cast<std::uint64_t>(std::get<double>(value.held)));
      break;
    case TypeId::kDecimal:
      WriteDecimal(std::get<Decimal>(value.held), DecimalSizeBytes(type.precision),
                   out);
      break;
    case TypeId::kMoney: {  // The high half first.
      const auto units =
          static_cast<std::uint64_t>(std::get<Decimal>(value.held).unscaled);
      out.U32(static_cast<std::uint32_t>(units >> 32));
      out.U32(static_cast<std::uint32_t>(units));
      break;
    }
    case TypeId::kSmallMoney:
      out.U32(static_cast<std::uint32_t>(std::get<Decimal>(value.held).unscaled));
      break;
    case TypeId::kDate:
      WriteDate(std::get<DateTimeValue>(value.held).days, out);
      break;
    case TypeId::kTime:
      WriteTime(std::get<DateTimeValue>(value.held).ticks, type.scale, out);
      break;
    case TypeId::kDateTime:
      WriteDateTime(std::get<DateTimeValue>(value.held), out);
      break;
    case TypeId::kSmallDateTime: {
      const auto& held = std::get<DateTimeValue>(value.held);
      out.U16(static_cast<std::uint16_t>(held.days - kDaysTo1900));
      out.U16(static_cast<std::uint16_t>(held.ticks / kTicksPerMinute));
      break;
    }
    case TypeId::kDateTime2: {
      const auto& held = std::get<DateTimeValue>(value.held);
      WriteTime(held.ticks, type.scale, out);
      WriteDate(held.days, out);
      break;
    }
    case TypeId::kDateTimeOffset:
      WriteDateTimeOffset(std::get<DateTimeValue>(value.held), type.scale, out);
      break;
    case TypeId::kUniqueIdentifier:
      WriteGuid(std::get<Guid>(value.held), out);
      break;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kText:
    case TypeId::kNText:
    case TypeId::kXml:
    case TypeId::kBinary:
    case TypeId::kVarBinary:
    case TypeId::kImage:
    case TypeId::kRowVersion:
    case TypeId::kSqlVariant:
    case TypeId::kNull:
      break;
  }
}

bool WriteVariant(const Value& value, const Dialect& dialect, ByteBuffer& out) {
  SqlType type = TypeOf(value);
  tds::DataType token = VariantToken(type.id);
  if (token == tds::DataType::kNull) return false;
  if (std::holds_alternative<Text>(value.held) && !IsUnicode(type.id)) {
    const Collation collation =
        type.collation.empty()
            ? dialect.collation
            : FindCollation(type.collation).value_or(dialect.collation);
    if (collation.code_page == kCodePageUtf8 && !dialect.utf8_support) {
      token = tds::DataType::kNVarChar;
      type.id = TypeId::kNVarChar;
    }
  }
  ByteBuffer content;
  content.U8(static_cast<std::uint8_t>(token));
  switch (value.held.index()) {
    case 5:
    case 6:
      if (!WriteVariantBytes(type, value, dialect, content)) return false;
      break;
    default: {
      if (!ColumnEncoder(type, true, Dialect{}).Fits(value)) return false;
      if (type.id == TypeId::kDecimal) {
        content.U8(2);
        content.U8(type.precision);
        content.U8(type.scale);
      } else if (type.id == TypeId::kTime || type.id == TypeId::kDateTime2 ||
                 type.id == TypeId::kDateTimeOffset) {
        content.U8(1);
        content.U8(type.scale);
      } else {
        content.U8(0);
      }
      WriteScalar(type, value, content);
    }
  }
  out.U32(static_cast<std::uint32_t>(content.bytes().size()));
  out.Raw(content.bytes());
  return true;
}

std::size_t DateTextUnits(const SqlType& type) {
  const std::size_t fraction = type.scale > 0 ? type.scale + 1u : 0u;
  switch (type.id) {
    case TypeId::kDate:
      return 10;
    case TypeId::kTime:
      return 8 + fraction;
    case TypeId::kDateTime2:
      return 19 + fraction;
    default:
      return 26 + fraction;
  }
}

std::u16string DateText(const SqlType& type, const DateTimeValue& value) {
  std::string text;
  if (type.id != TypeId::kTime) {
    const CivilDate date = CivilFromDays(value.days - kDaysTo1970);
    text = fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
  }
  if (type.id == TypeId::kDate) return Utf16(text);
  if (!text.empty()) text += ' ';
  const std::int64_t seconds = value.ticks / kTicksPerSecond;
  text +=
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (type.scale > 0) {
    const std::int64_t fraction =
        value.ticks % kTicksPerSecond / TicksPerUnit(type.scale);
    text += fmt::format(".{:0{}}", fraction, static_cast<int>(type.scale));
  }
  if (type.id == TypeId::kDateTimeOffset) {
    const int minutes = std::abs(value.offset_minutes);
    text += fmt::format(" {}{:02}:{:02}", value.offset_minutes < 0 ? '-' : '+',
                        minutes / 60, minutes % 60);
  }
  return Utf16(text);
}

}  // namespace mssql_cdc::sim::wire

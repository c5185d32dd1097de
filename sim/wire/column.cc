#include "sim/wire/column.h"

#include <algorithm>
#include <limits>

namespace mssql_cdc::sim::wire {
namespace {

using tds::DataType;

constexpr std::uint16_t kFlagNullable = 0x0001;
constexpr std::uint32_t kUserTypeRowVersion = 80;
constexpr std::uint32_t kMaxMarker = 0xFFFF;
constexpr std::uint64_t kPlpNull = 0xFFFFFFFFFFFFFFFF;
constexpr std::size_t kChunkSizeBytes = 32'000;
constexpr std::uint32_t kVariantSizeBytesMax = 8009;
constexpr std::int64_t kTicksPerDay = 864'000'000'000;

bool IsText(TypeId id) {
  switch (id) {
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kText:
    case TypeId::kNText:
    case TypeId::kXml:
      return true;
    default:
      return false;
  }
}

bool IsModernDate(TypeId id) {
  return id == TypeId::kDate || id == TypeId::kTime || id == TypeId::kDateTime2 ||
         id == TypeId::kDateTimeOffset;
}

bool IntFits(TypeId id, std::int64_t value) {
  switch (id) {
    case TypeId::kBit:
      return value == 0 || value == 1;
    case TypeId::kTinyInt:
      return value >= 0 && value <= 255;
    case TypeId::kSmallInt:
      return value >= std::numeric_limits<std::int16_t>::min() &&
             value <= std::numeric_limits<std::int16_t>::max();
    case TypeId::kInt:
    case TypeId::kNull:
      return value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    default:
      return id == TypeId::kBigInt;
  }
}

bool DecimalFits(const SqlType& type, const Decimal& value) {
  const __int128 magnitude = value.unscaled < 0 ? -value.unscaled : value.unscaled;
  if (type.id == TypeId::kMoney) {
    return value.scale == 4 &&
           value.unscaled >= std::numeric_limits<std::int64_t>::min() &&
           value.unscaled <= std::numeric_limits<std::int64_t>::max();
  }
  if (type.id == TypeId::kSmallMoney) {
    return value.scale == 4 &&
           value.unscaled >= std::numeric_limits<std::int32_t>::min() &&
           value.unscaled <= std::numeric_limits<std::int32_t>::max();
  }
  __int128 limit = 1;
  for (std::uint8_t i = 0; i < type.precision; ++i) limit *= 10;
  return type.id == TypeId::kDecimal && value.scale == type.scale && magnitude < limit;
}

bool DateFits(TypeId id, const DateTimeValue& value) {
  if (value.ticks < 0 || value.ticks >= kTicksPerDay) return false;
  switch (id) {
    case TypeId::kSmallDateTime:
      return value.days >= 693'595 && value.days <= 693'595 + 65'535;
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDateTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      return value.days >= 0 && value.days <= 3'652'058;
    default:
      return false;
  }
}

}  // namespace

ColumnEncoder::ColumnEncoder(const SqlType& type, bool nullable, const Dialect& dialect)
    : type_(type),
      dialect_(dialect),
      nullable_(nullable),
      collation_(dialect.collation) {
  if (!type.collation.empty()) {
    collation_ = FindCollation(type.collation).value_or(collation_);
  }
  Choose(nullable);
}

void ColumnEncoder::ChooseFixed(DataType bare, DataType counted, std::uint8_t size,
                                bool nullable) {
  layout_ = nullable ? Layout::kByteCount : Layout::kBare;
  token_ = nullable ? counted : bare;
  size_bytes_max_ = size;
}

void ColumnEncoder::Choose(bool nullable) {
  if (IsModernDate(type_.id) && !dialect_.takes_modern_dates()) {
    dates_as_text_ = true;
    unicode_ = true;
    layout_ = Layout::kShortCount;
    token_ = DataType::kNVarChar;
    size_bytes_max_ = static_cast<std::uint32_t>(DateTextUnits(type_) * 2);
    return;
  }
  switch (type_.id) {
    case TypeId::kBit:
      return ChooseFixed(DataType::kBit, DataType::kBitN, 1, nullable);
    case TypeId::kTinyInt:
      return ChooseFixed(DataType::kInt1, DataType::kIntN, 1, nullable);
    case TypeId::kSmallInt:
      return ChooseFixed(DataType::kInt2, DataType::kIntN, 2, nullable);
    case TypeId::kInt:
      return ChooseFixed(DataType::kInt4, DataType::kIntN, 4, nullable);
    case TypeId::kNull:
      type_.id = TypeId::kInt;
      nullable_ = true;
      return ChooseFixed(DataType::kInt4, DataType::kIntN, 4, true);
    case TypeId::kBigInt:
      return ChooseFixed(DataType::kInt8, DataType::kIntN, 8, nullable);
    case TypeId::kReal:
      return ChooseFixed(DataType::kFloat4, DataType::kFloatN, 4, nullable);
    case TypeId::kFloat:
      return ChooseFixed(DataType::kFloat8, DataType::kFloatN, 8, nullable);
    case TypeId::kMoney:
      return ChooseFixed(DataType::kMoney, DataType::kMoneyN, 8, nullable);
    case TypeId::kSmallMoney:
      return ChooseFixed(DataType::kMoney4, DataType::kMoneyN, 4, nullable);
    case TypeId::kDateTime:
      return ChooseFixed(DataType::kDateTime, DataType::kDateTimeN, 8, nullable);
    case TypeId::kSmallDateTime:
      return ChooseFixed(DataType::kDateTime4, DataType::kDateTimeN, 4, nullable);
    case TypeId::kDecimal:
      return ChooseFixed(DataType::kNumericN, DataType::kNumericN,
                         DecimalSizeBytes(type_.precision), true);
    case TypeId::kUniqueIdentifier:
      return ChooseFixed(DataType::kGuid, DataType::kGuid, 16, true);
    case TypeId::kDate:
      return ChooseFixed(DataType::kDate, DataType::kDate, 3, true);
    case TypeId::kTime:
      return ChooseFixed(DataType::kTime, DataType::kTime, TimeSizeBytes(type_.scale),
                         true);
    case TypeId::kDateTime2:
      return ChooseFixed(DataType::kDateTime2, DataType::kDateTime2,
                         static_cast<std::uint8_t>(TimeSizeBytes(type_.scale) + 3),
                         true);
    case TypeId::kDateTimeOffset:
      return ChooseFixed(DataType::kDateTimeOffset, DataType::kDateTimeOffset,
                         static_cast<std::uint8_t>(TimeSizeBytes(type_.scale) + 5),
                         true);
    case TypeId::kSqlVariant:
      layout_ = Layout::kVariant;
      token_ = DataType::kVariant;
      size_bytes_max_ = kVariantSizeBytesMax;
      return;
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
      return ChooseText();
  }
}

// Text and binary: which token, and which of the three layouts for long values.
void ColumnEncoder::ChooseText() {
  TypeId id = type_.id;
  std::int32_t length = type_.length;
  const bool code_page =
      id == TypeId::kChar || id == TypeId::kVarChar || id == TypeId::kText;
  if (code_page && collation_.code_page == kCodePageUtf8 && !dialect_.utf8_support) {
    id = id == TypeId::kText   ? TypeId::kNText
         : id == TypeId::kChar ? TypeId::kNChar
                               : TypeId::kNVarChar;
    if (length > 4000) length = dialect_.takes_max() ? kMax : 4000;
  }
  const bool binary = !IsText(id);
  unicode_ = IsText(id) && id != TypeId::kChar && id != TypeId::kVarChar &&
             id != TypeId::kText;
  bool pointer = id == TypeId::kText || id == TypeId::kNText || id == TypeId::kImage;
  const bool unbounded = !pointer && (length == kMax || id == TypeId::kXml);
  if (unbounded && !dialect_.takes_max()) pointer = true;

  if (pointer) {
    layout_ = Layout::kTextPointer;
    token_ = binary ? DataType::kImage : unicode_ ? DataType::kNText : DataType::kText;
    size_bytes_max_ = unicode_ ? 0x7FFFFFFE : 0x7FFFFFFF;
    return;
  }
  if (unbounded) {
    layout_ = Layout::kChunked;
    token_ = id == TypeId::kXml ? DataType::kXml
             : binary           ? DataType::kBigVarBinary
             : unicode_         ? DataType::kNVarChar
                                : DataType::kBigVarChar;
    size_bytes_max_ = kMaxMarker;
    return;
  }
  layout_ = Layout::kShortCount;
  if (id == TypeId::kRowVersion) length = 8;
  size_bytes_max_ = static_cast<std::uint32_t>(std::clamp(length, 1, 8000));
  if (unicode_) size_bytes_max_ = std::min(size_bytes_max_ * 2, 8000u);
  switch (id) {
    case TypeId::kChar:
      token_ = DataType::kBigChar;
      break;
    case TypeId::kVarChar:
      token_ = DataType::kBigVarChar;
      break;
    case TypeId::kNChar:
      token_ = DataType::kNChar;
      break;
    case TypeId::kNVarChar:
      token_ = DataType::kNVarChar;
      break;
    case TypeId::kVarBinary:
      token_ = DataType::kBigVarBinary;
      break;
    default:
      token_ = DataType::kBigBinary;
      break;
  }
}

void ColumnEncoder::WriteTypeInfo(ByteBuffer& out, std::uint16_t flags) const {
  const std::uint32_t user_type =
      type_.id == TypeId::kRowVersion ? kUserTypeRowVersion : 0;
  if (dialect_.version < TdsVersion::k72) {
    out.U16(static_cast<std::uint16_t>(user_type));
  } else {
    out.U32(user_type);
  }
  out.U16(static_cast<std::uint16_t>(flags | (nullable_ ? kFlagNullable : 0)));
  out.U8(static_cast<std::uint8_t>(token_));
  switch (layout_) {
    case Layout::kBare:
      return;
    case Layout::kByteCount:
      if (token_ == DataType::kDate) return;
      if (token_ == DataType::kTime || token_ == DataType::kDateTime2 ||
          token_ == DataType::kDateTimeOffset) {
        out.U8(type_.scale);
        return;
      }
      out.U8(static_cast<std::uint8_t>(size_bytes_max_));
      if (token_ == DataType::kNumericN) {
        out.U8(type_.precision);
        out.U8(type_.scale);
      }
      return;
    case Layout::kVariant:
      out.U32(size_bytes_max_);
      return;
    case Layout::kTextPointer:
      out.U32(size_bytes_max_);
      break;
    case Layout::kShortCount:
    case Layout::kChunked:
      if (token_ == DataType::kXml) {
        out.U8(0);  // No schema collection.
        return;
      }
      out.U16(static_cast<std::uint16_t>(size_bytes_max_));
      break;
  }
  const bool binary = token_ == DataType::kBigVarBinary ||
                      token_ == DataType::kBigBinary || token_ == DataType::kImage;
  if (!binary && dialect_.version > TdsVersion::k70) {
    out.Raw(std::span<const std::uint8_t>(collation_.bytes));
  }
}

std::string ColumnEncoder::Form() const {
  ByteBuffer out;
  WriteTypeInfo(out, 0);
  out.U8(static_cast<std::uint8_t>(type_.id));
  out.U8(type_.scale);
  out.U8(static_cast<std::uint8_t>(layout_));
  out.U32(static_cast<std::uint32_t>(dialect_.version));
  out.U16(static_cast<std::uint16_t>(dialect_.utf8_support));
  out.Raw(std::span<const std::uint8_t>(collation_.bytes));
  out.Raw(std::span<const std::uint8_t>(dialect_.collation.bytes));
  return std::to_string(out.bytes().size()) + ':' + out.bytes();
}

std::size_t ColumnEncoder::null_size_bytes() const {
  switch (layout_) {
    case Layout::kBare:
      return 0;
    case Layout::kByteCount:
    case Layout::kTextPointer:
      return 1;
    case Layout::kShortCount:
      return 2;
    case Layout::kChunked:
      return 8;
    case Layout::kVariant:
      return 4;
  }
  return 0;
}

void ColumnEncoder::WriteNull(ByteBuffer& out) const {
  switch (layout_) {
    case Layout::kBare:
      break;
    case Layout::kByteCount:
    case Layout::kTextPointer:
      out.U8(0);
      break;
    case Layout::kShortCount:
      out.U16(kMaxMarker);
      break;
    case Layout::kChunked:
      out.U64(kPlpNull);
      break;
    case Layout::kVariant:
      out.U32(0);
      break;
  }
}

bool ColumnEncoder::Fits(const Value& value) const {
  switch (value.held.index()) {
    case 1:
      return type_.id == TypeId::kSqlVariant ||
             IntFits(type_.id, std::get<std::int64_t>(value.held));
    case 2:
      return type_.id == TypeId::kSqlVariant || type_.id == TypeId::kReal ||
             type_.id == TypeId::kFloat;
    case 3:
      return type_.id == TypeId::kSqlVariant ||
             DecimalFits(type_, std::get<Decimal>(value.held));
    case 4:
      return type_.id == TypeId::kSqlVariant ||
             DateFits(type_.id, std::get<DateTimeValue>(value.held));
    case 5: {
      if (type_.id == TypeId::kSqlVariant) return true;
      const std::size_t units = std::get<Text>(value.held).size();
      return IsText(type_.id) && (layout_ != Layout::kShortCount || !unicode_ ||
                                  units * 2 <= size_bytes_max_);
    }
    case 6:
      if (type_.id == TypeId::kSqlVariant) return true;
      return (type_.id == TypeId::kBinary || type_.id == TypeId::kVarBinary ||
              type_.id == TypeId::kImage || type_.id == TypeId::kRowVersion) &&
             (layout_ != Layout::kShortCount ||
              std::get<Bytes>(value.held).size() <= size_bytes_max_);
    case 7:
      return type_.id == TypeId::kSqlVariant || type_.id == TypeId::kUniqueIdentifier;
    default:
      return false;
  }
}

bool ColumnEncoder::WriteValue(const Value& value, ByteBuffer& out) const {
  if (dates_as_text_) {
    const Text text = DateText(type_, std::get<DateTimeValue>(value.held));
    return WriteBytes({reinterpret_cast<const char*>(text.data()), text.size() * 2},
                      out);
  }
  switch (layout_) {
    case Layout::kBare:
      WriteScalar(type_, value, out);
      return true;
    case Layout::kByteCount:
      out.U8(static_cast<std::uint8_t>(size_bytes_max_));
      WriteScalar(type_, value, out);
      return true;
    case Layout::kVariant:
      return WriteVariant(value, dialect_, out);
    case Layout::kShortCount:
    case Layout::kChunked:
    case Layout::kTextPointer:
      break;
  }
  if (const Bytes* bytes = std::get_if<Bytes>(&value.held)) {
    return WriteBytes({reinterpret_cast<const char*>(bytes->data()), bytes->size()},
                      out);
  }
  return WriteText(value, out);
}

bool ColumnEncoder::WriteText(const Value& value, ByteBuffer& out) const {
  const Text& text = std::get<Text>(value.held);
  if (unicode_) {
    return WriteBytes({reinterpret_cast<const char*>(text.data()), text.size() * 2},
                      out);
  }
  return WriteBytes(EncodeText(text, collation_.code_page), out);
}

// The bytes with what goes before them. Types of a fixed length are filled up to it.
bool ColumnEncoder::WriteBytes(std::string_view bytes, ByteBuffer& out) const {
  switch (layout_) {
    case Layout::kShortCount: {
      if (bytes.size() > size_bytes_max_) return false;
      const bool padded = token_ == DataType::kBigChar || token_ == DataType::kNChar ||
                          token_ == DataType::kBigBinary;
      // A UTF-8 char(n) sent as UTF-16 has fewer units than n bytes: left as it is.
      const bool widened = token_ == DataType::kNChar && type_.id == TypeId::kChar;
      const std::size_t missing =
          padded && !widened ? size_bytes_max_ - bytes.size() : 0;
      out.U16(static_cast<std::uint16_t>(bytes.size() + missing));
      out.Raw(bytes);
      if (token_ == DataType::kNChar) {
        for (std::size_t i = 0; i < missing / 2; ++i) out.U16(u' ');
      } else {
        out.Fill(missing, token_ == DataType::kBigChar ? ' ' : '\0');
      }
      return true;
    }
    case Layout::kChunked:
      out.U64(bytes.size());
      while (!bytes.empty()) {
        const std::string_view chunk = bytes.substr(0, kChunkSizeBytes);
        bytes.remove_prefix(chunk.size());
        out.U32(static_cast<std::uint32_t>(chunk.size()));
        out.Raw(chunk);
      }
      out.U32(0);
      return true;
    case Layout::kTextPointer:
      if (bytes.size() > size_bytes_max_) return false;
      // A text pointer and a timestamp that no client looks into.
      out.U8(16);
      out.Fill(16, 'p');
      out.Fill(8, 't');
      out.U32(static_cast<std::uint32_t>(bytes.size()));
      out.Raw(bytes);
      return true;
    case Layout::kBare:
    case Layout::kByteCount:
    case Layout::kVariant:
      break;
  }
  return false;
}

}  // namespace mssql_cdc::sim::wire

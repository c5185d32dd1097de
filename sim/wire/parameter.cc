#include "sim/wire/parameter.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace mssql_cdc::sim::wire {
namespace {

using tds::DataType;

constexpr std::int32_t kDaysTo1900 = 693'595;  // From 0001-01-01.
constexpr std::int64_t kTicksPerDay = 864'000'000'000;
constexpr std::int64_t kTicksPerMinute = 600'000'000;
constexpr std::uint16_t kMaxMarker = 0xFFFF;
constexpr std::uint64_t kPlpNull = 0xFFFFFFFFFFFFFFFF;
constexpr std::uint64_t kPlpUnknown = 0xFFFFFFFFFFFFFFFE;
constexpr std::int32_t kDateDaysMax = 3'652'058;  // 9999-12-31.

TypeId IntTypeOf(std::uint32_t size) {
  return size == 1   ? TypeId::kTinyInt
         : size == 2 ? TypeId::kSmallInt
         : size == 4 ? TypeId::kInt
                     : TypeId::kBigInt;
}

bool IsPowerOfTwoUpTo8(std::uint32_t size, std::uint32_t from) {
  return size >= from && size <= 8 && (size & (size - 1)) == 0;
}

CollationBytes ReadCollation(ByteReader& reader, TdsVersion version) {
  CollationBytes bytes{};
  if (version == TdsVersion::k70) return bytes;
  const std::span<const std::uint8_t> raw = reader.Take(bytes.size());
  if (!raw.empty()) std::memcpy(bytes.data(), raw.data(), bytes.size());
  return bytes;
}

// The types whose token says all.
std::optional<WireType> FixedType(DataType token) {
  WireType wire;
  wire.token = token;
  switch (token) {
    case DataType::kNull:
      wire.type.id = TypeId::kNull;
      return wire;
    case DataType::kInt1:
    case DataType::kInt2:
    case DataType::kInt4:
    case DataType::kInt8:
      wire.size_bytes_max = token == DataType::kInt1   ? 1
                            : token == DataType::kInt2 ? 2
                            : token == DataType::kInt4 ? 4
                                                       : 8;
      wire.type.id = IntTypeOf(wire.size_bytes_max);
      return wire;
    case DataType::kBit:
      wire.type.id = TypeId::kBit;
      wire.size_bytes_max = 1;
      return wire;
    case DataType::kFloat4:
    case DataType::kFloat8:
      wire.type.id = token == DataType::kFloat4 ? TypeId::kReal : TypeId::kFloat;
      wire.size_bytes_max = token == DataType::kFloat4 ? 4 : 8;
      return wire;
    case DataType::kMoney:
    case DataType::kMoney4:
      wire.type.id = token == DataType::kMoney ? TypeId::kMoney : TypeId::kSmallMoney;
      wire.size_bytes_max = token == DataType::kMoney ? 8 : 4;
      return wire;
    case DataType::kDateTime:
    case DataType::kDateTime4:
      wire.type.id =
          token == DataType::kDateTime ? TypeId::kDateTime : TypeId::kSmallDateTime;
      wire.size_bytes_max = token == DataType::kDateTime ? 8 : 4;
      return wire;
    case DataType::kDate:
      wire.type.id = TypeId::kDate;
      wire.size_bytes_max = 3;
      return wire;
    default:
      return std::nullopt;
  }
}

// The types whose size is one byte of TYPE_INFO.
std::optional<WireType> ByteSizedType(DataType token, ByteReader& reader) {
  WireType wire;
  wire.token = token;
  const std::uint32_t size = reader.U8();
  wire.size_bytes_max = size;
  bool known_size = IsPowerOfTwoUpTo8(size, 4);
  switch (token) {
    case DataType::kIntN:
      wire.type.id = IntTypeOf(size);
      known_size = IsPowerOfTwoUpTo8(size, 1);
      break;
    case DataType::kBitN:
      wire.type.id = TypeId::kBit;
      known_size = size == 1;
      break;
    case DataType::kFloatN:
      wire.type.id = size == 4 ? TypeId::kReal : TypeId::kFloat;
      break;
    case DataType::kMoneyN:
      wire.type.id = size == 4 ? TypeId::kSmallMoney : TypeId::kMoney;
      break;
    case DataType::kDateTimeN:
      wire.type.id = size == 4 ? TypeId::kSmallDateTime : TypeId::kDateTime;
      break;
    case DataType::kGuid:
      wire.type.id = TypeId::kUniqueIdentifier;
      known_size = size == 16;
      break;
    case DataType::kDecimalN:
    case DataType::kNumericN:
      wire.type.id = TypeId::kDecimal;
      wire.type.precision = reader.U8();
      wire.type.scale = reader.U8();
      // FreeTDS names no more bytes than the precision needs: 3 for numeric(4,2).
      known_size = size >= 2 && size <= 17 && wire.type.precision >= 1 &&
                   wire.type.precision <= 38 && wire.type.scale <= wire.type.precision;
      break;
    case DataType::kTime:
    case DataType::kDateTime2:
    case DataType::kDateTimeOffset:
      wire.type.id = token == DataType::kTime        ? TypeId::kTime
                     : token == DataType::kDateTime2 ? TypeId::kDateTime2
                                                     : TypeId::kDateTimeOffset;
      wire.type.scale = static_cast<std::uint8_t>(size);
      known_size = size <= 7;
      break;
    default:
      return std::nullopt;
  }
  if (!known_size) reader.Fail();
  return wire;
}

// The types whose size is two or four bytes of TYPE_INFO.
std::optional<WireType> LongType(DataType token, ByteReader& reader,
                                 TdsVersion version) {
  WireType wire;
  wire.token = token;
  const bool unicode = token == DataType::kNVarChar || token == DataType::kNChar ||
                       token == DataType::kNText;
  bool collated = true;
  switch (token) {
    case DataType::kBigVarBinary:
    case DataType::kBigBinary:
      wire.type.id =
          token == DataType::kBigVarBinary ? TypeId::kVarBinary : TypeId::kBinary;
      collated = false;
      break;
    case DataType::kBigVarChar:
    case DataType::kBigChar:
      wire.type.id = token == DataType::kBigVarChar ? TypeId::kVarChar : TypeId::kChar;
      break;
    case DataType::kNVarChar:
    case DataType::kNChar:
      wire.type.id = token == DataType::kNVarChar ? TypeId::kNVarChar : TypeId::kNChar;
      break;
    case DataType::kText:
    case DataType::kNText:
    case DataType::kImage:
      wire.type.id = token == DataType::kText    ? TypeId::kText
                     : token == DataType::kNText ? TypeId::kNText
                                                 : TypeId::kImage;
      collated = token != DataType::kImage;
      break;
    default:
      return std::nullopt;
  }
  const bool large = token == DataType::kText || token == DataType::kNText ||
                     token == DataType::kImage;
  wire.size_bytes_max = large ? reader.U32() : reader.U16();
  wire.is_max = !large && wire.size_bytes_max == kMaxMarker;
  if (!large && !wire.is_max && wire.size_bytes_max > 8000) reader.Fail();
  if (collated) wire.code_page = CodePageOf(ReadCollation(reader, version));
  const std::uint32_t units = wire.size_bytes_max / (unicode ? 2 : 1);
  wire.type.length = wire.is_max || large ? kMax : static_cast<std::int32_t>(units);
  return wire;
}

DateTimeValue ReadTime(ByteReader& reader, std::size_t size, std::uint8_t scale) {
  std::int64_t ticks = static_cast<std::int64_t>(reader.Low(size));
  for (std::uint8_t i = scale; i < 7; ++i) ticks *= 10;
  DateTimeValue value;
  if (ticks < 0 || ticks >= kTicksPerDay) reader.Fail();
  value.ticks = ticks;
  return value;
}

// Dates and times of the 2008 types; `size` is that of the whole value.
Value ReadModernDate(ByteReader& reader, const SqlType& type, std::size_t size) {
  const std::size_t time_size = type.id == TypeId::kDate ? 0
                                : type.scale <= 2        ? 3
                                : type.scale <= 4        ? 4
                                                         : 5;
  const std::size_t date_size = type.id == TypeId::kTime ? 0 : 3;
  const std::size_t offset_size = type.id == TypeId::kDateTimeOffset ? 2 : 0;
  if (size != time_size + date_size + offset_size) {
    reader.Fail();
    return {};
  }
  DateTimeValue held;
  if (time_size > 0) held = ReadTime(reader, time_size, type.scale);
  if (date_size > 0) held.days = static_cast<std::int32_t>(reader.Low(3));
  if (held.days > kDateDaysMax) reader.Fail();
  if (offset_size > 0) {
    held.offset_minutes = static_cast<std::int16_t>(reader.U16());
    if (held.offset_minutes < -840 || held.offset_minutes > 840) reader.Fail();
    held.ticks += held.offset_minutes * kTicksPerMinute;  // The wire carries UTC.
    if (held.ticks < 0) {
      held.ticks += kTicksPerDay;
      --held.days;
    } else if (held.ticks >= kTicksPerDay) {
      held.ticks -= kTicksPerDay;
      ++held.days;
    }
  }
  return {held, {}};
}

Value ReadClassicDate(ByteReader& reader, std::size_t size) {
  DateTimeValue held;
  if (size == 4) {
    held.days = kDaysTo1900 + reader.U16();
    held.ticks = reader.U16() * kTicksPerMinute;
  } else {
    const std::int32_t days = reader.I32();
    const std::int64_t parts = reader.U32();  // Of 1/300 s.
    if (days < -53'690 || days > kDateDaysMax - kDaysTo1900) reader.Fail();
    if (!reader.ok()) return {};
    held.days = kDaysTo1900 + days;
    held.ticks = (parts * 200'000 + 3) / 6;
  }
  if (held.ticks >= kTicksPerDay) reader.Fail();
  return {held, {}};
}

Value ReadNumber(ByteReader& reader, TypeId id, std::size_t size) {
  switch (id) {
    case TypeId::kBit:
      return {std::int64_t{reader.U8() != 0}, {}};
    case TypeId::kReal: {
      const std::uint32_t bits = reader.U32();
      return {double{std::bit_cast<float>(bits)}, {}};
    }
    case TypeId::kFloat:
      return {std::bit_cast<double>(reader.U64()), {}};
    case TypeId::kMoney: {
      const std::uint64_t high = reader.U32();
      const auto held = static_cast<std::int64_t>(high << 32 | reader.U32());
      return {Decimal{held, 4}, {}};
    }
    case TypeId::kSmallMoney:
      return {Decimal{reader.I32(), 4}, {}};
    case TypeId::kTinyInt:
      return {std::int64_t{reader.U8()}, {}};
    case TypeId::kSmallInt:
      return {std::int64_t{static_cast<std::int16_t>(reader.U16())}, {}};
    case TypeId::kInt:
      return {std::int64_t{reader.I32()}, {}};
    default:
      return {static_cast<std::int64_t>(reader.Low(size)), {}};
  }
}

Value ReadDecimal(ByteReader& reader, std::uint8_t scale, std::size_t size) {
  if (size < 2 || size > 17) {
    reader.Fail();
    return {};
  }
  const bool positive = reader.U8() != 0;
  const std::span<const std::uint8_t> raw = reader.Take(size - 1);
  unsigned __int128 magnitude = 0;
  if (!raw.empty()) std::memcpy(&magnitude, raw.data(), raw.size());
  if ((magnitude >> 127) != 0) {
    reader.Fail();
    return {};
  }
  const auto held = static_cast<__int128>(magnitude);
  return {Decimal{positive ? held : -held, scale}, {}};
}

Value ReadGuid(std::span<const std::uint8_t> raw) {
  static constexpr std::uint8_t kOrder[16] = {3, 2, 1,  0,  5,  4,  7,  6,
                                              8, 9, 10, 11, 12, 13, 14, 15};
  Guid guid;
  for (std::size_t i = 0; i < raw.size() && i < 16; ++i) guid.bytes[i] = raw[kOrder[i]];
  return {guid, {}};
}

Value ReadText(std::span<const std::uint8_t> raw, const WireType& wire,
               ByteReader& reader) {
  switch (wire.type.id) {
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kNText:
    case TypeId::kXml: {
      if (raw.size() % 2 != 0) {
        reader.Fail();
        return {};
      }
      return {ByteReader(raw).Utf16(raw.size() / 2), {}};
    }
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kText:
      return {DecodeText(raw, wire.code_page), {}};
    default:
      return {Bytes(raw.begin(), raw.end()), {}};
  }
}

// Partially length-prefixed: u64 total, then chunks up to one of length 0.
Value ReadChunked(ByteReader& reader, const WireType& wire) {
  const std::uint64_t total = reader.U64();
  if (total == kPlpNull || !reader.ok()) return {};
  std::vector<std::uint8_t> bytes;
  for (;;) {
    const std::uint32_t size = reader.U32();
    if (!reader.ok()) return {};
    if (size == 0) break;
    const std::span<const std::uint8_t> chunk = reader.Take(size);
    bytes.insert(bytes.end(), chunk.begin(), chunk.end());
  }
  if (total != kPlpUnknown && total != bytes.size()) {
    reader.Fail();
    return {};
  }
  return ReadText(bytes, wire, reader);
}

// A value of `size` bytes whose length came before it.
Value ReadSized(ByteReader& reader, const WireType& wire, std::size_t size) {
  switch (wire.type.id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
    case TypeId::kSmallInt:
    case TypeId::kInt:
    case TypeId::kBigInt:
    case TypeId::kReal:
    case TypeId::kFloat:
    case TypeId::kMoney:
    case TypeId::kSmallMoney:
      if (size != wire.size_bytes_max) break;
      return ReadNumber(reader, wire.type.id, size);
    case TypeId::kDecimal:
      return ReadDecimal(reader, wire.type.scale, size);
    case TypeId::kDateTime:
    case TypeId::kSmallDateTime:
      if (size != wire.size_bytes_max) break;
      return ReadClassicDate(reader, size);
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      return ReadModernDate(reader, wire.type, size);
    case TypeId::kUniqueIdentifier:
      if (size != 16) break;
      return ReadGuid(reader.Take(16));
    case TypeId::kNull:
      break;
    default:
      return ReadText(reader.Take(size), wire, reader);
  }
  reader.Fail();
  return {};
}

// sql_variant: u32 total, base type, count of property bytes, properties, value. Fixed
// types name themselves; the others have the properties of their TYPE_INFO, but for the
// length of those with a scale only.
Value ReadVariant(ByteReader& outer) {
  const std::uint32_t total = outer.U32();
  if (total == 0) return {};
  ByteReader reader(outer.Take(total));
  const auto token = static_cast<DataType>(reader.U8());
  ByteReader properties(reader.Take(reader.U8()));
  WireType wire;
  if (const std::optional<WireType> fixed = FixedType(token)) {
    wire = *fixed;
  } else if (token == DataType::kDecimalN || token == DataType::kNumericN) {
    wire.type.id = TypeId::kDecimal;
    wire.type.precision = properties.U8();
    wire.type.scale = properties.U8();
  } else if (token == DataType::kTime || token == DataType::kDateTime2 ||
             token == DataType::kDateTimeOffset) {
    wire = ByteSizedType(token, properties).value_or(WireType{});
  } else if (token == DataType::kGuid) {
    wire.type.id = TypeId::kUniqueIdentifier;
  } else {
    // Collation and length come the other way round than in TYPE_INFO.
    const bool binary =
        token == DataType::kBigVarBinary || token == DataType::kBigBinary;
    const CollationBytes collation =
        binary ? CollationBytes{} : ReadCollation(properties, TdsVersion::k74);
    ByteBuffer type_info;
    type_info.U16(properties.U16());
    if (!binary) type_info.Raw(std::span<const std::uint8_t>(collation));
    const std::string& raw = type_info.bytes();
    ByteReader type_reader(
        {reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()});
    const std::optional<WireType> sized = LongType(token, type_reader, TdsVersion::k74);
    if (!sized || sized->is_max) reader.Fail();
    if (sized) wire = *sized;
  }
  Value value = ReadSized(reader, wire, reader.remaining());
  if (!reader.ok() || !properties.ok() || reader.remaining() != 0) {
    outer.Fail();
    return {};
  }
  value.variant_type = wire.type;
  return value;
}

}  // namespace

std::optional<WireType> ReadTypeInfo(ByteReader& reader, TdsVersion version) {
  const auto token = static_cast<DataType>(reader.U8());
  if (!reader.ok()) return std::nullopt;
  if (const std::optional<WireType> fixed = FixedType(token)) return fixed;
  WireType wire;
  wire.token = token;
  switch (token) {
    case DataType::kVariant:
      wire.type.id = TypeId::kSqlVariant;
      wire.size_bytes_max = reader.U32();
      return wire;
    case DataType::kXml:
      wire.type.id = TypeId::kXml;
      wire.type.length = kMax;
      wire.is_max = true;
      if (reader.U8() != 0) {  // The names of a schema collection.
        reader.Utf16(reader.U8());
        reader.Utf16(reader.U8());
        reader.Utf16(reader.U16());
      }
      return wire;
    case DataType::kBigVarBinary:
    case DataType::kBigBinary:
    case DataType::kBigVarChar:
    case DataType::kBigChar:
    case DataType::kNVarChar:
    case DataType::kNChar:
    case DataType::kText:
    case DataType::kNText:
    case DataType::kImage:
      return LongType(token, reader, version);
    case DataType::kIntN:
    case DataType::kBitN:
    case DataType::kFloatN:
    case DataType::kMoneyN:
    case DataType::kDateTimeN:
    case DataType::kGuid:
    case DataType::kDecimalN:
    case DataType::kNumericN:
    case DataType::kTime:
    case DataType::kDateTime2:
    case DataType::kDateTimeOffset:
      return ByteSizedType(token, reader);
    default:
      return std::nullopt;
  }
}

Value ReadValue(ByteReader& reader, const WireType& wire) {
  if (!reader.ok()) return {};
  if (wire.is_max) return ReadChunked(reader, wire);
  switch (wire.token) {
    case DataType::kNull:
      return {};
    case DataType::kVariant:
      return ReadVariant(reader);
    case DataType::kText:
    case DataType::kNText:
    case DataType::kImage: {
      const std::uint32_t size = reader.U32();
      if (size == 0xFFFFFFFF) return {};
      return ReadText(reader.Take(size), wire, reader);
    }
    case DataType::kBigVarBinary:
    case DataType::kBigBinary:
    case DataType::kBigVarChar:
    case DataType::kBigChar:
    case DataType::kNVarChar:
    case DataType::kNChar: {
      const std::uint16_t size = reader.U16();
      if (size == kMaxMarker) return {};
      if (size > wire.size_bytes_max) reader.Fail();
      return ReadText(reader.Take(size), wire, reader);
    }
    case DataType::kInt1:
    case DataType::kInt2:
    case DataType::kInt4:
    case DataType::kInt8:
    case DataType::kBit:
    case DataType::kFloat4:
    case DataType::kFloat8:
    case DataType::kMoney:
    case DataType::kMoney4:
    case DataType::kDateTime:
    case DataType::kDateTime4:
      return ReadSized(reader, wire, wire.size_bytes_max);
    default: {
      const std::uint8_t size = reader.U8();
      if (size == 0) return {};
      return ReadSized(reader, wire, size);
    }
  }
}

}  // namespace mssql_cdc::sim::wire

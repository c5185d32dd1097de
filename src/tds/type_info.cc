#include "tds/type_info.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "base/limits.h"

namespace mssql_cdc::tds {
namespace {

// What follows the type byte.
enum class Extra : std::uint8_t {
  kNothing,
  kByteSize,           // u8 size
  kDecimal,            // u8 size, u8 precision, u8 scale
  kScale,              // u8 scale
  kShortSize,          // u16 size, 0xFFFF: PLP
  kShortSizeCollated,  // u16 size, 0xFFFF: PLP; collation
  kLongSize,           // u32 size
  kLongSizeCollated,   // u32 size, collation
  kXml,                // u8 schema present, then three names
  kUdt,                // u16 size, four names
  kVector,             // u16 size, u8 dimension type
};

struct TypeRule {
  DataType type;
  std::string_view name;
  Extra extra;
  Framing framing;
  std::uint8_t fixed_size;   // Of kFixed.
  std::uint16_t sizes_mask;  // Of kByteSize: bit n set if size n is allowed.
};

constexpr std::uint16_t Sizes(std::initializer_list<int> sizes) {
  unsigned mask = 0;
  for (const int size : sizes) mask |= 1u << (size == 16 ? 15 : size);
  return static_cast<std::uint16_t>(mask);
}

constexpr std::array kTypeRules = {
    TypeRule{DataType::kImage, "image", Extra::kLongSize, Framing::kTextPointer, 0, 0},
    TypeRule{DataType::kText, "text", Extra::kLongSizeCollated, Framing::kTextPointer,
             0, 0},
    TypeRule{DataType::kGuid, "uniqueidentifier", Extra::kByteSize,
             Framing::kByteLength, 0, Sizes({16})},
    TypeRule{DataType::kIntN, "int", Extra::kByteSize, Framing::kByteLength, 0,
             Sizes({1, 2, 4, 8})},
    TypeRule{DataType::kDate, "date", Extra::kNothing, Framing::kByteLength, 0, 0},
    TypeRule{DataType::kTime, "time", Extra::kScale, Framing::kByteLength, 0, 0},
    TypeRule{DataType::kDateTime2, "datetime2", Extra::kScale, Framing::kByteLength, 0,
             0},
    TypeRule{DataType::kDateTimeOffset, "datetimeoffset", Extra::kScale,
             Framing::kByteLength, 0, 0},
    TypeRule{DataType::kInt1, "tinyint", Extra::kNothing, Framing::kFixed, 1, 0},
    TypeRule{DataType::kBit, "bit", Extra::kNothing, Framing::kFixed, 1, 0},
    TypeRule{DataType::kInt2, "smallint", Extra::kNothing, Framing::kFixed, 2, 0},
    TypeRule{DataType::kInt4, "int", Extra::kNothing, Framing::kFixed, 4, 0},
    TypeRule{DataType::kDateTime4, "smalldatetime", Extra::kNothing, Framing::kFixed, 4,
             0},
    TypeRule{DataType::kFloat4, "real", Extra::kNothing, Framing::kFixed, 4, 0},
    TypeRule{DataType::kMoney, "money", Extra::kNothing, Framing::kFixed, 8, 0},
    TypeRule{DataType::kDateTime, "datetime", Extra::kNothing, Framing::kFixed, 8, 0},
    TypeRule{DataType::kFloat8, "float", Extra::kNothing, Framing::kFixed, 8, 0},
    TypeRule{DataType::kVariant, "sql_variant", Extra::kLongSize, Framing::kLongLength,
             0, 0},
    TypeRule{DataType::kNText, "ntext", Extra::kLongSizeCollated, Framing::kTextPointer,
             0, 0},
    TypeRule{DataType::kBitN, "bit", Extra::kByteSize, Framing::kByteLength, 0,
             Sizes({1})},
    TypeRule{DataType::kDecimalN, "decimal", Extra::kDecimal, Framing::kByteLength, 0,
             0},
    TypeRule{DataType::kNumericN, "numeric", Extra::kDecimal, Framing::kByteLength, 0,
             0},
    TypeRule{DataType::kFloatN, "float", Extra::kByteSize, Framing::kByteLength, 0,
             Sizes({4, 8})},
    TypeRule{DataType::kMoneyN, "money", Extra::kByteSize, Framing::kByteLength, 0,
             Sizes({4, 8})},
    TypeRule{DataType::kDateTimeN, "datetime", Extra::kByteSize, Framing::kByteLength,
             0, Sizes({4, 8})},
    TypeRule{DataType::kMoney4, "smallmoney", Extra::kNothing, Framing::kFixed, 4, 0},
    TypeRule{DataType::kInt8, "bigint", Extra::kNothing, Framing::kFixed, 8, 0},
    TypeRule{DataType::kBigVarBinary, "varbinary", Extra::kShortSize,
             Framing::kShortLength, 0, 0},
    TypeRule{DataType::kBigVarChar, "varchar", Extra::kShortSizeCollated,
             Framing::kShortLength, 0, 0},
    TypeRule{DataType::kBigBinary, "binary", Extra::kShortSize, Framing::kShortLength,
             0, 0},
    TypeRule{DataType::kBigChar, "char", Extra::kShortSizeCollated,
             Framing::kShortLength, 0, 0},
    TypeRule{DataType::kNVarChar, "nvarchar", Extra::kShortSizeCollated,
             Framing::kShortLength, 0, 0},
    TypeRule{DataType::kNChar, "nchar", Extra::kShortSizeCollated,
             Framing::kShortLength, 0, 0},
    TypeRule{DataType::kUdt, "a CLR type", Extra::kUdt, Framing::kPartial, 0, 0},
    TypeRule{DataType::kXml, "xml", Extra::kXml, Framing::kPartial, 0, 0},
    TypeRule{DataType::kJson, "json", Extra::kNothing, Framing::kPartial, 0, 0},
    TypeRule{DataType::kVector, "vector", Extra::kVector, Framing::kShortLength, 0, 0},
};

const TypeRule* RuleOfType(DataType type) {
  for (const TypeRule& rule : kTypeRules) {
    if (rule.type == type) return &rule;
  }
  return nullptr;
}

Error BadType(DataType type, std::string_view what, std::uint64_t value) {
  return Error(ErrorId::kTdsMalformed)
      .With("type", fmt::format("0x{:02X}", static_cast<unsigned>(type)))
      .With(what, std::to_string(value));
}

// The bytes of a time of day with `scale` fraction digits.
std::uint32_t TimeSizeBytes(std::uint8_t scale) {
  return scale <= 2 ? 3 : scale <= 4 ? 4 : 5;
}

Status ReadByteSize(const TypeRule& rule, Reader& in, TypeInfo& info) {
  const auto size = in.Le<std::uint8_t>();
  const int bit = size == 16 ? 15 : size;
  if (in.ok() && (size > 16 || size == 15 || (rule.sizes_mask >> bit & 1) == 0)) {
    return BadType(rule.type, "size_bytes", size);
  }
  info.size_max = size;
  return Unit{};
}

Status ReadDecimal(const TypeRule& rule, Reader& in, TypeInfo& info) {
  const auto size = in.Le<std::uint8_t>();
  info.precision = in.Le<std::uint8_t>();
  info.scale = in.Le<std::uint8_t>();
  if (!in.ok()) return Unit{};
  if (size != 5 && size != 9 && size != 13 && size != 17) {
    return BadType(rule.type, "size_bytes", size);
  }
  if (info.precision < 1 || info.precision > 38) {
    return BadType(rule.type, "precision", info.precision);
  }
  if (info.scale > info.precision) return BadType(rule.type, "scale", info.scale);
  info.size_max = size;
  return Unit{};
}

Status ReadScale(const TypeRule& rule, Reader& in, TypeInfo& info) {
  info.scale = in.Le<std::uint8_t>();
  if (info.scale > 7) return BadType(rule.type, "scale", info.scale);
  info.size_max = TimeSizeBytes(info.scale);
  if (rule.type != DataType::kTime) info.size_max += 3;
  if (rule.type == DataType::kDateTimeOffset) info.size_max += 2;
  return Unit{};
}

void ReadCollation(Reader& in, TypeInfo& info) {
  const auto bytes = in.Bytes(info.collation.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) info.collation[i] = bytes[i];
}

void ReadShortSize(Reader& in, TypeInfo& info) {
  const auto size = in.Le<std::uint16_t>();
  info.size_max = size;
  if (size == 0xFFFF) {
    info.framing = Framing::kPartial;
    info.size_max = static_cast<std::uint32_t>(kTdsValueSizeBytesMax);
  }
}

void SkipXmlNames(Reader& in) {
  const auto has_schema = in.Le<std::uint8_t>();
  if (has_schema == 0) return;
  in.ByteVarChar();   // Database.
  in.ByteVarChar();   // Owning schema.
  in.ShortVarChar();  // Schema collection.
}

void SkipUdtNames(Reader& in) {
  in.Le<std::uint16_t>();  // Maximum size.
  in.ByteVarChar();        // Database.
  in.ByteVarChar();        // Schema.
  in.ByteVarChar();        // Type.
  in.ShortVarChar();       // Assembly.
}

Status ReadExtra(const TypeRule& rule, Reader& in, TypeInfo& info) {
  switch (rule.extra) {
    case Extra::kNothing:
      info.size_max = rule.type == DataType::kDate ? 3 : rule.fixed_size;
      break;
    case Extra::kByteSize:
      return ReadByteSize(rule, in, info);
    case Extra::kDecimal:
      return ReadDecimal(rule, in, info);
    case Extra::kScale:
      return ReadScale(rule, in, info);
    case Extra::kShortSize:
      ReadShortSize(in, info);
      break;
    case Extra::kShortSizeCollated:
      ReadShortSize(in, info);
      ReadCollation(in, info);
      break;
    case Extra::kLongSize:
      in.Le<std::uint32_t>();  // Drivers and servers disagree on it; not needed.
      break;
    case Extra::kLongSizeCollated:
      in.Le<std::uint32_t>();
      ReadCollation(in, info);
      break;
    case Extra::kXml:
      SkipXmlNames(in);
      break;
    case Extra::kUdt:
      SkipUdtNames(in);
      break;
    case Extra::kVector:
      info.size_max = in.Le<std::uint16_t>();
      in.Le<std::uint8_t>();
      break;
  }
  if (info.framing == Framing::kTextPointer || info.framing == Framing::kPartial) {
    info.size_max = static_cast<std::uint32_t>(kTdsValueSizeBytesMax);
  }
  return Unit{};
}

Error ValueTooLong(const TypeInfo& type, std::uint64_t size) {
  return Error(ErrorId::kTdsLimitExceeded)
      .With("type", SqlTypeName(type))
      .With("size_bytes", std::to_string(size))
      .With("size_bytes_max", std::to_string(kTdsTokenSizeBytesMax));
}

Status SkipPartial(const TypeInfo& type, Reader& in) {
  constexpr std::uint64_t kNull = ~std::uint64_t{0};
  if (in.Le<std::uint64_t>() == kNull) return Unit{};
  std::uint64_t total = 0;
  while (in.ok()) {
    const auto chunk = in.Le<std::uint32_t>();
    if (chunk == 0) break;
    total += chunk;
    if (total > kTdsTokenSizeBytesMax) return ValueTooLong(type, total);
    in.Bytes(chunk);
  }
  return Unit{};
}

}  // namespace

Result<TypeInfo> ReadTypeInfo(Reader& in) {
  TypeInfo info;
  info.type = static_cast<DataType>(in.Le<std::uint8_t>());
  if (!in.ok()) return info;
  const TypeRule* rule = RuleOfType(info.type);
  if (rule == nullptr) {
    return Error(ErrorId::kTdsMalformed)
        .With("type", fmt::format("0x{:02X}", static_cast<unsigned>(info.type)));
  }
  info.framing = rule->framing;
  TRY(ReadExtra(*rule, in, info));
  return info;
}

Status SkipValue(const TypeInfo& type, Reader& in) {
  switch (type.framing) {
    case Framing::kFixed:
      in.Bytes(type.size_max);
      return Unit{};
    case Framing::kByteLength: {
      const auto size = in.Le<std::uint8_t>();
      if (size > type.size_max) return BadType(type.type, "value_size_bytes", size);
      in.Bytes(size);
      return Unit{};
    }
    case Framing::kShortLength: {
      const auto size = in.Le<std::uint16_t>();
      if (size == 0xFFFF) return Unit{};
      if (size > type.size_max) return BadType(type.type, "value_size_bytes", size);
      in.Bytes(size);
      return Unit{};
    }
    case Framing::kPartial:
      return SkipPartial(type, in);
    case Framing::kTextPointer: {
      const auto pointer_size = in.Le<std::uint8_t>();
      if (pointer_size == 0) return Unit{};
      in.Bytes(std::size_t{pointer_size} + 8);
      const auto size = in.Le<std::uint32_t>();
      if (size > kTdsTokenSizeBytesMax) return ValueTooLong(type, size);
      in.Bytes(size);
      return Unit{};
    }
    case Framing::kLongLength: {
      const auto size = in.Le<std::uint32_t>();
      if (size > kTdsTokenSizeBytesMax) return ValueTooLong(type, size);
      in.Bytes(size);
      return Unit{};
    }
  }
  return Unit{};
}

std::optional<columns::Type> ColumnTypeOf(const TypeInfo& type) {
  using columns::Kind;
  using columns::Type;
  switch (type.type) {
    case DataType::kBit:
    case DataType::kBitN:
      return Type{Kind::kBool};
    case DataType::kInt1:
    case DataType::kInt2:
      return Type{Kind::kInt16};
    case DataType::kInt4:
      return Type{Kind::kInt32};
    case DataType::kInt8:
      return Type{Kind::kInt64};
    case DataType::kIntN:
      return Type{type.size_max == 8   ? Kind::kInt64
                  : type.size_max == 4 ? Kind::kInt32
                                       : Kind::kInt16};
    case DataType::kFloat4:
      return Type{Kind::kFloat32};
    case DataType::kFloat8:
      return Type{Kind::kFloat64};
    case DataType::kFloatN:
      return Type{type.size_max == 4 ? Kind::kFloat32 : Kind::kFloat64};
    case DataType::kDecimalN:
    case DataType::kNumericN:
      return Type{Kind::kDecimal128, type.precision, type.scale};
    case DataType::kMoney:
      return Type{Kind::kDecimal128, 19, 4};
    case DataType::kMoney4:
      return Type{Kind::kDecimal128, 10, 4};
    case DataType::kMoneyN:
      return Type{Kind::kDecimal128, std::uint8_t(type.size_max == 4 ? 10 : 19), 4};
    case DataType::kDate:
      return Type{Kind::kDate32};
    case DataType::kDateTime4:
    case DataType::kDateTime:
    case DataType::kDateTimeN:
    case DataType::kDateTime2:
      return Type{Kind::kTimestampNtz};
    case DataType::kDateTimeOffset:
      return Type{Kind::kTimestampUtc};
    case DataType::kTime:
    case DataType::kGuid:
    case DataType::kText:
    case DataType::kNText:
    case DataType::kBigVarChar:
    case DataType::kBigChar:
    case DataType::kNVarChar:
    case DataType::kNChar:
    case DataType::kXml:
      return Type{Kind::kUtf8};
    case DataType::kImage:
    case DataType::kBigVarBinary:
    case DataType::kBigBinary:
      return Type{Kind::kBinary};
    case DataType::kNull:
    case DataType::kVariant:
    case DataType::kUdt:
    case DataType::kTvp:
    case DataType::kJson:
    case DataType::kVector:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string SqlTypeName(const TypeInfo& type) {
  const TypeRule* rule = RuleOfType(type.type);
  return rule == nullptr ? "unknown" : std::string(rule->name);
}

}  // namespace mssql_cdc::tds

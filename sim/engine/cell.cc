#include "sim/engine/cell.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include "sim/sql/collation.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kTicksPerDay = 864'000'000'000;
constexpr std::int64_t kTicksPerMinute = 600'000'000;
constexpr std::uint8_t kIntPrecisionMax = 18;

// Positions of a uniqueidentifier's text-order bytes, most significant first, in the
// order SQL Server compares them (S18: neither byte nor text order).
constexpr std::uint8_t kGuidOrder[16] = {10, 11, 12, 13, 14, 15, 8, 9,
                                         7,  6,  5,  4,  3,  2,  1, 0};

void AppendUtf8(const Text& text, std::string& out) {
  out.reserve(text.size() + text.size() / 4);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint32_t c = text[i];
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
      continue;
    }
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < text.size() && text[i + 1] >= 0xDC00 &&
        text[i + 1] < 0xE000) {
      c = 0x10000 + ((c - 0xD800) << 10) + (std::uint32_t{text[++i]} - 0xDC00);
    }
    if (c < 0x800) {
      out.push_back(static_cast<char>(0xC0 | c >> 6));
    } else {
      if (c < 0x10000) {
        out.push_back(static_cast<char>(0xE0 | c >> 12));
      } else {
        out.push_back(static_cast<char>(0xF0 | c >> 18));
        out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
      }
      out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    }
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

// Reads what AppendUtf8 wrote.
void ReadUtf8(std::string_view bytes, Text& out) {
  out.resize(bytes.size());
  std::size_t length = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<std::uint8_t>(bytes[i]);
    if (lead < 0x80) {
      out[length++] = lead;
      ++i;
      continue;
    }
    const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (i + size > bytes.size()) break;
    std::uint32_t c = size == 2   ? lead & 0x1Fu
                      : size == 3 ? lead & 0x0Fu
                                  : lead & 0x07u;
    for (std::size_t k = 1; k < size; ++k) {
      c = c << 6 | (static_cast<std::uint8_t>(bytes[i + k]) & 0x3Fu);
    }
    i += size;
    if (c < 0x10000) {
      out[length++] = static_cast<char16_t>(c);
    } else {
      out[length++] = static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10));
      out[length++] = static_cast<char16_t>(0xDC00 + (c & 0x3FF));
    }
  }
  out.resize(length);
}

std::uint64_t FromBigEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes.substr(0, 8)) {
    value = value << 8 | static_cast<std::uint8_t>(byte);
  }
  return value;
}

std::string WideDecimal(__int128 unscaled) {
  const auto shifted = static_cast<unsigned __int128>(unscaled) ^
                       (static_cast<unsigned __int128>(1) << 127);
  return BigEndian64(static_cast<std::uint64_t>(shifted >> 64)) +
         BigEndian64(static_cast<std::uint64_t>(shifted));
}

__int128 FromWideDecimal(std::string_view bytes) {
  if (bytes.size() != 16) return 0;
  const auto shifted = static_cast<unsigned __int128>(FromBigEndian(bytes.substr(0, 8)))
                           << 64 |
                       FromBigEndian(bytes.substr(8));
  return static_cast<__int128>(shifted ^ (static_cast<unsigned __int128>(1) << 127));
}

std::string OffsetBytes(const DateTimeValue& at) {
  const std::int64_t utc = std::int64_t{at.days} * kTicksPerDay + at.ticks -
                           at.offset_minutes * kTicksPerMinute;
  const auto biased = static_cast<std::uint64_t>(utc) ^ (std::uint64_t{1} << 63);
  const auto zone = static_cast<std::uint16_t>(at.offset_minutes + 0x4000);
  std::string bytes = BigEndian64(biased);
  bytes.push_back(static_cast<char>(zone >> 8));
  bytes.push_back(static_cast<char>(zone & 0xFF));
  return bytes;
}

DateTimeValue FromTicks(std::int64_t ticks) {
  DateTimeValue at;
  std::int64_t days = ticks / kTicksPerDay;
  if (ticks % kTicksPerDay < 0) --days;
  at.days = static_cast<std::int32_t>(days);
  at.ticks = ticks - days * kTicksPerDay;
  return at;
}

DateTimeValue FromOffsetBytes(std::string_view bytes) {
  if (bytes.size() != 10) return {};
  const auto utc =
      static_cast<std::int64_t>(FromBigEndian(bytes) ^ (std::uint64_t{1} << 63));
  const int zone =
      static_cast<std::uint8_t>(bytes[8]) << 8 | static_cast<std::uint8_t>(bytes[9]);
  const auto offset = static_cast<std::int16_t>(zone - 0x4000);
  DateTimeValue at = FromTicks(utc + offset * kTicksPerMinute);
  at.offset_minutes = offset;
  return at;
}

void Put32(std::string& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint32_t Get32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

// A sql_variant: its inner type, then the inner cell.
std::string VariantBytes(const Value& value) {
  const SqlType inner = value.variant_type.value_or(SqlType{});
  std::string out;
  out.push_back(static_cast<char>(inner.id));
  out.push_back(static_cast<char>(inner.precision));
  out.push_back(static_cast<char>(inner.scale));
  Put32(out, static_cast<std::uint32_t>(inner.length));
  Put32(out, static_cast<std::uint32_t>(inner.collation.size()));
  out += inner.collation;
  Cell cell;
  EncodeCell(inner, Value{value.held, {}}, cell);
  AppendCell(out, cell);
  return out;
}

Value FromVariantBytes(std::string_view bytes) {
  if (bytes.size() < 11) return {};
  SqlType inner;
  inner.id = static_cast<TypeId>(bytes[0]);
  inner.precision = static_cast<std::uint8_t>(bytes[1]);
  inner.scale = static_cast<std::uint8_t>(bytes[2]);
  inner.length = static_cast<std::int32_t>(Get32(bytes.substr(3)));
  const std::size_t size =
      std::min<std::size_t>(Get32(bytes.substr(7)), bytes.size() - 11);
  inner.collation = std::string(bytes.substr(11, size));
  std::string_view rest = bytes.substr(11 + size);
  if (rest.empty()) return {};
  Cell cell;
  ReadCell(rest, cell);
  Value value = DecodeCell(inner, cell);
  value.variant_type = inner;
  return value;
}

// What EncodeCell and the two decoders share: the value of a type from the parts of a
// cell.
void FromParts(const SqlType& type, std::int64_t integer, double real,
               std::string_view bytes, Value& value) {
  switch (type.id) {
    case TypeId::kBit:
    case TypeId::kTinyInt:
    case TypeId::kSmallInt:
    case TypeId::kInt:
    case TypeId::kBigInt:
    case TypeId::kNull:
      value.held = integer;
      return;
    case TypeId::kReal:
    case TypeId::kFloat:
      value.held = real;
      return;
    case TypeId::kDecimal:
      value.held =
          Decimal{type.precision <= kIntPrecisionMax ? static_cast<__int128>(integer)
                                                     : FromWideDecimal(bytes),
                  type.scale};
      return;
    case TypeId::kMoney:
    case TypeId::kSmallMoney:
      value.held = Decimal{integer, 4};
      return;
    case TypeId::kDate:
      value.held = DateTimeValue{static_cast<std::int32_t>(integer), 0, 0};
      return;
    case TypeId::kTime:
      value.held = DateTimeValue{0, integer, 0};
      return;
    case TypeId::kDateTime:
    case TypeId::kSmallDateTime:
    case TypeId::kDateTime2:
      value.held = FromTicks(integer);
      return;
    case TypeId::kDateTimeOffset:
      value.held = FromOffsetBytes(bytes);
      return;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kText:
    case TypeId::kNText:
    case TypeId::kXml: {
      Text* text = std::get_if<Text>(&value.held);
      if (text == nullptr) text = &value.held.emplace<Text>();
      ReadUtf8(bytes, *text);
      return;
    }
    case TypeId::kBinary:
    case TypeId::kVarBinary:
    case TypeId::kImage:
    case TypeId::kRowVersion: {
      Bytes* held = std::get_if<Bytes>(&value.held);
      if (held == nullptr) held = &value.held.emplace<Bytes>();
      held->assign(bytes.begin(), bytes.end());
      return;
    }
    case TypeId::kUniqueIdentifier: {
      Guid guid;
      for (std::size_t i = 0; i < 16 && i < bytes.size(); ++i) {
        guid.bytes[kGuidOrder[i]] = static_cast<std::uint8_t>(bytes[i]);
      }
      value.held = guid;
      return;
    }
    case TypeId::kSqlVariant:
      value = FromVariantBytes(bytes);
      return;
  }
}

std::int64_t IntOf(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.held)) return *integer;
  return 0;
}

void SetInt(Cell& cell, std::int64_t integer) {
  cell.kind = Cell::Kind::kInt;
  cell.integer = integer;
}

void SetBlob(Cell& cell, std::string bytes) {
  cell.kind = Cell::Kind::kBlob;
  cell.bytes = std::move(bytes);
}

void EncodeDateTime(const SqlType& type, const DateTimeValue& at, Cell& cell) {
  if (type.id == TypeId::kDate) return SetInt(cell, at.days);
  if (type.id == TypeId::kTime) return SetInt(cell, at.ticks);
  if (type.id == TypeId::kDateTimeOffset) return SetBlob(cell, OffsetBytes(at));
  SetInt(cell, at.days * kTicksPerDay + at.ticks);
}

}  // namespace

std::string BigEndian64(std::uint64_t value) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}

std::string TextSortKey(const Text& value, const std::string& collation,
                        const std::string& database_collation) {
  return SortKey(value,
                 RuleOfCollation(collation.empty() ? database_collation : collation));
}

bool Cell::operator==(const Cell& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case Kind::kNull:
      return true;
    case Kind::kInt:
      return integer == other.integer;
    case Kind::kReal:
      return real == other.real;
    case Kind::kText:
    case Kind::kBlob:
      return bytes == other.bytes;
  }
  return false;
}

bool IsTextType(TypeId id) { return id >= TypeId::kChar && id <= TypeId::kXml; }
bool IsBinaryType(TypeId id) {
  return id >= TypeId::kBinary && id <= TypeId::kRowVersion;
}
bool IsOldLobType(TypeId id) {
  return id == TypeId::kText || id == TypeId::kNText || id == TypeId::kImage;
}
bool IsMaxType(const SqlType& type) {
  return type.id == TypeId::kXml ||
         ((type.id == TypeId::kVarChar || type.id == TypeId::kNVarChar ||
           type.id == TypeId::kVarBinary) &&
          type.length == kMax);
}

void EncodeCell(const SqlType& type, const Value& value, Cell& cell) {
  cell.kind = Cell::Kind::kNull;
  cell.bytes.clear();
  if (value.IsNull()) return;
  if (type.id == TypeId::kSqlVariant) return SetBlob(cell, VariantBytes(value));
  if (const auto* real = std::get_if<double>(&value.held)) {
    cell.kind = Cell::Kind::kReal;
    cell.real = *real;
  } else if (const auto* decimal = std::get_if<Decimal>(&value.held)) {
    if (type.id == TypeId::kDecimal && type.precision > kIntPrecisionMax) {
      return SetBlob(cell, WideDecimal(decimal->unscaled));
    }
    SetInt(cell, static_cast<std::int64_t>(decimal->unscaled));
  } else if (const auto* at = std::get_if<DateTimeValue>(&value.held)) {
    EncodeDateTime(type, *at, cell);
  } else if (const auto* text = std::get_if<Text>(&value.held)) {
    cell.kind = Cell::Kind::kText;
    AppendUtf8(*text, cell.bytes);
  } else if (const auto* bytes = std::get_if<Bytes>(&value.held)) {
    cell.kind = Cell::Kind::kBlob;
    cell.bytes.assign(bytes->begin(), bytes->end());
  } else if (const auto* guid = std::get_if<Guid>(&value.held)) {
    cell.kind = Cell::Kind::kBlob;
    cell.bytes.resize(16);
    for (std::size_t i = 0; i < 16; ++i) {
      cell.bytes[i] = static_cast<char>(guid->bytes[kGuidOrder[i]]);
    }
  } else {
    SetInt(cell, IntOf(value));
  }
}

Value DecodeCell(const SqlType& type, const Cell& cell) {
  Value value;
  if (cell.kind == Cell::Kind::kNull) return value;
  FromParts(type, cell.integer, cell.real, cell.bytes, value);
  return value;
}

void DecodeColumn(const SqlType& type, const Statement& row, int column, Value& value) {
  if (value.variant_type) value.variant_type.reset();
  sqlite3_stmt* raw = row.raw();
  switch (sqlite3_column_type(raw, column)) {
    case SQLITE_INTEGER: {
      const std::int64_t integer = sqlite3_column_int64(raw, column);
      FromParts(type, integer, static_cast<double>(integer), {}, value);
      return;
    }
    case SQLITE_FLOAT:
      FromParts(type, 0, sqlite3_column_double(raw, column), {}, value);
      return;
    case SQLITE_NULL:
      value.held = std::monostate{};
      return;
    default:
      FromParts(type, 0, 0, row.Blob(column), value);
      return;
  }
}

void BindCell(Statement& statement, int index, const Cell& cell) {
  switch (cell.kind) {
    case Cell::Kind::kNull:
      return statement.BindNull(index);
    case Cell::Kind::kInt:
      return statement.BindInt(index, cell.integer);
    case Cell::Kind::kReal:
      sqlite3_bind_double(statement.raw(), index, cell.real);
      return;
    case Cell::Kind::kText:
      return statement.BindText(index, cell.bytes);
    case Cell::Kind::kBlob:
      return statement.BindBlob(index, cell.bytes.data(), cell.bytes.size());
  }
}

Cell ColumnCell(const Statement& row, int column) {
  Cell cell;
  sqlite3_stmt* raw = row.raw();
  switch (sqlite3_column_type(raw, column)) {
    case SQLITE_INTEGER:
      SetInt(cell, sqlite3_column_int64(raw, column));
      break;
    case SQLITE_FLOAT:
      cell.kind = Cell::Kind::kReal;
      cell.real = sqlite3_column_double(raw, column);
      break;
    case SQLITE_NULL:
      break;
    case SQLITE_TEXT:
      cell.kind = Cell::Kind::kText;
      cell.bytes = row.Blob(column);
      break;
    default:
      SetBlob(cell, std::string(row.Blob(column)));
      break;
  }
  return cell;
}

void AppendCell(std::string& image, const Cell& cell) {
  image.push_back(static_cast<char>(cell.kind));
  switch (cell.kind) {
    case Cell::Kind::kNull:
      return;
    case Cell::Kind::kInt:
      image.append(reinterpret_cast<const char*>(&cell.integer), 8);
      return;
    case Cell::Kind::kReal:
      image.append(reinterpret_cast<const char*>(&cell.real), 8);
      return;
    case Cell::Kind::kText:
    case Cell::Kind::kBlob:
      Put32(image, static_cast<std::uint32_t>(cell.bytes.size()));
      image += cell.bytes;
      return;
  }
}

void ReadCell(std::string_view& image, Cell& cell) {
  cell.kind = static_cast<Cell::Kind>(image[0]);
  image.remove_prefix(1);
  std::size_t size = 8;
  switch (cell.kind) {
    case Cell::Kind::kNull:
      return;
    case Cell::Kind::kInt:
      std::memcpy(&cell.integer, image.data(), 8);
      break;
    case Cell::Kind::kReal:
      std::memcpy(&cell.real, image.data(), 8);
      break;
    case Cell::Kind::kText:
    case Cell::Kind::kBlob:
      size = Get32(image);
      image.remove_prefix(4);
      cell.bytes = image.substr(0, size);
      break;
  }
  image.remove_prefix(size);
}

}  // namespace mssql_cdc::sim

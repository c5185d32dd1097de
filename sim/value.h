// SQL Server's types and values as the simulator holds them.
//
// The engine computes with these, the wire codec sends them. They share nothing with
// the client's columns on purpose: a mistake made on one side must show on the other.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mssql_cdc::sim {

enum class TypeId : std::uint8_t {
  kBit,
  kTinyInt,
  kSmallInt,
  kInt,
  kBigInt,
  kReal,
  kFloat,
  kDecimal,  // numeric too
  kMoney,
  kSmallMoney,
  kDate,
  kTime,
  kDateTime,
  kSmallDateTime,
  kDateTime2,
  kDateTimeOffset,
  kChar,
  kVarChar,
  kNChar,
  kNVarChar,
  kText,
  kNText,
  kXml,
  kBinary,
  kVarBinary,
  kImage,
  kRowVersion,
  kUniqueIdentifier,
  kSqlVariant,
  kNull,  // The type of a bare NULL literal; sent as int.
};

// Length of a (max) type.
inline constexpr std::int32_t kMax = -1;

struct SqlType {
  TypeId id = TypeId::kInt;
  // Of character types: characters (kChar, kVarChar: bytes of the code page; kNChar,
  // kNVarChar: UTF-16 units). Of binary types: bytes. kMax for (max).
  std::int32_t length = 0;
  std::uint8_t precision = 0;  // kDecimal: 1 to 38.
  std::uint8_t scale = 0;      // kDecimal; kTime, kDateTime2, kDateTimeOffset: 0 to 7.
  // Of character types: a collation name such as "SQL_Latin1_General_CP1_CI_AS" or
  // "Latin1_General_100_CI_AS_SC_UTF8". Empty: the database's.
  std::string collation;

  bool operator==(const SqlType&) const = default;
};

// Unscaled value and scale; the sign is the number's.
struct Decimal {
  __int128 unscaled = 0;
  std::uint8_t scale = 0;
  bool operator==(const Decimal&) const = default;
};

// Days since 0001-01-01 and ticks of 100 ns since midnight. kDate uses days only, kTime
// ticks only. kDateTimeOffset holds the *local* date and time and its offset.
struct DateTimeValue {
  std::int32_t days = 0;
  std::int64_t ticks = 0;
  std::int16_t offset_minutes = 0;
  auto operator<=>(const DateTimeValue&) const = default;
};

struct Guid {
  // In the order of the text form: 01020304-0506-... has bytes 01 02 03 04 05 06 ...
  std::uint8_t bytes[16] = {};
  bool operator==(const Guid&) const = default;
};

// UTF-16 code units as they are, unpaired surrogates included, for the n-types and xml.
// char/varchar/text also hold UTF-16 here; the codec converts to the column's code
// page.
using Text = std::u16string;
using Bytes = std::vector<std::uint8_t>;

// NULL is std::monostate. kBit..kBigInt are int64; kReal, kFloat double; kDecimal,
// kMoney, kSmallMoney Decimal (money: scale 4); dates DateTimeValue; text Text;
// binaries Bytes.
struct Value {
  std::variant<std::monostate, std::int64_t, double, Decimal, DateTimeValue, Text,
               Bytes, Guid>
      held;
  // Only of a sql_variant that is not NULL: what it is inside.
  std::optional<SqlType> variant_type;

  bool IsNull() const { return held.index() == 0; }
  bool operator==(const Value&) const = default;
};

std::u16string Utf16(std::string_view utf8);  // Invalid bytes become U+FFFD.
std::string Utf8(std::u16string_view utf16);  // Unpaired surrogates become U+FFFD.

}  // namespace mssql_cdc::sim

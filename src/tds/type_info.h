// TYPE_INFO (MS-TDS 2.2.5.6): what the wire says about a column's or value's type.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "columns/schema.h"
#include "tds/collation.h"
#include "tds/reader.h"
#include "tds/spec.h"

namespace mssql_cdc::tds {

// How a value's bytes are delimited on the wire.
enum class Framing : std::uint8_t {
  kFixed,        // size_max bytes, never NULL.
  kByteLength,   // u8 length; 0 is NULL.
  kShortLength,  // u16 length; 0xFFFF is NULL.
  kPartial,      // PLP: u64 total, chunks of u32 length, a chunk of 0 ends.
  kTextPointer,  // u8 pointer length (0 is NULL), pointer, 8 bytes, u32 length.
  kLongLength,   // u32 length; 0 is NULL. Only sql_variant.
};

struct TypeInfo {
  DataType type = DataType::kNull;
  Framing framing = Framing::kFixed;
  std::uint32_t size_max = 0;  // Bytes of a value at most; of kFixed exactly.
  std::uint8_t precision = 0;  // Of the decimals.
  std::uint8_t scale = 0;      // Of the decimals and the times.
  Collation collation{};       // Of char, varchar, text and their national forms.

  bool operator==(const TypeInfo&) const = default;
};

// Reads TYPE_INFO from `in`. When the bytes end inside it, `in` has failed and the
// value means nothing. Errors: TdsMalformed for a type MS-TDS does not have or sizes
// its type cannot have.
Result<TypeInfo> ReadTypeInfo(Reader& in);

// Steps over one value of `type`; used for RETURNVALUE, which has no length of its own.
// When the bytes end inside it, `in` has failed. Errors: TdsMalformed; TdsLimitExceeded
// for a value beyond kTdsTokenSizeBytesMax.
Status SkipValue(const TypeInfo& type, Reader& in);

// What a column of this type is read as; nullopt for the types that are not read
// (sql_variant, CLR types, json, vector).
std::optional<columns::Type> ColumnTypeOf(const TypeInfo& type);

// The type's name in T-SQL, for messages: "sql_variant", "datetime2", ...
std::string SqlTypeName(const TypeInfo& type);

}  // namespace mssql_cdc::tds

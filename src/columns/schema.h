// The types and names of a table's columns, in the closed set the product uses.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mssql_cdc::columns {

enum class Kind : std::uint8_t {
  kBool,          // Arrow "b"
  kInt16,         // "s"
  kInt32,         // "i"
  kInt64,         // "l"
  kFloat32,       // "f"
  kFloat64,       // "g"
  kDecimal128,    // "d:P,S", 1 <= P <= 38
  kDate32,        // "tdD"
  kTimestampNtz,  // "tsu:", microseconds, no zone
  kTimestampUtc,  // "tsu:UTC", microseconds, an instant
  kUtf8,          // "u", 32-bit offsets
  kBinary,        // "z", 32-bit offsets
};

struct Type {
  Kind kind = Kind::kInt32;
  std::uint8_t precision = 0;  // Only of kDecimal128.
  std::uint8_t scale = 0;      // Only of kDecimal128.

  bool operator==(const Type&) const = default;
};

struct Field {
  std::string name;
  Type type;
  bool nullable = true;
  std::string comment = {};  // Empty: none. Becomes Delta's column comment.

  bool operator==(const Field&) const = default;
};

struct Schema {
  std::vector<Field> fields;

  bool operator==(const Schema&) const = default;
};

using SchemaPtr = std::shared_ptr<const Schema>;

// The Arrow format string of `type`.
std::string ArrowFormat(const Type& type);
// As Spark and Delta write it: "decimal(18,4)", "timestamp_ntz", "string", "short", ...
std::string DeltaTypeName(const Type& type);

}  // namespace mssql_cdc::columns

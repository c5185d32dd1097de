#include "base/text.h"
#include "sim/sql/environment.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

struct TypeRow {
  std::string_view name;
  TypeId id;
};

constexpr TypeRow kTypes[] = {
    {"bit", TypeId::kBit},
    {"tinyint", TypeId::kTinyInt},
    {"smallint", TypeId::kSmallInt},
    {"int", TypeId::kInt},
    {"integer", TypeId::kInt},
    {"bigint", TypeId::kBigInt},
    {"real", TypeId::kReal},
    {"float", TypeId::kFloat},
    {"decimal", TypeId::kDecimal},
    {"dec", TypeId::kDecimal},
    {"numeric", TypeId::kDecimal},
    {"money", TypeId::kMoney},
    {"smallmoney", TypeId::kSmallMoney},
    {"date", TypeId::kDate},
    {"time", TypeId::kTime},
    {"datetime", TypeId::kDateTime},
    {"smalldatetime", TypeId::kSmallDateTime},
    {"datetime2", TypeId::kDateTime2},
    {"datetimeoffset", TypeId::kDateTimeOffset},
    {"char", TypeId::kChar},
    {"character", TypeId::kChar},
    {"varchar", TypeId::kVarChar},
    {"varcharacter", TypeId::kVarChar},
    {"nchar", TypeId::kNChar},
    {"ncharacter", TypeId::kNChar},
    {"nvarchar", TypeId::kNVarChar},
    {"text", TypeId::kText},
    {"ntext", TypeId::kNText},
    {"xml", TypeId::kXml},
    {"binary", TypeId::kBinary},
    {"varbinary", TypeId::kVarBinary},
    {"image", TypeId::kImage},
    {"timestamp", TypeId::kRowVersion},
    {"rowversion", TypeId::kRowVersion},
    {"uniqueidentifier", TypeId::kUniqueIdentifier},
    {"sql_variant", TypeId::kSqlVariant},
};

void ResolveLength(const ast::TypeName& name, bool in_cast, SqlType& type) {
  const bool national = IsNationalText(type.id);
  const std::int32_t most = national ? 4000 : 8000;
  type.length = in_cast ? 30 : 1;
  if (name.arguments.empty()) return;
  type.length = name.arguments[0];
  if (type.length == kMax) {
    const bool varies = type.id == TypeId::kVarChar || type.id == TypeId::kNVarChar ||
                        type.id == TypeId::kVarBinary;
    if (!varies) RaiseSql(102, 15, 1, "Incorrect syntax near 'max'.");
    return;
  }
  if (type.length == 0) {
    RaiseSql(1001, 15, 1,
             "Line " + std::to_string(name.line) +
                 ": Length or precision specification 0 is invalid.");
  }
  if (type.length > most) {
    RaiseSql(131, 15, 2,
             "The size (" + std::to_string(type.length) + ") given to the type '" +
                 name.name + "' exceeds the maximum allowed for any data type (" +
                 std::to_string(most) + ").");
  }
}

void ResolvePrecision(const ast::TypeName& name, SqlType& type) {
  if (!name.arguments.empty()) {
    if (name.arguments[0] == 0) {
      RaiseSql(1001, 15, 1,
               "Line " + std::to_string(name.line) +
                   ": Length or precision specification 0 is invalid.");
    }
    if (name.arguments[0] > 38 || name.arguments[0] < 0) {
      RaiseSql(2750, 16, 1,
               "Column or parameter #1: Specified column precision " +
                   std::to_string(name.arguments[0]) +
                   " is greater than the maximum precision of 38.");
    }
    type.precision = static_cast<std::uint8_t>(name.arguments[0]);
  }
  if (name.arguments.size() > 1) {
    if (name.arguments[1] > type.precision || name.arguments[1] < 0) {
      RaiseSql(192, 16, 1, "The scale must be less than or equal to the precision.");
    }
    type.scale = static_cast<std::uint8_t>(name.arguments[1]);
  }
}

}  // namespace

SqlType ResolveType(const ast::TypeName& name, Environment& environment, bool in_cast) {
  const std::string lower = LowerAscii(name.name);
  if (name.schema.empty() || EqualsIgnoringAsciiCase(name.schema, "sys")) {
    if (lower == "sysname") return NVarCharType(128);
    for (const TypeRow& row : kTypes) {
      if (row.name != lower) continue;
      SqlType type = TypeOf(row.id);
      const bool sized = (IsText(row.id) || IsBinary(row.id)) &&
                         !IsLargeObject(row.id) && row.id != TypeId::kRowVersion;
      const bool scaled = row.id == TypeId::kTime || row.id == TypeId::kDateTime2 ||
                          row.id == TypeId::kDateTimeOffset;
      const std::size_t most = sized || scaled || row.id == TypeId::kFloat ? 1
                               : row.id == TypeId::kDecimal                ? 2
                                                                           : 0;
      if (name.arguments.size() > most) {
        RaiseSql(2716, 16, 1,
                 "Column, parameter, or variable #1: Cannot specify a column width on "
                 "data type " +
                     lower + ".");
      }
      if (sized) ResolveLength(name, in_cast, type);
      if (row.id == TypeId::kDecimal) ResolvePrecision(name, type);
      if (scaled && !name.arguments.empty()) {
        if (name.arguments[0] > 7 || name.arguments[0] < 0) {
          RaiseSql(1002, 15, 1,
                   "Line " + std::to_string(name.line) + ": Specified scale " +
                       std::to_string(name.arguments[0]) + " is invalid.");
        }
        type.scale = static_cast<std::uint8_t>(name.arguments[0]);
      }
      if (row.id == TypeId::kFloat && !name.arguments.empty()) {
        if (name.arguments[0] < 1 || name.arguments[0] > 53) {
          RaiseSql(2750, 16, 1,
                   "Column or parameter #1: Specified column precision " +
                       std::to_string(name.arguments[0]) +
                       " is greater than the maximum precision of 53.");
        }
        if (name.arguments[0] <= 24) type = TypeOf(TypeId::kReal);
      }
      return type;
    }
  }
  if (const auto type = environment.FindType(name)) return *type;
  const std::string shown =
      name.schema.empty() ? name.name : name.schema + '.' + name.name;
  RaiseSql(in_cast ? 243 : 2715, 16, in_cast ? 1 : 6,
           in_cast ? "Type " + shown + " is not a defined system type."
                   : "Column, parameter, or variable #1: Cannot find data type " +
                         shown + ".");
}

}  // namespace mssql_cdc::sim

// sp_datatype_info: the types that a driver may offer, as ODBC's SQLGetTypeInfo wants
// them. Columns are those of Microsoft's documentation of sp_datatype_info; rows are
// the system types, ordered by DATA_TYPE.

#include <algorithm>

#include "sim/engine/procedure_arguments.h"
#include "sim/engine/procedures.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int32_t kNone = -1;  // NULL, where no value is negative.

struct TypeInfo {
  const char* name;
  std::int32_t data_type;  // With ODBC 3; the dates' of ODBC 2 are below.
  std::int32_t precision;
  const char* prefix;
  const char* suffix;
  const char* parameters;
  std::int32_t case_sensitive;
  std::int32_t searchable;  // 0 not, 1 by LIKE only, 2 all but LIKE, 3 all.
  std::int32_t is_unsigned;
  std::int32_t money;
  std::int32_t auto_increment;
  std::int32_t scale_min;
  std::int32_t scale_max;
  std::int32_t sql_data_type;
  std::int32_t datetime_sub;
  std::int32_t radix;
};

constexpr const char* kQuote = "'";
constexpr const char* kWide = "N'";
constexpr TypeInfo kTypes[] = {
    {"datetimeoffset", -155, 34, kQuote, kQuote, "scale", 0, 3, kNone, 0, kNone, 0, 7,
     -155, 0, kNone},
    {"time", -154, 16, kQuote, kQuote, "scale", 0, 3, kNone, 0, kNone, 0, 7, -154, 0,
     kNone},
    {"xml", -152, 0, kWide, kQuote, nullptr, 0, 0, kNone, 0, kNone, kNone, kNone, -152,
     kNone, kNone},
    {"sql_variant", -150, 8000, nullptr, nullptr, nullptr, 0, 2, kNone, 0, kNone, 0, 0,
     -150, kNone, 10},
    {"uniqueidentifier", -11, 36, kQuote, kQuote, nullptr, 0, 2, kNone, 0, kNone, kNone,
     kNone, -11, kNone, kNone},
    {"ntext", -10, 1073741823, kWide, kQuote, nullptr, 0, 1, kNone, 0, kNone, kNone,
     kNone, -10, kNone, kNone},
    {"nvarchar", -9, 4000, kWide, kQuote, "max length", 0, 3, kNone, 0, kNone, kNone,
     kNone, -9, kNone, kNone},
    {"sysname", -9, 128, kWide, kQuote, nullptr, 0, 3, kNone, 0, kNone, kNone, kNone,
     -9, kNone, kNone},
    {"nchar", -8, 4000, kWide, kQuote, "length", 0, 3, kNone, 0, kNone, kNone, kNone,
     -8, kNone, kNone},
    {"bit", -7, 1, nullptr, nullptr, nullptr, 0, 2, kNone, 0, kNone, 0, 0, -7, kNone,
     kNone},
    {"tinyint", -6, 3, nullptr, nullptr, nullptr, 0, 2, 1, 0, 0, 0, 0, -6, kNone, 10},
    {"tinyint identity", -6, 3, nullptr, nullptr, nullptr, 0, 2, 1, 0, 1, 0, 0, -6,
     kNone, 10},
    {"bigint", -5, 19, nullptr, nullptr, nullptr, 0, 2, 0, 0, 0, 0, 0, -5, kNone, 10},
    {"bigint identity", -5, 19, nullptr, nullptr, nullptr, 0, 2, 0, 0, 1, 0, 0, -5,
     kNone, 10},
    {"image", -4, 2147483647, "0x", nullptr, nullptr, 0, 0, kNone, 0, kNone, kNone,
     kNone, -4, kNone, kNone},
    {"varbinary", -3, 8000, "0x", nullptr, "max length", 0, 2, kNone, 0, kNone, kNone,
     kNone, -3, kNone, kNone},
    {"binary", -2, 8000, "0x", nullptr, "length", 0, 2, kNone, 0, kNone, kNone, kNone,
     -2, kNone, kNone},
    {"timestamp", -2, 8, "0x", nullptr, nullptr, 0, 2, kNone, 0, kNone, kNone, kNone,
     -2, kNone, kNone},
    {"text", -1, 2147483647, kQuote, kQuote, nullptr, 0, 1, kNone, 0, kNone, kNone,
     kNone, -1, kNone, kNone},
    {"char", 1, 8000, kQuote, kQuote, "length", 0, 3, kNone, 0, kNone, kNone, kNone, 1,
     kNone, kNone},
    {"numeric", 2, 38, nullptr, nullptr, "precision,scale", 0, 2, 0, 0, 0, 0, 38, 2,
     kNone, 10},
    {"numeric() identity", 2, 38, nullptr, nullptr, "precision", 0, 2, 0, 0, 1, 0, 0, 2,
     kNone, 10},
    {"decimal", 3, 38, nullptr, nullptr, "precision,scale", 0, 2, 0, 0, 0, 0, 38, 3,
     kNone, 10},
    {"money", 3, 19, "$", nullptr, nullptr, 0, 2, 0, 1, 0, 4, 4, 3, kNone, 10},
    {"smallmoney", 3, 10, "$", nullptr, nullptr, 0, 2, 0, 1, 0, 4, 4, 3, kNone, 10},
    {"decimal() identity", 3, 38, nullptr, nullptr, "precision", 0, 2, 0, 0, 1, 0, 0, 3,
     kNone, 10},
    {"int", 4, 10, nullptr, nullptr, nullptr, 0, 2, 0, 0, 0, 0, 0, 4, kNone, 10},
    {"int identity", 4, 10, nullptr, nullptr, nullptr, 0, 2, 0, 0, 1, 0, 0, 4, kNone,
     10},
    {"smallint", 5, 5, nullptr, nullptr, nullptr, 0, 2, 0, 0, 0, 0, 0, 5, kNone, 10},
    {"smallint identity", 5, 5, nullptr, nullptr, nullptr, 0, 2, 0, 0, 1, 0, 0, 5,
     kNone, 10},
    {"float", 6, 53, nullptr, nullptr, nullptr, 0, 2, 0, 0, 0, kNone, kNone, 6, kNone,
     2},
    {"real", 7, 24, nullptr, nullptr, nullptr, 0, 2, 0, 0, 0, kNone, kNone, 7, kNone,
     2},
    {"varchar", 12, 8000, kQuote, kQuote, "max length", 0, 3, kNone, 0, kNone, kNone,
     kNone, 12, kNone, kNone},
    {"date", 91, 10, kQuote, kQuote, nullptr, 0, 3, kNone, 0, kNone, kNone, 0, 9, 1,
     kNone},
    {"datetime2", 93, 27, kQuote, kQuote, "scale", 0, 3, kNone, 0, kNone, 0, 7, 9, 3,
     kNone},
    {"datetime", 93, 23, kQuote, kQuote, nullptr, 0, 3, kNone, 0, kNone, 3, 3, 9, 3,
     kNone},
    {"smalldatetime", 93, 16, kQuote, kQuote, nullptr, 0, 3, kNone, 0, kNone, 0, 0, 9,
     3, kNone},
};

Value TextOrNull(const char* text) {
  return text == nullptr ? Value{} : TextValue(text);
}
Value IntUnlessNone(std::int32_t value) {
  return value == kNone ? Value{} : IntValue(value);
}

// ODBC 2 numbered the dates otherwise (sqlext.h).
std::int32_t DataTypeIn(const TypeInfo& type, std::int64_t version) {
  if (version >= 3) return type.data_type;
  return type.data_type == 91 ? 9 : type.data_type == 93 ? 11 : type.data_type;
}

std::vector<ColumnInfo> Columns() {
  const SqlType small = TypeOf(TypeId::kSmallInt);
  const SqlType text = TypeOf(TypeId::kVarChar, 32);
  return {Info("TYPE_NAME", SysName(), false), Info("DATA_TYPE", small, false),
          Info("PRECISION", IntType()),        Info("LITERAL_PREFIX", text),
          Info("LITERAL_SUFFIX", text),        Info("CREATE_PARAMS", text),
          Info("NULLABLE", small, false),      Info("CASE_SENSITIVE", small, false),
          Info("SEARCHABLE", small, false),    Info("UNSIGNED_ATTRIBUTE", small),
          Info("MONEY", small, false),         Info("AUTO_INCREMENT", small),
          Info("LOCAL_TYPE_NAME", SysName()),  Info("MINIMUM_SCALE", small),
          Info("MAXIMUM_SCALE", small),        Info("SQL_DATA_TYPE", small, false),
          Info("SQL_DATETIME_SUB", small),     Info("NUM_PREC_RADIX", IntType()),
          Info("INTERVAL_PRECISION", small),   Info("USERTYPE", small)};
}

Row RowOf(const TypeInfo& type, std::int64_t version) {
  const std::string name = type.name;
  const bool nullable = !name.ends_with("identity") && name != "timestamp";
  return {TextValue(name),
          IntValue(DataTypeIn(type, version)),
          IntValue(type.precision),
          TextOrNull(type.prefix),
          TextOrNull(type.suffix),
          TextOrNull(type.parameters),
          IntValue(nullable ? 1 : 0),
          IntValue(type.case_sensitive),
          IntValue(type.searchable),
          IntUnlessNone(type.is_unsigned),
          IntValue(type.money),
          IntUnlessNone(type.auto_increment),
          TextValue(name),
          IntUnlessNone(type.scale_min),
          IntUnlessNone(type.scale_max),
          IntValue(type.sql_data_type),
          IntUnlessNone(type.datetime_sub),
          IntUnlessNone(type.radix),
          Value{},
          IntValue(0)};
}

}  // namespace

std::int32_t TypeInfoCall(const std::string& procedure,
                          std::vector<ProcedureArgument>& given, ReplySink& sink) {
  const Arguments arguments(procedure, {"@data_type", "@ODBCVer"}, given);
  const std::int64_t wanted = arguments.Int(0).value_or(0);  // 0: all.
  const std::int64_t version = arguments.Int(1).value_or(2);
  std::vector<const TypeInfo*> types;
  for (const TypeInfo& type : kTypes) {
    if (wanted == 0 || DataTypeIn(type, version) == wanted) types.push_back(&type);
  }
  std::stable_sort(types.begin(), types.end(), [version](const auto* a, const auto* b) {
    return DataTypeIn(*a, version) < DataTypeIn(*b, version);
  });
  std::vector<Row> rows;
  for (const TypeInfo* type : types) rows.push_back(RowOf(*type, version));
  SendRows(sink, Columns(), rows);
  return 0;
}

}  // namespace mssql_cdc::sim

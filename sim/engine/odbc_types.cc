#include "sim/engine/odbc_types.h"

#include "sim/engine/type_facts.h"

namespace mssql_cdc::sim {
namespace {

// sql.h and sqlext.h.
constexpr std::int32_t kChar = 1;
constexpr std::int32_t kNumeric = 2;
constexpr std::int32_t kDecimal = 3;
constexpr std::int32_t kInteger = 4;
constexpr std::int32_t kSmallInt = 5;
constexpr std::int32_t kFloat = 6;
constexpr std::int32_t kReal = 7;
constexpr std::int32_t kDateTime = 9;  // The verbose type of all dates.
constexpr std::int32_t kTimestamp2 = 11;
constexpr std::int32_t kVarChar = 12;
constexpr std::int32_t kTypeDate = 91;
constexpr std::int32_t kTypeTimestamp = 93;
constexpr std::int32_t kLongVarChar = -1;
constexpr std::int32_t kBinary = -2;
constexpr std::int32_t kVarBinary = -3;
constexpr std::int32_t kLongVarBinary = -4;
constexpr std::int32_t kBigInt = -5;
constexpr std::int32_t kTinyInt = -6;
constexpr std::int32_t kBit = -7;
constexpr std::int32_t kWChar = -8;
constexpr std::int32_t kWVarChar = -9;
constexpr std::int32_t kWLongVarChar = -10;
constexpr std::int32_t kGuid = -11;
// msodbcsql.h.
constexpr std::int32_t kVariant = -150;
constexpr std::int32_t kXml = -152;
constexpr std::int32_t kTime2 = -154;
constexpr std::int32_t kTimestampOffset = -155;

OdbcType Plain(const ColumnMeta& column, std::int32_t type, std::int32_t precision,
               std::int32_t length) {
  OdbcType made;
  made.type_name = column.type_name + (column.identity ? " identity" : "");
  made.data_type = made.sql_data_type = type;
  made.precision = precision;
  made.length = length;
  return made;
}

OdbcType Exact(const ColumnMeta& column, std::int32_t type, std::int32_t precision,
               std::int32_t length, std::int32_t scale) {
  OdbcType made = Plain(column, type, precision, length);
  made.scale = scale;
  made.radix = 10;
  return made;
}

OdbcType Approximate(const ColumnMeta& column, std::int32_t type,
                     std::int32_t precision, std::int32_t length) {
  OdbcType made = Plain(column, type, precision, length);
  made.radix = 2;
  return made;
}

// `length`: of the ODBC structure or text that holds it.
OdbcType Moment(const ColumnMeta& column, std::int32_t type, std::int32_t precision,
                std::int32_t length, std::int32_t scale, std::int32_t sub) {
  OdbcType made = Plain(column, type, precision, length);
  made.scale = scale;
  made.sql_data_type = type == kTime2 || type == kTimestampOffset ? type : kDateTime;
  made.datetime_sub = sub;
  return made;
}

// `unit`: bytes of one character. What has no limit has size 0
// (SQL_SS_LENGTH_UNLIMITED).
OdbcType Sized(const ColumnMeta& column, std::int32_t type, std::int32_t unit) {
  const std::int32_t size = column.type.length == kMax ? 0 : column.type.length;
  OdbcType made = Plain(column, type, size, size * unit);
  made.octet_length = made.length;
  return made;
}

OdbcType Lob(const ColumnMeta& column, std::int32_t type, std::int32_t precision,
             std::int32_t length) {
  OdbcType made = Plain(column, type, precision, length);
  made.octet_length = length;
  return made;
}

OdbcType DescribedMoment(const ColumnMeta& column, std::int64_t version) {
  const std::int32_t precision = FactsOf(column.type).precision;
  const std::int32_t scale = column.type.scale;
  const std::int32_t timestamp = version >= 3 ? kTypeTimestamp : kTimestamp2;
  switch (column.type.id) {
    case TypeId::kDate:
      return Moment(column, version >= 3 ? kTypeDate : kDateTime, precision, 6, 0, 1);
    case TypeId::kTime:
      return Moment(column, kTime2, precision, 12, scale, 0);
    case TypeId::kDateTimeOffset:
      return Moment(column, kTimestampOffset, precision, 20, scale, 0);
    case TypeId::kDateTime:
      return Moment(column, timestamp, precision, 16, 3, 3);
    default:  // smalldatetime, datetime2.
      return Moment(column, timestamp, precision, 16, scale, 3);
  }
}

OdbcType Described(const ColumnMeta& column, std::int64_t version) {
  const std::int32_t precision = column.type.precision;
  switch (column.type.id) {
    case TypeId::kBit:
      return Plain(column, kBit, 1, 1);
    case TypeId::kTinyInt:
      return Exact(column, kTinyInt, 3, 1, 0);
    case TypeId::kSmallInt:
      return Exact(column, kSmallInt, 5, 2, 0);
    case TypeId::kNull:
    case TypeId::kInt:
      return Exact(column, kInteger, 10, 4, 0);
    case TypeId::kBigInt:
      return Exact(column, kBigInt, 19, 8, 0);
    case TypeId::kReal:
      return Approximate(column, kReal, 24, 4);
    case TypeId::kFloat:
      return Approximate(column, kFloat, 53, 8);
    case TypeId::kDecimal:
      return Exact(column, kDecimal, precision, precision + 2, column.type.scale);
    case TypeId::kMoney:
      return Exact(column, kDecimal, 19, 21, 4);
    case TypeId::kSmallMoney:
      return Exact(column, kDecimal, 10, 12, 4);
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDateTime:
    case TypeId::kSmallDateTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      return DescribedMoment(column, version);
    case TypeId::kChar:
      return Sized(column, kChar, 1);
    case TypeId::kVarChar:
      return Sized(column, kVarChar, 1);
    case TypeId::kNChar:
      return Sized(column, kWChar, 2);
    case TypeId::kNVarChar:
      return Sized(column, kWVarChar, 2);
    case TypeId::kText:
      return Lob(column, kLongVarChar, 2147483647, 2147483647);
    case TypeId::kNText:
      return Lob(column, kWLongVarChar, 1073741823, 2147483646);
    case TypeId::kXml:
      return Lob(column, kXml, 0, 0);
    case TypeId::kBinary:
      return Sized(column, kBinary, 1);
    case TypeId::kVarBinary:
      return Sized(column, kVarBinary, 1);
    case TypeId::kImage:
      return Lob(column, kLongVarBinary, 2147483647, 2147483647);
    case TypeId::kRowVersion:
      return Lob(column, kBinary, 8, 8);
    case TypeId::kUniqueIdentifier:
      return Plain(column, kGuid, 36, 16);
    case TypeId::kSqlVariant:
      break;
  }
  return Plain(column, kVariant, 8000, 8000);
}

// The type's token as TDS sends it, of a column that may be NULL or may not.
std::int32_t TdsType(const SqlType& type, bool nullable) {
  switch (type.id) {
    case TypeId::kBit:
      return 50;
    case TypeId::kTinyInt:
      return nullable ? 38 : 48;
    case TypeId::kSmallInt:
      return nullable ? 38 : 52;
    case TypeId::kNull:
    case TypeId::kInt:
      return nullable ? 38 : 56;
    case TypeId::kBigInt:
      return nullable ? 108 : 63;
    case TypeId::kReal:
      return nullable ? 109 : 59;
    case TypeId::kFloat:
      return nullable ? 109 : 62;
    case TypeId::kDecimal:
      return 106;
    case TypeId::kMoney:
      return nullable ? 110 : 60;
    case TypeId::kSmallMoney:
      return nullable ? 110 : 122;
    case TypeId::kDateTime:
      return nullable ? 111 : 61;
    case TypeId::kSmallDateTime:
      return nullable ? 111 : 58;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
      return type.id == TypeId::kChar || type.id == TypeId::kNChar ? 47 : 39;
    case TypeId::kBinary:
    case TypeId::kRowVersion:
      return 45;
    case TypeId::kVarBinary:
      return 37;
    case TypeId::kText:
    case TypeId::kNText:
      return 35;
    case TypeId::kImage:
      return 34;
    case TypeId::kUniqueIdentifier:
      return 37;
    case TypeId::kSqlVariant:
      return 39;
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
    case TypeId::kXml:
      return 0;  // Newer than the column.
  }
  return 0;
}

}  // namespace

OdbcType OdbcTypeOf(const ColumnMeta& column, std::int64_t version) {
  OdbcType made = Described(column, version);
  if (column.type_name == "numeric") made.data_type = made.sql_data_type = kNumeric;
  made.tds_type = TdsType(column.type, column.nullable);
  return made;
}

}  // namespace mssql_cdc::sim

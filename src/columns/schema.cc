#include "columns/schema.h"

namespace mssql_cdc::columns {

std::string ArrowFormat(const Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return "b";
    case Kind::kInt16:
      return "s";
    case Kind::kInt32:
      return "i";
    case Kind::kInt64:
      return "l";
    case Kind::kFloat32:
      return "f";
    case Kind::kFloat64:
      return "g";
    case Kind::kDecimal128:
      return "d:" + std::to_string(type.precision) + ',' + std::to_string(type.scale);
    case Kind::kDate32:
      return "tdD";
    case Kind::kTimestampNtz:
      return "tsu:";
    case Kind::kTimestampUtc:
      return "tsu:UTC";
    case Kind::kUtf8:
      return "u";
    case Kind::kBinary:
      return "z";
  }
  return "";
}

std::string DeltaTypeName(const Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return "boolean";
    case Kind::kInt16:
      return "short";
    case Kind::kInt32:
      return "integer";
    case Kind::kInt64:
      return "long";
    case Kind::kFloat32:
      return "float";
    case Kind::kFloat64:
      return "double";
    case Kind::kDecimal128:
      return "decimal(" + std::to_string(type.precision) + ',' +
             std::to_string(type.scale) + ')';
    case Kind::kDate32:
      return "date";
    case Kind::kTimestampNtz:
      return "timestamp_ntz";
    case Kind::kTimestampUtc:
      return "timestamp";
    case Kind::kUtf8:
      return "string";
    case Kind::kBinary:
      return "binary";
  }
  return "";
}

}  // namespace mssql_cdc::columns

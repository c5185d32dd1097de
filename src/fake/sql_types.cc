#include "fake/sql_types.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "cdc/type_map.h"

namespace mssql_cdc::fake {

using columns::Kind;

SqlName SqlNameOf(const columns::Type& type) {
  switch (type.kind) {
    case Kind::kBool:
      return {"bit", {}, {}};
    case Kind::kInt16:
      return {"smallint", 5, 0};
    case Kind::kInt32:
      return {"int", 10, 0};
    case Kind::kInt64:
      return {"bigint", 19, 0};
    case Kind::kFloat32:
      return {"real", {}, {}};
    case Kind::kFloat64:
      return {"float", {}, {}};
    case Kind::kDecimal128:
      return {"decimal", type.precision, type.scale};
    case Kind::kDate32:
      return {"date", {}, {}};
    case Kind::kTimestampNtz:
      return {"datetime2", {}, {}};
    case Kind::kTimestampUtc:
      return {"datetimeoffset", {}, {}};
    case Kind::kUtf8:
      return {"nvarchar", {}, {}};
    case Kind::kBinary:
      return {"varbinary", {}, {}};
  }
  return {"", {}, {}};
}

std::optional<columns::Type> TypeOfSql(std::string_view sql) {
  const std::size_t open = std::min(sql.find('('), sql.size());
  cdc::CapturedColumn column;
  column.type_name = std::string(Trim(sql.substr(0, open)));
  if (open < sql.size()) {
    std::string_view inside = sql.substr(open + 1);
    inside = inside.substr(0, inside.find(')'));
    const std::size_t comma = std::min(inside.find(','), inside.size());
    column.precision = ParseInt64(Trim(inside.substr(0, comma)));
    if (comma < inside.size()) {
      column.scale = ParseInt64(Trim(inside.substr(comma + 1)));
    }
  }
  return cdc::MapType(column);
}

}  // namespace mssql_cdc::fake

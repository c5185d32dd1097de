// What ODBC's catalogue functions say of a type: the columns that sp_columns_100
// shows, by the version of ODBC that the caller speaks.
//
// From Microsoft's documentation of sp_columns and of SQL Server's types in ODBC.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/engine/catalog.h"

namespace mssql_cdc::sim {

struct OdbcType {
  std::string type_name;
  std::int32_t data_type = 0;  // DATA_TYPE: SQL_... of sql.h, sqlext.h and msodbcsql.h.
  std::int32_t precision = 0;
  std::int32_t length = 0;  // Bytes; 0 for (max), which has no limit.
  std::optional<std::int32_t> scale;
  std::optional<std::int32_t> radix;
  std::int32_t sql_data_type = 0;
  std::optional<std::int32_t> datetime_sub;
  std::optional<std::int32_t> octet_length;  // Of character and binary types.
  std::int32_t tds_type = 0;                 // SS_DATA_TYPE.
};

// `version`: ODBCVer, 2 or 3.
OdbcType OdbcTypeOf(const ColumnMeta& column, std::int64_t version);

}  // namespace mssql_cdc::sim

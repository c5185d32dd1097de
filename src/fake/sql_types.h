// SQL Server's names of the types that the fake keeps in Spark's words.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "columns/schema.h"

namespace mssql_cdc::fake {

struct SqlName {
  const char* type;
  std::optional<std::int32_t> precision;
  std::optional<std::int32_t> scale;
};

// The type of SQL Server that is read as `type`.
SqlName SqlNameOf(const columns::Type& type);

// The type that "decimal(18, 2)", "datetime2(6)", "nvarchar(max)" is read as; nullopt
// outside the type map.
std::optional<columns::Type> TypeOfSql(std::string_view sql);

}  // namespace mssql_cdc::fake

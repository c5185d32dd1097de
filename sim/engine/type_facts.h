// How the catalogue views describe a type.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/value.h"

namespace mssql_cdc::sim {

struct TypeFacts {
  std::int32_t system_type_id = 56;
  std::int32_t user_type_id = 56;
  std::int32_t max_length = 0;  // Bytes; -1 for (max).
  std::int32_t precision = 0;
  std::int32_t scale = 0;
  // As INFORMATION_SCHEMA.COLUMNS shows them.
  std::optional<std::int32_t> character_maximum_length;
  std::optional<std::int32_t> numeric_precision;
  std::optional<std::int32_t> numeric_precision_radix;
  std::optional<std::int32_t> numeric_scale;
  std::optional<std::int32_t> datetime_precision;
};

TypeFacts FactsOf(const SqlType& type);

}  // namespace mssql_cdc::sim

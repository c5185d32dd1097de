// Counts rows of a source table by a key with a distance: a whole number, or a DATE,
// which counts as days since 1970-01-01.

#pragma once

#include <cstdint>
#include <string>

#include "sqlserver/session.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::sqlserver {

struct OrdinalQuestion {
  std::string schema;
  std::string table;
  std::string key;
  bool is_date = false;
  SourceSettings settings;
};

// One row: min_key, max_key bigint, NULL for a table without a key.
Request AskOrdinalExtent(const OrdinalQuestion& question);

// Rows: slice bigint, row_count bigint, key_sum decimal(38,0): how many keys there are
// in each slice, a slice being the key divided by `width` and rounded down. Rows whose
// key is NULL are left out. Requires 1 <= width.
Request CountOrdinals(const OrdinalQuestion& question, std::int64_t width);

}  // namespace mssql_cdc::sqlserver

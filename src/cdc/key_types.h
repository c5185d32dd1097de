// What the columns that a snapshot is cut on are, and how their values travel: as what
// a bound is bound, and in which form it is written down.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "columns/batch.h"

namespace mssql_cdc::cdc {

// How a key's values are written in plans.
enum class KeyForm : std::uint8_t {
  kInteger,
  kBool,
  kReal,
  kText,
  kDecimal,
  kBinary,
  kDate,
  kMillis,   // datetime, smalldatetime: ISO 8601 with milliseconds.
  kMicros,   // datetime2: with microseconds.
  kInstant,  // datetimeoffset: with microseconds and +00:00.
};

struct KeyType {
  std::string column;
  // The T-SQL type a bound is bound as; empty for kInteger, whose bounds are literals.
  std::string sql_type;
  std::string collation;  // Of char and varchar.
  KeyForm form = KeyForm::kInteger;
  bool is_sortable = true;  // SQL Server orders by it (not bit, text, ntext, ...).

  bool operator==(const KeyType&) const = default;
};

// A row of sys.columns of the source table.
struct ColumnDetail {
  std::string name;
  std::int64_t max_length = 0;  // Bytes; -1: max.
  std::int64_t precision = 0;
  std::int64_t scale = 0;
  std::string collation;
};
// Errors: InternalError if the answer lacks what is needed.
Result<std::vector<ColumnDetail>> ReadColumnDetails(const columns::RecordBatch& answer);

// How a bound of the column is bound; nullopt if none can be: a type without a form in
// text that the server reads back to the same value (time, xml, sql_variant, ...), or
// text in an unknown code page.
std::optional<KeyType> BindKey(const CapturedColumn& column,
                               const ColumnDetail& detail);

// The key of `names`, or which of them cannot be part of one. datetime2(7) and
// datetimeoffset(7) are read to the microsecond, so that they can only come last: cut
// off before other columns, they would change the bounds' order.
struct KeyTypes {
  std::vector<KeyType> types;           // One for each name, if none is unbindable.
  std::vector<std::string> unbindable;  // As the user spelled them.
  bool operator==(const KeyTypes&) const = default;
};
KeyTypes BindKeys(const std::vector<std::string>& names,
                  const std::vector<CapturedColumn>& captured,
                  const std::vector<ColumnDetail>& details);

}  // namespace mssql_cdc::cdc

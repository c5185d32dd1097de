// Single values out of small batches: catalogue answers, positions, lag. Not for rows
// of user tables, which never pass through here.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cdc/lsn.h"
#include "columns/batch.h"

namespace mssql_cdc::cdc {

// The position of the column called `name` (ignoring case). Errors: InternalError (fact
// column), since the product wrote the statement that answers.
Result<std::size_t> ColumnIndex(const columns::Schema& schema, std::string_view name);

// NULL is nullopt. Errors: InternalError if the column is of another kind.
Result<std::optional<std::string_view>> TextCell(const columns::Column& column,
                                                 std::int64_t row);
// kBool, kInt16, kInt32, kInt64, both timestamps (microseconds).
Result<std::optional<std::int64_t>> IntegerCell(const columns::Column& column,
                                                std::int64_t row);
// A binary(10). NULL and the zero LSN are both nullopt: CDC's functions say "none" with
// either.
Result<std::optional<Lsn>> LsnCell(const columns::Column& column, std::int64_t row);

// The same by name; an answer that lacks the row or column is InternalError.
class RowView {
 public:
  // Borrows `batch`.
  RowView(const columns::RecordBatch& batch, std::int64_t row)
      : batch_(batch), row_(row) {}
  Result<std::optional<std::string>> Text(std::string_view column) const;
  Result<std::optional<std::int64_t>> Integer(std::string_view column) const;
  Result<std::optional<Lsn>> LsnOf(std::string_view column) const;

 private:
  const columns::RecordBatch& batch_;
  std::int64_t row_;
};

}  // namespace mssql_cdc::cdc

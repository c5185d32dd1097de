// The key of a row as bytes that are equal exactly when the keys are.
//
// NULL equals NULL. Floating keys compare as numbers do, but NaN equals itself; texts
// by bytes, as the lake's readers compare them, not by the server's collation.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"

namespace mssql_cdc::pipeline {

class RowKeys {
 public:
  // Borrows `batch`. Errors: SilverKeyInvalid for a name the batch lacks (any case).
  static Result<RowKeys> Of(const columns::RecordBatch& batch,
                            const std::vector<std::string>& names);

  // Valid until the next call.
  std::string_view At(std::int64_t row);

  // The only column's value where it is an integer, DATE or TIMESTAMP_NTZ; NULL is
  // nullopt. Requires such a column.
  std::optional<std::int64_t> Number(std::int64_t row) const;

 private:
  explicit RowKeys(std::vector<const columns::Column*> columns)
      : columns_(std::move(columns)) {}

  std::vector<const columns::Column*> columns_;
  std::string bytes_;
};

// A well mixed number of the bytes.
std::uint64_t HashOf(std::string_view bytes);

}  // namespace mssql_cdc::pipeline

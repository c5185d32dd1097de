// Columns that are made here, not read: constants, NULLs, LSNs as text, commit times.
// Each fills its Arrow buffers in one pass.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cdc/commit_clock.h"
#include "cdc/lsn.h"
#include "columns/batch.h"

namespace mssql_cdc::reader {

using ColumnPtr = std::shared_ptr<const columns::Column>;

ColumnPtr TextConstant(std::string_view text, std::int64_t row_count);
ColumnPtr Int32Constant(std::int32_t value, std::int64_t row_count);
ColumnPtr TimestampConstant(std::int64_t utc_us, std::int64_t row_count);
ColumnPtr NullColumn(const columns::Type& type, std::int64_t row_count);

// Keeps the last constant column and hands it out again while batches have the same
// number of rows, as all full ones do.
template <typename Make>
class Reused {
 public:
  explicit Reused(Make make) : make_(std::move(make)) {}
  const ColumnPtr& For(std::int64_t row_count) {
    if (!column_ || column_->row_count != row_count) column_ = make_(row_count);
    return column_;
  }

 private:
  Make make_;
  ColumnPtr column_;
};

struct LsnColumn {
  ColumnPtr texts;
  bool ascending = true;  // No value is below the one before.
};
// A column of binary(10) as canonical LSN text. Errors: InternalError if a value is
// NULL or not ten bytes long, since CDC's own columns never are.
Result<LsnColumn> LsnTexts(const columns::Column& binary);

// The LSN in `row`. Requires that LsnTexts accepted the column.
cdc::Lsn LsnAt(const columns::Column& binary, std::int64_t row);

struct CommitTimes {
  ColumnPtr column;
  std::optional<std::int64_t> min_us;
  std::optional<std::int64_t> max_us;
};
// Commit times as the server sent them, in UTC. Errors: InternalError if the column
// holds no timestamps.
Result<CommitTimes> CommitTimesUtc(const columns::Column& server_times,
                                   const cdc::CommitClock& clock);

// The T-SQL type of a column that the server is to convert to `type`.
std::string SqlTypeName(const columns::Type& type);

}  // namespace mssql_cdc::reader

// Small questions: a request whose answers are read whole.

#pragma once

#include <optional>
#include <vector>

#include "base/error.h"
#include "cdc/cells.h"
#include "cdc/commit_clock.h"
#include "cdc/offset.h"
#include "columns/batch.h"
#include "sqlserver/session.h"

namespace mssql_cdc::runtime {

struct ResultSet {
  columns::SchemaPtr schema;
  std::vector<columns::RecordBatch> batches;  // None of them empty.

  std::int64_t row_count() const;
  // The first row, or nullopt if there is none.
  std::optional<cdc::RowView> FirstRow() const;
};

// The result sets of `request`, at least `set_count` of them. Errors: the session's;
// TdsMalformed for fewer sets, TdsLimitExceeded for an answer that is not small.
Result<std::vector<ResultSet>> Ask(sqlserver::Session& session,
                                   const sqlserver::Request& request,
                                   std::size_t set_count);

// A row of lsn and commit_time; nullopt without one.
Result<std::optional<cdc::Offset>> ReadOffset(const ResultSet& set,
                                              const cdc::CommitClock& clock);

}  // namespace mssql_cdc::runtime

// Queries and data modification: one statement each, from its tree to the sink.

#pragma once

#include <cstdint>
#include <functional>

#include "sim/sql/binder.h"

namespace mssql_cdc::sim {

// What running a statement needs. With `bind_only`, names and types are checked and
// nothing is done (SET FMTONLY sends the columns as well).
struct Run {
  Environment& environment;
  SessionState& session;
  VariableFrame& variables;
  ReplySink* sink = nullptr;
  bool bind_only = false;
  // Runs INSERT ... EXEC's procedure into another sink.
  std::function<void(const ast::Execute&, ReplySink&)> execute;
};

// Each gives the number of rows. A sink that answers false raises StopRequested.
std::int64_t RunSelect(const ast::Select& select, const Run& run);
std::int64_t RunInsert(const ast::Insert& insert, const Run& run);
std::int64_t RunUpdate(const ast::Update& update, const Run& run);
std::int64_t RunDelete(const ast::Delete& remove, const Run& run);
std::int64_t RunMerge(const ast::Merge& merge, const Run& run);

std::vector<ResultColumn> ResultColumns(const std::vector<OutputColumn>& columns,
                                        Environment& environment);

}  // namespace mssql_cdc::sim

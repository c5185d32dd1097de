// One range of a batch as a source that the lake reads, possibly beside others: with
// the session it is given, or one from the pool from its first row to its last.

#pragma once

#include <memory>
#include <optional>

#include "reader/change_reader.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

// What a range's reader leaves when the lake has let go of it.
struct RangeRead {
  reader::ChangePlan plan;
  reader::ChangeCounts counts;
  std::optional<reader::AfterRead> after;  // Known once all of it was read.
};

// Borrows `context`, `result` (which has its plan) and, if it is given, `session`.
std::unique_ptr<columns::BatchReader> ReadRange(RunContext& context, RangeRead& result,
                                                sqlserver::Session* session);

}  // namespace mssql_cdc::runtime

// Decides what is left to do for a micro-batch, from what the tables say about it.

#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"

namespace mssql_cdc::pipeline {

// Last txn versions of the sink, read from the tables themselves.
struct SinkFacts {
  std::int64_t batch_id = 0;
  std::optional<std::int64_t> bronze_txn;
  std::optional<std::int64_t> facts_txn;
  bool has_facts_table = false;
};

enum class SinkWork : std::uint8_t {
  kEverything,  // Read, append, record.
  kFacts,       // The rows are in the target; their facts row is missing.
  kNothing,     // Both are there: only the checkpoint's commit is missing.
};

// A batch is recorded in the target only if it had rows, and in the facts always, after
// the target. Errors: CheckpointRewound when the tables know a later batch: the
// checkpoint was deleted or put back under the same app_id (facts batch_id, recorded).
Result<SinkWork> PlanSink(const SinkFacts& facts);

}  // namespace mssql_cdc::pipeline

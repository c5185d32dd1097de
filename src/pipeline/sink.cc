#include "pipeline/sink.h"

#include <algorithm>
#include <string>

namespace mssql_cdc::pipeline {

Result<SinkWork> PlanSink(const SinkFacts& facts) {
  const std::int64_t bronze = facts.bronze_txn.value_or(-1);
  const std::int64_t recorded =
      std::max(bronze, facts.has_facts_table ? facts.facts_txn.value_or(-1) : -1);
  if (facts.batch_id < recorded) {
    return Error(ErrorId::kCheckpointRewound)
        .With("batch_id", std::to_string(facts.batch_id))
        .With("recorded", std::to_string(recorded));
  }
  if (recorded < facts.batch_id) return SinkWork::kEverything;
  if (!facts.has_facts_table) return SinkWork::kNothing;
  return facts.facts_txn == facts.batch_id ? SinkWork::kNothing : SinkWork::kFacts;
}

}  // namespace mssql_cdc::pipeline

// Carries out one micro-batch: change table to bronze, then its facts row.

#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "pipeline/facts.h"
#include "pipeline/sink.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

struct BatchTask {
  std::int64_t batch_id = 0;
  cdc::Offset end;
  std::optional<cdc::LsnWindow> window;  // Absent: nothing to read.
  std::optional<double> rtt_ms;
};

struct BatchOutcome {
  bool replayed = false;
  pipeline::FactsRow facts;
  std::int64_t size_bytes = 0;
  std::int64_t target_version = 0;
};

class BatchWriter {
 public:
  // Borrows `context`.
  explicit BatchWriter(RunContext& context) : context_(context) {}

  // Writes the batch over `session`, which stays clean unless an error is returned. The
  // first batch, and the first after an error, look up in the tables what is already
  // done. Errors: CheckpointRewound; the reader's; the lake's.
  Result<BatchOutcome> Write(const BatchTask& task, sqlserver::Session& session);

  // Whether a batch that is about to begin may have that id. With a facts table Write
  // finds out, by where the recorded batch ended; without one only the target's txn
  // tells, and only before the checkpoint calls the batch begun. Errors:
  // CheckpointRewound.
  Status CheckIsNew(std::int64_t batch_id);

  // Forget what the tables are known to hold.
  void Forget() { tables_known_ = false; }
  // The session changed: its wait counter starts anew.
  Status Watch(sqlserver::Session& session);

 private:
  Result<pipeline::SinkWork> PlanWork(std::int64_t batch_id, const cdc::Offset& end);
  Status CheckRecordedEnd(std::int64_t batch_id, const cdc::Offset& end);
  Result<BatchOutcome> ReadAndAppend(const BatchTask& task, sqlserver::Session& session,
                                     std::int64_t started_at_us);
  Result<pipeline::BatchCounts> CountsOfCommit(const BatchTask& task,
                                               sqlserver::Session& session);
  Status WriteFacts(const BatchTask& task, const pipeline::FactsRow& row);

  RunContext& context_;
  bool tables_known_ = false;
  std::optional<std::int64_t> network_wait_ms_;  // Of the session, before the batch.
};

}  // namespace mssql_cdc::runtime

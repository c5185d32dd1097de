// Carries out one micro-batch: change table to bronze, then its facts row.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "pipeline/facts.h"
#include "pipeline/sink.h"
#include "pipeline/source_events.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/metrics_files.h"
#include "runtime/range_reader.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

struct BatchTask {
  std::int64_t batch_id = 0;
  cdc::Offset end;
  std::optional<cdc::LsnWindow> window;  // Absent: nothing to read.
  std::optional<std::int64_t> after_commit_us;
  // What is read of the window: ascending, none if all of it is lost and skipped.
  std::vector<cdc::ReadPiece> ranges;
  std::optional<double> rtt_ms;
  // What the facts say of it besides counts. Its file is written before the batch.
  pipeline::BatchNote note;
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
  BatchWriter(RunContext& context, CheckpointNotes notes);

  // What is left to do for a batch. The first batch, and the first after an error, look
  // up in the tables what is already done. Errors: CheckpointRewound, OptionsClash; the
  // lake's.
  Result<pipeline::SinkWork> Look(std::int64_t batch_id, const cdc::Offset& end);

  // Does it, over `session`, which stays clean unless an error is returned; a batch of
  // several ranges takes more sessions from the pool. What reading showed to be lost
  // goes into the task's note. Errors: the reader's; the lake's.
  Result<BatchOutcome> Write(pipeline::SinkWork work, BatchTask& task,
                             sqlserver::Session& session);

  // Whether a batch that is about to begin may have that id. With a facts table Write
  // finds out, by where the recorded batch ended; without one only the target's txn
  // tells, and only before the checkpoint calls the batch begun. Errors:
  // CheckpointRewound.
  Status CheckIsNew(std::int64_t batch_id);

  // How one of the task's ranges is read.
  reader::ChangePlan PlanRange(const BatchTask& task,
                               const cdc::ReadPiece& range) const;

  // Goes on in another generation, which the context knows already.
  void MoveTo(CheckpointNotes notes);
  // Forget what the tables are known to hold.
  void Forget() { tables_known_ = false; }
  // The session changed: its wait counter starts anew.
  Status Watch(sqlserver::Session& session);
  // Or stands where it stood, for those that share their sessions.
  void Watch(std::int64_t network_wait_ms) { network_wait_ms_ = network_wait_ms; }
  const std::optional<std::int64_t>& network_wait_ms() const {
    return network_wait_ms_;
  }

 private:
  Status CheckRecordedEnd(std::int64_t batch_id, const cdc::Offset& end);
  Result<BatchOutcome> ReadAndAppend(BatchTask& task, sqlserver::Session& session,
                                     std::int64_t started_at_us);
  Result<BatchOutcome> Recount(const BatchTask& task, sqlserver::Session& session,
                               std::int64_t started_at_us);
  // Notes, before the rows are committed, what may be lost of them.
  Status NotePossibleLoss(const std::vector<RangeRead>& reads, BatchTask& task,
                          sqlserver::Session& session);
  Result<pipeline::BatchCounts> CountsOfCommit(const BatchTask& task,
                                               sqlserver::Session& session);
  Status WriteFacts(const BatchTask& task, const pipeline::FactsRow& row);
  // Option metricsPath: files of the stream's generation; a failure is a warning.
  void NameMetrics();
  void KeepMetrics(const BatchTask& task, const std::vector<RangeRead>& reads);
  void FoldKeptMetrics(const BatchTask& task, pipeline::ReadMetrics& metrics);
  void DropKeptMetrics();
  void WarnOfMetrics(const Status& status);

  RunContext& context_;
  CheckpointNotes notes_;
  std::optional<MetricsFiles> metrics_files_;
  bool tables_known_ = false;
  std::optional<std::int64_t> network_wait_ms_;  // Of the session, before the batch.
};

}  // namespace mssql_cdc::runtime

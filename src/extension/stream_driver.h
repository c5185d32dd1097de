// The driver's side of one stream: what comes before the query starts, and what the
// sink does around Spark's own write of a batch.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "columns/arrow_abi.h"
#include "extension/change_task.h"
#include "extension/source_context.h"
#include "extension/spark_lake.h"
#include "lake/delta_lake.h"
#include "pipeline/facts.h"
#include "pipeline/sink.h"
#include "pipeline/tables.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/snapshot_calls.h"

namespace mssql_cdc::extension {

// What to_delta() is given, names as the user wrote them and where they are.
struct StreamPlace {
  std::string target;
  std::string target_location;
  std::string app_id;
  std::string checkpoint;   // A folder of this machine; empty: Spark's alone.
  std::string facts_table;  // Empty: none.
  std::string facts_location;
  bool bootstrap = false;
  runtime::OnDataLoss on_data_loss = runtime::OnDataLoss::kFail;
  double resnapshot_interval_days = 7;
  bool snapshot_on_switch = false;
  pipeline::SnapshotMode snapshot = pipeline::SnapshotMode::kFull;
};

struct PreparedStream {
  std::string sink_id;    // app_id of the live generation.
  std::string directory;  // Its checkpoint; empty as StreamPlace::checkpoint.
  // Where batch 0 begins; absent: as option startingLsn says.
  std::optional<cdc::Offset> initial;
};

class StreamDriver {
 public:
  // Connects to nothing yet. Errors: those of SourceContext::Open; OptionsClash.
  static Result<std::unique_ptr<StreamDriver>> Open(const Options& options,
                                                    const Access& access,
                                                    const StreamPlace& place);

  // Without a source: a sink that somebody else's query feeds. Snapshots and Prepare
  // are not for it.
  static Result<std::unique_ptr<StreamDriver>> OpenSink(const StreamPlace& place);

  // The columns the tables are created with, for a catalog's CREATE TABLE: Spark DDL of
  // name, type and comment, the description and the properties.
  Result<pipeline::TableDefinition> TargetDefinition();

  // Makes the tables ready and decides where the stream begins; a bootstrap, or a
  // snapshot after a loss, is complete (or, in chunks, open) when this returns. Errors:
  // those of Stream::Run before its first batch.
  Result<PreparedStream> Prepare(const SparkLake::WriteSnapshot& write_snapshot);
  // The whole table in the target, found there or, with `again` in any case, taken now.
  // Errors: those of SnapshotCall::Take.
  Result<runtime::SnapshotSummary> Snapshot(
      const SparkLake::WriteSnapshot& write_snapshot, bool again);
  // A copy of the table, with these columns, in a snapshot's place. Errors: those of
  // SnapshotCall::Seed.
  Result<runtime::SnapshotSummary> Seed(const SparkLake::WriteSnapshot& write_copy,
                                        columns::Schema copy,
                                        runtime::SeedOptions options);

  // What is left to do for a batch. `summary` is absent where the planner's did not
  // come through. Errors: CheckpointRewound, OptionsClash; the lake's.
  Result<pipeline::SinkWork> Look(std::int64_t batch_id,
                                  const std::optional<BatchSummary>& summary);
  // Appends a small batch's rows. Owns the stream.
  Result<lake::AppendOutcome> Append(
      std::int64_t batch_id, ArrowArrayStream* rows,
      const std::optional<pipeline::BatchCounts>& counts);
  // What a batch that is in the target wrote, if its commit says so.
  Result<std::optional<pipeline::BatchCounts>> CountsInLog(std::int64_t batch_id);
  // Writes the batch's facts, events included; nothing without a facts table.
  struct BatchRecord {
    std::int64_t batch_id = 0;
    std::int64_t started_at_us = 0;
    std::int64_t duration_ms = 0;
    pipeline::BatchCounts counts;
    std::optional<BatchSummary> summary;
    std::vector<ReadReport> reads;  // Those that came through.
  };
  Status Record(const BatchRecord& record);
  // What follows a batch that is in the tables, before Spark's checkpoint has it: with
  // snapshot_on_switch, a snapshot after the first one that read a newer capture
  // instance. Errors: those of SnapshotAfterSwitch.
  Status FinishBatch(std::int64_t batch_id, const BatchSummary& summary);

  const std::string& sink_id() { return context_->run().sink_id; }
  std::vector<std::string> TakeWarnings() { return context_->warnings().Take(); }
  void Stop() { context_->Stop(); }

 private:
  StreamDriver(const StreamPlace& place);
  Result<PreparedStream> PrepareOnce();
  Status PrepareSource(const runtime::CheckpointNotes& notes, bool has_notes);
  Status Recover(runtime::Checkpoint* checkpoint);
  std::unique_ptr<runtime::SnapshotCall> MakeCall();
  Status CheckTargetIsThere(const runtime::CheckpointState& state);
  Result<std::optional<cdc::Offset>> DecideStart(const runtime::CheckpointState& state);
  Status AddLosses(const BatchRecord& record, pipeline::BatchNote& note);

  lake::DeltaLake tables_;
  SparkLake lake_;
  std::unique_ptr<SourceContext> context_;
  // Of the prepared stream.
  std::int64_t generation_ = 0;
  std::string directory_;
};

// Of all reads together. Requires them in the order of their windows.
pipeline::BatchCounts SumCounts(const std::vector<ReadReport>& reads);

}  // namespace mssql_cdc::extension

// Gathers what the next batch depends on, asks cdc for a plan, and hands it over ready
// to be carried out.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/batch_plan.h"
#include "cdc/source_memory.h"
#include "pipeline/sink.h"
#include "runtime/batch_writer.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/run_context.h"

namespace mssql_cdc::runtime {

struct PlannedBatch {
  std::optional<cdc::Wait> wait;  // Nothing is to be done now; the rest has no meaning.
  bool is_replay = false;
  // The poll found no change of the table in the window and nothing else to record: all
  // the batch would do is to move the position.
  bool only_moves = false;
  // Changes in the window as the poll counted them, up to kManyRowCount.
  std::int64_t row_count = 0;
  pipeline::SinkWork work = pipeline::SinkWork::kEverything;
  BatchTask task;
};

class BatchPlanner {
 public:
  // Borrows both.
  BatchPlanner(RunContext& context, BatchWriter& writer, CheckpointNotes notes)
      : context_(context), writer_(writer), notes_(std::move(notes)) {}

  // Goes on in another generation, of which nothing is noted yet.
  void MoveTo(CheckpointNotes notes) {
    notes_ = std::move(notes);
    memory_.reset();
  }
  // Reads what earlier runs noted. Errors: CheckpointUnreadable, FileFailed.
  Status Load();
  const std::optional<cdc::SourceMemory>& memory() const { return memory_; }

  // Notes which table this is the stream of, unless an earlier run did. Errors:
  // FileFailed.
  Status RememberSource();

  // Plans over `session`: one request, and more only where the batch has something to
  // it besides a few rows. What the plan needs to survive a stop is on the disk when
  // this returns. `state` has a position.
  //
  // Errors: PositionAheadOfServer, SourceForked, those of cdc::PlanReads and of
  // BatchWriter::Look, CaptureInstanceNotFound, CdcNotEnabled, the session's.
  Result<PlannedBatch> Plan(sqlserver::Session& session, const CheckpointState& state,
                            const std::optional<cdc::Offset>& frozen_end);
  // The batch is in the tables and in the checkpoint.
  Status Done(const BatchTask& task);

  // Adds a text to the next batch's facts.
  void Warn(std::string text) { warnings_.push_back(std::move(text)); }
  // Columns may have changed: they are asked for again.
  void ForgetColumns() { columns_as_of_.clear(); }
  // Why nothing comes, if that is not because nothing happens; empty otherwise.
  const std::string& stall() const { return stall_.empty() ? unreached_ : stall_; }
  // The newest commit when it was last planned.
  const std::optional<cdc::Lsn>& newest() const { return newest_; }

 private:
  Result<PollAnswer> Poll(sqlserver::Session& session, const cdc::Lsn& after,
                          const PollLimits& limits);
  Result<std::optional<cdc::LsnWindow>> WindowOf(const cdc::BatchPlan& plan,
                                                 PlannedBatch& planned) const;
  Status PlanReads(sqlserver::Session& session, PlannedBatch& planned,
                   std::int64_t row_count);
  Status RefreshColumns(sqlserver::Session& session, const cdc::LsnWindow& window);
  Status CutIntoTiles(sqlserver::Session& session, BatchTask& task) const;
  Status Note(PlannedBatch& planned);
  void WatchPosition(const cdc::BatchFacts& facts,
                     const std::optional<cdc::Wait>& wait);
  Status WatchCapture(sqlserver::Session& session,
                      const std::optional<std::int64_t>& age_seconds, bool waits);

  RunContext& context_;
  BatchWriter& writer_;
  CheckpointNotes notes_;
  std::optional<cdc::SourceMemory> memory_;
  std::vector<std::string> warnings_;
  // By instance name: the last DDL that was known when its columns were asked for.
  std::map<std::string, std::optional<cdc::Lsn>> columns_as_of_;
  std::string stall_;
  std::string unreached_;
  std::optional<cdc::Lsn> newest_;
};

}  // namespace mssql_cdc::runtime

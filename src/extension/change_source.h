// The stream's side of the planner: from Spark's calls to offsets and tasks.
//
// Spark asks for the newest end first and for the tasks up to it later. Both come from
// one plan of runtime::BatchPlanner, so a small batch costs one round trip here.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/offset.h"
#include "extension/source_context.h"
#include "runtime/batch_planner.h"

namespace mssql_cdc::extension {

// A batch that is to be read.
struct PlannedReads {
  std::string summary;             // JSON: what the sink has to know of it.
  std::vector<std::string> tasks;  // JSON, one for each range.
};

class ChangeSource {
 public:
  // `notes` is where this stream's checkpoint keeps its own files, the folder that
  // Spark's checkpoint is in; empty: nothing is kept. Connects to nothing yet. Errors:
  // those of SourceContext::Open, FileFailed.
  static Result<std::unique_ptr<ChangeSource>> Open(const Options& options,
                                                    const Access& access,
                                                    const std::string& notes);
  ~ChangeSource();

  // The columns of the stream's rows.
  Result<columns::Schema> Schema();
  // Where a new checkpoint starts. Errors: CaptureHasNotRun; the session's.
  Result<cdc::Offset> InitialOffset();
  // From now on no batch ends above the server's newest commit.
  Status FreezeEnd();
  // The end of the next batch; `start` itself if there is none. Errors: those of
  // BatchPlanner::Plan.
  Result<cdc::Offset> LatestOffset(const cdc::Offset& start);
  // The server's newest commit; absent: nothing was captured yet.
  Result<std::optional<cdc::Offset>> NewestOffset();
  // What to read from `start` up to exactly `end`. Errors: those of BatchPlanner::Plan.
  Result<PlannedReads> Plan(const cdc::Offset& start, const cdc::Offset& end);
  // Everything up to `end` is in Spark's checkpoint.
  Status Commit(const cdc::Offset& end);

  std::vector<std::string> TakeWarnings() { return context_->warnings().Take(); }

 private:
  ChangeSource(std::unique_ptr<SourceContext> context, std::string notes);

  struct Kept {
    cdc::Offset start;
    cdc::Offset end;
    runtime::PlannedBatch batch;
  };
  Status Prepare(sqlserver::Session& session);
  Result<runtime::PlannedBatch> PlanBatch(const cdc::Offset& start,
                                          const std::optional<cdc::Offset>& end);
  PlannedReads Describe(const Kept& kept) const;

  std::unique_ptr<SourceContext> context_;
  std::string notes_;
  std::string scratch_;  // In place of `notes_`, removed with this object.
  std::unique_ptr<runtime::BatchWriter> writer_;
  std::unique_ptr<runtime::BatchPlanner> planner_;
  bool prepared_ = false;
  std::optional<cdc::Offset> frozen_end_;
  std::optional<Kept> kept_;
};

}  // namespace mssql_cdc::extension

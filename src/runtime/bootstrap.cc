#include "runtime/bootstrap.h"

#include <utility>
#include <variant>
#include <vector>

#include "pipeline/bootstrap.h"
#include "pipeline/facts.h"
#include "runtime/chunked_open.h"
#include "runtime/prepare_tables.h"
#include "runtime/snapshot_tables.h"
#include "runtime/whole_snapshot.h"

namespace mssql_cdc::runtime {
namespace {

Status RecordBootstrap(RunContext& context, const pipeline::SnapshotRun& run) {
  return AppendFacts(context, {pipeline::BootstrapFacts(run)},
                     lake::Txn{context.config.app_id + "#events", 0});
}

// The snapshot is there already: only its `bootstrap` row may be missing.
Result<cdc::Offset> UseSnapshotInTarget(RunContext& context, const cdc::Offset& stamp) {
  pipeline::SnapshotRun run;
  run.app_id = context.config.app_id;
  run.target = context.config.target;
  run.stamp = stamp;
  run.written_at_us = context.clock.NowUtcUs();
  TRY(RecordBootstrap(context, run));
  context.observer.OnSnapshotDone(
      {stamp.lsn.Text(), cdc::CommitText(stamp.commit_us), std::nullopt, 0});
  return stamp;
}

Result<cdc::Offset> TakeSnapshot(RunContext& context) {
  WholeRequest request;
  request.run.app_id = context.config.app_id;
  TRY_ASSIGN(const pipeline::SnapshotRun run,
             TakeWholeSnapshot(context, std::move(request)));
  TRY(RecordBootstrap(context, run));
  context.observer.OnSnapshotDone({run.stamp.lsn.Text(),
                                   cdc::CommitText(run.stamp.commit_us), run.rows,
                                   run.duration_ms.value_or(0)});
  return run.stamp;
}

}  // namespace

Result<cdc::Offset> Bootstrap(RunContext& context) {
  pipeline::BootstrapFactsGathered facts;
  facts.app_id = context.config.app_id;
  facts.mode = context.config.snapshot;
  TRY_ASSIGN(facts.in_target, FindWholeSnapshot(context));
  TRY_ASSIGN(facts.events, ReadSnapshotEvents(context));
  const pipeline::BootstrapPlan plan = pipeline::PlanBootstrap(facts);
  if (const auto* found = std::get_if<pipeline::StartFromTarget>(&plan)) {
    return UseSnapshotInTarget(context, found->stamp);
  }
  if (const auto* known = std::get_if<pipeline::StartFromFacts>(&plan)) {
    return known->stamp;
  }
  if (std::holds_alternative<pipeline::TakeSnapshot>(plan)) {
    return TakeSnapshot(context);
  }
  TRY_ASSIGN(const SessionPool::Lease session, context.pool.Acquire());
  OpenRequest request;
  request.sink_id = context.config.app_id;
  TRY_ASSIGN(const cdc::Offset stamp, OpenChunked(context, *session, request));
  context.observer.OnSnapshotOpened(
      {stamp.lsn.Text(), cdc::CommitText(stamp.commit_us), std::nullopt, 0});
  return stamp;
}

Status CheckSnapshotMode(RunContext& context) {
  const StreamConfig& config = context.config;
  const bool takes_snapshots = config.bootstrap ||
                               config.on_data_loss == OnDataLoss::kResnapshot ||
                               config.snapshot_on_switch;
  if (!config.facts_table || !takes_snapshots) return Unit{};
  TRY_ASSIGN(const std::vector<pipeline::SnapshotEvent> events,
             ReadSnapshotEvents(context));
  return pipeline::CheckModeLock(events, config.app_id, config.snapshot,
                                 IsLostIn(context.source));
}

Result<bool> BootstrapIsRecorded(RunContext& context) {
  if (!context.config.facts_table) return false;
  TRY_ASSIGN(const std::optional<std::int64_t> version,
             context.lake.LastTxn(context.config.facts_location,
                                  context.config.app_id + "#events"));
  return version.has_value();
}

}  // namespace mssql_cdc::runtime

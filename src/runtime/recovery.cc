#include "runtime/recovery.h"

#include <utility>

#include "pipeline/recovery.h"
#include "runtime/chunked_open.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"
#include "runtime/whole_snapshot.h"

namespace mssql_cdc::runtime {
namespace {

Result<pipeline::RecoveryFacts> Gather(RunContext& context, sqlserver::Session& session,
                                       const CheckpointState& state) {
  pipeline::RecoveryFacts facts;
  facts.app_id = context.config.app_id;
  facts.capture_instance = context.source.instance.name;
  facts.mode = context.config.snapshot;
  facts.bootstrap = context.config.bootstrap;
  facts.state = state.generation_state;
  facts.position = state.position();
  TRY_ASSIGN(const std::optional<cdc::Offset> newest,
             AskNewest(session, context.source));
  if (newest) facts.server_max = newest->lsn;
  facts.instances = context.source.family().instances;
  TRY_ASSIGN(facts.events, ReadSnapshotEvents(context));
  // Where its commit has left the log, this looks at every snapshot row.
  if (pipeline::NeedsTarget(facts)) {
    TRY_ASSIGN(facts.in_target, FindWholeSnapshot(context));
  }
  facts.interval_days = context.config.resnapshot_interval_days;
  facts.now_us = context.clock.NowUtcUs();
  return facts;
}

pipeline::SnapshotRun RunOf(const RunContext& context,
                            const pipeline::Recovery& recovery,
                            const std::optional<std::int64_t>& lost_to_us) {
  pipeline::SnapshotRun run;
  run.app_id = pipeline::SinkIdOf(context.config.app_id, recovery.generation);
  run.target = context.config.target;
  run.kind = "resnapshot";
  run.generation = recovery.generation;
  run.lost_from_us = recovery.from.commit_us;
  run.lost_to_us = lost_to_us;
  return run;
}

// Whether cleanup has meanwhile passed what the snapshot continues at.
Status CheckNotOutlived(RunContext& context, sqlserver::Session& session,
                        const cdc::Offset& stamp, Checkpoint& checkpoint) {
  TRY(AskInstancesAgain(session, context.config, std::nullopt, context.source));
  const std::optional<cdc::Lsn> first_readable =
      cdc::LostUpTo(context.source.family().instances, stamp.lsn);
  if (!first_readable) return Unit{};
  pipeline::GenerationState state = checkpoint.generation_state();
  state.failed_at_us = context.clock.NowUtcUs();
  TRY(checkpoint.SetGeneration(state));
  return Error(ErrorId::kDataLoss)
      .With("capture_instance", context.source.instance.name)
      .With("position", stamp.lsn.Text())
      .With("first_readable", first_readable->Text())
      .With("cause",
            "reading the table took longer than the retention: lengthen it, read in "
            "more partitions or with snapshot = chunked, and set "
            "resnapshot_interval_days = 0");
}

Result<cdc::Offset> Resnapshot(RunContext& context, sqlserver::Session& session,
                               const pipeline::Recovery& recovery,
                               const std::optional<std::int64_t>& lost_to_us,
                               Checkpoint& checkpoint) {
  pipeline::SnapshotRun run = RunOf(context, recovery, lost_to_us);
  if (context.config.snapshot == pipeline::SnapshotMode::kChunked) {
    if (recovery.reuse) return *recovery.reuse;
    OpenRequest request;
    request.sink_id = run.app_id;
    request.kind = run.kind;
    request.generation = recovery.generation;
    request.lost_from_us = run.lost_from_us;
    request.lost_to_us = run.lost_to_us;
    return OpenChunked(context, session, request);
  }
  if (recovery.reuse) {
    run.stamp = *recovery.reuse;
    run.written_at_us = context.clock.NowUtcUs();
  } else {
    TRY_ASSIGN(run, TakeWholeSnapshot(context, {run, true}));
    TRY(CheckNotOutlived(context, session, run.stamp, checkpoint));
  }
  TRY(AppendFacts(context, {pipeline::BootstrapFacts(run)},
                  lake::Txn{context.config.app_id + "#events", recovery.generation}));
  context.observer.OnSnapshotDone({run.stamp.lsn.Text(),
                                   cdc::CommitText(run.stamp.commit_us), run.rows,
                                   run.duration_ms.value_or(0)});
  return run.stamp;
}

}  // namespace

Result<std::optional<pipeline::Recovery>> FindLoss(RunContext& context,
                                                   sqlserver::Session& session,
                                                   const CheckpointState& state) {
  TRY_ASSIGN(const pipeline::RecoveryFacts facts, Gather(context, session, state));
  return pipeline::PlanRecovery(facts);
}

Result<bool> RecoverFromLoss(RunContext& context, sqlserver::Session& session,
                             Checkpoint& checkpoint) {
  TRY_ASSIGN(const std::optional<pipeline::Recovery> recovery,
             FindLoss(context, session, checkpoint.state()));
  if (!recovery) return false;
  TRY_ASSIGN(const cdc::Offset readable,
             AskOffset(session, context.source, recovery->first_readable));
  context.observer.OnWarning(
      "changes above " + recovery->from.lsn.Text() + " and below " +
      recovery->first_readable.Text() +
      " were removed before they were read: a new snapshot is taken for generation " +
      std::to_string(recovery->generation));
  pipeline::GenerationState state = checkpoint.generation_state();
  state.recovering = recovery->from;
  TRY(checkpoint.SetGeneration(state));
  TRY_ASSIGN(const cdc::Offset stamp,
             Resnapshot(context, session, *recovery, readable.commit_us, checkpoint));
  pipeline::GenerationState next;
  next.generation = recovery->generation;
  next.start = stamp;
  next.at_us = context.clock.NowUtcUs();
  TRY(checkpoint.SetGeneration(next));
  return true;
}

Status SnapshotAfterSwitch(RunContext& context, sqlserver::Session& session,
                           std::int64_t generation, std::int64_t batch_id,
                           const cdc::Offset& at) {
  if (context.config.snapshot == pipeline::SnapshotMode::kChunked) {
    OpenRequest request;
    request.sink_id = context.sink_id;
    request.generation = generation;
    request.switch_batch_id = batch_id;
    request.at = at;
    TRY(OpenChunked(context, session, request));
    return Unit{};
  }
  // The batch may be run again by one that was stopped between this commit and its own.
  const lake::Txn txn{context.sink_id + "#switch", batch_id};
  TRY_ASSIGN(const std::optional<std::int64_t> last,
             context.lake.LastTxn(context.config.target_location, txn.app_id));
  if (last && *last >= batch_id) return Unit{};
  WholeRequest request;
  request.run.app_id = context.sink_id;
  request.writes_open_row = false;
  request.txn = txn;
  TRY_ASSIGN(const pipeline::SnapshotRun run,
             TakeWholeSnapshot(context, std::move(request)));
  context.observer.OnSnapshotDone({run.stamp.lsn.Text(),
                                   cdc::CommitText(run.stamp.commit_us), run.rows,
                                   run.duration_ms.value_or(0)});
  return Unit{};
}

}  // namespace mssql_cdc::runtime

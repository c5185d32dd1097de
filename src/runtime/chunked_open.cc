#include "runtime/chunked_open.h"

#include <utility>

#include "runtime/snapshot_tables.h"
#include "runtime/table_keys.h"

namespace mssql_cdc::runtime {

Result<cdc::Offset> OpenChunked(RunContext& context, sqlserver::Session& session,
                                const OpenRequest& request) {
  const StreamConfig& config = context.config;
  TRY_ASSIGN(const TableKeys keys, AskTableKeys(context, session));
  cdc::Offset stamp;
  if (request.at) {
    stamp = *request.at;
  } else {
    TRY_ASSIGN(stamp, AskStamp(context, session));
  }
  pipeline::ChunkedOpen open;
  open.detail = {pipeline::SnapshotMode::kChunked,
                 request.kind,
                 request.generation,
                 request.lost_from_us,
                 request.lost_to_us,
                 request.switch_batch_id};
  open.keys = keys.names;
  // After S: a row that is not seen here is a change above it.
  TRY_ASSIGN(open.extent,
             AskExtent(context, session, keys,
                       {config.lock_timeout_ms,
                        config.isolation_level == IsolationLevel::kSnapshot}));

  const pipeline::DetailTexts texts = pipeline::OpenTexts(open);
  const lake::Txn opened{pipeline::OpenTxn(config.app_id, stamp.lsn), 0};
  TRY(AppendPlans(context, stamp.lsn, request.sink_id, {{"snapshot_open", texts.whole}},
                  opened));
  pipeline::SnapshotRun run;
  run.app_id = request.sink_id;
  run.target = config.target;
  run.stamp = stamp;
  run.written_at_us = context.clock.NowUtcUs();
  run.lost_from_us = request.lost_from_us;
  run.lost_to_us = request.lost_to_us;
  run.detail = texts.detail;
  const lake::Txn once =
      request.switch_batch_id
          ? opened
          : lake::Txn{config.app_id + "#snapshots", request.generation};
  TRY(AppendFacts(context, {pipeline::SnapshotOpenFacts(run)}, once));

  TRY_ASSIGN(const std::vector<pipeline::SnapshotEvent> events,
             ReadSnapshotEvents(context));
  const std::optional<pipeline::OpenedSnapshot> stored =
      pipeline::OpenedBy(events, request.sink_id);
  if (!stored || stored->detail.mode != pipeline::SnapshotMode::kChunked) {
    return Error(ErrorId::kSnapshotModeLocked)
        .With("app_id", request.sink_id)
        .With("lsn", (stored ? stored->stamp : stamp).lsn.Text())
        .With("mode", "full")
        .With("generation", std::to_string(request.generation));
  }
  return stored->stamp;
}

}  // namespace mssql_cdc::runtime

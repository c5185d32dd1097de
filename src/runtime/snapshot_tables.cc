#include "runtime/snapshot_tables.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/case_fold.h"
#include "cdc/cells.h"
#include "columns/cell_access.h"
#include "pipeline/bootstrap.h"
#include "pipeline/tables.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {
namespace {

bool IsInFamily(const RunContext& context, std::string_view instance) {
  const std::vector<std::string>& names = context.source.names;
  return std::find(names.begin(), names.end(), LowerCase(instance)) != names.end();
}

// Hands every row of a table that meets `spec` to `use`.
Status EachRow(
    lake::Lake& lake, const std::string& location, const lake::ReadSpec& spec,
    const std::function<Status(const columns::RecordBatch&, std::int64_t)>& use) {
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake.Read(location, spec));
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return Unit{};
    for (std::int64_t i = 0; i < batch->row_count; ++i) TRY(use(*batch, i));
  }
}

Status AppendBatch(lake::Lake& lake, const std::string& location,
                   columns::RecordBatch batch, const std::optional<lake::Txn>& txn) {
  const columns::SchemaPtr schema = batch.schema;
  std::vector<columns::RecordBatch> batches;
  batches.push_back(std::move(batch));
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.txn = txn;
  TRY(lake.Append(location, std::move(sources), spec));
  return Unit{};
}

Result<std::optional<pipeline::SnapshotEvent>> EventIn(const cdc::RowView& row) {
  pipeline::SnapshotEvent event;
  TRY_ASSIGN(const std::optional<std::string> name, row.Text("event"));
  TRY_ASSIGN(const std::optional<std::string> app_id, row.Text("app_id"));
  TRY_ASSIGN(std::optional<cdc::Lsn> lsn, LsnIn(row, "max_lsn"));
  TRY_ASSIGN(event.min_lsn, LsnIn(row, "min_lsn"));
  if (!lsn) lsn = event.min_lsn;  // Of a chunk whose read's end was not seen.
  TRY_ASSIGN(const std::optional<std::string> detail, row.Text("detail"));
  TRY_ASSIGN(event.rows, row.Integer("rows"));
  TRY_ASSIGN(event.commit_us, row.Integer("max_commit_ts"));
  TRY_ASSIGN(event.duration_ms, row.Integer("duration_ms"));
  TRY_ASSIGN(event.written_at_us, row.Integer("written_at"));
  if (!name || !app_id || !lsn) return std::optional<pipeline::SnapshotEvent>();
  event.event = *name;
  event.app_id = *app_id;
  event.lsn = *lsn;
  event.detail = detail.value_or("");
  return std::optional<pipeline::SnapshotEvent>(std::move(event));
}

std::optional<double> RealIn(const columns::RecordBatch& batch, const char* name,
                             std::int64_t row) {
  const Result<std::size_t> index = cdc::ColumnIndex(*batch.schema, name);
  if (!index.ok()) return std::nullopt;
  const columns::Column& column = *batch.columns[index.value()];
  const auto at = static_cast<std::size_t>(row);
  const bool is_real = column.type.kind == columns::Kind::kFloat64;
  if (!is_real || columns::IsNull(column, at)) return std::nullopt;
  return columns::ValueAt<double>(column, at);
}

// Rows of the target that are a chunked snapshot's, from a chunk on.
Status EachChunkRow(
    RunContext& context, const cdc::Lsn& snapshot, std::int64_t first,
    const std::function<Status(std::int64_t chunk, const cdc::RowView& row)>& use) {
  lake::ReadSpec spec;
  spec.columns = {"_capture_instance", "_chunk", "_start_lsn"};
  spec.conditions = {{"_snapshot", lake::Condition::Operator::kEqual, snapshot.Text()},
                     {"_chunk", lake::Condition::Operator::kIsNotNull, ""}};
  return EachRow(context.lake, context.config.target_location, spec,
                 [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
                   const cdc::RowView row(batch, i);
                   TRY_ASSIGN(const std::optional<std::int64_t> chunk,
                              row.Integer("_chunk"));
                   TRY_ASSIGN(const std::optional<std::string> instance,
                              row.Text("_capture_instance"));
                   const bool is_ours = instance && IsInFamily(context, *instance);
                   if (!is_ours || !chunk || *chunk < first) return Unit{};
                   return use(*chunk, row);
                 });
}

// For when a snapshot's commit has left the log.
Status FindByRows(RunContext& context, SnapshotsInTarget& found) {
  lake::ReadSpec spec;
  spec.columns = {"_capture_instance", "_operation", "_start_lsn",
                  "_commit_ts",        "_chunk",     "_snapshot"};
  spec.conditions = {{"_seqval", lake::Condition::Operator::kIsNull, ""}};
  std::map<cdc::Lsn, std::optional<std::int64_t>> whole;
  std::set<cdc::Lsn> chunked;
  TRY(EachRow(
      context.lake, context.config.target_location, spec,
      [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
        const cdc::RowView row(batch, i);
        TRY_ASSIGN(const std::optional<std::int64_t> operation,
                   row.Integer("_operation"));
        TRY_ASSIGN(const std::optional<std::string> instance,
                   row.Text("_capture_instance"));
        if (operation != 0 || !instance || !IsInFamily(context, *instance)) {
          return Unit{};
        }
        TRY_ASSIGN(const std::optional<std::int64_t> chunk, row.Integer("_chunk"));
        TRY_ASSIGN(const std::optional<cdc::Lsn> stamp, LsnIn(row, "_start_lsn"));
        TRY_ASSIGN(const std::optional<cdc::Lsn> snapshot, LsnIn(row, "_snapshot"));
        TRY_ASSIGN(const std::optional<std::int64_t> time, row.Integer("_commit_ts"));
        if (chunk && snapshot) chunked.insert(*snapshot);
        if (!chunk && stamp) whole[*stamp] = std::max(whole[*stamp], time);
        return Unit{};
      }));
  for (const auto& [lsn, time] : whole) found.whole.push_back({lsn, time});
  found.chunked.insert(found.chunked.end(), chunked.begin(), chunked.end());
  return Unit{};
}

// Looks at the log first. By rows too where it is not whole, with `need_all` or if it
// shows no whole snapshot.
Result<SnapshotsInTarget> FindIn(RunContext& context, bool need_all) {
  const std::string& target = context.config.target_location;
  SnapshotsInTarget found;
  TRY_ASSIGN(const std::optional<lake::TableState> state, context.lake.State(target));
  if (!state) return found;
  TRY_ASSIGN(const std::vector<lake::CommitInfo> commits,
             context.lake.History(target, 0));
  for (const lake::CommitInfo& commit : commits) {
    if (!commit.user_metadata) continue;
    const auto wave = pipeline::SnapshotOfWave(*commit.user_metadata);
    if (wave &&
        (!wave->capture_instance || IsInFamily(context, *wave->capture_instance))) {
      found.chunked.push_back(wave->lsn);
    }
    const auto parsed = pipeline::ParseSnapshotMetadata(*commit.user_metadata);
    if (parsed && IsInFamily(context, parsed->capture_instance)) {
      found.whole.push_back(parsed->stamp);
    }
  }
  const bool log_is_whole = !commits.empty() && commits.front().version == 0;
  if (log_is_whole || (!need_all && !found.whole.empty())) return found;
  TRY(FindByRows(context, found));
  return found;
}

}  // namespace

Result<std::optional<cdc::Lsn>> LsnIn(const cdc::RowView& row, const char* column) {
  TRY_ASSIGN(const std::optional<std::string> text, row.Text(column));
  if (!text) return std::optional<cdc::Lsn>();
  TRY_ASSIGN(const cdc::Lsn lsn, cdc::Lsn::Parse(*text));
  return std::optional<cdc::Lsn>(lsn);
}

Result<std::vector<pipeline::SnapshotEvent>> ReadSnapshotEvents(RunContext& context) {
  std::vector<pipeline::SnapshotEvent> events;
  if (!context.config.facts_table) return events;
  lake::ReadSpec spec;
  spec.columns = {"event",  "app_id",      "rows",       "min_lsn",      "max_lsn",
                  "detail", "duration_ms", "written_at", "max_commit_ts"};
  spec.conditions = {
      {"event", lake::Condition::Operator::kIsNotNull, ""},
      {"target", lake::Condition::Operator::kEqual, context.config.target}};
  TRY(EachRow(context.lake, context.config.facts_location, spec,
              [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
                TRY_ASSIGN(std::optional<pipeline::SnapshotEvent> event,
                           EventIn(cdc::RowView(batch, i)));
                if (event) events.push_back(*std::move(event));
                return Unit{};
              }));
  return events;
}

Result<bool> RowsAreRecorded(RunContext& context, bool after_a_batch) {
  const StreamConfig& config = context.config;
  std::optional<lake::TableState> facts;
  if (config.facts_table) {
    TRY_ASSIGN(facts, context.lake.State(config.facts_location));
  }
  // Facts of the first versions know no events.
  if (!facts || !cdc::ColumnIndex(facts->schema, "event").ok()) return after_a_batch;
  lake::ReadSpec spec;
  spec.columns = {"app_id", "event", "rows"};
  spec.conditions = {{"target", lake::Condition::Operator::kEqual, config.target}};
  bool had_rows = false;
  bool knows_batches = false;
  TRY(EachRow(context.lake, config.facts_location, spec,
              [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
                const cdc::RowView row(batch, i);
                TRY_ASSIGN(const std::optional<std::string> app_id, row.Text("app_id"));
                TRY_ASSIGN(const std::optional<std::string> event, row.Text("event"));
                TRY_ASSIGN(const std::optional<std::int64_t> rows, row.Integer("rows"));
                if (!app_id || !pipeline::IsOfFamily(*app_id, config.app_id)) {
                  return Unit{};
                }
                knows_batches = knows_batches || !event;
                had_rows = had_rows || rows != 0;  // Not counted: there may be some.
                return Unit{};
              }));
  return had_rows || (after_a_batch && !knows_batches);
}

Status AppendFacts(RunContext& context, const std::vector<pipeline::FactsRow>& rows,
                   const std::optional<lake::Txn>& txn) {
  if (!context.config.facts_table) return Unit{};
  return AppendBatch(context.lake, context.config.facts_location,
                     pipeline::FactsBatch(rows), txn);
}

std::string PlansLocation(const StreamConfig& config) {
  return pipeline::PlansTableOf(config.target_location);
}

Status AppendPlans(RunContext& context, const cdc::Lsn& snapshot,
                   const std::string& sink_id,
                   const std::vector<pipeline::PlansRow>& rows, const lake::Txn& txn) {
  const std::string location = PlansLocation(context.config);
  const pipeline::TableDefinition table = pipeline::PlansTable();
  TRY(EnsureTable(context.lake, location, pipeline::TableKind::kPlans, table));
  auto schema = std::make_shared<columns::Schema>(table.schema);
  const auto row_count = static_cast<std::int64_t>(rows.size());
  const std::string text = snapshot.Text();
  columns::RecordBatch batch{schema, row_count, {}};
  for (std::size_t column = 0; column < schema->fields.size(); ++column) {
    columns::ColumnBuilder builder({columns::Kind::kUtf8}, row_count);
    for (const pipeline::PlansRow& row : rows) {
      builder.AppendBytes(column == 0   ? text
                          : column == 1 ? row.event
                                        : pipeline::PlansText(row.detail, sink_id));
    }
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
  }
  return AppendBatch(context.lake, location, std::move(batch), txn);
}

Result<std::vector<pipeline::PlansRow>> ReadPlans(lake::Lake& lake,
                                                  const std::string& plans_location,
                                                  const cdc::Lsn& snapshot) {
  std::vector<pipeline::PlansRow> rows;
  TRY_ASSIGN(const std::optional<lake::TableState> state, lake.State(plans_location));
  if (!state) return rows;
  lake::ReadSpec spec;
  spec.columns = {"event", "detail"};
  spec.conditions = {{"snapshot", lake::Condition::Operator::kEqual, snapshot.Text()}};
  TRY(EachRow(lake, plans_location, spec,
              [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
                const cdc::RowView row(batch, i);
                TRY_ASSIGN(std::optional<std::string> event, row.Text("event"));
                TRY_ASSIGN(std::optional<std::string> detail, row.Text("detail"));
                rows.push_back({event.value_or(""), detail.value_or("")});
                return Unit{};
              }));
  return rows;
}

Result<SnapshotsInTarget> FindSnapshots(RunContext& context) {
  return FindIn(context, true);
}

Result<std::optional<cdc::Offset>> FindWholeSnapshot(RunContext& context) {
  TRY_ASSIGN(const SnapshotsInTarget found, FindIn(context, false));
  std::optional<cdc::Offset> newest;
  for (const cdc::Offset& stamp : found.whole) {
    newest = pipeline::NewerStamp(newest, stamp);
  }
  return newest;
}

Result<std::vector<std::pair<std::int64_t, std::int64_t>>> CountChunkRows(
    RunContext& context, const cdc::Lsn& snapshot, std::int64_t first) {
  std::map<std::int64_t, std::int64_t> counts;
  TRY(EachChunkRow(context, snapshot, first,
                   [&](std::int64_t chunk, const cdc::RowView&) -> Status {
                     ++counts[chunk];
                     return Unit{};
                   }));
  return std::vector<std::pair<std::int64_t, std::int64_t>>(counts.begin(),
                                                            counts.end());
}

Result<std::optional<cdc::Lsn>> LowestStamp(RunContext& context,
                                            const cdc::Lsn& snapshot,
                                            std::int64_t first) {
  std::optional<cdc::Lsn> lowest;
  TRY(EachChunkRow(
      context, snapshot, first, [&](std::int64_t, const cdc::RowView& row) -> Status {
        TRY_ASSIGN(const std::optional<cdc::Lsn> stamp, LsnIn(row, "_start_lsn"));
        if (stamp && (!lowest || *stamp < *lowest)) lowest = stamp;
        return Unit{};
      }));
  return lowest;
}

Result<std::optional<double>> StreamHeadroomHours(RunContext& context,
                                                  const std::string& sink_id) {
  lake::ReadSpec spec;
  spec.columns = {"batch_id", "written_at", "retention_headroom_hours"};
  spec.conditions = {{"app_id", lake::Condition::Operator::kEqual, sink_id},
                     {"event", lake::Condition::Operator::kIsNull, ""}};
  std::optional<std::int64_t> newest;
  std::int64_t newest_id = -1;  // Of rows of one moment.
  std::optional<double> headroom;
  TRY(EachRow(context.lake, context.config.facts_location, spec,
              [&](const columns::RecordBatch& batch, std::int64_t i) -> Status {
                const cdc::RowView row(batch, i);
                TRY_ASSIGN(const std::optional<std::int64_t> id,
                           row.Integer("batch_id"));
                TRY_ASSIGN(const std::optional<std::int64_t> written,
                           row.Integer("written_at"));
                const bool is_older =
                    newest && std::pair(*newest, newest_id) >=
                                  std::pair(written.value_or(0), id.value_or(-1));
                if (!id || !written || is_older) return Unit{};
                newest = written;
                newest_id = *id;
                headroom = RealIn(batch, "retention_headroom_hours", i);
                return Unit{};
              }));
  if (!newest || !headroom) return std::optional<double>();
  const double age_hours =
      static_cast<double>(context.clock.NowUtcUs() - *newest) / 3.6e9;
  return std::optional<double>(*headroom - age_hours);
}

}  // namespace mssql_cdc::runtime

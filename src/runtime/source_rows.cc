#include "runtime/source_rows.h"

#include <utility>

#include "base/case_fold.h"
#include "cdc/capture_instance.h"
#include "cdc/cells.h"
#include "cdc/column_union.h"
#include "columns/take.h"
#include "pipeline/row_key.h"
#include "reader/cast_reader.h"
#include "reader/change_reader.h"
#include "reader/snapshot_reader.h"
#include "runtime/ask.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"

namespace mssql_cdc::runtime {
namespace {

// Whether the only key column holds whole numbers.
bool IsNumber(const columns::RecordBatch& batch, const std::vector<std::string>& keys) {
  if (keys.size() != 1) return false;
  const Result<std::size_t> index = cdc::ColumnIndex(*batch.schema, keys[0]);
  if (!index.ok()) return false;
  const columns::Kind kind = batch.schema->fields[index.value()].type.kind;
  return kind == columns::Kind::kInt16 || kind == columns::Kind::kInt32 ||
         kind == columns::Kind::kInt64;
}

}  // namespace

Result<std::unique_ptr<SourceRows>> SourceRows::Open(const StreamConfig& config,
                                                     SessionSource& sessions,
                                                     Clock& clock) {
  std::unique_ptr<SourceRows> rows(new SourceRows(config, sessions, clock));
  TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config.checkpoint));
  TRY_ASSIGN(const std::optional<cdc::SourceMemory> memory,
             CheckpointNotes(state.directory).ReadMemory());
  TRY_ASSIGN(rows->session_, sessions.Open());
  TRY_ASSIGN(rows->source_, AskSource(*rows->session_, config, memory));
  return rows;
}

sqlserver::SourceSettings SourceRows::Settings() const {
  return {config_.lock_timeout_ms,
          config_.isolation_level == IsolationLevel::kSnapshot};
}

std::vector<columns::Field> SourceRows::Compared() const {
  std::vector<columns::Field> fields = source_.target_fields();
  std::vector<columns::Field> compared;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (source_.columns.columns[i].in_source) compared.push_back(fields[i]);
  }
  return compared;
}

Result<std::optional<cdc::Offset>> SourceRows::Newest() {
  return AskNewest(*session_, source_);
}

Result<std::optional<cdc::KeyExtent>> SourceRows::Extent() {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_,
                 sqlserver::AskKeyExtent(source_.instance.source_schema,
                                         source_.instance.source_table,
                                         source_.range_key.value_or(""), Settings()),
                 1));
  const std::optional<cdc::RowView> row = sets[0].FirstRow();
  if (!row) return std::optional<cdc::KeyExtent>();
  TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
  TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
  if (!min || !max) return std::optional<cdc::KeyExtent>();
  return std::optional<cdc::KeyExtent>({*min, *max});
}

Result<pipeline::Slices> SourceRows::Count(std::int64_t width) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_,
                 sqlserver::CountSlices(
                     source_.instance.source_schema, source_.instance.source_table,
                     source_.range_key.value_or(""), width, Settings()),
                 1));
  pipeline::Slices slices;
  for (const columns::RecordBatch& batch : sets[0].batches) {
    TRY_ASSIGN(const std::size_t sum, cdc::ColumnIndex(*batch.schema, "key_sum"));
    if (batch.columns[sum]->type.kind != columns::Kind::kDecimal128) {
      return Error(ErrorId::kTdsMalformed)
          .With("reason", "an answer has a column of another type than expected")
          .With("column", "key_sum");
    }
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      const cdc::RowView row(batch, i);
      TRY_ASSIGN(const std::optional<std::int64_t> slice, row.Integer("slice"));
      TRY_ASSIGN(const std::optional<std::int64_t> count, row.Integer("row_count"));
      if (!slice || columns::IsNull(*batch.columns[sum], i)) continue;
      slices[*slice] = {count.value_or(0),
                        columns::FixedValue<__int128>(*batch.columns[sum], i)};
    }
  }
  return slices;
}

Result<std::int64_t> SourceRows::CountRows() {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_,
                 sqlserver::CountRows(source_.instance.source_schema,
                                      source_.instance.source_table, Settings()),
                 1));
  const std::optional<cdc::RowView> row = sets[0].FirstRow();
  if (!row) return std::int64_t{0};
  TRY_ASSIGN(const std::optional<std::int64_t> count, row->Integer("row_count"));
  return count.value_or(0);
}

std::unique_ptr<columns::BatchReader> SourceRows::Rows(const cdc::KeyRange& range) {
  sqlserver::BatchLimits limits;
  limits.row_count_max = config_.arrow_batch_size;
  reader::SnapshotPlan plan{config_.capture_instance,
                            source_.instance.source_schema,
                            source_.instance.source_table,
                            source_.columns.columns,
                            config_.include_command_id,
                            source_.range_key.value_or(""),
                            range,
                            cdc::Offset{},
                            Settings(),
                            limits};
  // The one session, kept.
  auto lend = [this]() -> Result<reader::LentSession> {
    return reader::LentSession(session_.get(), [](sqlserver::Session*) {});
  };
  std::unique_ptr<columns::BatchReader> rows = std::make_unique<reader::SnapshotReader>(
      std::move(plan), std::move(lend), stop_, [](std::int64_t, std::int64_t) {});
  if (source_.declared.empty()) return rows;
  return std::make_unique<reader::CastReader>(std::move(rows), source_.instance.name,
                                              source_.declared);
}

Status SourceRows::ChangedKeys(const cdc::Lsn& after,
                               const std::vector<std::string>& keys,
                               std::set<std::string>& out,
                               std::set<std::int64_t>& numbers) {
  TRY_ASSIGN(const std::optional<cdc::Offset> newest, Newest());
  if (!newest || newest->lsn <= after) return Unit{};
  std::vector<cdc::CaptureInstance> instances;
  for (const cdc::InstanceFacts& facts : source_.instances) {
    instances.push_back(facts.columns.instance);
  }
  std::vector<columns::Field> fields;
  for (const std::string& key : keys) {
    for (const columns::Field& field : source_.fields()) {
      if (EqualsIgnoringCase(field.name, key)) fields.push_back(field);
    }
  }
  for (const cdc::ReadPiece& piece :
       cdc::CutAtInstances(instances, {after, newest->lsn})) {
    const cdc::InstanceColumns& from = source_.instances[piece.instance_index].columns;
    reader::ChangePlan plan;
    plan.capture_instance = from.instance.name;
    plan.columns = fields;
    plan.reads = cdc::PlanColumnReads(fields, from.captured);
    plan.command_id = config_.include_command_id;
    plan.window = piece.window;
    plan.clock = source_.clock;
    plan.limits.row_count_max = config_.arrow_batch_size;
    plan.fail_on_data_loss = false;
    reader::ChangeReader rows(std::move(plan), *session_, clock_, stop_);
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
      if (!batch) break;
      TRY_ASSIGN(pipeline::RowKeys of, pipeline::RowKeys::Of(*batch, keys));
      const bool has_numbers = IsNumber(*batch, keys);
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        out.insert(std::string(of.At(i)));
        if (!has_numbers) continue;
        if (const auto number = of.Number(i)) numbers.insert(*number);
      }
    }
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime

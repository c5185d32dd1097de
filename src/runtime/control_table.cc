#include "runtime/control_table.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cdc/cells.h"
#include "columns/take.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::int64_t kRetryMsMax = 60'000;
constexpr std::int64_t kPauseFirstMs = 500;
constexpr std::int64_t kPauseMaxMs = 10'000;

struct Found {
  columns::RecordBatch batch;  // Ends with the row's place.
  std::int64_t row = 0;
};

Result<std::optional<Found>> FindRow(columns::BatchReader& rows,
                                     const std::string& table_name) {
  while (true) {
    TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) return std::optional<Found>();
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      TRY_ASSIGN(const std::optional<std::string> name,
                 cdc::RowView(*batch, i).Text("table_name"));
      if (name == table_name) return std::optional<Found>({std::move(*batch), i});
    }
  }
}

// `row` in the table's columns; those that this release does not know keep their value.
columns::RecordBatch Arranged(const pipeline::ControlRow& row,
                              const columns::Schema& table,
                              const std::optional<Found>& old) {
  const columns::RecordBatch known = pipeline::ControlBatch(row);
  auto schema = std::make_shared<columns::Schema>();
  columns::RecordBatch batch{nullptr, 1, {}};
  for (std::size_t i = 0; i < table.fields.size(); ++i) {
    const columns::Field& field = table.fields[i];
    schema->fields.push_back(field);
    const Result<std::size_t> index = cdc::ColumnIndex(*known.schema, field.name);
    if (index.ok()) {
      batch.columns.push_back(known.columns[index.value()]);
    } else if (old) {
      const std::int64_t rows[] = {old->row};
      batch.columns.push_back(std::make_shared<const columns::Column>(
          columns::Take(*old->batch.columns[i], rows)));
    } else {
      batch.columns.push_back(
          std::make_shared<const columns::Column>(columns::NullColumn(field.type, 1)));
    }
  }
  batch.schema = std::move(schema);
  return batch;
}

}  // namespace

Status ControlTable::Ensure() {
  return EnsureTable(lake_, location_, pipeline::TableKind::kControl,
                     pipeline::ControlTable());
}

Result<pipeline::ControlRow> ControlTable::Read(const std::string& table_name) {
  lake::ReadSpec spec;
  spec.conditions = {{"table_name", lake::Condition::Operator::kEqual, table_name}};
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             lake_.Read(location_, spec));
  TRY_ASSIGN(const std::optional<Found> found, FindRow(*rows, table_name));
  if (found) return pipeline::ParseControlRow(found->batch, found->row);
  pipeline::ControlRow row;
  row.table_name = table_name;
  return row;
}

Result<std::optional<pipeline::ControlRow>> ControlTable::TryUpdate(
    const std::string& table_name, const Change& change) {
  TRY_ASSIGN(const std::optional<lake::TableState> state, lake_.State(location_));
  if (!state) {
    return Error(ErrorId::kLakeUnreachable).With("table", location_);
  }
  TRY_ASSIGN(const std::unique_ptr<lake::TableChange> begun,
             lake_.Change(location_, {lake::ChangeKind::kMerge, state->schema.fields}));
  // With columns of before, a column added in between would lose the row's value.
  if (begun->version() != state->version) return std::optional<pipeline::ControlRow>();
  lake::ProbeSpec probe;
  for (const columns::Field& field : state->schema.fields) {
    probe.columns.push_back(field.name);
  }
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows, begun->Probe(probe));
  TRY_ASSIGN(const std::optional<Found> old, FindRow(*rows, table_name));
  pipeline::ControlRow row;
  row.table_name = table_name;
  if (old) {
    TRY_ASSIGN(row, pipeline::ParseControlRow(old->batch, old->row));
  }
  const std::optional<pipeline::ControlRow> changed = change(row);
  if (!changed) return std::optional(row);
  if (old) {
    const cdc::RowView place(old->batch, old->row);
    TRY_ASSIGN(const std::optional<std::int64_t> file,
               place.Integer(lake::kFileColumn));
    TRY_ASSIGN(const std::optional<std::int64_t> number,
               place.Integer(lake::kRowColumn));
    const std::int64_t removed[] = {number.value_or(0)};
    TRY(begun->Remove(static_cast<std::int32_t>(file.value_or(0)), removed));
  }
  std::vector<columns::RecordBatch> batches;
  batches.push_back(Arranged(*changed, state->schema, old));
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  const columns::SchemaPtr schema = batches[0].schema;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  TRY(begun->Add(std::move(sources)));
  const Result<lake::ChangeResult> done = begun->Commit(std::nullopt);
  if (done.ok()) return changed;
  if (done.error().id() == ErrorId::kLakeConflict) {
    return std::optional<pipeline::ControlRow>();
  }
  return done.error();
}

Result<pipeline::ControlRow> ControlTable::Update(const std::string& table_name,
                                                  const Change& change) {
  const std::int64_t begin_ns = clock_.MonotonicNs();
  std::int64_t pause_ms = kPauseFirstMs;
  while (true) {
    TRY_ASSIGN(std::optional<pipeline::ControlRow> row, TryUpdate(table_name, change));
    if (row) return *std::move(row);
    const std::int64_t left_ms =
        kRetryMsMax - (clock_.MonotonicNs() - begin_ns) / 1'000'000;
    if (left_ms <= 0) return Error(ErrorId::kLakeConflict).With("table", location_);
    clock_.SleepMs(std::min(left_ms, static_cast<std::int64_t>(dice_.Below(
                                         static_cast<std::uint64_t>(pause_ms) + 1))));
    pause_ms = std::min(pause_ms * 2, kPauseMaxMs);
  }
}

Result<std::optional<std::int64_t>> ControlTable::Advance(
    const std::string& table_name, const std::optional<cdc::Offset>& end,
    pipeline::Granularity granularity) {
  TRY(Ensure());
  TRY_ASSIGN(const pipeline::ControlRow row, Read(table_name));
  const std::int64_t now_us = clock_.NowUtcUs();
  if (!pipeline::Advanced(row, end, granularity, now_us)) return row.finalized_until;
  TRY_ASSIGN(const pipeline::ControlRow moved,
             Update(table_name, [&](const pipeline::ControlRow& now) {
               return pipeline::Advanced(now, end, granularity, now_us);
             }));
  return moved.finalized_until;
}

Result<Freshness> ControlTable::AskFreshness(const std::string& table_name) {
  TRY_ASSIGN(const pipeline::ControlRow row, Read(table_name));
  const std::int64_t now_us = clock_.NowUtcUs();
  const auto age = [&](const std::optional<std::int64_t>& since) {
    if (!since) return std::optional<double>();
    return std::optional<double>(static_cast<double>(now_us - *since) / 1e6);
  };
  return Freshness{row.finalized_until, row.updated_at, age(row.finalized_until),
                   age(row.updated_at), row.open_snapshot_lsn};
}

bool IsFinal(const pipeline::ControlRow& row, std::int64_t period_end_us) {
  return row.finalized_until && period_end_us <= *row.finalized_until;
}

}  // namespace mssql_cdc::runtime

#include "runtime/source_rows.h"

#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/capture_instance.h"
#include "cdc/cells.h"
#include "cdc/column_union.h"
#include "columns/take.h"
#include "columns/value_text.h"
#include "pipeline/row_key.h"
#include "reader/cast_reader.h"
#include "reader/change_reader.h"
#include "reader/snapshot_reader.h"
#include "runtime/ask.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/run_guards.h"
#include "runtime/source_history.h"
#include "runtime/table_keys.h"
#include "sqlserver/capture_statements.h"
#include "sqlserver/ordinal_statements.h"

namespace mssql_cdc::runtime {
namespace {

// Bounds of a DATE: the days there are.
constexpr std::int64_t kDayMin = -719'162;   // 0001-01-01
constexpr std::int64_t kDayMax = 2'932'896;  // 9999-12-31

constexpr std::int64_t kCapturePauseMs = 500;

std::optional<pipeline::OrdinalKind> OrdinalKindOf(columns::Kind kind) {
  switch (kind) {
    case columns::Kind::kInt16:
    case columns::Kind::kInt32:
    case columns::Kind::kInt64:
      return pipeline::OrdinalKind::kNumber;
    case columns::Kind::kDate32:
      return pipeline::OrdinalKind::kDate;
    default:
      return std::nullopt;
  }
}

// Whether RowKeys can tell the only key column as a number.
bool HasNumbers(const columns::RecordBatch& batch,
                const std::vector<std::string>& keys) {
  if (keys.size() != 1) return false;
  const Result<std::size_t> index = cdc::ColumnIndex(*batch.schema, keys[0]);
  if (!index.ok()) return false;
  return OrdinalKindOf(batch.schema->fields[index.value()].type.kind).has_value();
}

}  // namespace

Result<std::unique_ptr<SourceRows>> SourceRows::Open(const StreamConfig& config,
                                                     SessionSource& sessions,
                                                     Clock& clock) {
  std::unique_ptr<SourceRows> rows(new SourceRows(config, sessions, clock));
  TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config.checkpoint));
  rows->position_ = state.position();
  TRY_ASSIGN(rows->memory_, CheckpointNotes(state.directory).ReadMemory());
  TRY_ASSIGN(rows->session_, sessions.Open());
  TRY_ASSIGN(rows->source_, AskSource(*rows->session_, config, rows->memory_));
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

Status SourceRows::CheckNotGoneBack(const cdc::Lsn& applied) {
  cdc::BatchFacts facts;
  facts.position = position_.value_or(cdc::Offset{applied, std::nullopt});
  TRY_ASSIGN(const PollAnswer answer,
             AskPoll(*session_, clock_, source_, facts.position.lsn, {}));
  facts.server_max = answer.server_max;
  facts.server_oldest = answer.server_oldest;
  facts.position_commit_us = answer.position_commit_us;
  facts.newest_start = source_.newest_start();
  TRY(CheckHistory(cdc::PlanBatch(facts), source_.instance.name));
  return CheckWasReached(applied, facts.server_max, facts.newest_start,
                         source_.instance.name);
}

Status SourceRows::CheckCanGoOn() const {
  if (!position_) return Unit{};
  return CheckNothingIsGone(config_, source_, memory_, *position_);
}

Result<cdc::CaptureTimes> SourceRows::AskCaptureTimes() {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_, sqlserver::AskCaptureTimes(), 2));
  cdc::CaptureTimes times;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::string> now, row->Text("now_text"));
    times.now_us = ParseIsoUs(now.value_or("")).value_or(0);
  }
  if (const std::optional<cdc::RowView> row = sets[1].FirstRow()) {
    TRY_ASSIGN(times.newest_lsn, row->LsnOf("lsn"));
    TRY_ASSIGN(times.newest_age_seconds, row->Integer("age_seconds"));
  }
  if (!shows_scans_) return times;
  // A login that reads changes need not have a right to this.
  const Result<std::vector<ResultSet>> scans =
      Ask(*session_, sqlserver::AskNewestScan(), 1);
  shows_scans_ = scans.ok();
  if (!scans.ok()) {
    if (!session_->clean()) return scans.error();
    return times;
  }
  if (const std::optional<cdc::RowView> row = scans.value()[0].FirstRow()) {
    TRY_ASSIGN(times.scan_end, row->Text("scan_text"));
    TRY_ASSIGN(times.error_count, row->Integer("error_count"));
  }
  return times;
}

Result<bool> SourceRows::AwaitCapture(std::int64_t wait_ms_max) {
  const std::int64_t begin_ns = clock_.MonotonicNs();
  TRY_ASSIGN(cdc::CaptureTimes moment, AskCaptureTimes());
  cdc::CapturePassed passed(std::move(moment));
  while (true) {
    const std::int64_t waited_ms = (clock_.MonotonicNs() - begin_ns) / 1'000'000;
    if (waited_ms >= wait_ms_max) return false;
    clock_.SleepMs(kCapturePauseMs);
    TRY_ASSIGN(const cdc::CaptureTimes times, AskCaptureTimes());
    if (passed.Hear(times)) return true;
  }
}

Result<std::optional<cdc::Offset>> SourceRows::Newest() {
  return AskNewest(*session_, source_);
}

std::optional<pipeline::OrdinalKind> SourceRows::OrdinalOf(
    const std::vector<std::string>& keys) const {
  if (keys.size() != 1) return std::nullopt;
  const std::vector<columns::Field> written = source_.target_fields();
  for (std::size_t i = 0; i < written.size(); ++i) {
    const cdc::ReadColumn& column = source_.columns.columns[i];
    if (!EqualsIgnoringCase(column.field.name, keys[0]) || !column.in_source) continue;
    // Option columns may write a key as another type than the one it is counted in.
    const bool is_same = written[i].type == column.field.type;
    if (is_same) return OrdinalKindOf(column.field.type.kind);
  }
  return std::nullopt;
}

Result<std::optional<cdc::KeyExtent>> SourceRows::Extent(const std::string& key,
                                                         pipeline::OrdinalKind kind) {
  const sqlserver::OrdinalQuestion question{
      source_.instance.source_schema, source_.instance.source_table, key,
      kind == pipeline::OrdinalKind::kDate, Settings()};
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_, sqlserver::AskOrdinalExtent(question), 1));
  const std::optional<cdc::RowView> row = sets[0].FirstRow();
  if (!row) return std::optional<cdc::KeyExtent>();
  TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
  TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
  if (!min || !max) return std::optional<cdc::KeyExtent>();
  return std::optional<cdc::KeyExtent>({*min, *max});
}

Result<pipeline::Slices> SourceRows::Count(const std::string& key,
                                           pipeline::OrdinalKind kind,
                                           std::int64_t width) {
  const sqlserver::OrdinalQuestion question{
      source_.instance.source_schema, source_.instance.source_table, key,
      kind == pipeline::OrdinalKind::kDate, Settings()};
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(*session_, sqlserver::CountOrdinals(question, width), 1));
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

Result<std::vector<pipeline::KeyRange>> SourceRows::PlanRanges(
    const std::vector<std::string>& keys, std::int64_t row_count) {
  const std::vector<pipeline::KeyRange> one(1);
  TRY_ASSIGN(const TableKeys bound, AskKeysOf(*session_, source_, keys));
  if (bound.types.empty()) return one;
  ranged_by_ = KeyColumnsOf(bound);
  return AskSeekRanges(*session_, source_, bound, row_count, Settings());
}

std::unique_ptr<columns::BatchReader> SourceRows::AllRows() {
  return Read(std::nullopt);
}

std::unique_ptr<columns::BatchReader> SourceRows::Rows(
    const pipeline::KeyRange& range) {
  if (!range.lo && !range.hi) return AllRows();
  return Read(reader::KeyedSpan{ranged_by_, SpanOf(range)});
}

std::unique_ptr<columns::BatchReader> SourceRows::Rows(
    const std::string& key, pipeline::OrdinalKind kind,
    const std::optional<std::int64_t>& lo, const std::optional<std::int64_t>& hi) {
  const bool is_date = kind == pipeline::OrdinalKind::kDate;
  const auto bound = [&](const std::optional<std::int64_t>& value) {
    std::optional<sqlserver::KeyBound> texts;
    if (!value) return texts;
    if (!is_date) return std::optional(sqlserver::KeyBound{std::to_string(*value)});
    if (*value <= kDayMin || *value > kDayMax) return texts;
    const std::string day = columns::DateText(static_cast<std::int32_t>(*value));
    return std::optional(sqlserver::KeyBound{day});
  };
  sqlserver::KeyColumn column{key, is_date ? "date" : "", "", false};
  return Read(reader::KeyedSpan{{std::move(column)}, {bound(lo), bound(hi)}});
}

std::unique_ptr<columns::BatchReader> SourceRows::Read(
    std::optional<reader::KeyedSpan> keyed) {
  sqlserver::BatchLimits limits;
  limits.row_count_max = config_.arrow_batch_size;
  reader::SnapshotPlan plan{config_.capture_instance,
                            source_.instance.source_schema,
                            source_.instance.source_table,
                            source_.columns.columns,
                            config_.include_command_id,
                            "",
                            cdc::KeyRange{},
                            cdc::Offset{},
                            Settings(),
                            limits,
                            std::move(keyed)};
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
                               const TakeKey& take) {
  TRY_ASSIGN(const std::optional<cdc::Offset> newest, Newest());
  if (!newest || newest->lsn <= after) return Unit{};
  std::vector<cdc::CaptureInstance> instances;
  for (const cdc::InstanceFacts& facts : source_.instances) {
    instances.push_back(facts.columns.instance);
  }
  std::vector<columns::Field> fields;
  std::vector<columns::Field> written;
  const std::vector<columns::Field> all_written = source_.target_fields();
  for (const std::string& key : keys) {
    for (std::size_t i = 0; i < all_written.size(); ++i) {
      if (!EqualsIgnoringCase(all_written[i].name, key)) continue;
      fields.push_back(source_.columns.columns[i].field);
      written.push_back(all_written[i]);
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
    std::unique_ptr<columns::BatchReader> rows = std::make_unique<reader::ChangeReader>(
        std::move(plan), *session_, clock_, stop_);
    if (!source_.declared.empty()) {
      rows = std::make_unique<reader::CastReader>(std::move(rows), from.instance.name,
                                                  written);
    }
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
      TRY_ASSIGN(pipeline::RowKeys of, pipeline::RowKeys::Of(*batch, keys));
      const bool has_numbers = HasNumbers(*batch, keys);
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        take(of.At(i), has_numbers ? of.Number(i) : std::nullopt);
      }
    }
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime

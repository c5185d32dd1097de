#include "reader/change_reader.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cdc/cells.h"
#include "cdc/output_columns.h"
#include "cdc/read_plan.h"
#include "cdc/type_fit.h"
#include "columns/take.h"
#include "reader/make_columns.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::reader {
namespace {

using columns::Kind;
using columns::RecordBatch;
using columns::SchemaPtr;

Error OutOfOrder(const ChangePlan& plan) {
  return Error(ErrorId::kTdsMalformed)
      .With("reason", "changes came out of order or from outside the window")
      .With("capture_instance", plan.capture_instance)
      .With("after", plan.window.after.Text())
      .With("through", plan.window.through.Text());
}

// All rows of the next result set, which has few. Errors: InternalError without one.
Result<std::vector<RecordBatch>> NextSmallSet(sqlserver::Reply& reply) {
  TRY_ASSIGN(const std::optional<SchemaPtr> schema, reply.NextResult());
  if (!schema) {
    return Error(ErrorId::kTdsMalformed).With("reason", "an answer is incomplete");
  }
  std::vector<RecordBatch> batches;
  while (true) {
    TRY_ASSIGN(std::optional<RecordBatch> batch, reply.NextBatch());
    if (!batch) return batches;
    if (batch->row_count != 0) batches.push_back(*std::move(batch));
  }
}

// Where a written column is among the columns of an answer.
std::size_t RowIndexOf(const ChangePlan& plan, std::size_t field_index) {
  std::size_t index = plan.command_id ? 5 : 4;
  for (std::size_t i = 0; i < field_index; ++i) {
    index += plan.reads.empty() || plan.reads[i].name.has_value();
  }
  return index;
}

RecordBatch TakeRows(const RecordBatch& batch, std::int64_t first, std::int64_t end) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = first; row < end; ++row) rows.push_back(row);
  RecordBatch taken{batch.schema, end - first, {}};
  for (const ColumnPtr& column : batch.columns) {
    taken.columns.push_back(
        std::make_shared<const columns::Column>(columns::Take(*column, rows)));
  }
  return taken;
}

// Gives the one row of `half`, an image before an update, the large values that it
// lacks from the first of `rows`, the image after.
Status FillHalf(const ChangePlan& plan, RecordBatch& half, const RecordBatch& rows) {
  const std::int64_t first = 0;
  TRY_ASSIGN(const std::optional<std::int64_t> operation,
             cdc::IntegerCell(*rows.columns[2], first));
  if (operation != static_cast<std::int64_t>(cdc::Operation::kUpdateAfter)) {
    return Unit{};
  }
  const ColumnPtr& masks = half.columns.back();
  for (const cdc::MaskColumn& column : plan.mask.columns) {
    const std::size_t index = RowIndexOf(plan, column.field_index);
    const bool is_lacking =
        column.large != cdc::LargeValue::kNone &&
        columns::IsNull(*half.columns[index], first) &&
        !columns::IsNull(*masks, first) &&
        !cdc::IsWritten(columns::BytesValue(*masks, first), column.ordinal);
    if (!is_lacking) continue;
    half.columns[index] = std::make_shared<const columns::Column>(
        columns::Take(*rows.columns[index], {&first, 1}));
  }
  return Unit{};
}

}  // namespace

Status CheckTypes(const std::string& capture_instance, const columns::Schema& got,
                  std::size_t first, const std::vector<columns::Field>& expected) {
  if (got.fields.size() != first + expected.size()) {
    return Error(ErrorId::kTdsMalformed).With("reason", "an answer lacks columns");
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const columns::Type& found = got.fields[first + i].type;
    if (found == expected[i].type) continue;
    return Error(ErrorId::kSchemaChanged)
        .With("capture_instance", capture_instance)
        .With("column", expected[i].name)
        .With("planned", columns::DeltaTypeName(expected[i].type))
        .With("found", columns::DeltaTypeName(found));
  }
  return Unit{};
}

// The columns that are the same in every row of the batch.
class ChangeReader::Constants {
 public:
  Constants(std::string instance, std::int32_t batch_id)
      : instance_([instance = std::move(instance)](std::int64_t rows) {
          return TextConstant(instance, rows);
        }),
        batch_id_(
            [batch_id](std::int64_t rows) { return Int32Constant(batch_id, rows); }),
        no_snapshot_([](std::int64_t rows) { return NullColumn({Kind::kUtf8}, rows); }),
        no_chunk_([](std::int64_t rows) { return NullColumn({Kind::kInt32}, rows); }) {}

  using Column = Reused<std::function<ColumnPtr(std::int64_t)>>;
  Column instance_;
  Column batch_id_;
  Column no_snapshot_;
  Column no_chunk_;
};

ChangeReader::ChangeReader(ChangePlan plan, sqlserver::Session& session, Clock& clock,
                           const std::atomic<bool>& stop)
    : plan_(std::move(plan)),
      session_(session),
      clock_(clock),
      stop_(stop),
      schema_(std::make_shared<const columns::Schema>(
          cdc::OutputSchema(plan_.columns, plan_.command_id))),
      constants_(std::make_unique<Constants>(plan_.capture_instance, plan_.batch_id)) {}

ChangeReader::~ChangeReader() = default;

Result<std::optional<RecordBatch>> ChangeReader::Next() {
  const std::int64_t begin_ns = clock_.MonotonicNs();
  Result<std::optional<RecordBatch>> batch = NextTimed();
  counts_.read_ns += clock_.MonotonicNs() - begin_ns;
  return batch;
}

Result<std::optional<RecordBatch>> ChangeReader::NextTimed() {
  if (!reply_) TRY(Start());
  while (true) {
    if (stop_.load(std::memory_order_relaxed)) return Error(ErrorId::kStopped);
    TRY_ASSIGN(std::optional<RecordBatch> rows, NextRows());
    if (!rows) break;
    if (rows->row_count == 0) continue;
    TRY_ASSIGN(RecordBatch shaped, Shape(*std::move(rows)));
    counts_.size_bytes += static_cast<std::int64_t>(shaped.SizeBytes());
    return std::optional<RecordBatch>(std::move(shaped));
  }
  TRY(FinishReply());
  return std::optional<RecordBatch>();
}

// As the server gives them, but that both halves of a pair come together where one
// needs the other.
Result<std::optional<RecordBatch>> ChangeReader::NextRows() {
  if (next_rows_) return std::exchange(next_rows_, std::nullopt);
  if (rows_ended_) return std::optional<RecordBatch>();
  TRY_ASSIGN(std::optional<RecordBatch> rows, reply_->NextBatch());
  if (rows && rows->row_count == 0) return rows;
  if (rows) TRY(Count(*rows));
  rows_ended_ = !rows;
  const bool fills =
      plan_.mask.is_asked() && plan_.mask.unchanged_lob == cdc::UnchangedLob::kPrevious;
  if (!fills) return rows;
  std::optional<RecordBatch> half = std::exchange(half_pair_, std::nullopt);
  if (rows) {
    // The row that was kept is the one before the first of these.
    if (half) TRY(FillHalf(plan_, *half, *rows));
    TRY_ASSIGN(rows, KeepHalfPair(*std::move(rows)));
  }
  if (!half) return rows;
  next_rows_ = std::move(rows);
  return half;
}

Result<RecordBatch> ChangeReader::KeepHalfPair(RecordBatch rows) {
  TRY_ASSIGN(const MaskRows mask,
             MaskRows::Of(plan_.mask, *rows.columns[2], *rows.columns.back()));
  if (!mask.EndsInPair()) return rows;
  half_pair_ = TakeRows(rows, rows.row_count - 1, rows.row_count);
  return TakeRows(rows, 0, rows.row_count - 1);
}

Status ChangeReader::ApplyMask(RecordBatch& rows, std::vector<ColumnPtr>& made) const {
  made.resize(plan_.columns.size());
  if (!plan_.mask.is_asked()) return Unit{};
  const ColumnPtr masks = std::move(rows.columns.back());
  rows.columns.pop_back();
  TRY_ASSIGN(const MaskRows mask, MaskRows::Of(plan_.mask, *rows.columns[2], *masks));
  std::vector<const columns::Column*> values;
  for (const cdc::MaskColumn& column : plan_.mask.columns) {
    ColumnPtr& value = rows.columns[RowIndexOf(plan_, column.field_index)];
    const bool is_filled = column.large != cdc::LargeValue::kNone &&
                           plan_.mask.unchanged_lob == cdc::UnchangedLob::kPrevious;
    if (is_filled) value = mask.WithPrevious(column, value);
    values.push_back(value.get());
  }
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    const std::string& name = plan_.columns[i].name;
    if (name == cdc::kChangedColumns) made[i] = mask.ChangedNames();
    if (name == cdc::kUnknownColumns) made[i] = mask.UnknownNames(values);
  }
  return Unit{};
}

Status ChangeReader::Start() {
  sqlserver::ChangesQuestion question;
  question.capture_instance = plan_.capture_instance;
  question.after = plan_.window.after.bytes;
  question.through = plan_.window.through.bytes;
  question.command_id = plan_.command_id;
  question.zone = plan_.clock.ServerZone();
  question.network_wait = plan_.network_wait;
  question.update_mask = plan_.mask.is_asked();
  std::vector<columns::Field> expected;
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    const columns::Field& field = plan_.columns[i];
    if (!IsRead(i)) continue;
    sqlserver::SelectedColumn& column = question.columns.emplace_back();
    column.name = plan_.reads.empty() ? field.name : *plan_.reads[i].name;
    expected.push_back(field);
    if (plan_.reads.empty() || plan_.reads[i].type == field.type) continue;
    // Types that do not fit are left as they are, and found below.
    if (plan_.reads[i].type && cdc::Fits(*plan_.reads[i].type, field.type)) {
      column.cast_to = SqlTypeName(field.type);
    }
  }
  if (question.update_mask) expected.push_back({"__$update_mask", {Kind::kBinary}});
  TRY_ASSIGN(reply_, session_.Execute(sqlserver::ReadChanges(question), plan_.limits));
  TRY_ASSIGN(const std::optional<SchemaPtr> got, reply_->NextResult());
  if (!got) {
    return Error(ErrorId::kTdsMalformed).With("reason", "a read has no result set");
  }
  return CheckTypes(plan_.capture_instance, **got, plan_.command_id ? 5 : 4, expected);
}

Result<RecordBatch> ChangeReader::Shape(RecordBatch rows) {
  const std::size_t commit_index = plan_.command_id ? 4 : 3;
  std::vector<ColumnPtr> made;
  TRY(ApplyMask(rows, made));
  RecordBatch shaped{schema_, rows.row_count, {}};
  shaped.columns.reserve(schema_->fields.size());
  shaped.columns.push_back(constants_->instance_.For(rows.row_count));
  TRY_ASSIGN(LsnColumn start_lsn, LsnTexts(*rows.columns[0]));
  const cdc::Lsn first = LsnAt(*rows.columns[0], 0);
  if (!start_lsn.ascending || first <= plan_.window.after ||
      (counts_.max_lsn && first < *counts_.max_lsn)) {
    return OutOfOrder(plan_);
  }
  if (!counts_.min_lsn) counts_.min_lsn = first;
  counts_.max_lsn = LsnAt(*rows.columns[0], rows.row_count - 1);
  if (plan_.window.through < *counts_.max_lsn) return OutOfOrder(plan_);
  shaped.columns.push_back(std::move(start_lsn.texts));
  TRY_ASSIGN(LsnColumn seqval, LsnTexts(*rows.columns[1]));
  shaped.columns.push_back(std::move(seqval.texts));
  for (std::size_t i = 2; i < commit_index; ++i) {  // Operation, command id.
    shaped.columns.push_back(std::move(rows.columns[i]));
  }
  TRY_ASSIGN(CommitTimes times,
             CommitTimesUtc(*rows.columns[commit_index], plan_.clock));
  counts_.min_commit_us = counts_.min_commit_us
                              ? std::min(*counts_.min_commit_us, *times.min_us)
                              : times.min_us;
  counts_.max_commit_us = counts_.max_commit_us
                              ? std::max(*counts_.max_commit_us, *times.max_us)
                              : times.max_us;
  shaped.columns.push_back(std::move(times.column));
  std::size_t next = commit_index + 1;
  for (std::size_t i = 0; i < plan_.columns.size(); ++i) {
    if (made[i]) {
      shaped.columns.push_back(std::move(made[i]));
      continue;
    }
    shaped.columns.push_back(
        IsRead(i) ? std::move(rows.columns[next++])
                  : reader::NullColumn(plan_.columns[i].type, rows.row_count));
  }
  shaped.columns.push_back(constants_->batch_id_.For(rows.row_count));
  shaped.columns.push_back(constants_->no_snapshot_.For(rows.row_count));
  shaped.columns.push_back(constants_->no_chunk_.For(rows.row_count));
  return shaped;
}

Status ChangeReader::Count(const RecordBatch& rows) {
  const columns::Column& operation = *rows.columns[2];
  if (operation.type.kind != Kind::kInt32 || operation.null_count != 0) {
    return Error(ErrorId::kTdsMalformed).With("reason", "an operation is no int");
  }
  const auto* operations =
      reinterpret_cast<const std::int32_t*>(operation.values.data());
  std::int64_t by_operation[5] = {};
  for (std::int64_t i = 0; i < rows.row_count; ++i) {
    const std::int32_t number = operations[i];
    if (number < 1 || number > 4) {
      return Error(ErrorId::kTdsMalformed)
          .With("reason", "a change has an unknown operation")
          .With("operation", std::to_string(number));
    }
    ++by_operation[number];
  }
  counts_.deletes += by_operation[1];
  counts_.inserts += by_operation[2];
  counts_.updates += by_operation[4];
  counts_.row_count += rows.row_count;
  return Unit{};
}

Status ChangeReader::FinishReply() {
  AfterRead after;
  TRY_ASSIGN(const std::vector<RecordBatch> min, NextSmallSet(*reply_));
  if (!min.empty()) {
    TRY_ASSIGN(after.instance_min, cdc::RowView(min[0], 0).LsnOf("min_lsn"));
  }
  TRY_ASSIGN(const std::vector<RecordBatch> min_time, NextSmallSet(*reply_));
  if (!min_time.empty()) {
    TRY_ASSIGN(after.instance_min_commit_us,
               cdc::RowView(min_time[0], 0).Integer("commit_time"));
    if (after.instance_min_commit_us) {
      after.instance_min_commit_us =
          cdc::CommitUtcUs(plan_.clock, *after.instance_min_commit_us);
    }
  }
  TRY_ASSIGN(const std::vector<RecordBatch> newest, NextSmallSet(*reply_));
  if (!newest.empty()) {
    const cdc::RowView row(newest[0], 0);
    TRY_ASSIGN(const std::optional<cdc::Lsn> lsn, row.LsnOf("lsn"));
    TRY_ASSIGN(const std::optional<std::int64_t> time, row.Integer("commit_time"));
    if (lsn) {
      after.newest = cdc::Offset{*lsn, std::nullopt};
      if (time) after.newest->commit_us = cdc::CommitUtcUs(plan_.clock, *time);
    }
  }
  if (plan_.network_wait) {
    TRY_ASSIGN(const std::vector<RecordBatch> wait, NextSmallSet(*reply_));
    after.network_wait_ms = 0;
    if (!wait.empty()) {
      TRY_ASSIGN(after.network_wait_ms, cdc::RowView(wait[0], 0).Integer("wait_ms"));
    }
  }
  TRY(reply_->Finish());
  after.may_lack_rows = cdc::CleanupReached(plan_.window, after.instance_min);
  if (after.may_lack_rows && (plan_.fail_on_data_loss || !after.instance_min)) {
    return Error(ErrorId::kDataLoss)
        .With("capture_instance", plan_.capture_instance)
        .With("position", plan_.window.after.Text())
        .With("first_readable",
              after.instance_min ? after.instance_min->Text() : "none")
        .With("when", "while they were read");
  }
  after_read_ = after;
  return Unit{};
}

}  // namespace mssql_cdc::reader

#include "reader/snapshot_reader.h"

#include <utility>

#include "cdc/output_columns.h"
#include "reader/change_reader.h"
#include "reader/make_columns.h"

namespace mssql_cdc::reader {
namespace {

using columns::Field;
using columns::Kind;
using columns::RecordBatch;
using columns::SchemaPtr;

SchemaPtr ShapeOf(const SnapshotPlan& plan) {
  std::vector<Field> captured;
  for (const cdc::ReadColumn& column : plan.columns) captured.push_back(column.field);
  return std::make_shared<const columns::Schema>(
      cdc::OutputSchema(captured, plan.command_id));
}

// The constant columns of a batch, in the shape's order; captured ones that are read
// stay empty.
std::vector<ColumnPtr> MakeConstants(const SnapshotPlan& plan, std::int64_t row_count) {
  const std::string lsn = plan.stamp.lsn.Text();
  const ColumnPtr stamp = TextConstant(lsn, row_count);
  const ColumnPtr no_number = NullColumn({Kind::kInt32}, row_count);
  std::vector<ColumnPtr> made = {
      TextConstant(plan.capture_instance, row_count), stamp,
      NullColumn({Kind::kUtf8}, row_count),
      Int32Constant(static_cast<int>(cdc::Operation::kSnapshot), row_count)};
  if (plan.command_id) made.push_back(no_number);
  made.push_back(plan.stamp.commit_us
                     ? TimestampConstant(*plan.stamp.commit_us, row_count)
                     : NullColumn({Kind::kTimestampNtz}, row_count));
  for (const cdc::ReadColumn& column : plan.columns) {
    made.push_back(column.in_source ? nullptr
                                    : NullColumn(column.field.type, row_count));
  }
  made.push_back(no_number);  // _batch_id
  // _snapshot and _chunk
  made.push_back(plan.chunk ? TextConstant(plan.chunk->snapshot.Text(), row_count)
                            : stamp);
  made.push_back(plan.chunk ? Int32Constant(plan.chunk->number, row_count) : no_number);
  return made;
}

}  // namespace

SnapshotReader::SnapshotReader(SnapshotPlan plan, LendSession lend,
                               const std::atomic<bool>& stop, Progress progress)
    : plan_(std::move(plan)),
      lend_(std::move(lend)),
      stop_(stop),
      progress_(std::move(progress)),
      schema_(ShapeOf(plan_)) {}

SnapshotReader::~SnapshotReader() = default;

Result<std::optional<RecordBatch>> SnapshotReader::Next() {
  if (!reply_) TRY(Start());
  while (true) {
    if (stop_.load(std::memory_order_relaxed)) return Error(ErrorId::kStopped);
    TRY_ASSIGN(std::optional<RecordBatch> rows, reply_->NextBatch());
    if (!rows) {
      TRY_ASSIGN(const bool has_more, NextSet());
      if (!has_more) break;
      continue;
    }
    if (rows->row_count == 0) continue;
    RecordBatch shaped = Shape(*std::move(rows));
    if (progress_) {
      progress_(shaped.row_count, static_cast<std::int64_t>(shaped.SizeBytes()));
    }
    return std::optional<RecordBatch>(std::move(shaped));
  }
  TRY(reply_->Finish());
  reply_.reset();
  session_.reset();
  if (progress_) progress_(0, 0);
  return std::optional<RecordBatch>();
}

Status SnapshotReader::Start() {
  std::vector<sqlserver::SelectedColumn> selected;
  for (const cdc::ReadColumn& column : plan_.columns) {
    if (!column.in_source) continue;
    selected.push_back(
        {column.field.name, column.is_widened ? SqlTypeName(column.field.type) : ""});
    expected_.push_back(column.field);
  }
  if (selected.empty()) {
    return Error(ErrorId::kColumnNotReadable)
        .With("capture_instance", plan_.capture_instance)
        .With("reason", "the source table has none of the captured columns any more");
  }
  TRY_ASSIGN(session_, lend_());
  TRY_ASSIGN(reply_, session_->Execute(RequestFor(std::move(selected)), plan_.limits));
  TRY_ASSIGN(const bool has_set, NextSet());
  if (has_set) return Unit{};
  return Error(ErrorId::kTdsMalformed).With("reason", "a read has no result set");
}

sqlserver::Request SnapshotReader::RequestFor(
    std::vector<sqlserver::SelectedColumn> columns) const {
  if (plan_.keyed) {
    return sqlserver::ReadChunk(
        {{plan_.source_schema, plan_.source_table, plan_.keyed->keys, plan_.settings},
         plan_.keyed->span,
         std::move(columns)});
  }
  return sqlserver::ReadSnapshot({plan_.source_schema, plan_.source_table,
                                  std::move(columns), plan_.key, plan_.range.after,
                                  plan_.range.through, plan_.settings});
}

Result<bool> SnapshotReader::NextSet() {
  TRY_ASSIGN(const std::optional<SchemaPtr> got, reply_->NextResult());
  if (!got) return false;
  TRY(CheckTypes(plan_.capture_instance, **got, 0, expected_));
  return true;
}

RecordBatch SnapshotReader::Shape(RecordBatch rows) {
  if (constants_.empty() || constants_[0]->row_count != rows.row_count) {
    constants_ = MakeConstants(plan_, rows.row_count);
  }
  RecordBatch shaped{schema_, rows.row_count, constants_};
  std::size_t next = 0;
  for (auto& column : shaped.columns) {
    if (!column) column = std::move(rows.columns[next++]);
  }
  return shaped;
}

}  // namespace mssql_cdc::reader

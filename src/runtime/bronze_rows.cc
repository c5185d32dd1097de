#include "runtime/bronze_rows.h"

#include <algorithm>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "columns/take.h"

namespace mssql_cdc::runtime {
namespace {

using columns::Column;
using columns::Kind;

Error Unfit(std::string_view column) {
  return Error(ErrorId::kLakeSchemaMismatch)
      .With("column", std::string(column))
      .With("detail", "not as this product's tables have it");
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The usual form is read at once; others as Lsn::Parse does.
Result<cdc::Lsn> ParseLsn(std::string_view text) {
  cdc::Lsn lsn;
  if (text.size() == 2 + 2 * lsn.bytes.size() && text.starts_with("0x")) {
    bool is_hex = true;
    for (std::size_t i = 0; i < lsn.bytes.size(); ++i) {
      const int high = HexValue(text[2 + 2 * i]);
      const int low = HexValue(text[3 + 2 * i]);
      is_hex = is_hex && high >= 0 && low >= 0;
      lsn.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    if (is_hex) return lsn;
  }
  return cdc::Lsn::Parse(text);
}

bool HasValue(const Column* column, std::int64_t row) {
  return column != nullptr && !columns::IsNull(*column, row);
}

}  // namespace

BronzeMarks::BronzeMarks(const columns::RecordBatch& batch)
    : batch_(batch),
      instance_(Find("_capture_instance")),
      lsn_(Find("_start_lsn")),
      seqval_(Find("_seqval")),
      operation_(Find("_operation")),
      command_id_(Find("_command_id")),
      snapshot_(Find("_snapshot")),
      chunk_(Find("_chunk")) {}

const Column* BronzeMarks::Find(std::string_view name) const {
  for (std::size_t i = 0; i < batch_.columns.size(); ++i) {
    if (EqualsIgnoringAsciiCase(batch_.schema->fields[i].name, name)) {
      return batch_.columns[i].get();
    }
  }
  return nullptr;
}

Result<pipeline::RowMark> BronzeMarks::Mark(std::int64_t row) {
  if (!HasValue(lsn_, row) || lsn_->type.kind != Kind::kUtf8) {
    return Unfit("_start_lsn");
  }
  if (!HasValue(operation_, row) || operation_->type.kind != Kind::kInt32) {
    return Unfit("_operation");
  }
  pipeline::RowMark mark;
  mark.operation = columns::FixedValue<std::int32_t>(*operation_, row);
  TRY_ASSIGN(mark.lsn, ParseLsn(columns::BytesValue(*lsn_, row)));
  if (HasValue(snapshot_, row)) {
    if (snapshot_->type.kind != Kind::kUtf8) return Unfit("_snapshot");
    TRY_ASSIGN(mark.snapshot, ParseLsn(columns::BytesValue(*snapshot_, row)));
  }
  if (HasValue(chunk_, row)) {
    if (chunk_->type.kind != Kind::kInt32) return Unfit("_chunk");
    mark.chunk = columns::FixedValue<std::int32_t>(*chunk_, row);
  }
  return mark;
}

Result<pipeline::ChangeOrder> BronzeMarks::Order(std::int64_t row,
                                                 const pipeline::RowMark& mark) {
  pipeline::ChangeOrder order;
  order.lsn = mark.lsn;
  order.operation = mark.operation;
  if (HasValue(command_id_, row)) {
    if (command_id_->type.kind != Kind::kInt32) return Unfit("_command_id");
    order.command_id = columns::FixedValue<std::int32_t>(*command_id_, row);
  }
  if (HasValue(seqval_, row)) {
    if (seqval_->type.kind != Kind::kUtf8) return Unfit("_seqval");
    order.has_seqval = true;
    TRY_ASSIGN(order.seqval, ParseLsn(columns::BytesValue(*seqval_, row)));
  }
  return order;
}

std::optional<std::string_view> BronzeMarks::Instance(std::int64_t row) const {
  if (!HasValue(instance_, row) || instance_->type.kind != Kind::kUtf8) {
    return std::nullopt;
  }
  return columns::BytesValue(*instance_, row);
}

std::vector<std::string> Present(const columns::Schema& schema,
                                 const std::vector<std::string>& wanted) {
  std::vector<std::string> present;
  for (const std::string& name : wanted) {
    const bool is_there = std::any_of(schema.fields.begin(), schema.fields.end(),
                                      [&](const columns::Field& field) {
                                        return EqualsIgnoringCase(field.name, name);
                                      });
    if (is_there) present.push_back(name);
  }
  return present;
}

bool InstanceFilter::IsOurs(std::string_view instance) {
  if (has_last_ && instance == last_) return last_is_ours_;
  last_ = instance;
  has_last_ = true;
  last_is_ours_ =
      std::find(names_.begin(), names_.end(), LowerCase(instance)) != names_.end();
  return last_is_ours_;
}

Result<std::unique_ptr<columns::BatchReader>> BronzeWindow::Read(
    lake::Lake& lake, const std::vector<std::string>& columns) const {
  lake::ReadSpec spec;
  spec.columns = columns;
  spec.version = version;
  if (const auto bound = window.LowerBound()) {
    using Operator = lake::Condition::Operator;
    spec.conditions = {{"_start_lsn",
                        bound->is_exclusive ? Operator::kAbove : Operator::kAtLeast,
                        bound->lsn.Text()}};
  }
  return lake.Read(location, spec);
}

Result<std::optional<columns::RecordBatch>> ChosenRows::Next() {
  while (true) {
    TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows_->Next());
    if (!batch) return std::optional<columns::RecordBatch>();
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < batch->row_count; ++row) {
      if (ordinal_ >= chosen_.size()) {
        return Error(ErrorId::kInternalError).With("reason", "bronze grew in a read");
      }
      if (chosen_[ordinal_++]) rows.push_back(row);
    }
    if (rows.empty()) continue;
    if (static_cast<std::int64_t>(rows.size()) == batch->row_count) return batch;
    columns::RecordBatch chosen{
        batch->schema, static_cast<std::int64_t>(rows.size()), {}};
    for (const auto& column : batch->columns) {
      chosen.columns.push_back(
          std::make_shared<const Column>(columns::Take(*column, rows)));
    }
    return std::optional<columns::RecordBatch>(std::move(chosen));
  }
}

}  // namespace mssql_cdc::runtime

#include "pipeline/control.h"

#include <memory>
#include <utility>

#include "base/text.h"
#include "cdc/cells.h"
#include "pipeline/tables.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::ColumnBuilder;
using columns::Kind;

constexpr std::int64_t kMinuteUs = 60'000'000;

Result<std::optional<cdc::Lsn>> ParseLsn(const std::optional<std::string>& text) {
  if (!text) return std::optional<cdc::Lsn>();
  TRY_ASSIGN(const cdc::Lsn lsn, cdc::Lsn::Parse(*text));
  return std::optional<cdc::Lsn>(lsn);
}

std::optional<std::string> LsnText(const std::optional<cdc::Lsn>& lsn) {
  if (!lsn) return std::nullopt;
  return lsn->Text();
}

void Append(ColumnBuilder& out, const std::optional<std::string>& text) {
  if (text) {
    out.AppendBytes(*text);
  } else {
    out.AppendNull();
  }
}

void Append(ColumnBuilder& out, const std::optional<std::int64_t>& number) {
  if (!number) {
    out.AppendNull();
  } else if (out.type().kind == Kind::kInt32) {
    out.AppendInt32(static_cast<std::int32_t>(*number));
  } else {
    out.AppendInt64(*number);
  }
}

bool Has(const columns::RecordBatch& batch, std::string_view name) {
  return cdc::ColumnIndex(*batch.schema, name).ok();
}

Result<std::optional<std::string>> Text(const columns::RecordBatch& batch,
                                        std::int64_t row, std::string_view name) {
  if (!Has(batch, name)) return std::optional<std::string>();
  return cdc::RowView(batch, row).Text(name);
}

Result<std::optional<std::int64_t>> Number(const columns::RecordBatch& batch,
                                           std::int64_t row, std::string_view name) {
  if (!Has(batch, name)) return std::optional<std::int64_t>();
  return cdc::RowView(batch, row).Integer(name);
}

}  // namespace

Result<SilverPosition> ControlRow::Position() const {
  SilverPosition position;
  TRY_ASSIGN(position.applied, ParseLsn(applied_lsn));
  TRY_ASSIGN(position.rebuilt_from, ParseLsn(snapshot_lsn));
  TRY_ASSIGN(position.open_snapshot, ParseLsn(open_snapshot_lsn));
  position.wave = snapshot_wave;
  return position;
}

columns::RecordBatch ControlBatch(const ControlRow& row) {
  auto schema = std::make_shared<columns::Schema>(ControlTable().schema);
  columns::RecordBatch batch{schema, 1, {}};
  std::size_t index = 0;
  const auto add = [&](const auto& value) {
    ColumnBuilder builder(schema->fields[index++].type, 1);
    Append(builder, value);
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
  };
  add(std::optional<std::string>(row.table_name));
  add(row.finalized_until);
  add(row.end_lsn);
  add(row.end_commit_ts);
  add(row.updated_at);
  add(row.applied_lsn);
  add(row.snapshot_lsn);
  add(row.open_snapshot_lsn);
  add(row.snapshot_wave);
  return batch;
}

Result<ControlRow> ParseControlRow(const columns::RecordBatch& batch,
                                   std::int64_t row) {
  ControlRow parsed;
  TRY_ASSIGN(const std::optional<std::string> name, Text(batch, row, "table_name"));
  parsed.table_name = name.value_or("");
  TRY_ASSIGN(parsed.finalized_until, Number(batch, row, "finalized_until"));
  TRY_ASSIGN(parsed.end_lsn, Text(batch, row, "end_lsn"));
  TRY_ASSIGN(parsed.end_commit_ts, Number(batch, row, "end_commit_ts"));
  TRY_ASSIGN(parsed.updated_at, Number(batch, row, "updated_at"));
  TRY_ASSIGN(parsed.applied_lsn, Text(batch, row, "applied_lsn"));
  TRY_ASSIGN(parsed.snapshot_lsn, Text(batch, row, "snapshot_lsn"));
  TRY_ASSIGN(parsed.open_snapshot_lsn, Text(batch, row, "open_snapshot_lsn"));
  TRY_ASSIGN(parsed.snapshot_wave, Number(batch, row, "snapshot_wave"));
  return parsed;
}

Result<Granularity> ParseGranularity(std::string_view text) {
  const std::string name = LowerAscii(Trim(text));
  if (name == "minute") return Granularity::kMinute;
  if (name == "hour") return Granularity::kHour;
  if (name == "day") return Granularity::kDay;
  return Error(ErrorId::kOptionInvalid)
      .With("option", "granularity")
      .With("value", std::string(text))
      .With("allowed", "minute, hour, day");
}

std::int64_t Truncate(std::int64_t utc_us, Granularity granularity) {
  std::int64_t period_us = kMinuteUs;
  if (granularity == Granularity::kHour) period_us = 60 * kMinuteUs;
  if (granularity == Granularity::kDay) period_us = 24 * 60 * kMinuteUs;
  std::int64_t rest = utc_us % period_us;
  if (rest < 0) rest += period_us;
  return utc_us - rest;
}

std::optional<ControlRow> Advanced(const ControlRow& row,
                                   const std::optional<cdc::Offset>& end,
                                   Granularity granularity, std::int64_t now_us) {
  if (!end || !end->commit_us) return std::nullopt;
  const std::int64_t until = Truncate(*end->commit_us, granularity);
  if (row.finalized_until && until <= *row.finalized_until) return std::nullopt;
  ControlRow moved = row;
  moved.finalized_until = until;
  moved.end_lsn = end->lsn.Text();
  moved.end_commit_ts = *end->commit_us;
  moved.updated_at = now_us;
  return moved;
}

std::optional<ControlRow> Forgotten(const ControlRow& row) {
  ControlRow empty;
  empty.table_name = row.table_name;
  if (empty == row) return std::nullopt;
  return empty;
}

std::optional<ControlRow> Positioned(const ControlRow& row,
                                     const SilverPosition& position) {
  ControlRow moved = row;
  moved.applied_lsn = LsnText(position.applied);
  moved.snapshot_lsn = LsnText(position.rebuilt_from);
  moved.open_snapshot_lsn = LsnText(position.open_snapshot);
  moved.snapshot_wave = position.wave;
  if (moved == row) return std::nullopt;
  return moved;
}

}  // namespace mssql_cdc::pipeline

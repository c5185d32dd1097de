#include "runtime/control_table.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cdc/cells.h"
#include "runtime/ensure_table.h"

namespace mssql_cdc::runtime {
namespace {

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

Result<pipeline::ControlRow> ControlTable::Update(const std::string& table_name,
                                                  const Change& change) {
  ControlUpdates alone;
  ControlUpdates& updates = joined_ != nullptr ? *joined_ : alone;
  return updates.Update({lake_, clock_, dice_, location_}, table_name, change);
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

#include "runtime/moved_keys.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "pipeline/row_key.h"
#include "runtime/bronze_rows.h"

namespace mssql_cdc::runtime {
namespace {

// `position` becomes what bronze has everything up to.
Status TakeBatch(const columns::RecordBatch& batch,
                 const std::vector<std::string>& key_names, bool has_numbers,
                 const SourceRows::TakeKey& take, cdc::Lsn& position) {
  BronzeMarks marks(batch);
  TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(batch, key_names));
  for (std::int64_t i = 0; i < batch.row_count; ++i) {
    TRY_ASSIGN(const pipeline::RowMark mark, marks.Mark(i));
    if (!mark.is_change()) {
      if (mark.chunk && mark.snapshot) position = std::max(position, *mark.snapshot);
      continue;
    }
    position = std::max(position, mark.lsn);
    take(keys.At(i), has_numbers ? keys.Number(i) : std::nullopt);
  }
  return Unit{};
}

}  // namespace

Status EachMovedKey(lake::Lake& lake, const SilverConfig& config, SourceRows& source,
                    const std::vector<std::string>& keys, const cdc::Lsn& lower,
                    const SourceRows::TakeKey& take) {
  cdc::Lsn position = lower;
  TRY_ASSIGN(const std::optional<lake::TableState> bronze,
             lake.State(config.bronze_location));
  if (bronze) {
    lake::ReadSpec spec;
    spec.version = bronze->version;
    spec.columns =
        Present(bronze->schema, {"_operation", "_start_lsn", "_snapshot", "_chunk"});
    spec.columns.insert(spec.columns.end(), keys.begin(), keys.end());
    spec.conditions = {{"_start_lsn", lake::Condition::Operator::kAbove, lower.Text()}};
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               lake.Read(config.bronze_location, spec));
    const bool has_numbers = source.OrdinalOf(keys).has_value();
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
      TRY(TakeBatch(*batch, keys, has_numbers, take, position));
    }
  }
  return source.ChangedKeys(position, keys, take);
}

}  // namespace mssql_cdc::runtime

#include "runtime/row_comparison.h"

#include <utility>

#include "cdc/cells.h"
#include "pipeline/row_key.h"

namespace mssql_cdc::runtime {
namespace {

// The columns of a row one by one.
Result<std::vector<pipeline::RowKeys>> EachColumn(
    const columns::RecordBatch& batch, const std::vector<std::string>& names) {
  std::vector<pipeline::RowKeys> each;
  for (const std::string& name : names) {
    TRY_ASSIGN(pipeline::RowKeys one, pipeline::RowKeys::Of(batch, {name}));
    each.push_back(std::move(one));
  }
  return each;
}

}  // namespace

Status RowComparison::TakeSilver(columns::BatchReader& rows) {
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) return Unit{};
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    TRY_ASSIGN(pipeline::RowKeys values, pipeline::RowKeys::Of(*batch, columns_));
    TRY_ASSIGN(const std::size_t lsn, cdc::ColumnIndex(*batch->schema, "_start_lsn"));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      Held held;
      held.digest = pipeline::HashOf(values.At(i));
      TRY_ASSIGN(const std::optional<std::string_view> text,
                 cdc::TextCell(*batch->columns[lsn], i));
      if (text) held.lsn = *text;
      held.key_json = pipeline::KeyJson(*batch, i, keys_);
      silver_.emplace(std::string(keys.At(i)), std::move(held));
    }
  }
}

Status RowComparison::TakeSource(columns::BatchReader& rows) {
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) return Unit{};
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    TRY_ASSIGN(pipeline::RowKeys values, pipeline::RowKeys::Of(*batch, columns_));
    TRY_ASSIGN(std::vector<pipeline::RowKeys> each, EachColumn(*batch, columns_));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      std::string key(keys.At(i));
      const auto found = silver_.find(key);
      if (found == silver_.end()) {
        missing_.emplace(std::move(key), pipeline::KeyJson(*batch, i, keys_));
        continue;
      }
      found->second.is_met = true;
      if (found->second.digest == pipeline::HashOf(values.At(i))) continue;
      Changed changed{found->second.key_json, found->second.lsn, {}, {}};
      for (pipeline::RowKeys& column : each) {
        changed.digests.push_back(pipeline::HashOf(column.At(i)));
      }
      changed_.emplace(std::move(key), std::move(changed));
    }
  }
}

void RowComparison::Finish() {
  for (auto& [key, held] : silver_) {
    if (!held.is_met) superfluous_.emplace(key, std::move(held));
  }
  silver_.clear();
}

Status RowComparison::NameColumns(columns::BatchReader& rows) {
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) return Unit{};
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    TRY_ASSIGN(std::vector<pipeline::RowKeys> each, EachColumn(*batch, columns_));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const auto found = changed_.find(std::string(keys.At(i)));
      if (found == changed_.end()) continue;
      Changed& changed = found->second;
      changed.columns.clear();
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        if (changed.digests[c] != pipeline::HashOf(each[c].At(i))) {
          changed.columns.push_back(columns_[c]);
        }
      }
    }
  }
}

std::vector<Difference> RowComparison::Differences(
    const std::set<std::string>& moved) const {
  std::vector<Difference> differences;
  const auto add = [&](const std::string& key, const std::string& key_json,
                       const char* type, std::string detail) {
    pipeline::Finding finding;
    finding.key = key_json;
    finding.failure_type = moved.contains(key) ? "IN_FLIGHT" : type;
    finding.detail = std::move(detail);
    differences.push_back({key, std::move(finding)});
  };
  for (const auto& [key, json] : missing_) {
    add(key, json, "MISSING_TARGET", pipeline::DetailOf({}, {}));
  }
  for (const auto& [key, held] : superfluous_) {
    add(key, held.key_json, "MISSING_SOURCE", pipeline::DetailOf(held.lsn, {}));
  }
  for (const auto& [key, changed] : changed_) {
    add(key, changed.key_json, "RECORD_DIFF",
        pipeline::DetailOf(changed.lsn, changed.columns));
  }
  return differences;
}

}  // namespace mssql_cdc::runtime

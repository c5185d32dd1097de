#include "runtime/row_comparison.h"

#include <utility>

#include "cdc/cells.h"
#include "columns/take.h"
#include "pipeline/row_key.h"

namespace mssql_cdc::runtime {
namespace {

// What a row of a group costs beside its texts and digests: nodes and headers.
constexpr std::size_t kRowSizeBytes = 160;

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

std::uint32_t ShortHashOf(std::string_view bytes) {
  return static_cast<std::uint32_t>(pipeline::HashOf(bytes));
}

Result<std::optional<std::string>> LsnOf(const columns::RecordBatch& batch,
                                         std::int64_t row) {
  TRY_ASSIGN(const std::optional<std::string_view> text,
             cdc::TextCell(*batch.columns[batch.columns.size() - 3], row));
  if (!text) return std::optional<std::string>();
  return std::optional<std::string>(*text);
}

}  // namespace

Result<bool> RowComparison::TakeSource(columns::BatchReader& rows,
                                       const Bounds& bounds) {
  if (bounds_.empty() || bounds_.back() != bounds) bounds_.push_back(bounds);
  const auto range = static_cast<std::int32_t>(bounds_.size() - 1);
  while (size_bytes_ < size_bytes_max_) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) return false;
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    TRY_ASSIGN(pipeline::RowKeys values, pipeline::RowKeys::Of(*batch, columns_));
    TRY_ASSIGN(std::vector<pipeline::RowKeys> each, EachColumn(*batch, columns_));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      Held held;
      held.digest = pipeline::HashOf(values.At(i));
      held.first_column = column_digests_.size();
      held.key_json = pipeline::KeyJson(*batch, i, keys_);
      held.bounds = range;
      const std::string_view key = keys.At(i);
      size_bytes_ += kRowSizeBytes + key.size() + held.key_json.size() +
                     each.size() * sizeof(std::uint32_t);
      for (pipeline::RowKeys& column : each) {
        column_digests_.push_back(ShortHashOf(column.At(i)));
      }
      group_.insert_or_assign(std::string(key), std::move(held));
    }
  }
  return true;
}

Status RowComparison::MeetSilver(columns::BatchReader& rows, bool all_source_taken) {
  ++group_count_;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows.Next());
    if (!batch) break;
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
    TRY_ASSIGN(pipeline::RowKeys values, pipeline::RowKeys::Of(*batch, columns_));
    for (std::int64_t i = 0; i < batch->row_count; ++i) {
      const std::string key(keys.At(i));
      const auto held = group_.find(key);
      const bool is_met = held != group_.end();
      // Two rows of silver with one key: one of them is too many.
      const bool is_second = is_met && held->second.is_met;
      const bool was_met = WasMet(*batch, i, is_met && !all_source_taken);
      if (is_met && !is_second) {
        TRY(MeetRow(*batch, i, key, pipeline::HashOf(values.At(i)), held->second));
      } else if (is_second || (all_source_taken && !was_met)) {
        TRY(AddSuperfluous(*batch, i, key));
      }
    }
  }
  for (auto& [key, held] : group_) {
    if (held.is_met) continue;
    found_.insert_or_assign(key, Found{"MISSING_TARGET", std::move(held.key_json),
                                       pipeline::DetailOf({}, {}), held.bounds});
  }
  group_.clear();
  column_digests_.clear();
  size_bytes_ = 0;
  return Unit{};
}

Status RowComparison::MeetRow(const columns::RecordBatch& batch, std::int64_t row,
                              std::string_view key, std::uint64_t digest, Held& held) {
  held.is_met = true;
  if (held.digest == digest) return Unit{};
  TRY_ASSIGN(std::vector<pipeline::RowKeys> each, EachColumn(batch, columns_));
  std::vector<std::string> names;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (column_digests_[held.first_column + c] != ShortHashOf(each[c].At(row))) {
      names.push_back(columns_[c]);
    }
  }
  TRY_ASSIGN(const std::optional<std::string> lsn, LsnOf(batch, row));
  found_.insert_or_assign(
      std::string(key),
      Found{"RECORD_DIFF", held.key_json, pipeline::DetailOf(lsn, names), held.bounds});
  return Unit{};
}

Status RowComparison::AddSuperfluous(const columns::RecordBatch& batch,
                                     std::int64_t row, std::string_view key) {
  TRY_ASSIGN(const std::optional<std::string> lsn, LsnOf(batch, row));
  found_.insert_or_assign(std::string(key),
                          Found{"MISSING_SOURCE", pipeline::KeyJson(batch, row, keys_),
                                pipeline::DetailOf(lsn, {}), -1});
  return Unit{};
}

bool RowComparison::WasMet(const columns::RecordBatch& batch, std::int64_t row,
                           bool is_met) {
  const std::size_t count = batch.columns.size();
  const auto file = columns::FixedValue<std::int32_t>(*batch.columns[count - 2], row);
  const auto number = static_cast<std::size_t>(
      columns::FixedValue<std::int64_t>(*batch.columns[count - 1], row));
  if (!is_met && !met_.contains(file)) return false;
  std::vector<bool>& met = met_[file];
  if (met.size() <= number) {
    if (!is_met) return false;
    met.resize(number + 1);
  }
  const bool was = met[number];
  if (is_met) met[number] = true;
  return was;
}

bool RowComparison::IsDifferent(std::string_view key) const {
  return found_.find(key) != found_.end();
}

bool RowComparison::HasDifferenceBeside(const std::set<std::string>& moved) const {
  for (const auto& [key, found] : found_) {
    if (!moved.contains(key)) return true;
  }
  return false;
}

std::vector<Difference> RowComparison::Differences(
    const std::set<std::string>& moved) const {
  std::vector<Difference> differences;
  for (const auto& [key, found] : found_) {
    pipeline::Finding finding;
    finding.key = found.key_json;
    finding.failure_type = moved.contains(key) ? "IN_FLIGHT" : found.type;
    finding.detail = found.detail;
    // A row that the source lacks lies in no range of the source's, if they are many.
    const std::size_t range =
        found.bounds >= 0 ? static_cast<std::size_t>(found.bounds) : 0;
    if (found.bounds >= 0 || bounds_.size() == 1) {
      finding.bucket_lo = bounds_[range].first;
      finding.bucket_hi = bounds_[range].second;
    }
    differences.push_back({key, std::move(finding)});
  }
  return differences;
}

}  // namespace mssql_cdc::runtime

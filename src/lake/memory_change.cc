#include "lake/memory_change.h"

#include <numeric>
#include <utility>

#include "columns/take.h"
#include "lake/fields.h"
#include "lake/memory_rows.h"

namespace mssql_cdc::lake {
namespace {

std::shared_ptr<const columns::Column> FileColumn(std::int32_t file,
                                                  std::int64_t row_count) {
  columns::ColumnBuilder builder({columns::Kind::kInt32}, row_count);
  for (std::int64_t i = 0; i < row_count; ++i) builder.AppendInt32(file);
  return std::make_shared<const columns::Column>(builder.Finish());
}

std::shared_ptr<const columns::Column> RowColumn(std::int64_t row_count) {
  columns::ColumnBuilder builder({columns::Kind::kInt64}, row_count);
  for (std::int64_t i = 0; i < row_count; ++i) builder.AppendInt64(i);
  return std::make_shared<const columns::Column>(builder.Finish());
}

// The batch without those rows; nullopt if none is left.
std::optional<columns::RecordBatch> Without(const columns::RecordBatch& batch,
                                            const std::set<std::int64_t>& gone) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < batch.row_count; ++row) {
    if (!gone.contains(row)) rows.push_back(row);
  }
  if (rows.empty()) return std::nullopt;
  columns::RecordBatch left{batch.schema, static_cast<std::int64_t>(rows.size()), {}};
  for (const auto& column : batch.columns) {
    left.columns.push_back(
        std::make_shared<const columns::Column>(columns::Take(*column, rows)));
  }
  return left;
}

}  // namespace

MemoryChange::MemoryChange(MemoryLake& lake, std::string location, std::int64_t version,
                           columns::Schema schema,
                           std::vector<columns::RecordBatch> batches,
                           const ChangeSpec& spec)
    : lake_(lake),
      location_(std::move(location)),
      version_(version),
      schema_(std::move(schema)),
      batches_(std::move(batches)),
      kind_(spec.kind),
      commits_nothing_(spec.commits_nothing) {
  for (const columns::RecordBatch& batch : batches_) {
    files_.push_back(
        {batch.row_count, 0, static_cast<std::int64_t>(batch.SizeBytes())});
  }
}

Result<std::unique_ptr<columns::BatchReader>> MemoryChange::Probe(
    const ProbeSpec& spec) {
  columns::Schema shown;
  for (const std::string& name : spec.columns) {
    const columns::Field* field = FindField(schema_.fields, name);
    if (field == nullptr) {
      return Error(ErrorId::kLakeSchemaMismatch)
          .With("table", location_)
          .With("column", name);
    }
    shown.fields.push_back(*field);
  }
  const auto columns_only = std::make_shared<const columns::Schema>(shown);
  shown.fields.push_back({kFileColumn, {columns::Kind::kInt32}, false});
  shown.fields.push_back({kRowColumn, {columns::Kind::kInt64}, false});
  const auto schema = std::make_shared<const columns::Schema>(std::move(shown));
  std::vector<std::int32_t> files(batches_.size());
  std::iota(files.begin(), files.end(), 0);
  if (spec.files) files = *spec.files;
  std::vector<columns::RecordBatch> found;
  for (const std::int32_t file : files) {
    const columns::RecordBatch& batch = batches_[static_cast<std::size_t>(file)];
    auto rows = SelectRows(batch, columns_only, {});
    if (!rows) continue;
    rows->schema = schema;
    rows->columns.push_back(FileColumn(file, batch.row_count));
    rows->columns.push_back(RowColumn(batch.row_count));
    found.push_back(std::move(*rows));
  }
  return columns::ReadBatches(schema, std::move(found));
}

Status MemoryChange::Remove(std::int32_t file, std::span<const std::int64_t> rows) {
  removed_[file].insert(rows.begin(), rows.end());
  return Unit{};
}

Status MemoryChange::Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) {
  for (auto& source : sources) {
    while (true) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, source->Next());
      if (!batch) break;
      added_.push_back(std::move(*batch));
    }
  }
  return Unit{};
}

Result<ChangeResult> MemoryChange::Commit(
    const std::optional<std::string>& user_metadata) {
  ChangeResult result;
  result.version = version_;
  for (const columns::RecordBatch& batch : added_) {
    result.added_count += batch.row_count;
    result.size_bytes += static_cast<std::int64_t>(batch.SizeBytes());
  }
  for (const auto& [file, rows] : removed_) {
    result.removed_count += static_cast<std::int64_t>(rows.size());
  }
  if (result.added_count == 0 && result.removed_count == 0 && !commits_nothing_) {
    return result;
  }
  const std::lock_guard lock(lake_.mutex_);
  TRY(lake_.CheckReachable(location_));
  TRY(lake_.CheckConflict(location_));
  TRY_ASSIGN(MemoryLake::Table * table, lake_.Find(location_));
  if (table->version() != version_) {
    return Error(ErrorId::kLakeConflict).With("table", location_);
  }
  std::vector<columns::RecordBatch> batches;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const auto removed = removed_.find(static_cast<std::int32_t>(i));
    if (removed == removed_.end()) {
      batches.push_back(batches_[i]);
      continue;
    }
    auto left = Without(batches_[i], removed->second);
    if (left) batches.push_back(std::move(*left));
  }
  for (columns::RecordBatch& batch : added_) batches.push_back(std::move(batch));
  table->batches = std::move(batches);
  result.is_committed = true;
  result.version = version_ + 1;
  TRY(lake_.Commit(*table, location_,
                   kind_ == ChangeKind::kMerge ? "MERGE" : "OPTIMIZE", user_metadata));
  return result;
}

}  // namespace mssql_cdc::lake

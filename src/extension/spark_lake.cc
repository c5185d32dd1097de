#include "extension/spark_lake.h"

#include <algorithm>
#include <utility>

namespace mssql_cdc::extension {

Result<std::optional<lake::TableState>> SparkLake::State(const std::string& location) {
  if (!IsCopy(location)) return tables_.State(location);
  lake::TableState state;
  state.schema = *copy_;
  return std::optional<lake::TableState>(std::move(state));
}

Result<std::unique_ptr<columns::BatchReader>> SparkLake::Read(
    const std::string& location, const lake::ReadSpec& spec) {
  if (!IsCopy(location)) return tables_.Read(location, spec);
  auto schema = std::make_shared<columns::Schema>();
  for (const std::string& name : spec.columns) {
    const auto found = std::ranges::find(copy_->fields, name, &columns::Field::name);
    if (found != copy_->fields.end()) schema->fields.push_back(*found);
  }
  return columns::ReadBatches(std::move(schema), {});
}

Result<lake::AppendResult> SparkLake::Append(
    const std::string& location,
    std::vector<std::unique_ptr<columns::BatchReader>> sources,
    const lake::AppendSpec& spec) {
  if (location != target_ || !write_snapshot_) {
    return tables_.Append(location, std::move(sources), spec);
  }
  sources.clear();
  lake::AppendResult result;
  std::optional<std::string> metadata;
  if (spec.user_metadata) {
    TRY_ASSIGN(metadata, spec.user_metadata());
  }
  TRY_ASSIGN(result.row_count, write_snapshot_(metadata.value_or(""), spec.txn));
  if (result.row_count == 0) result.outcome = lake::AppendOutcome::kNoRows;
  return result;
}

}  // namespace mssql_cdc::extension

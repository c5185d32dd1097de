#include "extension/spark_lake.h"

#include <utility>

namespace mssql_cdc::extension {

Result<std::optional<lake::TableState>> SparkLake::State(const std::string& location) {
  if (forgets_snapshots_ && location == target_) {
    return std::optional<lake::TableState>();
  }
  return tables_.State(location);
}

Result<lake::AppendResult> SparkLake::Append(
    const std::string& location,
    std::vector<std::unique_ptr<columns::BatchReader>> sources,
    const lake::AppendSpec& spec) {
  lake::AppendResult result;
  if (location == target_ && !spec.txn && write_snapshot_) {
    sources.clear();
    std::optional<std::string> metadata;
    if (spec.user_metadata) {
      TRY_ASSIGN(metadata, spec.user_metadata());
    }
    TRY_ASSIGN(result.row_count, write_snapshot_(metadata.value_or("")));
    if (result.row_count == 0) result.outcome = lake::AppendOutcome::kNoRows;
    return result;
  }
  if (spares_facts_ && !facts_.empty() && location == facts_) {
    result.outcome = lake::AppendOutcome::kAlreadyThere;
    return result;
  }
  return tables_.Append(location, std::move(sources), spec);
}

}  // namespace mssql_cdc::extension

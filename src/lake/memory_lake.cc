#include "lake/memory_lake.h"

#include <utility>

#include "lake/fields.h"
#include "lake/memory_change.h"
#include "lake/memory_rows.h"

namespace mssql_cdc::lake {
namespace {

Error Unreachable(const std::string& location) {
  return Error(ErrorId::kLakeUnreachable).With("table", location);
}

Error Mismatch(const std::string& location, const std::string& column) {
  return Error(ErrorId::kLakeSchemaMismatch)
      .With("table", location)
      .With("column", column);
}

// The fields of `wanted` that `schema` lacks. Errors: LakeSchemaMismatch for a column
// that it has with another type.
Result<std::vector<columns::Field>> Missing(const columns::Schema& schema,
                                            const std::vector<columns::Field>& wanted,
                                            const std::string& location) {
  std::vector<columns::Field> missing;
  for (const columns::Field& field : wanted) {
    const columns::Field* known = FindField(schema.fields, field.name);
    if (known == nullptr) {
      missing.push_back(field);
    } else if (known->type != field.type) {
      return TypesDiffer(location, *known, field);
    }
  }
  return missing;
}

bool CanCompare(const columns::Field& field, Condition::Operator op) {
  switch (op) {
    case Condition::Operator::kIsNull:
    case Condition::Operator::kIsNotNull:
      return true;
    case Condition::Operator::kNumberIs:
      return field.type.kind == columns::Kind::kInt32;
    case Condition::Operator::kEqual:
    case Condition::Operator::kAbove:
    case Condition::Operator::kAtLeast:
      return field.type.kind == columns::Kind::kUtf8;
  }
  return false;
}

}  // namespace

bool MemoryLake::Table::Holds(const std::optional<Txn>& txn) const {
  if (!txn) return false;
  const auto found = txns.find(txn->app_id);
  return found != txns.end() && found->second >= txn->version;
}

Result<MemoryLake::Table*> MemoryLake::Find(const std::string& location) {
  const auto found = tables_.find(location);
  if (found == tables_.end()) return Unreachable(location);
  return &found->second;
}

Status MemoryLake::CheckReachable(const std::string& location) {
  if (unreachable_count_ == 0) return Unit{};
  --unreachable_count_;
  return Unreachable(location);
}

Status MemoryLake::CheckConflict(const std::string& location) {
  if (conflict_count_ == 0) return Unit{};
  --conflict_count_;
  return Error(ErrorId::kLakeConflict).With("table", location);
}

Status MemoryLake::Commit(Table& table, const std::string& location,
                          std::string operation,
                          std::optional<std::string> user_metadata) {
  const std::int64_t version = table.version() + 1;
  table.older[version] = table.batches;
  table.commits.push_back({version, first_commit_ms_ + version, std::move(operation),
                           std::move(user_metadata)});
  if (std::exchange(loses_reply_, false)) return Unreachable(location);
  return Unit{};
}

void MemoryLake::Drop(const std::string& location) {
  const std::lock_guard lock(mutex_);
  tables_.erase(location);
}

Result<std::optional<TableState>> MemoryLake::State(const std::string& location) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  const auto found = tables_.find(location);
  if (found == tables_.end()) return std::optional<TableState>();
  const Table& table = found->second;
  return std::optional<TableState>({table.version(), table.schema, table.properties});
}

Result<std::optional<std::int64_t>> MemoryLake::LastTxn(const std::string& location,
                                                        const std::string& app_id) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  const auto found = tables_.find(location);
  if (found == tables_.end()) return std::optional<std::int64_t>();
  const auto txn = found->second.txns.find(app_id);
  if (txn == found->second.txns.end()) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(txn->second);
}

Status MemoryLake::Create(const std::string& location, const CreateSpec& spec) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  if (tables_.contains(location)) return Unit{};
  TRY(CheckConflict(location));
  Table& table = tables_[location];
  table.schema = spec.schema;
  table.properties = spec.properties;
  return Commit(table, location, "CREATE TABLE", std::nullopt);
}

Status MemoryLake::Alter(const std::string& location,
                         const std::vector<columns::Field>& add,
                         const std::map<std::string, std::string>& properties) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  TRY_ASSIGN(Table * table, Find(location));
  std::vector<columns::Field> missing;
  for (const columns::Field& field : add) {
    if (FindField(table->schema.fields, field.name) == nullptr &&
        FindField(missing, field.name) == nullptr) {
      missing.push_back(field);
    }
  }
  bool sets = false;
  for (const auto& [key, value] : properties) {
    const auto found = table->properties.find(key);
    sets = sets || found == table->properties.end() || found->second != value;
  }
  if (missing.empty() && !sets) return Unit{};
  TRY(CheckConflict(location));
  for (columns::Field& field : missing) {
    field.nullable = true;
    table->schema.fields.push_back(std::move(field));
  }
  for (const auto& [key, value] : properties) table->properties[key] = value;
  return Commit(*table, location, missing.empty() ? "SET TBLPROPERTIES" : "ADD COLUMNS",
                std::nullopt);
}

Result<AppendResult> MemoryLake::Append(
    const std::string& location,
    std::vector<std::unique_ptr<columns::BatchReader>> sources,
    const AppendSpec& spec) {
  TRY_ASSIGN(const std::vector<columns::Field> fields, FieldsOfAll(sources, location));
  AppendResult result;
  {
    const std::lock_guard lock(mutex_);
    TRY(CheckReachable(location));
    TRY_ASSIGN(Table * table, Find(location));
    result.version = table->version();
    if (table->Holds(spec.txn)) {
      result.outcome = AppendOutcome::kAlreadyThere;
      return result;
    }
    TRY_ASSIGN(const auto missing, Missing(table->schema, fields, location));
    if (!missing.empty() && !spec.merge_schema) {
      return Mismatch(location, missing.front().name);
    }
  }
  std::vector<columns::RecordBatch> batches;
  for (auto& source : sources) {
    while (true) {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, source->Next());
      if (!batch) break;
      result.row_count += batch->row_count;
      result.size_bytes += static_cast<std::int64_t>(batch->SizeBytes());
      batches.push_back(std::move(*batch));
    }
  }
  std::optional<std::string> metadata;
  if (spec.user_metadata) {
    TRY_ASSIGN(metadata, spec.user_metadata());
  }
  if (batches.empty()) {
    result.outcome = AppendOutcome::kNoRows;
    return result;
  }
  const std::lock_guard lock(mutex_);
  TRY(CheckConflict(location));
  TRY_ASSIGN(Table * table, Find(location));
  if (table->Holds(spec.txn)) {
    return AppendResult{AppendOutcome::kAlreadyThere, table->version(), 0, 0};
  }
  TRY_ASSIGN(auto missing, Missing(table->schema, fields, location));
  for (columns::Field& field : missing) {
    field.nullable = true;
    table->schema.fields.push_back(std::move(field));
  }
  for (columns::RecordBatch& batch : batches)
    table->batches.push_back(std::move(batch));
  if (spec.txn) table->txns[spec.txn->app_id] = spec.txn->version;
  TRY(Commit(*table, location, "WRITE", std::move(metadata)));
  result.version = table->version();
  return result;
}

Result<std::vector<CommitInfo>> MemoryLake::History(const std::string& location,
                                                    std::int64_t since_version) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  std::vector<CommitInfo> commits;
  const auto found = tables_.find(location);
  if (found == tables_.end()) return commits;
  for (const CommitInfo& commit : found->second.commits) {
    if (commit.version >= since_version) commits.push_back(commit);
  }
  return commits;
}

Result<std::unique_ptr<columns::BatchReader>> MemoryLake::Read(
    const std::string& location, const ReadSpec& spec) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  TRY_ASSIGN(Table * table, Find(location));
  const std::vector<columns::RecordBatch>* batches = &table->batches;
  if (spec.version && *spec.version != table->version()) {
    const auto kept = table->older.find(*spec.version);
    if (kept == table->older.end()) return Unreachable(location);
    batches = &kept->second;
  }
  columns::Schema shown;
  for (const std::string& name : spec.columns) {
    const columns::Field* field = FindField(table->schema.fields, name);
    if (field == nullptr) return Mismatch(location, name);
    shown.fields.push_back(*field);
  }
  if (shown.fields.empty()) shown = table->schema;
  for (const Condition& condition : spec.conditions) {
    const columns::Field* field = FindField(table->schema.fields, condition.column);
    if (field == nullptr || !CanCompare(*field, condition.op)) {
      return Mismatch(location, condition.column);
    }
  }
  const auto schema = std::make_shared<const columns::Schema>(std::move(shown));
  std::vector<columns::RecordBatch> selected;
  for (const columns::RecordBatch& batch : *batches) {
    auto rows = SelectRows(batch, schema, spec.conditions);
    if (rows) selected.push_back(std::move(*rows));
  }
  return columns::ReadBatches(schema, std::move(selected));
}

Result<std::int64_t> MemoryLake::RowCount(const std::string& location) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  TRY_ASSIGN(Table * table, Find(location));
  std::int64_t count = 0;
  for (const columns::RecordBatch& batch : table->batches) count += batch.row_count;
  return count;
}

Result<std::unique_ptr<TableChange>> MemoryLake::Change(const std::string& location,
                                                        const ChangeSpec& spec) {
  const std::lock_guard lock(mutex_);
  TRY(CheckReachable(location));
  TRY_ASSIGN(Table * table, Find(location));
  TRY_ASSIGN(const auto missing, Missing(table->schema, spec.fields, location));
  if (!missing.empty()) return Mismatch(location, missing.front().name);
  return std::unique_ptr<TableChange>(std::make_unique<MemoryChange>(
      *this, location, table->version(), table->schema, table->batches, spec));
}

Status MemoryLake::EnableDeletionVectors(const std::string& location) {
  return Alter(location, {}, {{kDeletionVectorsProperty, "true"}});
}

}  // namespace mssql_cdc::lake

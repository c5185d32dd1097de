#include "lake/delta_lake.h"

#include <utility>

#include "base/text.h"
#include "lake/delta_abi.h"
#include "lake/delta_change.h"
#include "lake/delta_drain.h"
#include "lake/delta_json.h"
#include "lake/fields.h"

namespace mssql_cdc::lake {

// The handle of one location.
class DeltaLake::Table {
 public:
  explicit Table(MssqlCdcDeltaTable* table) : table_(table) {}
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() { mssql_cdc_delta_close(table_); }

  MssqlCdcDeltaTable* get() const { return table_; }

 private:
  MssqlCdcDeltaTable* table_;
};

DeltaLake::DeltaLake() = default;
DeltaLake::~DeltaLake() = default;

Result<DeltaLake::Table*> DeltaLake::Open(const std::string& location) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Table>& table = tables_[location];
  if (table == nullptr) {
    MssqlCdcDeltaTable* opened = nullptr;
    Text failure;
    const std::int32_t code =
        mssql_cdc_delta_open(location.c_str(), &opened, failure.out());
    if (code != 0) return DeltaError(code, failure.view(), location);
    table = std::make_unique<Table>(opened);
  }
  return table.get();
}

Result<std::optional<TableState>> DeltaLake::State(const std::string& location) {
  TRY_ASSIGN(Table * table, Open(location));
  Text text;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_state(table->get(), text.out(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  if (!text.present()) return std::optional<TableState>();
  TRY_ASSIGN(TableState state, ParseState(text.view()));
  return std::optional<TableState>(std::move(state));
}

Result<std::optional<std::int64_t>> DeltaLake::LastTxn(const std::string& location,
                                                       const std::string& app_id) {
  TRY_ASSIGN(Table * table, Open(location));
  bool has_txn = false;
  std::int64_t version = 0;
  Text failure;
  const std::int32_t code = mssql_cdc_delta_last_txn(table->get(), app_id.c_str(),
                                                     &has_txn, &version, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return has_txn ? std::optional<std::int64_t>(version) : std::nullopt;
}

Status DeltaLake::Create(const std::string& location, const CreateSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_create(table->get(), CreateJson(spec).c_str(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return Unit{};
}

Status DeltaLake::Alter(const std::string& location,
                        const std::vector<columns::Field>& add,
                        const std::map<std::string, std::string>& properties) {
  TRY_ASSIGN(Table * table, Open(location));
  Text failure;
  const std::int32_t code = mssql_cdc_delta_alter(
      table->get(), AlterJson(add, properties).c_str(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return Unit{};
}

Result<AppendResult> DeltaLake::Append(
    const std::string& location,
    std::vector<std::unique_ptr<columns::BatchReader>> sources,
    const AppendSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  TRY_ASSIGN(const std::vector<columns::Field> fields, FieldsOfAll(sources, location));
  AppendResult result;
  Text failure;
  MssqlCdcDeltaAppend* begun = nullptr;
  std::int32_t code =
      mssql_cdc_delta_append_begin(table->get(), AppendJson(spec, fields).c_str(),
                                   &begun, &result.version, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  const AppendPtr append(begun);
  if (append == nullptr) {
    result.outcome = AppendOutcome::kAlreadyThere;
    return result;
  }
  TRY(DrainAll(append.get(), std::move(sources), location));
  std::optional<std::string> metadata;
  if (spec.user_metadata) {
    TRY_ASSIGN(metadata, spec.user_metadata());
  }
  MssqlCdcDeltaDone done{};
  code = mssql_cdc_delta_append_commit(append.get(), table->get(),
                                       metadata ? metadata->c_str() : nullptr, &done,
                                       failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  result.version = done.version;
  result.outcome = done.outcome == MSSQL_CDC_DELTA_COMMITTED ? AppendOutcome::kCommitted
                   : done.outcome == MSSQL_CDC_DELTA_ALREADY_THERE
                       ? AppendOutcome::kAlreadyThere
                       : AppendOutcome::kNoRows;
  if (result.outcome == AppendOutcome::kCommitted) {
    result.row_count = done.row_count;
    result.size_bytes = done.size_bytes;
  }
  return result;
}

Result<std::vector<CommitInfo>> DeltaLake::History(const std::string& location,
                                                   std::int64_t since_version) {
  TRY_ASSIGN(Table * table, Open(location));
  Text text;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_history(table->get(), since_version, text.out(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return ParseHistory(text.view());
}

Result<std::unique_ptr<columns::BatchReader>> DeltaLake::Read(
    const std::string& location, const ReadSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  ArrowArrayStream stream{};
  Text failure;
  const std::int32_t code = mssql_cdc_delta_read(table->get(), ReadJson(spec).c_str(),
                                                 &stream, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return columns::ImportStream(&stream);
}

Result<std::int64_t> DeltaLake::RowCount(const std::string& location) {
  TRY_ASSIGN(Table * table, Open(location));
  std::int64_t count = 0;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_row_count(table->get(), &count, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return count;
}

Result<std::unique_ptr<TableChange>> DeltaLake::Change(const std::string& location,
                                                       const ChangeSpec& spec) {
  TRY_ASSIGN(Table * table, Open(location));
  return DeltaChange::Begin(table->get(), location, spec);
}

Status DeltaLake::EnableDeletionVectors(const std::string& location) {
  TRY_ASSIGN(Table * table, Open(location));
  Text failure;
  const std::int32_t code = mssql_cdc_delta_enable_vectors(table->get(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  return Unit{};
}

}  // namespace mssql_cdc::lake

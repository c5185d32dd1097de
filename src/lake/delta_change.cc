#include "lake/delta_change.h"

#include <utility>

#include "lake/delta_drain.h"
#include "lake/delta_json.h"

namespace mssql_cdc::lake {

Result<std::unique_ptr<TableChange>> DeltaChange::Begin(MssqlCdcDeltaTable* table,
                                                        const std::string& location,
                                                        const ChangeSpec& spec) {
  std::unique_ptr<DeltaChange> change(new DeltaChange(table, location));
  Text files;
  Text failure;
  const std::int32_t code =
      mssql_cdc_delta_change_begin(table, ChangeJson(spec).c_str(), &change->change_,
                                   &change->version_, files.out(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location);
  TRY_ASSIGN(change->files_, ParseFiles(files.view()));
  return std::unique_ptr<TableChange>(std::move(change));
}

DeltaChange::~DeltaChange() { mssql_cdc_delta_append_end(change_); }

Result<std::unique_ptr<columns::BatchReader>> DeltaChange::Probe(
    const ProbeSpec& spec) {
  ArrowArrayStream stream{};
  Text failure;
  const std::int32_t code = mssql_cdc_delta_change_probe(
      change_, ProbeJson(spec).c_str(), &stream, failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location_);
  return columns::ImportStream(&stream);
}

Status DeltaChange::Remove(std::int32_t file, std::span<const std::int64_t> rows) {
  Text failure;
  const std::int32_t code = mssql_cdc_delta_change_remove(change_, file, rows.data(),
                                                          rows.size(), failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location_);
  return Unit{};
}

Status DeltaChange::Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) {
  return DrainAll(change_, std::move(sources), location_);
}

Result<ChangeResult> DeltaChange::Commit(
    const std::optional<std::string>& user_metadata) {
  MssqlCdcDeltaChanged done{};
  Text failure;
  const std::int32_t code = mssql_cdc_delta_change_commit(
      change_, table_, user_metadata ? user_metadata->c_str() : nullptr, &done,
      failure.out());
  if (code != 0) return DeltaError(code, failure.view(), location_);
  return ChangeResult{done.is_committed,        done.version,
                      done.added_count,         done.removed_count,
                      done.rewritten_row_count, done.size_bytes};
}

}  // namespace mssql_cdc::lake

// A change of rows of a Delta table.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lake/delta_abi.h"
#include "lake/lake.h"

namespace mssql_cdc::lake {

class DeltaChange final : public TableChange {
 public:
  // Borrows `table`.
  static Result<std::unique_ptr<TableChange>> Begin(MssqlCdcDeltaTable* table,
                                                    const std::string& location,
                                                    const ChangeSpec& spec);
  ~DeltaChange() override;

  std::int64_t version() const override { return version_; }
  const std::vector<DataFile>& files() const override { return files_; }
  Result<std::unique_ptr<columns::BatchReader>> Probe(const ProbeSpec& spec) override;
  Status Remove(std::int32_t file, std::span<const std::int64_t> rows) override;
  Status Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) override;
  Result<ChangeResult> Commit(const std::optional<std::string>& user_metadata) override;

 private:
  DeltaChange(MssqlCdcDeltaTable* table, std::string location)
      : table_(table), location_(std::move(location)) {}

  MssqlCdcDeltaTable* table_;
  std::string location_;
  MssqlCdcDeltaAppend* change_ = nullptr;
  std::int64_t version_ = 0;
  std::vector<DataFile> files_;
};

}  // namespace mssql_cdc::lake

// A change of rows of a table in memory: each batch stands for a data file.

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lake/memory_lake.h"

namespace mssql_cdc::lake {

class MemoryChange final : public TableChange {
 public:
  // Borrows `lake`. `batches` are those of `version`.
  MemoryChange(MemoryLake& lake, std::string location, std::int64_t version,
               columns::Schema schema, std::vector<columns::RecordBatch> batches,
               const ChangeSpec& spec);

  std::int64_t version() const override { return version_; }
  const std::vector<DataFile>& files() const override { return files_; }
  Result<std::unique_ptr<columns::BatchReader>> Probe(const ProbeSpec& spec) override;
  Status Remove(std::int32_t file, std::span<const std::int64_t> rows) override;
  Status Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) override;
  Result<ChangeResult> Commit(const std::optional<std::string>& user_metadata) override;

 private:
  MemoryLake& lake_;
  std::string location_;
  std::int64_t version_;
  columns::Schema schema_;
  std::vector<columns::RecordBatch> batches_;
  ChangeKind kind_;
  bool commits_nothing_;
  std::vector<DataFile> files_;
  std::map<std::int32_t, std::set<std::int64_t>> removed_;
  std::vector<columns::RecordBatch> added_;
};

}  // namespace mssql_cdc::lake

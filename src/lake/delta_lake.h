// The Lake over Delta tables, on local disk or an object store.
//
// The only user of rust/delta. A local commit is on stable storage before it is
// reported: data files, then the log entry, each with its folder. Credentials of object
// stores come from their usual environment variables.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::lake {

class DeltaLake final : public Lake {
 public:
  DeltaLake();
  // Waits for checkpoints of the log that are being written.
  ~DeltaLake() override;

  Result<std::optional<TableState>> State(const std::string& location) override;
  Result<std::optional<std::int64_t>> LastTxn(const std::string& location,
                                              const std::string& app_id) override;
  Status Create(const std::string& location, const CreateSpec& spec) override;
  Status Alter(const std::string& location, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override;
  Result<AppendResult> Append(
      const std::string& location,
      std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const AppendSpec& spec) override;
  Result<std::vector<CommitInfo>> History(const std::string& location,
                                          std::int64_t since_version) override;
  Result<std::unique_ptr<columns::BatchReader>> Read(const std::string& location,
                                                     const ReadSpec& spec) override;
  Result<std::int64_t> RowCount(const std::string& location) override;
  Result<std::unique_ptr<TableChange>> Change(const std::string& location,
                                              const ChangeSpec& spec) override;
  Status EnableDeletionVectors(const std::string& location) override;

 private:
  class Table;

  // The handle of `location`, made on first use and kept.
  Result<Table*> Open(const std::string& location);

  std::mutex mutex_;  // Guards the map; a table itself has one user at a time.
  std::map<std::string, std::unique_ptr<Table>> tables_;
};

}  // namespace mssql_cdc::lake

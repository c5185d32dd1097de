// A Lake in memory, for tests: it keeps the contract of lake.h, and fails on request.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::lake {

class MemoryLake final : public Lake {
 public:
  MemoryLake() = default;
  // The commit of version v is dated first_commit_ms + v.
  explicit MemoryLake(std::int64_t first_commit_ms)
      : first_commit_ms_(first_commit_ms) {}

  // The next `count` commits (appends, alters, creates) fail with LakeConflict; sources
  // were read, nothing is changed.
  void ConflictNext(int count) { conflict_count_ = count; }
  // The next `count` calls of any kind fail with LakeUnreachable before doing anything.
  void UnreachableNext(int count) { unreachable_count_ = count; }
  // The next commit is made, but is reported as LakeUnreachable: the reply was lost.
  void LoseNextReply() { loses_reply_ = true; }
  // The table is gone, as if its folder had been removed.
  void Drop(const std::string& location);

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
  friend class MemoryChange;

  struct Table {
    columns::Schema schema;
    std::map<std::string, std::string> properties;
    std::map<std::string, std::int64_t> txns;
    std::vector<CommitInfo> commits;
    std::vector<columns::RecordBatch> batches;
    std::map<std::int64_t, std::vector<columns::RecordBatch>> older;  // By version.

    std::int64_t version() const {
      return static_cast<std::int64_t>(commits.size()) - 1;
    }
    bool Holds(const std::optional<Txn>& txn) const;
  };

  // The table, or LakeUnreachable. Requires mutex_.
  Result<Table*> Find(const std::string& location);
  Status CheckReachable(const std::string& location);
  Status CheckConflict(const std::string& location);
  // Adds the commit; its Error if the reply is lost.
  Status Commit(Table& table, const std::string& location, std::string operation,
                std::optional<std::string> user_metadata);

  std::mutex mutex_;  // Not held while sources are read: they may use the lake.
  std::map<std::string, Table> tables_;
  std::int64_t first_commit_ms_ = 0;
  int conflict_count_ = 0;
  int unreachable_count_ = 0;
  bool loses_reply_ = false;
};

}  // namespace mssql_cdc::lake

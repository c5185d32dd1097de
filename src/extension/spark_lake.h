// The lake of a stream on Spark: what the driver asks and records goes through another
// lake, and a whole snapshot or a seed is written by Spark, on its executors.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::extension {

class SparkLake final : public lake::Lake {
 public:
  // Appends what the driver is about to append (the table's rows, or a copy of them) to
  // the target in one commit with this user metadata and txn. Gives the count of rows.
  using WriteSnapshot = std::function<Result<std::int64_t>(
      const std::string&, const std::optional<lake::Txn>&)>;

  // Borrows `tables`.
  SparkLake(lake::Lake& tables, std::string target)
      : tables_(tables), target_(std::move(target)) {}

  void SetWriteSnapshot(WriteSnapshot write) { write_snapshot_ = std::move(write); }
  // A table that only Spark can read, by the name of kCopy.
  void SetCopy(columns::Schema schema) { copy_ = std::move(schema); }
  static constexpr const char* kCopy = "the DataFrame";

  Result<std::optional<lake::TableState>> State(const std::string& location) override;
  Result<std::optional<std::int64_t>> LastTxn(const std::string& location,
                                              const std::string& app_id) override {
    return tables_.LastTxn(location, app_id);
  }
  Status Create(const std::string& location, const lake::CreateSpec& spec) override {
    return tables_.Create(location, spec);
  }
  Status Alter(const std::string& location, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override {
    return tables_.Alter(location, add, properties);
  }
  // An append to the target is Spark's; its sources, which connect only when they are
  // read, are dropped unread.
  Result<lake::AppendResult> Append(
      const std::string& location,
      std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const lake::AppendSpec& spec) override;
  Result<std::vector<lake::CommitInfo>> History(const std::string& location,
                                                std::int64_t since_version) override {
    return tables_.History(location, since_version);
  }
  // Of the copy, no rows.
  Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& location, const lake::ReadSpec& spec) override;
  Result<std::int64_t> RowCount(const std::string& location) override {
    return tables_.RowCount(location);
  }
  Result<std::unique_ptr<lake::TableChange>> Change(
      const std::string& location, const lake::ChangeSpec& spec) override {
    return tables_.Change(location, spec);
  }
  Status EnableDeletionVectors(const std::string& location) override {
    return tables_.EnableDeletionVectors(location);
  }

 private:
  bool IsCopy(const std::string& location) const { return copy_ && location == kCopy; }

  lake::Lake& tables_;
  std::string target_;
  WriteSnapshot write_snapshot_;
  std::optional<columns::Schema> copy_;
};

}  // namespace mssql_cdc::extension

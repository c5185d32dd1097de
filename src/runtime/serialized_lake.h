// A Lake that several threads may use: calls for one table wait for each other.

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::runtime {

class SerializedLake final : public lake::Lake {
 public:
  // Borrows `inner`.
  explicit SerializedLake(lake::Lake& inner) : inner_(inner) {}

  Result<std::optional<lake::TableState>> State(const std::string& location) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.State(location);
  }
  Result<std::optional<std::int64_t>> LastTxn(const std::string& location,
                                              const std::string& app_id) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.LastTxn(location, app_id);
  }
  Status Create(const std::string& location, const lake::CreateSpec& spec) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.Create(location, spec);
  }
  Status Alter(const std::string& location, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.Alter(location, add, properties);
  }
  Result<lake::AppendResult> Append(
      const std::string& location,
      std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const lake::AppendSpec& spec) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.Append(location, std::move(sources), spec);
  }
  Result<std::vector<lake::CommitInfo>> History(const std::string& location,
                                                std::int64_t since_version) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.History(location, since_version);
  }
  Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& location, const lake::ReadSpec& spec) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.Read(location, spec);
  }
  Result<std::int64_t> RowCount(const std::string& location) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.RowCount(location);
  }

 private:
  std::mutex& MutexOf(const std::string& location) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return mutexes_[location];
  }

  lake::Lake& inner_;
  std::mutex mutex_;
  std::map<std::string, std::mutex> mutexes_;
};

}  // namespace mssql_cdc::runtime

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

  // Waits when it begins and when it commits; what is between uses nothing that another
  // call does.
  Result<std::unique_ptr<lake::TableChange>> Change(
      const std::string& location, const lake::ChangeSpec& spec) override {
    std::mutex& mutex = MutexOf(location);
    const std::lock_guard<std::mutex> lock(mutex);
    TRY_ASSIGN(std::unique_ptr<lake::TableChange> begun, inner_.Change(location, spec));
    return std::unique_ptr<lake::TableChange>(
        std::make_unique<SerializedChange>(mutex, std::move(begun)));
  }
  Status EnableDeletionVectors(const std::string& location) override {
    const std::lock_guard<std::mutex> lock(MutexOf(location));
    return inner_.EnableDeletionVectors(location);
  }

 private:
  class SerializedChange final : public lake::TableChange {
   public:
    SerializedChange(std::mutex& mutex, std::unique_ptr<lake::TableChange> inner)
        : mutex_(mutex), inner_(std::move(inner)) {}

    std::int64_t version() const override { return inner_->version(); }
    const std::vector<lake::DataFile>& files() const override {
      return inner_->files();
    }
    Result<std::unique_ptr<columns::BatchReader>> Probe(
        const lake::ProbeSpec& spec) override {
      return inner_->Probe(spec);
    }
    Status Remove(std::int32_t file, std::span<const std::int64_t> rows) override {
      return inner_->Remove(file, rows);
    }
    Status Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) override {
      return inner_->Add(std::move(sources));
    }
    Result<lake::ChangeResult> Commit(
        const std::optional<std::string>& user_metadata) override {
      const std::lock_guard<std::mutex> lock(mutex_);
      return inner_->Commit(user_metadata);
    }

   private:
    std::mutex& mutex_;
    std::unique_ptr<lake::TableChange> inner_;
  };

  std::mutex& MutexOf(const std::string& location) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return mutexes_[location];
  }

  lake::Lake& inner_;
  std::mutex mutex_;
  std::map<std::string, std::mutex> mutexes_;
};

}  // namespace mssql_cdc::runtime

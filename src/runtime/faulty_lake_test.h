// A lake one of whose calls fails, for tests of what a stop at that moment leaves.

#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::runtime {

// A call of the lake that fails: before it did anything, or after it did everything, as
// a kill on either side of it would look to the next run.
class FaultyLake final : public lake::Lake {
 public:
  explicit FaultyLake(lake::Lake& inner) : inner_(inner) {}

  std::atomic<std::int64_t> call_count = 0;  // Calls come from several threads.
  std::int64_t fail_before = -1;
  std::int64_t fail_after = -1;

  Result<std::optional<lake::TableState>> State(const std::string& l) override {
    return Do([&] { return inner_.State(l); });
  }
  Result<std::optional<std::int64_t>> LastTxn(const std::string& l,
                                              const std::string& id) override {
    return Do([&] { return inner_.LastTxn(l, id); });
  }
  Status Create(const std::string& l, const lake::CreateSpec& spec) override {
    return Do([&] { return inner_.Create(l, spec); });
  }
  Status Alter(const std::string& l, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override {
    return Do([&] { return inner_.Alter(l, add, properties); });
  }
  Result<lake::AppendResult> Append(
      const std::string& l, std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const lake::AppendSpec& spec) override {
    return Do([&] { return inner_.Append(l, std::move(sources), spec); });
  }
  Result<std::vector<lake::CommitInfo>> History(const std::string& l,
                                                std::int64_t since) override {
    return Do([&] { return inner_.History(l, since); });
  }
  Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& l, const lake::ReadSpec& spec) override {
    return Do([&] { return inner_.Read(l, spec); });
  }
  Result<std::int64_t> RowCount(const std::string& l) override {
    return Do([&] { return inner_.RowCount(l); });
  }
  Result<std::unique_ptr<lake::TableChange>> Change(
      const std::string& l, const lake::ChangeSpec& spec) override {
    auto begun = Do([&] { return inner_.Change(l, spec); });
    if (!begun.ok()) return std::move(begun).error();
    return std::unique_ptr<lake::TableChange>(
        std::make_unique<FaultyChange>(*this, std::move(begun).value()));
  }
  Status EnableDeletionVectors(const std::string& l) override {
    return Do([&] { return inner_.EnableDeletionVectors(l); });
  }

 private:
  class FaultyChange final : public lake::TableChange {
   public:
    FaultyChange(FaultyLake& lake, std::unique_ptr<lake::TableChange> inner)
        : lake_(lake), inner_(std::move(inner)) {}

    std::int64_t version() const override { return inner_->version(); }
    const std::vector<lake::DataFile>& files() const override {
      return inner_->files();
    }
    Result<std::unique_ptr<columns::BatchReader>> Probe(
        const lake::ProbeSpec& spec) override {
      return lake_.Do([&] { return inner_->Probe(spec); });
    }
    Status Remove(std::int32_t file, std::span<const std::int64_t> rows) override {
      return lake_.Do([&] { return inner_->Remove(file, rows); });
    }
    Status Add(std::vector<std::unique_ptr<columns::BatchReader>> sources) override {
      return lake_.Do([&] { return inner_->Add(std::move(sources)); });
    }
    Result<lake::ChangeResult> Commit(
        const std::optional<std::string>& user_metadata) override {
      return lake_.Do([&] { return inner_->Commit(user_metadata); });
    }

   private:
    FaultyLake& lake_;
    std::unique_ptr<lake::TableChange> inner_;
  };

  template <typename F>
  std::invoke_result_t<F> Do(F call) {
    const std::int64_t number = call_count++;
    if (number == fail_before) return Error(ErrorId::kLakeFailed);
    auto result = call();
    if (number == fail_after) return Error(ErrorId::kLakeFailed);
    return result;
  }

  lake::Lake& inner_;
};

}  // namespace mssql_cdc::runtime

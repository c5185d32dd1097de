// A lake that says what is about to happen in it, for tests of what others do
// meanwhile.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lake/lake.h"

namespace mssql_cdc::runtime {

class WatchedLake final : public lake::Lake {
 public:
  explicit WatchedLake(lake::Lake& inner) : inner_(inner) {}

  // Before each call, with its name (Commit for a change's) and table; an error becomes
  // that of the call, which is not made. Not asked while it is being asked.
  using Ask = std::function<Status(std::string_view call, const std::string& location)>;
  Ask before = [](std::string_view, const std::string&) -> Status { return Unit{}; };

  // Rows that Read gave, by location.
  std::map<std::string, std::int64_t> row_counts;
  // Sources of the newest Append, by location.
  std::map<std::string, std::size_t> source_counts;

  Result<std::optional<lake::TableState>> State(const std::string& l) override {
    TRY(About("State", l));
    return inner_.State(l);
  }
  Result<std::optional<std::int64_t>> LastTxn(const std::string& l,
                                              const std::string& id) override {
    TRY(About("LastTxn", l));
    return inner_.LastTxn(l, id);
  }
  Status Create(const std::string& l, const lake::CreateSpec& spec) override {
    TRY(About("Create", l));
    return inner_.Create(l, spec);
  }
  Status Alter(const std::string& l, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override {
    TRY(About("Alter", l));
    return inner_.Alter(l, add, properties);
  }
  Result<lake::AppendResult> Append(
      const std::string& l, std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const lake::AppendSpec& spec) override {
    TRY(About("Append", l));
    source_counts[l] = sources.size();
    return inner_.Append(l, std::move(sources), spec);
  }
  Result<std::vector<lake::CommitInfo>> History(const std::string& l,
                                                std::int64_t since) override {
    TRY(About("History", l));
    return inner_.History(l, since);
  }
  Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& l, const lake::ReadSpec& spec) override {
    TRY(About("Read", l));
    TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows, inner_.Read(l, spec));
    return std::unique_ptr<columns::BatchReader>(
        std::make_unique<CountedRows>(std::move(rows), row_counts[l]));
  }
  Result<std::int64_t> RowCount(const std::string& l) override {
    TRY(About("RowCount", l));
    return inner_.RowCount(l);
  }
  Result<std::unique_ptr<lake::TableChange>> Change(
      const std::string& l, const lake::ChangeSpec& spec) override {
    TRY(About("Change", l));
    TRY_ASSIGN(std::unique_ptr<lake::TableChange> begun, inner_.Change(l, spec));
    return std::unique_ptr<lake::TableChange>(
        std::make_unique<WatchedChange>(*this, l, std::move(begun)));
  }
  Status EnableDeletionVectors(const std::string& l) override {
    TRY(About("EnableDeletionVectors", l));
    return inner_.EnableDeletionVectors(l);
  }

 private:
  class CountedRows final : public columns::BatchReader {
   public:
    CountedRows(std::unique_ptr<columns::BatchReader> rows, std::int64_t& row_count)
        : rows_(std::move(rows)), row_count_(row_count) {}
    columns::SchemaPtr schema() const override { return rows_->schema(); }
    Result<std::optional<columns::RecordBatch>> Next() override {
      TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows_->Next());
      if (batch) row_count_ += batch->row_count;
      return batch;
    }

   private:
    std::unique_ptr<columns::BatchReader> rows_;
    std::int64_t& row_count_;
  };

  class WatchedChange final : public lake::TableChange {
   public:
    WatchedChange(WatchedLake& lake, std::string location,
                  std::unique_ptr<lake::TableChange> inner)
        : lake_(lake), location_(std::move(location)), inner_(std::move(inner)) {}

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
      TRY(lake_.About("Commit", location_));
      return inner_->Commit(user_metadata);
    }

   private:
    WatchedLake& lake_;
    std::string location_;
    std::unique_ptr<lake::TableChange> inner_;
  };

  Status About(std::string_view call, const std::string& location) {
    if (std::exchange(is_asking_, true)) return Unit{};
    Status answer = before(call, location);
    is_asking_ = false;
    return answer;
  }

  lake::Lake& inner_;
  bool is_asking_ = false;
};

}  // namespace mssql_cdc::runtime

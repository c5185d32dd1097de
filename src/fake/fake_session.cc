#include "fake/fake_session.h"

#include <optional>
#include <utility>
#include <vector>

#include "fake/answers.h"

namespace mssql_cdc::fake {
namespace {

class FakeReply final : public sqlserver::Reply {
 public:
  FakeReply(std::vector<ResultSet> sets, bool& clean)
      : sets_(std::move(sets)), clean_(clean) {
    clean_ = false;
  }

  Result<std::optional<columns::SchemaPtr>> NextResult() override {
    if (set_count_ == sets_.size()) {
      clean_ = true;
      return std::optional<columns::SchemaPtr>();
    }
    batch_count_ = 0;
    return std::optional<columns::SchemaPtr>(sets_[set_count_++].schema);
  }
  Result<std::optional<columns::RecordBatch>> NextBatch() override {
    std::vector<columns::RecordBatch>& batches = sets_[set_count_ - 1].batches;
    if (batch_count_ == batches.size()) return std::optional<columns::RecordBatch>();
    return std::optional<columns::RecordBatch>(std::move(batches[batch_count_++]));
  }
  Status Finish() override {
    clean_ = true;
    return Unit{};
  }

 private:
  std::vector<ResultSet> sets_;
  std::size_t set_count_ = 0;    // Gone to.
  std::size_t batch_count_ = 0;  // Handed on of the current set.
  bool& clean_;
};

class FakeSession final : public sqlserver::Session {
 public:
  explicit FakeSession(const std::string& directory) : files_(directory) {
    facts_.product = "the fake of mssql-cdc-pyspark";
    facts_.database = "fake";
  }

  Result<std::unique_ptr<sqlserver::Reply>> Execute(
      const sqlserver::Request& request,
      const sqlserver::BatchLimits& limits) override {
    ++request_count_;
    TRY_ASSIGN(std::vector<ResultSet> sets,
               AnswersTo(files_, request, limits.row_count_max));
    return std::unique_ptr<sqlserver::Reply>(
        std::make_unique<FakeReply>(std::move(sets), clean_));
  }
  void Cancel() override {}  // Answers are there at once.
  bool clean() const override { return clean_; }
  const sqlserver::ServerFacts& facts() const override { return facts_; }
  std::int64_t request_count() const override { return request_count_; }
  void Close() override {}

 private:
  Files files_;
  sqlserver::ServerFacts facts_;
  bool clean_ = true;
  std::int64_t request_count_ = 0;
};

}  // namespace

Result<std::unique_ptr<sqlserver::Session>> OpenSession(const std::string& directory) {
  TRY(Files(directory).Instances());
  return std::unique_ptr<sqlserver::Session>(std::make_unique<FakeSession>(directory));
}

}  // namespace mssql_cdc::fake

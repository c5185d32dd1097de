#include "runtime/range_reader.h"

#include <utility>

#include "cdc/output_columns.h"

namespace mssql_cdc::runtime {
namespace {

class RangeReader final : public columns::BatchReader {
 public:
  RangeReader(RunContext& context, RangeRead& result, sqlserver::Session* session)
      : context_(context),
        result_(result),
        session_(session),
        schema_(std::make_shared<const columns::Schema>(
            cdc::OutputSchema(result.plan.columns, result.plan.command_id))) {}

  columns::SchemaPtr schema() const override { return schema_; }

  Result<std::optional<columns::RecordBatch>> Next() override {
    if (!changes_) TRY(Begin());
    Result<std::optional<columns::RecordBatch>> batch = changes_->Next();
    result_.counts = changes_->counts();
    if (batch.ok() && !batch.value()) {
      result_.after = changes_->after_read();
      changes_.reset();
      lease_ = {};
    }
    return batch;
  }

 private:
  Status Begin() {
    if (session_ == nullptr) {
      TRY_ASSIGN(lease_, context_.pool.Acquire());
      lease_.network_wait_ms.reset();  // It will not be asked for.
      session_ = &*lease_;
    }
    changes_ = std::make_unique<reader::ChangeReader>(result_.plan, *session_,
                                                      context_.clock, context_.stop);
    return Unit{};
  }

  RunContext& context_;
  RangeRead& result_;
  sqlserver::Session* session_;
  columns::SchemaPtr schema_;
  SessionPool::Lease lease_;
  std::unique_ptr<reader::ChangeReader>
      changes_;  // Goes before the session it borrows.
};

}  // namespace

std::unique_ptr<columns::BatchReader> ReadRange(RunContext& context, RangeRead& result,
                                                sqlserver::Session* session) {
  return std::make_unique<RangeReader>(context, result, session);
}

}  // namespace mssql_cdc::runtime

#include "extension/scan.h"

#include <utility>

#include "cdc/output_columns.h"
#include "reader/snapshot_reader.h"

namespace mssql_cdc::extension {

using columns::RecordBatch;

Result<std::unique_ptr<Scan>> Scan::OfChanges(const Options& options,
                                              const TokenCall& token_call,
                                              const std::string& task) {
  TRY_ASSIGN(ChangeTask change, ChangeTask::Parse(task));
  TRY_ASSIGN(std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, token_call, nullptr));
  std::unique_ptr<Scan> scan(new Scan(std::move(context)));
  runtime::RunContext& run = scan->context_->run();
  change.plan.limits = run.Limits(1);
  run.source.instance.name = change.plan.capture_instance;
  run.source.declared = change.declared;
  scan->SetSchema(change.declared.empty() ? change.plan.columns : change.declared,
                  change.plan.command_id);
  scan->changes_.plan = std::move(change.plan);
  return scan;
}

Result<std::unique_ptr<Scan>> Scan::OfSnapshot(const Options& options,
                                               const TokenCall& token_call,
                                               const std::string& task) {
  TRY_ASSIGN(SnapshotTask snapshot, SnapshotTask::Parse(task));
  TRY_ASSIGN(std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, token_call, nullptr));
  std::unique_ptr<Scan> scan(new Scan(std::move(context)));
  runtime::RunContext& run = scan->context_->run();
  snapshot.plan.limits = run.Limits(1);
  run.source.instance.name = snapshot.plan.capture_instance;
  run.source.declared = snapshot.declared;
  std::vector<columns::Field> captured = snapshot.declared;
  if (captured.empty()) {
    for (const cdc::ReadColumn& column : snapshot.plan.columns) {
      captured.push_back(column.field);
    }
  }
  scan->SetSchema(captured, snapshot.plan.command_id);
  scan->snapshot_ = std::move(snapshot);
  return scan;
}

Scan::~Scan() { End(); }

// The rows as the source gives them: the sink's columns are the sink's to add.
void Scan::SetSchema(const std::vector<columns::Field>& captured, bool command_id) {
  columns::Schema schema = cdc::OutputSchema(captured, command_id);
  schema.fields.resize(schema.fields.size() - cdc::SinkColumns().size());
  schema_ = std::make_shared<const columns::Schema>(std::move(schema));
}

Status Scan::Begin() {
  TRY_ASSIGN(runtime::SessionPool::Lease lease, context_->pool().Acquire());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    lease_ = std::move(lease);
  }
  runtime::RunContext& run = context_->run();
  if (snapshot_) {
    // The session stays this scan's; the reader only borrows it.
    const auto lend = [this]() -> Result<reader::LentSession> {
      return reader::LentSession(&*lease_, [](sqlserver::Session*) {});
    };
    reader_ = run.AsWritten(std::make_unique<reader::SnapshotReader>(
        snapshot_->plan, lend, run.stop, reader::SnapshotReader::Progress()));
  } else {
    changes_.counts = {};
    changes_.after.reset();
    reader_ = run.AsWritten(runtime::ReadRange(run, changes_, &*lease_));
  }
  return Unit{};
}

void Scan::End() {
  reader_.reset();
  const std::lock_guard<std::mutex> lock(mutex_);
  lease_ = {};
}

Result<std::optional<RecordBatch>> Scan::Step() {
  if (!reader_) TRY(Begin());
  return reader_->Next();
}

Result<std::optional<RecordBatch>> Scan::Next() {
  if (done_) return std::optional<RecordBatch>();
  const auto step = [this]() -> Result<std::optional<RecordBatch>> {
    Result<std::optional<RecordBatch>> batch = Step();
    if (!batch.ok()) End();
    return batch;
  };
  Result<std::optional<RecordBatch>> batch =
      handed_out_ ? step() : context_->WithRetries<std::optional<RecordBatch>>(step);
  if (!batch.ok()) return batch;
  if (!batch.value()) {
    End();
    done_ = true;
    return batch;
  }
  handed_out_ = true;
  RecordBatch& rows = *batch.value();
  rows.columns.resize(schema_->fields.size());
  rows.schema = schema_;
  return batch;
}

void Scan::Cancel() {
  context_->Stop();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (lease_) lease_->Cancel();
}

std::optional<std::string> Scan::Report() const {
  if (!done_ || snapshot_) return std::nullopt;
  return ReadReport{changes_.plan.capture_instance, changes_.plan.window,
                    changes_.counts, changes_.after}
      .Json();
}

}  // namespace mssql_cdc::extension

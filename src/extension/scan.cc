#include "extension/scan.h"

#include <utility>

#include "cdc/output_columns.h"
#include "reader/snapshot_reader.h"

namespace mssql_cdc::extension {

using columns::RecordBatch;

Result<std::unique_ptr<Scan>> Scan::Open(const Options& options, const Access& access,
                                         const std::string& capture_instance,
                                         const std::vector<columns::Field>& declared) {
  TRY_ASSIGN(std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, access, nullptr));
  std::unique_ptr<Scan> scan(new Scan(std::move(context)));
  runtime::Source& source = scan->context_->run().source;
  source.instance.name = capture_instance;
  source.declared = declared;
  return scan;
}

Result<std::unique_ptr<Scan>> Scan::OfChanges(const Options& options,
                                              const Access& access,
                                              const std::string& task) {
  TRY_ASSIGN(ChangeTask change, ChangeTask::Parse(task));
  TRY_ASSIGN(std::unique_ptr<Scan> scan,
             Open(options, access, change.plan.capture_instance, change.declared));
  change.plan.limits = scan->context_->run().Limits(1);
  scan->SetSchema(change.declared.empty() ? change.plan.columns : change.declared,
                  change.plan.command_id);
  scan->changes_.plan = std::move(change.plan);
  return scan;
}

Result<std::unique_ptr<Scan>> Scan::OfSnapshot(const Options& options,
                                               const Access& access,
                                               const std::string& task) {
  TRY_ASSIGN(SnapshotTask snapshot, SnapshotTask::Parse(task));
  TRY_ASSIGN(std::unique_ptr<Scan> scan,
             Open(options, access, snapshot.plan.capture_instance, snapshot.declared));
  snapshot.plan.limits = scan->context_->run().Limits(1);
  std::vector<columns::Field> captured = snapshot.declared;
  if (captured.empty()) {
    for (const cdc::ReadColumn& column : snapshot.plan.columns) {
      captured.push_back(column.field);
    }
  }
  scan->has_chunk_ = snapshot.plan.chunk.has_value();
  scan->SetSchema(captured, snapshot.plan.command_id);
  scan->snapshot_ = std::move(snapshot);
  return scan;
}

Scan::~Scan() { End(); }

// The rows as the source gives them: the sink's columns are the sink's to add, but for
// the number of a chunk.
void Scan::SetSchema(const std::vector<columns::Field>& captured, bool command_id) {
  columns::Schema schema = cdc::OutputSchema(captured, command_id);
  const columns::Field chunk = schema.fields.back();
  schema.fields.resize(schema.fields.size() - cdc::SinkColumns().size());
  if (has_chunk_) schema.fields.push_back(chunk);
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
  const std::shared_ptr<const columns::Column> chunk = rows.columns.back();
  rows.columns.resize(schema_->fields.size());
  if (has_chunk_) rows.columns.back() = chunk;
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

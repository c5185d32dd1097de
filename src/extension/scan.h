// One task's read: a range of changes, or of the table, as batches for Spark.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "extension/change_task.h"
#include "extension/snapshot_source.h"
#include "extension/source_context.h"
#include "runtime/range_reader.h"

namespace mssql_cdc::extension {

// Pulled by one thread; Cancel may come from another.
class Scan final : public columns::BatchReader {
 public:
  // `task` is one of PlannedReads::tasks. Connects to nothing yet. Errors: those of
  // SourceContext::Open and of ChangeTask::Parse.
  static Result<std::unique_ptr<Scan>> OfChanges(const Options& options,
                                                 const Access& access,
                                                 const std::string& task);
  // `task` is one of PlannedSnapshot::tasks.
  static Result<std::unique_ptr<Scan>> OfSnapshot(const Options& options,
                                                  const Access& access,
                                                  const std::string& task);
  ~Scan() override;

  columns::SchemaPtr schema() const override { return schema_; }
  // Errors: the reader's. A session that was kept and died meanwhile is replaced once,
  // as long as no row was handed out.
  Result<std::optional<columns::RecordBatch>> Next() override;

  // Ends the read soon, with Stopped.
  void Cancel();
  // JSON of a ReadReport once everything was read, of changes only.
  std::optional<std::string> Report() const;

 private:
  explicit Scan(std::unique_ptr<SourceContext> context)
      : context_(std::move(context)) {}
  // For rows of this instance in these columns.
  static Result<std::unique_ptr<Scan>> Open(
      const Options& options, const Access& access, const std::string& capture_instance,
      const std::vector<columns::Field>& declared);
  void SetSchema(const std::vector<columns::Field>& captured, bool command_id);
  Status Begin();
  void End();
  Result<std::optional<columns::RecordBatch>> Step();

  std::unique_ptr<SourceContext> context_;
  std::optional<SnapshotTask> snapshot_;  // Absent: changes are read.
  runtime::RangeRead changes_;
  bool has_chunk_ = false;  // Rows end with their chunk's number.
  columns::SchemaPtr schema_;
  std::mutex mutex_;  // Guards `lease_` against Cancel.
  runtime::SessionPool::Lease lease_;
  std::unique_ptr<columns::BatchReader> reader_;  // Goes before the session it borrows.
  bool handed_out_ = false;
  bool done_ = false;
};

}  // namespace mssql_cdc::extension

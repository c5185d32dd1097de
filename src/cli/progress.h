// Tells a stream's progress to an Output.

#pragma once

#include <mutex>
#include <string>

#include "cli/output.h"
#include "runtime/stream.h"

namespace mssql_cdc::cli {

class Progress final : public runtime::StreamObserver {
 public:
  // Borrows `output` and `clock`. `name` stands before each line.
  Progress(std::string name, Output& output, Clock& clock)
      : name_(std::move(name)), output_(output), clock_(clock) {}

  void OnSnapshotStart(std::int64_t range_count) override;
  void OnSnapshotProgress(const runtime::SnapshotProgress& progress) override;
  void OnSnapshotOpened(const runtime::SnapshotSummary& summary) override;
  void OnSnapshotDone(const runtime::SnapshotSummary& summary) override;
  void OnBatchDone(const runtime::BatchSummary& summary) override;
  void OnIdle(const runtime::IdleSummary& summary) override;
  void OnRunDone(const runtime::RunSummary& summary) override;
  void OnWarning(const std::string& text) override;
  void OnRetry(const Error& error, std::int64_t attempt, std::int64_t wait_ms) override;

 private:
  std::string name_;
  Output& output_;
  Clock& clock_;
  std::mutex mutex_;                   // Guards what follows.
  std::int64_t last_progress_ns_ = 0;  // At most one progress line a second.
  std::string idle_lsn_;               // An idle position is told once.
};

}  // namespace mssql_cdc::cli

// Keeps the verdict of bronze and a silver table fresh while a stream runs.
//
// It listens to the stream and works in a thread of its own, so that the stream never
// waits for silver: what came meanwhile is applied in one go. A silver that fails for
// good stops alone and is told of; bronze goes on.

#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "lake/lake.h"
#include "runtime/apply.h"
#include "runtime/change_watch.h"
#include "runtime/session_pool.h"
#include "runtime/stream.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

// Hears what a keeper does, from its thread.
class SilverObserver {
 public:
  virtual ~SilverObserver() = default;
  virtual void OnApplyDone(const ApplyOutcome& outcome) { (void)outcome; }
  virtual void OnSilverFailed(const Error& error) { (void)error; }
};

class SilverKeeper final : public StreamObserver {
 public:
  // Borrows all. `lake` is used beside the stream's own calls: it must be another one
  // than the stream's, or take calls from several threads.
  struct Parts {
    lake::Lake& lake;
    SessionSource& sessions;
    Clock& clock;
    StreamObserver& inner;
    SilverObserver& told;
    std::uint64_t seed = 0;
    // Shared with other keepers, if there are.
    ControlUpdates* control = nullptr;
    WorkPermits* permits = nullptr;  // How many of them apply at once.
  };
  SilverKeeper(const StreamConfig& config, const Parts& parts);
  ~SilverKeeper() override;

  // Begins to work. Without control_table there is nothing to do.
  void Start();
  // The stream has ended: what is left is applied, then the thread ends. The error is
  // the one that silver stopped with.
  Status Finish();

  void OnSnapshotStart(std::int64_t range_count) override;
  void OnSnapshotProgress(const SnapshotProgress& progress) override;
  void OnSnapshotOpened(const SnapshotSummary& summary) override;
  void OnSnapshotDone(const SnapshotSummary& summary) override;
  void OnBatchDone(const BatchSummary& summary) override;
  void OnIdle(const IdleSummary& summary) override;
  void OnRunDone(const RunSummary& summary) override;
  void OnWarning(const std::string& text) override;
  void OnRetry(const Error& error, std::int64_t attempt, std::int64_t wait_ms) override;

 private:
  // Everything up to `lsn` is in bronze; `has_rows`: there may be something to apply.
  void Note(const std::string& lsn, const std::string& commit_ts, bool has_rows);
  void Work();
  void Fail(const Error& error);
  Status Round(const std::optional<cdc::Offset>& end, bool has_rows);
  Status ApplyOnce();
  // What a snapshot explains that the stream may be about to take.
  bool IsForNow(const Error& error, bool has_begun) const;
  void Tell(const std::string& text);

  const StreamConfig& config_;
  Parts parts_;
  Dice dice_;
  std::thread thread_;

  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::optional<cdc::Offset> end_;
  bool is_noted_ = false;
  bool has_rows_ = false;
  bool is_ending_ = false;
  bool has_begun_ = false;  // The stream, to read changes: its snapshot is taken.

  // Of the thread.
  std::optional<SilverConfig> silver_;
  KnownFacts known_;
  std::optional<std::int64_t> advanced_us_;  // The newest verdict written or seen.
  std::string warned_;
  std::optional<Error> failure_;
  std::optional<Error> for_now_;  // A failure, unless the stream makes it good.
};

}  // namespace mssql_cdc::runtime

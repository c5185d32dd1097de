// Reads an open chunked snapshot, wave by wave, beside the stream that goes on from its
// S.
//
// A wave is some chunks of the plan: stamped, then read, then one commit in the target,
// then its rows in the plans table and the facts. The latter are written while the next
// wave is read, and are there before that wave's commit. Every step is found again by
// what it left, so a call may be stopped anywhere and made again.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cdc/lsn.h"
#include "runtime/stream.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct BackfillOptions {
  std::optional<std::int64_t> chunk_rows;  // Absent: 1,000,000. Only the first call's.
  std::optional<std::int64_t> max_waves;
  std::optional<double> max_seconds;
  double target_wave_seconds = 300;
  std::optional<double> min_headroom_hours;
  std::optional<IsolationLevel> isolation;  // Absent: the stream's.
};

struct BackfillStatus {
  enum class State : std::uint8_t {
    kDone,
    kRunning,  // The call's budget ran out, or it was stopped: call again.
    kWaitingHeadroom,
    kWaitingMetrics,
    kNoSnapshot,
  };
  State state = State::kRunning;
  std::optional<cdc::Lsn> snapshot;  // S.
  std::int64_t chunks_done = 0;
  std::optional<std::int64_t> chunks_total;  // Absent: not planned yet.
  std::string reason;                        // Of a pause.
};
// "done", "running", "waiting_headroom", "waiting_metrics", "no_snapshot".
const char* NameOf(BackfillStatus::State state);

struct BackfillProgress {
  std::string lsn;  // S.
  std::int64_t wave = 0;
  std::int64_t chunks_done = 0;  // In the target.
  std::int64_t chunks_total = 0;
  std::int64_t row_count = 0;  // Of this call, read so far.
  std::int64_t size_bytes = 0;
  std::int64_t elapsed_ms = 0;  // Of this call.
  std::optional<double> headroom_hours;
};

// Hears what a call does, from its thread and from those that read.
class BackfillObserver {
 public:
  virtual ~BackfillObserver() = default;
  virtual void OnPlanned(const std::string& lsn, std::int64_t chunk_count) {
    (void)lsn, (void)chunk_count;
  }
  virtual void OnProgress(const BackfillProgress& progress) { (void)progress; }
  virtual void OnWaveDone(const BackfillProgress& progress) { (void)progress; }
  virtual void OnWarning(const std::string& text) { (void)text; }
};

class Backfill {
 public:
  virtual ~Backfill() = default;

  // Borrows what is in `parts`; its observer is not used. `observer` may be absent.
  // Connects to nothing yet. Takes no checkpoint: the stream runs meanwhile.
  static std::unique_ptr<Backfill> Make(const StreamConfig& config,
                                        const BackfillOptions& options,
                                        const StreamParts& parts,
                                        BackfillObserver* observer);

  // Goes on until the snapshot is done, a bound is reached or Stop. Errors:
  // OptionMissing (facts_table), SnapshotModeLocked while a full snapshot is open,
  // OptionsClash if the keys are not those it was opened with, SnapshotPlanLost,
  // PositionAheadOfServer for a server that is behind S, TargetLost; the source's, the
  // lake's.
  virtual Result<BackfillStatus> Run() = 0;

  // Ends Run soon, giving up the wave being read. From any thread.
  virtual void Stop() = 0;
  // Requests sent to the server so far.
  virtual std::int64_t request_count() const = 0;
};

}  // namespace mssql_cdc::runtime

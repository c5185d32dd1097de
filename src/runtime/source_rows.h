// What a comparison asks of the source: counts, rows, and which keys changed meanwhile.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/capture_passed.h"
#include "cdc/snapshot_plan.h"
#include "columns/batch.h"
#include "pipeline/key_value.h"
#include "pipeline/reconcile.h"
#include "reader/snapshot_reader.h"
#include "runtime/session_pool.h"
#include "runtime/source.h"
#include "runtime/stream_config.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::runtime {

class SourceRows {
 public:
  // Connects. Borrows all. Errors: as AskSource; the session's.
  static Result<std::unique_ptr<SourceRows>> Open(const StreamConfig& config,
                                                  SessionSource& sessions,
                                                  Clock& clock);

  const Source& source() const { return source_; }
  // The columns that both CDC and the table have, and no computed ones.
  std::vector<columns::Field> Compared() const;

  // Whether the key is one column with a distance, and which. Requires that it is one
  // of the source's columns.
  std::optional<pipeline::OrdinalKind> OrdinalOf(
      const std::vector<std::string>& keys) const;

  // Whether the server still has what the stream has read and what silver has applied.
  // Errors: PositionAheadOfServer, SourceForked.
  Status CheckNotGoneBack(const cdc::Lsn& applied);

  // Whether a run of the stream can go on from where it stands. Errors: DataLoss.
  Status CheckCanGoOn() const;

  // Waits until capture has read all that is committed by now. False: it has not, or
  // does not show it, within `wait_ms_max`.
  Result<bool> AwaitCapture(std::int64_t wait_ms_max);
  // Whether the login was shown the scans of the log, when that was waited for.
  bool shows_scans() const { return shows_scans_; }

  Result<std::optional<cdc::Offset>> Newest();
  // `key` has `kind`. nullopt without any key.
  Result<std::optional<cdc::KeyExtent>> Extent(const std::string& key,
                                               pipeline::OrdinalKind kind);
  Result<pipeline::Slices> Count(const std::string& key, pipeline::OrdinalKind kind,
                                 std::int64_t width);
  Result<std::int64_t> CountRows();

  // Ranges of the key with about `row_count` rows each, found by seeks, which together
  // are all rows; one range where the server cannot be asked for bounds of such a key.
  Result<std::vector<pipeline::KeyRange>> PlanRanges(
      const std::vector<std::string>& keys, std::int64_t row_count);

  // One reader at a time. The rows as they are now: all, those of a range of
  // PlanRanges, or those of a key with a distance from `lo` on and below `hi`.
  std::unique_ptr<columns::BatchReader> AllRows();
  std::unique_ptr<columns::BatchReader> Rows(const pipeline::KeyRange& range);
  std::unique_ptr<columns::BatchReader> Rows(const std::string& key,
                                             pipeline::OrdinalKind kind,
                                             const std::optional<std::int64_t>& lo,
                                             const std::optional<std::int64_t>& hi);

  // Keys of changes above `after`, up to what is captured now, as row_key.h has them,
  // and what has a distance as a number.
  using TakeKey = std::function<void(std::string_view key,
                                     const std::optional<std::int64_t>& number)>;
  Status ChangedKeys(const cdc::Lsn& after, const std::vector<std::string>& keys,
                     const TakeKey& take);

 private:
  Result<cdc::CaptureTimes> AskCaptureTimes();
  SourceRows(const StreamConfig& config, SessionSource& sessions, Clock& clock)
      : config_(config), sessions_(sessions), clock_(clock) {}
  sqlserver::SourceSettings Settings() const;
  std::unique_ptr<columns::BatchReader> Read(std::optional<reader::KeyedSpan> keyed);

  const StreamConfig& config_;
  SessionSource& sessions_;
  Clock& clock_;
  std::unique_ptr<sqlserver::Session> session_;
  Source source_;
  std::optional<cdc::Offset> position_;          // The checkpoint's.
  std::optional<cdc::SourceMemory> memory_;      // Of the stream.
  bool shows_scans_ = true;                      // To this login.
  std::vector<sqlserver::KeyColumn> ranged_by_;  // Of PlanRanges.
  std::atomic<bool> stop_{false};
};

}  // namespace mssql_cdc::runtime

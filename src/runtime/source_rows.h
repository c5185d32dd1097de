// What a comparison asks of the source: counts, rows, and which keys changed meanwhile.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cdc/snapshot_plan.h"
#include "columns/batch.h"
#include "pipeline/reconcile.h"
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

  Result<std::optional<cdc::Offset>> Newest();
  // Requires source().range_key. nullopt without any key.
  Result<std::optional<cdc::KeyExtent>> Extent();
  Result<pipeline::Slices> Count(std::int64_t width);
  Result<std::int64_t> CountRows();
  // The rows of a range of the key, or all, as they are now. One reader at a time.
  std::unique_ptr<columns::BatchReader> Rows(const cdc::KeyRange& range);
  // Keys (as row_key.h has them) of changes above `after`, up to what is captured now.
  Status ChangedKeys(const cdc::Lsn& after, const std::vector<std::string>& keys,
                     std::set<std::string>& out, std::set<std::int64_t>& numbers);

 private:
  SourceRows(const StreamConfig& config, SessionSource& sessions, Clock& clock)
      : config_(config), sessions_(sessions), clock_(clock) {}
  sqlserver::SourceSettings Settings() const;

  const StreamConfig& config_;
  SessionSource& sessions_;
  Clock& clock_;
  std::unique_ptr<sqlserver::Session> session_;
  Source source_;
  std::atomic<bool> stop_{false};
};

}  // namespace mssql_cdc::runtime

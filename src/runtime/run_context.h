// What the steps of one stream's run share.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "lake/lake.h"
#include "reader/snapshot_reader.h"
#include "runtime/session_pool.h"
#include "runtime/source.h"
#include "runtime/stream.h"
#include "runtime/stream_config.h"

namespace mssql_cdc::runtime {

struct RunContext {
  const StreamConfig& config;
  lake::Lake& lake;
  Clock& clock;
  StreamObserver& observer;
  SessionPool& pool;
  const std::atomic<bool>& stop;
  std::string sink_id;  // app_id of the live generation.
  Source source;        // Known after the run's first request.

  // Rows and bytes of one batch, for `reader_count` readers at a time.
  sqlserver::BatchLimits Limits(std::int64_t reader_count) const;
  // `read` in the columns that are written, where those are other ones.
  std::unique_ptr<columns::BatchReader> AsWritten(
      std::unique_ptr<columns::BatchReader> read) const;
};

// Asks the pool when a range's read begins, and gives back when it ends. Borrows it.
reader::LendSession LendFrom(SessionPool& pool);

}  // namespace mssql_cdc::runtime

// Reads one window of a change table as batches in the target's shape.
//
// Metadata columns first, captured columns as they came off the wire, the sink's
// columns last. It counts on the way, and after the last row asks again what cleanup
// has reached: rows that may lack some are an error, not a result.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cdc/column_union.h"
#include "cdc/commit_clock.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "columns/batch.h"
#include "reader/mask_columns.h"
#include "sqlserver/session.h"

namespace mssql_cdc::reader {

struct ChangePlan {
  std::string capture_instance;
  std::vector<columns::Field> columns;
  // Where each comes from in this instance; empty: from the column of its name, as is.
  // One the instance lacks is NULL; one of a narrower type is converted by the server.
  std::vector<cdc::ColumnRead> reads;
  bool command_id = true;
  // For columns named kChangedColumns and kUnknownColumns, and for unchangedLob.
  MaskPlan mask = {};
  cdc::LsnWindow window;
  std::int32_t batch_id = 0;
  cdc::CommitClock clock;
  sqlserver::BatchLimits limits;
  bool network_wait = false;
  // Rows that may lack some are an error; else they are what is left, and told of.
  bool fail_on_data_loss = true;
};

// What was read so far.
struct ChangeCounts {
  std::int64_t row_count = 0;
  std::int64_t deletes = 0;
  std::int64_t inserts = 0;
  std::int64_t updates = 0;  // Rows after an update; those before are not counted.
  std::optional<cdc::Lsn> min_lsn;
  std::optional<cdc::Lsn> max_lsn;
  std::optional<std::int64_t> min_commit_us;
  std::optional<std::int64_t> max_commit_us;
  std::int64_t size_bytes = 0;  // Of the Arrow buffers.
  std::int64_t read_ns = 0;     // Spent waiting for and decoding the answer.
};

// What the server said after the last row.
struct AfterRead {
  std::optional<cdc::Lsn> instance_min;
  std::optional<std::int64_t> instance_min_commit_us;
  std::optional<cdc::Offset> newest;
  std::optional<std::int64_t> network_wait_ms;
  // Cleanup passed the window's beginning while it was read.
  bool may_lack_rows = false;
};

class ChangeReader final : public columns::BatchReader {
 public:
  // Borrows all but the plan. `stop`, when it becomes true, ends the read with Stopped.
  ChangeReader(ChangePlan plan, sqlserver::Session& session, Clock& clock,
               const std::atomic<bool>& stop);
  ~ChangeReader() override;

  columns::SchemaPtr schema() const override { return schema_; }

  // Errors: DataLoss when cleanup reached the window while it was read, if that is one,
  // and when the instance went away; SchemaChanged
  // when a column has another type than planned; Stopped; the session's. InternalError
  // for rows outside the window or out of order.
  Result<std::optional<columns::RecordBatch>> Next() override;

  const ChangeCounts& counts() const { return counts_; }
  // Known once Next() gave nullopt.
  const std::optional<AfterRead>& after_read() const { return after_read_; }

 private:
  Result<std::optional<columns::RecordBatch>> NextTimed();
  Result<std::optional<columns::RecordBatch>> NextRows();
  Status Start();
  Result<columns::RecordBatch> Shape(columns::RecordBatch rows);
  Status Count(const columns::RecordBatch& rows);
  // Fills in what the mask says of the rows, and takes the mask away.
  Status ApplyMask(columns::RecordBatch& rows, std::vector<ColumnPtr>& made) const;
  // Unless the rows are to be filled in by those after them, the rows; else all but the
  // last, which is kept.
  Result<columns::RecordBatch> KeepHalfPair(columns::RecordBatch rows);
  Status FinishReply();

  bool IsRead(std::size_t column) const {
    return plan_.reads.empty() || plan_.reads[column].name.has_value();
  }

  class Constants;

  ChangePlan plan_;
  sqlserver::Session& session_;
  Clock& clock_;
  const std::atomic<bool>& stop_;
  columns::SchemaPtr schema_;
  std::unique_ptr<Constants> constants_;
  std::unique_ptr<sqlserver::Reply> reply_;
  std::optional<columns::RecordBatch> half_pair_;  // One image before an update.
  std::optional<columns::RecordBatch> next_rows_;  // Read already.
  bool rows_ended_ = false;
  ChangeCounts counts_;
  std::optional<AfterRead> after_read_;
};

// Whether `got` has `expected`'s types from position `first` on. Errors: SchemaChanged
// (facts capture_instance, column, planned, found).
Status CheckTypes(const std::string& capture_instance, const columns::Schema& got,
                  std::size_t first, const std::vector<columns::Field>& expected);

}  // namespace mssql_cdc::reader

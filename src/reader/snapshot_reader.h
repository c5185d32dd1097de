// Reads one key range, or one chunk, of the source table as batches in the target's
// shape, every row stamped with the snapshot's LSN.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cdc/offset.h"
#include "cdc/snapshot_plan.h"
#include "cdc/type_map.h"
#include "columns/batch.h"
#include "sqlserver/key_statements.h"
#include "sqlserver/session.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::reader {

// A session for one read; whoever lent it takes it back when this goes.
using LentSession =
    std::unique_ptr<sqlserver::Session, std::function<void(sqlserver::Session*)>>;
using LendSession = std::function<Result<LentSession>()>;

// Rows whose keys lie in a span.
struct KeyedSpan {
  std::vector<sqlserver::KeyColumn> keys;
  sqlserver::KeySpan span;
};

// The rows are a chunk of the chunked snapshot S, which is at or below the stamp.
struct ChunkMark {
  std::int32_t number = 0;
  cdc::Lsn snapshot;
};

struct SnapshotPlan {
  std::string capture_instance;
  std::string source_schema;
  std::string source_table;
  std::vector<cdc::ReadColumn> columns;
  bool command_id = true;  // Whether the shape has the (NULL) column.
  std::string key;         // Of a range with a bound.
  cdc::KeyRange range;
  cdc::Offset stamp;
  sqlserver::SourceSettings settings;
  sqlserver::BatchLimits limits;
  std::optional<KeyedSpan> keyed = std::nullopt;  // In place of `key` and `range`.
  std::optional<ChunkMark> chunk = std::nullopt;
};

class SnapshotReader final : public columns::BatchReader {
 public:
  // Told after every batch (rows, bytes), and with (0, 0) at the end of the range.
  using Progress = std::function<void(std::int64_t, std::int64_t)>;

  // Borrows `stop`. Asks `lend` for a session only when Next() is first called.
  SnapshotReader(SnapshotPlan plan, LendSession lend, const std::atomic<bool>& stop,
                 Progress progress);
  ~SnapshotReader() override;

  columns::SchemaPtr schema() const override { return schema_; }
  // Errors: SchemaChanged, ColumnNotReadable if the table has none of the columns left,
  // Stopped; those of `lend` and of the session.
  Result<std::optional<columns::RecordBatch>> Next() override;

 private:
  Status Start();
  sqlserver::Request RequestFor(std::vector<sqlserver::SelectedColumn> columns) const;
  // Goes to the next result set, which must have the expected columns; false if there
  // is none.
  Result<bool> NextSet();
  columns::RecordBatch Shape(columns::RecordBatch rows);

  SnapshotPlan plan_;
  LendSession lend_;
  const std::atomic<bool>& stop_;
  Progress progress_;
  columns::SchemaPtr schema_;
  std::vector<columns::Field> expected_;  // Of each result set.
  LentSession session_;
  std::unique_ptr<sqlserver::Reply> reply_;  // Goes before the session it borrows.
  std::vector<std::shared_ptr<const columns::Column>>
      constants_;  // One per field, or null.
};

}  // namespace mssql_cdc::reader

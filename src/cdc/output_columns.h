// The columns that every row read from CDC carries besides the captured ones.

#pragma once

#include <vector>

#include "columns/schema.h"

namespace mssql_cdc::cdc {

// In front of the captured columns: _capture_instance, _start_lsn, _seqval, _operation,
// _command_id (if asked for), _commit_ts.
std::vector<columns::Field> MetadataColumns(bool command_id);

// Behind the captured columns: _batch_id, _snapshot, _chunk.
std::vector<columns::Field> SinkColumns();

// All three, as rows are handed to the lake.
columns::Schema OutputSchema(const std::vector<columns::Field>& captured,
                             bool command_id);

// What happened to a row: SQL Server's own numbers, and 0 for a row of a snapshot.
enum class Operation : int {
  kSnapshot = 0,
  kDelete = 1,
  kInsert = 2,
  kUpdateBefore = 3,
  kUpdateAfter = 4,
};

}  // namespace mssql_cdc::cdc

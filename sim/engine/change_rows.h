// Rows of change tables and of cdc.lsn_time_mapping as they are stored. The scan, the
// import and the bulk load write them alike; what is in them is theirs to decide.

#pragma once

#include <cstdint>
#include <string_view>

#include "sim/engine/database.h"

namespace mssql_cdc::sim {

// Columns of a change table before the captured ones.
inline constexpr int kFirstCaptured = 5;
// The last column of a change table, but for those of before KB3030352.
inline constexpr char kCommandIdName[] = "__$command_id";
bool HasCommandId(const TableMeta& change_table);

struct ChangeHead {
  Lsn start_lsn;
  Lsn seqval;
  std::int64_t operation = 0;
  std::string_view mask;
};
// Binds what stands before the captured columns. Returns the index of their first.
int BindChangeHead(Statement& insert, const ChangeHead& head);
// Binds the column behind the captured ones, if the table has it.
void BindCommandId(Statement& insert, const TableMeta& change_table, int index,
                   std::int64_t command_id);

struct MappingRow {
  Lsn start_lsn;
  DateTimeValue begin_time;
  DateTimeValue end_time;
  std::int64_t transaction_id = 0;  // 0: no transaction of a user's, stored as 0x00.
  Lsn begin_lsn;
};
// False: nothing was stored, as where a row of that LSN is there already.
bool AddMappingRow(WriteTransaction& transaction, const MappingRow& row);

}  // namespace mssql_cdc::sim

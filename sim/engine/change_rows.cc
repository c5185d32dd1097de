#include "sim/engine/change_rows.h"

#include "sim/engine/cell.h"
#include "sim/engine/server.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {

bool HasCommandId(const TableMeta& change_table) {
  return change_table.columns.back().name == kCommandIdName;
}

int BindChangeHead(Statement& insert, const ChangeHead& head) {
  insert.BindBlob(1, head.start_lsn.bytes.data(), head.start_lsn.bytes.size());
  insert.BindNull(2);
  insert.BindBlob(3, head.seqval.bytes.data(), head.seqval.bytes.size());
  insert.BindInt(4, head.operation);
  insert.BindBlob(5, head.mask.data(), head.mask.size());
  return kFirstCaptured + 1;
}

void BindCommandId(Statement& insert, const TableMeta& change_table, int index,
                   std::int64_t command_id) {
  if (HasCommandId(change_table)) insert.BindInt(index, command_id);
}

bool AddMappingRow(WriteTransaction& transaction, const MappingRow& row) {
  const TablePtr mapping = transaction.catalog()->FindTable("cdc", "lsn_time_mapping");
  if (mapping == nullptr) return false;
  Connection& connection = transaction.connection();
  Statement insert = connection.Prepare("INSERT OR IGNORE INTO " + mapping->physical +
                                        " VALUES(?, ?, ?, ?, ?)");
  const auto bind_time = [&](int index, const DateTimeValue& time) {
    Cell cell;
    EncodeCell(DateTimeType(), Value{RoundedToDateTime(time), {}}, cell);
    BindCell(insert, index, cell);
  };
  std::string id(1, '\0');
  if (row.transaction_id != 0) {
    id = BigEndian64(static_cast<std::uint64_t>(row.transaction_id)).substr(2);
  }
  insert.BindBlob(1, row.start_lsn.bytes.data(), row.start_lsn.bytes.size());
  bind_time(2, row.begin_time);
  bind_time(3, row.end_time);
  insert.BindBlob(4, id.data(), id.size());
  insert.BindBlob(5, row.begin_lsn.bytes.data(), row.begin_lsn.bytes.size());
  if (insert.Run() != Step::kDone || connection.Changes() == 0) return false;
  transaction.AddRowCount(mapping->object_id, 1);
  return true;
}

}  // namespace mssql_cdc::sim

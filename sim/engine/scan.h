// A log scan: turns the records of committed transactions into rows of change tables,
// of cdc.lsn_time_mapping and of cdc.ddl_history, inside one transaction of its own.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/engine/cdc.h"

namespace mssql_cdc::sim {

// A row as the log has it: cells with the ids of their columns, in ascending order of
// the columns' positions.
class RowImage {
 public:
  void Read(std::string_view bytes);
  // Null: the image has no such column. `hint`: where to look first; moved on.
  const Cell* Find(std::int32_t column_id, std::size_t& hint) const;

 private:
  std::vector<std::pair<std::int32_t, Cell>> cells_;  // Reused from row to row.
  std::size_t count_ = 0;
};

// What a scan knows of a capture instance.
struct ScanTarget {
  std::string name;
  std::int32_t source_id = 0;
  TablePtr table;
  bool started = false;
  std::vector<CapturedColumn> columns;
  std::vector<bool> old_lob;  // text, ntext, image.
  std::vector<bool> max_type;
  std::string full_mask;
  // Kept while rows come; given back before a table changes.
  Statement insert;
};

struct LoggedTransaction {
  std::int64_t id = 0;
  Lsn commit_lsn;
  Lsn begin_lsn;
  DateTimeValue begin_time;
  DateTimeValue end_time;
};

class Scan {
 public:
  Scan(WriteTransaction& transaction, ScanResult& result);

  // False: the scan failed; `result` says how, and its transaction must be undone.
  bool Take(const LoggedTransaction& logged);
  // Gives back what keeps the transaction from ending.
  void Finish();

 private:
  struct Written {
    int operation = 0;
    Lsn seqval;
    std::int32_t command_id = 0;
    const std::string& mask;
    const RowImage& image;
    const std::vector<bool>& hidden;
  };

  bool TakeUntilDefinition(std::int64_t transaction_id, std::int64_t& number);
  void TakeChange(LogAction action, std::int32_t table_id, const Lsn& seqval,
                  std::string_view before, std::string_view after);
  void TakeUpdate(ScanTarget& target, const Lsn& seqval);
  std::int32_t NextCommandId();
  void StartInstance(std::string_view name);
  void TakeDefinition(std::int32_t table_id, std::string_view record, const Lsn& lsn);
  bool AlterChangeTable(ScanTarget& target, std::size_t column, const SqlType& type);
  void Write(ScanTarget& target, const Written& written);

  WriteTransaction& transaction_;
  Connection& connection_;
  ScanResult& result_;
  std::vector<ScanTarget> targets_;
  const LoggedTransaction* logged_ = nullptr;
  std::int32_t command_id_ = 0;
  bool change_has_id_ = false;
  bool wrote_ = false;
  RowImage old_;
  RowImage fresh_;
  std::vector<bool> hidden_;
  std::vector<bool> none_hidden_;
};

}  // namespace mssql_cdc::sim

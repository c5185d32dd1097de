// A table in SQLite, as one statement of one session sees it.

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine/cell.h"
#include "sim/engine/database.h"
#include "sim/engine/session.h"
#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class StoredTable final : public TableSource {
 public:
  StoredTable(Session& session, std::shared_ptr<Database> database, TablePtr table);

  const std::string& name() const override { return name_; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  ScanAnswer Plan(const ScanShape& shape) const override;
  std::unique_ptr<RowCursor> Open(const ScanRequest& request) override;
  std::optional<Growth> growth() const override;
  std::uint64_t Insert(const InsertRequest& request) override;
  std::uint64_t Update(const UpdateRequest& request) override;
  std::uint64_t Delete(const DeleteRequest& request) override;

  const TableMeta& meta() const { return *table_; }
  // Reads of it see what others have not committed.
  void ReadDirty() { dirty_ = true; }
  // Reads of it fail with `number` after so many rows.
  void FailAfter(std::int64_t row_count, std::int32_t number) {
    fail_after_ = row_count;
    fail_number_ = number;
  }

 private:
  friend class StoredCursor;
  struct OldRow {
    RowId id = 0;
    std::vector<Value> values;
  };
  struct Pair {
    std::vector<Value> before;
    std::vector<Value> after;
  };

  // Makes the stored form of a row complete and checks it: generated columns, NOT NULL,
  // CHECK. `verb`: "INSERT" or "UPDATE".
  void Complete(std::vector<Value>& row, const char* verb,
                WriteTransaction& transaction);
  void Compute(std::vector<Value>& row);
  void CheckRow(const std::vector<Value>& row, const char* verb);
  void CheckForeignKeys(const std::vector<Value>& row, const char* verb);
  void CheckReferences(const std::vector<Value>& row, const char* verb);
  void InsertRow(Statement& insert, const std::vector<Value>& row);
  [[noreturn]] void RaiseDuplicate(const std::vector<Value>& row);
  void CheckNullDuplicates(const std::vector<Value>& row);
  std::string LocatorText() const;
  void BindLocator(Statement& statement, int first, RowId id) const;
  std::vector<Value> ReadRow(RowId id);
  void DeleteRow(RowId id);
  std::uint64_t UpdateInPlace(const UpdateRequest& request,
                              WriteTransaction& transaction);
  std::uint64_t UpdateDeferred(const UpdateRequest& request,
                               WriteTransaction& transaction);
  void LogDeferred(const std::vector<Pair>& pairs, WriteTransaction& transaction);
  bool TouchesUniqueIndex(const std::vector<std::size_t>& columns) const;
  RowExpression& Expression(const std::string& text, std::size_t column, bool over_row);
  std::vector<Value> NextImage(const OldRow& old,
                               const std::vector<std::size_t>& columns,
                               const Row& values, WriteTransaction& transaction);
  std::optional<std::size_t> IdentityColumn() const;

  std::unique_ptr<RowCursor> OpenDirty(const std::string& text,
                                       const std::vector<Cell>& cells,
                                       const ScanRequest& request);
  // Whether it is one of the tables that only capture adds to.
  bool Grows() const;
  // The session's transaction, about to write this table.
  WriteTransaction& Write();
  bool tracked() const { return !tracked_.empty(); }
  std::string Image(const std::vector<Value>& row) const;
  bool TrackedColumnsDiffer(const std::vector<Value>& a,
                            const std::vector<Value>& b) const;
  void CheckLobSizes(const std::vector<Value>& row) const;

  Session& session_;
  std::shared_ptr<Database> database_;
  TablePtr table_;
  CatalogPtr catalog_;
  std::string name_;
  std::vector<ColumnInfo> columns_;
  std::vector<std::size_t> tracked_;  // Columns that a capture instance wants.
  // Of Layout::kClustered: the keys that RowIds stand for.
  std::vector<std::vector<Cell>> keys_;
  std::vector<Cell> cells_;  // Of the row that is being written.
  std::map<std::string, std::unique_ptr<RowExpression>> expressions_;
  std::int64_t fail_after_ = 0;
  std::int32_t fail_number_ = 0;
  bool dirty_ = false;
};

// Raises an error that was asked for, with SQL Server's text where it has one.
[[noreturn]] void RaiseFault(std::int32_t number);
Message FaultMessage(std::int32_t number);

// How a value looks in a message about a duplicate key.
std::string KeyText(const SqlType& type, const Value& value);

// The columns of a table that some capture instance of `catalog` captures and that the
// log carries: all but computed ones, by position.
std::vector<std::size_t> TrackedColumns(const Catalog& catalog, const TableMeta& table);

// An image of a row in the log: two bytes of column id before each cell.
void AppendImageCell(std::string& image, std::int32_t column_id, const Cell& cell);

}  // namespace mssql_cdc::sim

// A read-only table whose rows the engine makes up: catalogue views, function results.

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class RowsCursor final : public RowCursor {
 public:
  explicit RowsCursor(std::vector<Row> rows) : rows_(std::move(rows)) {}
  bool Next(Row& row) override {
    if (next_ == rows_.size()) return false;
    row = rows_[next_++];
    return true;
  }
  RowId row_id() const override { return static_cast<RowId>(next_); }

 private:
  std::vector<Row> rows_;
  std::size_t next_ = 0;
};

class RowsTable final : public TableSource {
 public:
  RowsTable(std::string name, std::vector<ColumnInfo> columns, std::vector<Row> rows)
      : name_(std::move(name)), columns_(std::move(columns)), rows_(std::move(rows)) {}

  const std::string& name() const override { return name_; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  ScanAnswer Plan(const ScanShape& shape) const override {
    ScanAnswer answer;
    answer.seeks.assign(shape.constraints.size(), false);
    answer.exact = shape.constraints.empty();
    answer.row_count = static_cast<double>(rows_.size());
    return answer;
  }
  std::unique_ptr<RowCursor> Open(const ScanRequest&) override {
    return std::make_unique<RowsCursor>(rows_);
  }
  std::uint64_t Insert(const InsertRequest&) override { Refuse(); }
  std::uint64_t Update(const UpdateRequest&) override { Refuse(); }
  std::uint64_t Delete(const DeleteRequest&) override { Refuse(); }

 private:
  [[noreturn]] void Refuse() const {
    RaiseSql(259, 16, 1, "Ad hoc updates to system catalogs are not allowed.");
  }

  std::string name_;
  std::vector<ColumnInfo> columns_;
  std::vector<Row> rows_;
};

// Short forms for rows and columns that the engine makes up.
Value IntValue(std::int64_t value);
Value IntOrNull(const std::optional<std::int32_t>& value);
Value BoolValue(bool value);
Value TextValue(const std::string& utf8);
Value BytesValue(const std::uint8_t* bytes, std::size_t size);
Value TimeValue(const DateTimeValue& at);
// The text of an argument; empty if it is NULL or absent.
std::string TextOf(const Value& value);
SqlType NVarChar(std::int32_t length);
SqlType SysName();
SqlType TypeOf(TypeId id, std::int32_t length = 0);
ColumnInfo Info(std::string name, SqlType type, bool nullable = true);

}  // namespace mssql_cdc::sim

// A small Environment for the tests of this folder: tables in memory, ordered by their
// first column, and a sink that writes everything down as text.

#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "sim/sql/convert.h"
#include "sim/sql/dates.h"
#include "sim/sql/environment.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

struct ScanCount {
  int opened = 0;
  int rows = 0;
};

class MemoryTable final : public TableSource {
 public:
  MemoryTable(std::string name, std::vector<ColumnInfo> columns)
      : name_(std::move(name)), columns_(std::move(columns)) {}

  const std::string& name() const override { return name_; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }

  ScanAnswer Plan(const ScanShape& shape) const override {
    ScanAnswer answer;
    for (const auto& constraint : shape.constraints) {
      answer.seeks.push_back(constraint.column == 0);
    }
    answer.ordered = !shape.order.empty();
    for (std::size_t i = 0; i < shape.order.size(); ++i) {
      answer.ordered = answer.ordered && shape.order[i].column == i &&
                       shape.order[i].descending == shape.order[0].descending;
    }
    const bool seeks = std::count(answer.seeks.begin(), answer.seeks.end(), true) > 0;
    answer.row_count = static_cast<double>(rows.size()) / (seeks ? 10 : 1);
    return answer;
  }

  std::unique_ptr<RowCursor> Open(const ScanRequest& request) override {
    ++count.opened;
    std::vector<std::pair<RowId, Row>> found;
    for (const auto& [id, row] : rows) {
      if (Fits(row, request)) found.emplace_back(id, row);
    }
    std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (a.second[i].IsNull() || b.second[i].IsNull()) continue;
        const int order = CompareValues(a.second[i], b.second[i], columns_[i].type, {});
        if (order != 0) return order < 0;
      }
      return false;
    });
    if (!request.shape.order.empty() && request.shape.order[0].descending) {
      std::reverse(found.begin(), found.end());
    }
    return std::make_unique<Cursor>(std::move(found), count);
  }

  std::uint64_t Insert(const InsertRequest& request) override {
    std::uint64_t done = 0;
    Row given;
    while (request.feed(given)) {
      Row row(columns_.size());
      for (std::size_t i = 0; i < request.columns.size(); ++i) {
        row[request.columns[i]] = given[i];
      }
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (row[i].IsNull() && !columns_[i].nullable) {
          RaiseSql(515, 16, 2, "Cannot insert the value NULL.");
        }
      }
      if (request.output) request.output(row);
      rows.emplace(next_id_++, std::move(row));
      ++done;
    }
    return done;
  }
  std::uint64_t Update(const UpdateRequest& request) override {
    std::uint64_t done = 0;
    RowId id = 0;
    Row values;
    while (request.feed(id, values)) {
      const Row before = rows[id];
      for (std::size_t i = 0; i < request.columns.size(); ++i) {
        rows[id][request.columns[i]] = values[i];
      }
      if (request.output) request.output(before, rows[id]);
      ++done;
    }
    return done;
  }
  std::uint64_t Delete(const DeleteRequest& request) override {
    std::uint64_t done = 0;
    RowId id = 0;
    while (request.feed(id)) {
      if (request.output) request.output(rows[id]);
      rows.erase(id);
      ++done;
    }
    return done;
  }

  std::map<RowId, Row> rows;
  ScanCount count;

 private:
  class Cursor final : public RowCursor {
   public:
    Cursor(std::vector<std::pair<RowId, Row>> rows, ScanCount& count)
        : rows_(std::move(rows)), count_(count) {}
    bool Next(Row& row) override {
      if (at_ == rows_.size()) return false;
      ++count_.rows;
      row = rows_[at_++].second;
      return true;
    }
    RowId row_id() const override { return rows_[at_ - 1].first; }

   private:
    std::vector<std::pair<RowId, Row>> rows_;
    ScanCount& count_;
    std::size_t at_ = 0;
  };

  bool Fits(const Row& row, const ScanRequest& request) const {
    for (std::size_t i = 0; i < request.values.size(); ++i) {
      const auto& constraint = request.shape.constraints[i];
      if (constraint.column != 0) continue;
      if (row[0].IsNull()) return false;
      const int order = CompareValues(row[0], request.values[i], columns_[0].type, {});
      const bool fits = constraint.comparison == Comparison::kEqual         ? order == 0
                        : constraint.comparison == Comparison::kLess        ? order < 0
                        : constraint.comparison == Comparison::kLessOrEqual ? order <= 0
                        : constraint.comparison == Comparison::kGreater     ? order > 0
                                                                        : order >= 0;
      if (!fits) return false;
    }
    return true;
  }

  std::string name_;
  std::vector<ColumnInfo> columns_;
  RowId next_id_ = 100;
};

class MemoryEnvironment final : public Environment {
 public:
  MemoryTable& Add(const std::string& name, std::vector<ColumnInfo> columns) {
    tables[name] = std::make_shared<MemoryTable>("dbo." + name, std::move(columns));
    return *tables[name];
  }

  std::shared_ptr<TableSource> FindTable(const ObjectName& name, Access) override {
    const auto at = tables.find(LowerAscii(name.object));
    return at == tables.end() ? nullptr : at->second;
  }
  std::optional<ast::CreateModule> FindView(const ObjectName&) override {
    return std::nullopt;
  }
  std::optional<TableFunction> FindTableFunction(const ObjectName&) override {
    return std::nullopt;
  }
  std::optional<ScalarFunction> FindScalarFunction(const ObjectName& name) override {
    if (name.object != "fn_twice") return std::nullopt;
    ScalarFunction function;
    function.parameters = {TypeOf(TypeId::kInt)};
    function.argument_count_min = 1;
    function.result = TypeOf(TypeId::kInt);
    function.call = [](std::span<const std::optional<TypedValue>> arguments) {
      Value value = arguments[0]->value;
      if (auto* number = std::get_if<std::int64_t>(&value.held)) *number *= 2;
      return value;
    };
    return function;
  }
  std::optional<TypedValue> GlobalVariable(const std::string& name) override {
    if (name != "@@SPID") return std::nullopt;
    Value value;
    value.held = std::int64_t{51};
    return TypedValue{TypeOf(TypeId::kSmallInt), value};
  }
  std::optional<std::int32_t> Call(const ObjectName& procedure,
                                   std::vector<ProcedureArgument>& arguments,
                                   ReplySink&) override {
    if (procedure.object != "sp_add") return std::nullopt;
    std::int64_t sum = 0;
    for (const ProcedureArgument& argument : arguments) {
      if (const auto* number = std::get_if<std::int64_t>(&argument.value.held)) {
        sum += *number;
      }
    }
    for (ProcedureArgument& argument : arguments) {
      if (!argument.output) continue;
      argument.type = TypeOf(TypeId::kInt);
      argument.value.held = sum;
    }
    return 7;
  }
  void Define(const ast::DefinitionStatement& statement, ReplySink&) override {
    defined.push_back(statement.text);
  }
  std::optional<SqlType> FindType(const ast::TypeName&) override {
    return std::nullopt;
  }
  std::int32_t transaction_count() const override { return transactions; }
  std::int32_t transaction_state() const override {
    return transactions == 0 ? 0 : doomed ? -1 : 1;
  }
  void BeginTransaction(const std::string&, ReplySink&) override { ++transactions; }
  void CommitTransaction(ReplySink&) override {
    if (transactions == 0) {
      RaiseSql(
          3902, 16, 1,
          "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.");
    }
    --transactions;
  }
  void RollbackTransaction(const std::string&, ReplySink&) override {
    transactions = 0;
    doomed = false;
  }
  void SaveTransaction(const std::string&) override {}
  void DoomTransaction() override { doomed = true; }
  void StatementBegins(StatementKind, ReplySink&) override {}
  void StatementEnds(bool, ReplySink&) override {}
  void ReadsEnd() override {}
  SessionSettings& settings() override { return settings_; }
  void SetIdentityInsert(const ObjectName&, bool) override {}
  void Use(const std::string& database, ReplySink&) override {
    if (database != "master") RaiseSql(911, 16, 1, "Database does not exist.");
  }
  const std::string& database_collation() const override { return collation_; }
  // 2026-11-20 08:40:00.1234567 at +02:00.
  DateTimeValue Now() override {
    return {DaysOfDate(2026, 11, 20), (8 * 60 + 40) * kTicksPerMinute + 1'234'567, 120};
  }
  Guid NewGuid() override { return {}; }
  double Random() override { return 0.5; }
  void Wait(std::int64_t duration_ms) override { waited_ms += duration_ms; }
  bool stop_requested() const override { return false; }

  std::map<std::string, std::shared_ptr<MemoryTable>> tables;
  std::vector<std::string> defined;
  std::int32_t transactions = 0;
  bool doomed = false;
  std::int64_t waited_ms = 0;

 private:
  SessionSettings settings_;
  std::string collation_ = "SQL_Latin1_General_CP1_CI_AS";
};

// "int,varchar(3) = 1|abc;2|NULL" for a result, "!207@1" for an error and its line,
// "#3" for a count, "'text'" for an informational message.
class ReplyLog final : public ReplySink {
 public:
  bool Columns(const std::vector<ResultColumn>& columns) override {
    Space();
    columns_ = columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      text += (i == 0 ? "" : ",") + TypeText(columns[i].type);
    }
    text += " = ";
    rows_ = 0;
    return true;
  }
  bool Row(const std::vector<Value>& values) override {
    if (rows_++ > 0) text += ';';
    for (std::size_t i = 0; i < values.size(); ++i) {
      ConvertOptions options;
      if (IsBinary(columns_[i].type.id)) options.style = 1;
      if (IsDateTime(columns_[i].type.id)) options.style = 121;
      if (IsMoney(columns_[i].type.id)) options.style = 2;
      if (columns_[i].type.id == TypeId::kFloat) options.style = 0;
      const Value shown =
          ConvertValue(values[i], columns_[i].type, NVarCharType(kMax), options);
      text += (i == 0 ? "" : "|") +
              (shown.IsNull() ? "NULL" : Utf8(std::get<Text>(shown.held)));
    }
    return true;
  }
  bool StatementDone(std::optional<std::uint64_t> count,
                     std::uint16_t command) override {
    if (count && command != 0xC1) {
      Space();
      text += '#' + std::to_string(*count);
    }
    return true;
  }
  bool SendMessage(const Message& message) override {
    Space();
    last = message;
    text += message.severity > 10 ? '!' + std::to_string(message.number) + '@' +
                                        std::to_string(message.line)
                                  : "'" + message.text + "'";
    return true;
  }
  bool DatabaseChanged(const std::string&, const std::string&) override { return true; }
  bool TransactionBegan(std::uint64_t) override { return true; }
  bool TransactionEnded(std::uint64_t, bool) override { return true; }
  bool ReturnStatus(std::int32_t status) override {
    Space();
    text += "status " + std::to_string(status);
    return true;
  }
  bool ReturnValue(const std::string& name, const SqlType& type,
                   const Value& value) override {
    Space();
    const Value shown = ConvertValue(value, type, NVarCharType(kMax), {});
    text += name + '=' + (shown.IsNull() ? "NULL" : Utf8(std::get<Text>(shown.held)));
    return true;
  }

  std::string text;
  Message last;

 private:
  void Space() {
    if (!text.empty()) text += "  ";
  }
  std::vector<ResultColumn> columns_;
  int rows_ = 0;
};

}  // namespace mssql_cdc::sim

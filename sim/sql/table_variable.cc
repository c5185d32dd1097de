#include "sim/sql/table_variable.h"

#include <map>
#include <set>

#include "base/text.h"
#include "sim/sql/collation.h"
#include "sim/sql/convert.h"
#include "sim/sql/identifier.h"
#include "sim/sql/interpreter.h"

namespace mssql_cdc::sim {
namespace {

class TableVariable final : public TableSource {
 public:
  TableVariable(const ast::CreateTable& definition, Environment& environment)
      : name_(definition.name.object), environment_(environment) {
    if (!definition.constraints.checks.empty()) {
      RaiseSql(156, 15, 1, "Incorrect syntax near the keyword 'CHECK'.");
    }
    for (const ast::ColumnDefinition& column : definition.columns) AddColumn(column);
    for (const ast::KeyConstraint& key : definition.constraints.keys) {
      std::vector<std::size_t> indexes;
      for (const ast::IndexColumn& column : key.columns) {
        indexes.push_back(IndexOf(column.name));
        if (key.primary) columns_[indexes.back()].nullable = false;
      }
      keys_.push_back(std::move(indexes));
    }
  }

  const std::string& name() const override { return name_; }
  const std::vector<ColumnInfo>& columns() const override { return columns_; }

  ScanAnswer Plan(const ScanShape& shape) const override {
    ScanAnswer answer;
    answer.seeks.assign(shape.constraints.size(), false);
    answer.row_count = static_cast<double>(rows_.size());
    return answer;
  }

  std::unique_ptr<RowCursor> Open(const ScanRequest&) override {
    return std::make_unique<Cursor>(rows_);
  }

  std::uint64_t Insert(const InsertRequest& request) override {
    // All rows first: the feed may read this table.
    std::vector<Row> added;
    Row given;
    while (request.feed(given)) {
      Row row(columns_.size());
      std::vector<bool> has(columns_.size(), false);
      for (std::size_t i = 0; i < request.columns.size(); ++i) {
        row[request.columns[i]] = std::move(given[i]);
        has[request.columns[i]] = true;
      }
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        if (has[i]) continue;
        if (columns_[i].identity) {
          row[i].held = next_identity_;
          next_identity_ += increment_;
        } else if (defaults_[i]) {
          row[i] = defaults_[i]->Evaluate({});
        }
      }
      added.push_back(std::move(row));
    }
    for (const Row& row : added) CheckNulls(row, "INSERT");
    std::map<RowId, Row> rows = rows_;
    RowId next = next_id_;
    for (Row& row : added) rows.emplace(next++, std::move(row));
    CheckKeys(rows);
    if (request.output) {
      for (RowId id = next_id_; id < next; ++id) request.output(rows[id]);
    }
    const auto count = static_cast<std::uint64_t>(next - next_id_);
    rows_ = std::move(rows);
    next_id_ = next;
    return count;
  }

  std::uint64_t Update(const UpdateRequest& request) override {
    std::map<RowId, Row> rows = rows_;
    std::vector<RowId> changed;
    RowId id = 0;
    Row values;
    while (request.feed(id, values)) {
      for (std::size_t i = 0; i < request.columns.size(); ++i) {
        rows[id][request.columns[i]] = values[i];
      }
      CheckNulls(rows[id], "UPDATE");
      changed.push_back(id);
    }
    CheckKeys(rows);
    for (const RowId row : changed) {
      if (request.output) request.output(rows_[row], rows[row]);
    }
    rows_ = std::move(rows);
    return changed.size();
  }

  std::uint64_t Delete(const DeleteRequest& request) override {
    std::uint64_t count = 0;
    RowId id = 0;
    while (request.feed(id)) {
      const auto at = rows_.find(id);
      if (at == rows_.end()) continue;
      if (request.output) request.output(at->second);
      rows_.erase(at);
      ++count;
    }
    return count;
  }

 private:
  class Cursor final : public RowCursor {
   public:
    explicit Cursor(const std::map<RowId, Row>& rows)
        : rows_(rows), at_(rows.begin()) {}
    bool Next(Row& row) override {
      if (at_ == rows_.end()) return false;
      id_ = at_->first;
      row = at_->second;
      ++at_;
      return true;
    }
    RowId row_id() const override { return id_; }

   private:
    const std::map<RowId, Row>& rows_;
    std::map<RowId, Row>::const_iterator at_;
    RowId id_ = 0;
  };

  void AddColumn(const ast::ColumnDefinition& definition) {
    if (definition.computed) {
      RaiseSql(156, 15, 1, "Incorrect syntax near the keyword 'AS'.");
    }
    ColumnInfo column;
    column.name = definition.name;
    column.type = ResolveType(definition.type, environment_);
    column.type.collation = definition.collation;
    column.identity = definition.identity.has_value();
    column.nullable = definition.nullable.value_or(!column.identity);
    if (definition.identity) {
      next_identity_ = definition.identity->seed;
      increment_ = definition.identity->increment;
    }
    std::unique_ptr<RowExpression> value;
    if (definition.default_value) {
      value = BindRowExpression(definition.default_value->value, {}, column.type,
                                environment_);
    }
    defaults_.push_back(std::move(value));
    columns_.push_back(std::move(column));
  }

  std::size_t IndexOf(const std::string& name) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (SameIdentifier(columns_[i].name, name, environment_)) return i;
    }
    RaiseSql(1911, 16, 1,
             "Column name '" + name + "' does not exist in the target table or view.");
  }

  void CheckNulls(const Row& row, const std::string& statement) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!row[i].IsNull() || columns_[i].nullable) continue;
      RaiseSql(515, 16, 2,
               "Cannot insert the value NULL into column '" + columns_[i].name +
                   "', table '" + name_ + "'; column does not allow nulls. " +
                   statement + " fails.");
    }
  }

  void CheckKeys(const std::map<RowId, Row>& rows) const {
    for (const auto& key : keys_) {
      std::set<std::string> seen;
      for (const auto& [id, row] : rows) {
        std::string text;
        for (const std::size_t column : key) {
          const SqlType& type = columns_[column].type;
          AppendHashKey(
              row[column], type,
              RuleOfCollation(type.collation.empty() ? environment_.database_collation()
                                                     : type.collation),
              text);
        }
        if (!seen.insert(std::move(text)).second) {
          RaiseSql(
              2627, 14, 1,
              "Violation of PRIMARY KEY constraint. Cannot insert duplicate key in "
              "object 'dbo." +
                  name_ + "'.");
        }
      }
    }
  }

  std::string name_;
  Environment& environment_;
  std::vector<ColumnInfo> columns_;
  std::vector<std::unique_ptr<RowExpression>> defaults_;
  std::vector<std::vector<std::size_t>> keys_;
  std::map<RowId, Row> rows_;
  RowId next_id_ = 1;
  std::int64_t next_identity_ = 1;
  std::int64_t increment_ = 1;
};

}  // namespace

std::shared_ptr<TableSource> MakeTableVariable(const ast::CreateTable& definition,
                                               Environment& environment) {
  return std::make_shared<TableVariable>(definition, environment);
}

}  // namespace mssql_cdc::sim

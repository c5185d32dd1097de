// INSERT, in the forms of its source.

#include <algorithm>

#include "sim/sql/row_writing.h"
#include "sim/sql/types.h"
#include "sim/sql/written_columns.h"

namespace mssql_cdc::sim {
namespace {

// Receives what INSERT ... EXEC's procedure sends.
class Capture final : public ReplySink {
 public:
  explicit Capture(ReplySink& sink) : sink_(sink) {}
  bool Columns(const std::vector<ResultColumn>& columns) override {
    columns_ = columns;
    return true;
  }
  bool Row(const std::vector<Value>& values) override {
    rows.push_back(values);
    types.clear();
    for (const ResultColumn& column : columns_) types.push_back(column.type);
    return true;
  }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const Message& message) override {
    return sink_.SendMessage(message);
  }
  bool DatabaseChanged(const std::string& from, const std::string& to) override {
    return sink_.DatabaseChanged(from, to);
  }
  bool TransactionBegan(std::uint64_t id) override {
    return sink_.TransactionBegan(id);
  }
  bool TransactionEnded(std::uint64_t id, bool committed) override {
    return sink_.TransactionEnded(id, committed);
  }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

  std::vector<std::vector<Value>> rows;
  std::vector<SqlType> types;

 private:
  ReplySink& sink_;
  std::vector<ResultColumn> columns_;
};

// INSERT, in the forms of its source.
class Inserter {
 public:
  Inserter(const ast::Insert& insert, const Run& run)
      : insert_(insert),
        run_(run),
        binder_(run.environment, run.session, run.variables) {}

  std::int64_t Run() {
    binder_.PushCommonTables(insert_.with);
    target_ =
        FindTarget(insert_.target, insert_.target_variable, Access::kInsert, run_);
    ResolveColumns();
    Output output(insert_.output, *target_, binder_, run_);
    if (insert_.execute) return FromProcedure(output);
    if (insert_.select) return FromSelect(output);
    if (insert_.default_values) {
      columns_.clear();
      return FromRows({{}}, {{}}, output);
    }
    return FromValues(output);
  }

 private:
  void ResolveColumns() {
    for (const std::string& name : insert_.columns) {
      const std::size_t index = ColumnIndex(*target_, name, run_.environment);
      if (std::find(columns_.begin(), columns_.end(), index) != columns_.end()) {
        RaiseSql(
            264, 16, 1,
            "The column name '" + name +
                "' is specified more than once in the SET clause or column list of "
                "an INSERT. A column cannot be assigned more than one value in the "
                "same clause. Modify the clause to make sure that a column is "
                "updated only once. If this statement updates or inserts columns "
                "into a view, column aliasing can conceal the duplication in your "
                "code.");
      }
      const ColumnInfo& column = target_->columns()[index];
      if (column.type.id == TypeId::kRowVersion) {
        RaiseSql(273, 16, 1,
                 "Cannot insert an explicit value into a timestamp column. Use INSERT "
                 "with a column list to exclude the timestamp column, or insert a "
                 "DEFAULT into the timestamp column.");
      }
      CheckAssignable(column);
      columns_.push_back(index);
    }
    for (std::size_t i = 0; insert_.columns.empty() && i < target_->columns().size();
         ++i) {
      const ColumnInfo& column = target_->columns()[i];
      // A rowversion needs a place in the list: DEFAULT.
      if (!column.identity && !column.computed) columns_.push_back(i);
    }
  }

  void CheckCount(std::size_t count) const {
    if (count == columns_.size()) return;
    if (insert_.columns.empty()) {
      RaiseSql(213, 16, 1,
               "Column name or number of supplied values does not match table "
               "definition.");
    }
    const bool more = columns_.size() > count;
    if (insert_.select) {
      RaiseSql(
          more ? 120 : 121, 15, 1,
          std::string("The select list for the INSERT statement contains ") +
              (more ? "fewer" : "more") +
              " items than the insert list. The number of SELECT values must match "
              "the number of INSERT columns.");
    }
    RaiseSql(
        more ? 109 : 110, 15, 1,
        std::string("There are ") + (more ? "more" : "fewer") +
            " columns in the INSERT statement than values specified in the VALUES "
            "clause. The number of values in the VALUES clause must match the number "
            "of columns specified in the INSERT statement.");
  }

  // VALUES: rows with DEFAULT in different places are inserted piece by piece.
  std::int64_t FromValues(Output& output) {
    std::vector<std::vector<std::size_t>> columns;
    std::vector<std::vector<Bound>> rows;
    for (const auto& values : insert_.values) {
      CheckCount(values.size());
      std::vector<std::size_t> present;
      std::vector<Bound> row;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const ColumnInfo& column = target_->columns()[columns_[i]];
        if (std::holds_alternative<ast::DefaultKeyword>(values[i]->node)) continue;
        if (column.type.id == TypeId::kRowVersion) {
          RaiseSql(
              273, 16, 1,
              "Cannot insert an explicit value into a timestamp column. Use INSERT "
              "with a column list to exclude the timestamp column, or insert a "
              "DEFAULT into the timestamp column.");
        }
        present.push_back(columns_[i]);
        row.push_back(Assigned(binder_, binder_.Bind(values[i], nullptr), column,
                               target_->name()));
      }
      columns.push_back(std::move(present));
      rows.push_back(std::move(row));
    }
    return FromRows(columns, rows, output);
  }

  std::int64_t FromRows(const std::vector<std::vector<std::size_t>>& columns,
                        const std::vector<std::vector<Bound>>& rows, Output& output) {
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    const std::uint64_t top = TopOf(insert_.top, binder_, context);
    context.slots.resize(binder_.slot_count());
    // Every value before the first insert: an error leaves nothing behind.
    std::vector<Row> values;
    for (const auto& row : rows) {
      if (values.size() >= top) break;
      Row evaluated;
      for (const Bound& cell : row) evaluated.push_back(cell->Get(context));
      values.push_back(std::move(evaluated));
    }
    output.Begin();
    std::uint64_t count = 0;
    std::size_t at = 0;
    while (at < values.size()) {
      const std::vector<std::size_t>& present = columns[at];
      count += Insert(
          present,
          [&](Row& row) {
            if (at == values.size() || columns[at] != present) return false;
            row = std::move(values[at++]);
            return true;
          },
          output, context);
    }
    output.End();
    return static_cast<std::int64_t>(count);
  }

  std::uint64_t Insert(const std::vector<std::size_t>& columns, RowFeed feed,
                       Output& output, Context& context) {
    InsertRequest request;
    request.columns = columns;
    request.feed = std::move(feed);
    if (output.present()) {
      request.output = [&](const Row& row) { output.Add(context, nullptr, &row); };
    }
    return target_->Insert(request);
  }

  std::int64_t FromSelect(Output& output) {
    const QueryPtr query = binder_.BindSelect(*insert_.select, nullptr);
    CheckCount(query->columns.size());
    std::vector<Bound> cells;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      cells.push_back(Assigned(binder_, Binder::SlotReference(query->columns[i]),
                               target_->columns()[columns_[i]], target_->name()));
    }
    OperatorPtr plan = query->Plan({}).op;
    if (run_.bind_only) return 0;
    Context context = binder_.MakeContext();
    const std::uint64_t top = TopOf(insert_.top, binder_, context);
    context.slots.resize(binder_.slot_count());
    plan->Open(context);
    // Read to the end first, so that the statement does not see its own rows.
    std::vector<Row> rows;
    while (rows.size() < top && plan->Next(context)) {
      Row row;
      for (const Bound& cell : cells) row.push_back(cell->Get(context));
      rows.push_back(std::move(row));
    }
    output.Begin();
    std::size_t at = 0;
    const std::uint64_t count = Insert(
        columns_,
        [&](Row& row) {
          if (at == rows.size()) return false;
          row = std::move(rows[at++]);
          return true;
        },
        output, context);
    output.End();
    return static_cast<std::int64_t>(count);
  }

  std::int64_t FromProcedure(Output& output) {
    if (run_.bind_only) return 0;
    Capture capture(*run_.sink);
    run_.execute(*insert_.execute, capture);
    Context context = binder_.MakeContext();
    ConvertOptions options = binder_.Options();
    std::size_t at = 0;
    const std::uint64_t count = Insert(
        columns_,
        [&](Row& row) {
          if (at == capture.rows.size()) return false;
          row = std::move(capture.rows[at++]);
          CheckCount(row.size());
          for (std::size_t i = 0; i < row.size(); ++i) {
            row[i] = ConvertValue(row[i], capture.types[i],
                                  target_->columns()[columns_[i]].type, options);
          }
          return true;
        },
        output, context);
    return static_cast<std::int64_t>(count);
  }

  const ast::Insert& insert_;
  const struct Run& run_;
  Binder binder_;
  std::shared_ptr<TableSource> target_;
  std::vector<std::size_t> columns_;
};

}  // namespace

std::int64_t RunInsert(const ast::Insert& insert, const Run& run) {
  return Inserter(insert, run).Run();
}

}  // namespace mssql_cdc::sim

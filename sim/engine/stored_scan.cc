// Reading a stored table: which index serves a scan, and the cursor over it.

#include <sqlite3.h>

#include <algorithm>

#include "sim/engine/rows_table.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

using Constraint = ScanShape::Constraint;

const char* Operator(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual:
      return " = ";
    case Comparison::kLess:
      return " < ";
    case Comparison::kLessOrEqual:
      return " <= ";
    case Comparison::kGreater:
      return " > ";
    case Comparison::kGreaterOrEqual:
      return " >= ";
  }
  return " = ";
}

// Whether SQLite's comparison of the stored form is SQL Server's.
bool Comparable(const ColumnMeta& column) {
  if (IsTextType(column.type.id)) return !column.sort_physical.empty();
  return column.type.id != TypeId::kSqlVariant &&
         column.type.id != TypeId::kDateTimeOffset &&
         column.type.id != TypeId::kVarBinary && !IsOldLobType(column.type.id);
}

// An index with its parts as positions of columns.
struct Candidate {
  const IndexMeta* index;
  std::vector<std::pair<std::size_t, bool>> parts;
};

std::vector<Candidate> Candidates(const TableMeta& table) {
  std::vector<Candidate> found;
  for (const IndexMeta& index : table.indexes) {
    Candidate candidate{&index, {}};
    for (const IndexMeta::Part& part : index.parts) {
      const auto position = table.IndexOf(part.column_id);
      if (!position) break;
      candidate.parts.emplace_back(*position, part.descending);
    }
    if (!candidate.parts.empty()) found.push_back(std::move(candidate));
  }
  return found;
}

struct Match {
  std::size_t equal_count = 0;  // Leading parts bound by equality.
  bool range = false;           // The next part is bound by an inequality.
  std::vector<bool> seeks;
  bool ordered = false;
};

bool Serves(const Candidate& candidate, std::size_t equal_count,
            const ScanShape& shape) {
  // Columns bound by equality may be left out of the order, or stand anywhere in it.
  std::size_t part = 0;
  bool reversed = false;
  bool decided = false;
  for (const ScanShape::Order& order : shape.order) {
    const bool fixed =
        std::any_of(candidate.parts.begin(),
                    candidate.parts.begin() + static_cast<std::ptrdiff_t>(equal_count),
                    [&](const auto& p) { return p.first == order.column; });
    if (fixed) continue;
    part = std::max(part, equal_count);
    if (part >= candidate.parts.size()) {
      // Past a whole unique key nothing is left to order.
      return candidate.index->unique;
    }
    if (candidate.parts[part].first != order.column) return false;
    const bool flip = candidate.parts[part].second != order.descending;
    if (decided && flip != reversed) return false;
    decided = true;
    reversed = flip;
    ++part;
  }
  return true;
}

Match MatchOf(const TableMeta& table, const Candidate& candidate,
              const ScanShape& shape) {
  Match match;
  match.seeks.assign(shape.constraints.size(), false);
  for (const auto& [column, descending] : candidate.parts) {
    if (!Comparable(table.columns[column])) break;
    bool equal = false;
    bool range = false;
    for (std::size_t i = 0; i < shape.constraints.size(); ++i) {
      const Constraint& constraint = shape.constraints[i];
      if (constraint.column != column) continue;
      match.seeks[i] = true;
      (constraint.comparison == Comparison::kEqual ? equal : range) = true;
    }
    if (equal) {
      ++match.equal_count;
      continue;
    }
    match.range = range;
    break;
  }
  match.ordered = !shape.order.empty() && Serves(candidate, match.equal_count, shape);
  return match;
}

// Better matches have greater scores; 0: of no use.
std::size_t ScoreOf(const Match& match, const Candidate& candidate) {
  std::size_t score =
      match.equal_count * 8 + (match.range ? 4 : 0) + (match.ordered ? 3 : 0);
  if (score > 0 && candidate.index->clustered) score += 1;
  return score;
}

struct Choice {
  const IndexMeta* index = nullptr;
  Match match;
};

Choice Choose(const TableMeta& table, const ScanShape& shape) {
  Choice best;
  best.match.seeks.assign(shape.constraints.size(), false);
  std::size_t best_score = 0;
  for (const Candidate& candidate : Candidates(table)) {
    Match match = MatchOf(table, candidate, shape);
    const std::size_t score = ScoreOf(match, candidate);
    if (score > best_score) {
      best_score = score;
      best = {candidate.index, std::move(match)};
    }
  }
  return best;
}

}  // namespace

class StoredCursor final : public RowCursor {
 public:
  StoredCursor(StoredTable& table, Session& session, Statement statement,
               std::vector<std::size_t> columns, bool row_ids, std::size_t key_count)
      : table_(table),
        session_(session),
        statement_(std::move(statement)),
        columns_(std::move(columns)),
        row_ids_(row_ids),
        key_count_(key_count) {
    ++session_.open_cursors()[table_.meta().object_id];
  }
  ~StoredCursor() override { --session_.open_cursors()[table_.meta().object_id]; }

  bool Next(Row& row) override {
    if (done_) return false;
    if (table_.fail_number_ != 0 && row_count_++ >= table_.fail_after_) {
      RaiseFault(table_.fail_number_);
    }
    const Step step = statement_.Next();
    if (step != Step::kRow) {
      done_ = true;
      statement_ = {};
      if (step == Step::kDone) return false;
      RaiseSql(605, 21, 3, "The storage of table '" + table_.name() + "' failed.");
    }
    row.resize(table_.columns_.size());
    int position = 0;
    for (const std::size_t column : columns_) {
      DecodeColumn(table_.table_->columns[column].type, statement_, position++,
                   row[column]);
    }
    if (row_ids_) TakeRowId(position);
    return true;
  }
  RowId row_id() const override { return row_id_; }

 private:
  void TakeRowId(int position) {
    if (key_count_ == 0) {
      row_id_ = statement_.Int(position);
      return;
    }
    std::vector<Cell> key;
    for (std::size_t i = 0; i < key_count_; ++i) {
      key.push_back(ColumnCell(statement_, position++));
    }
    row_id_ = static_cast<RowId>(table_.keys_.size());
    table_.keys_.push_back(std::move(key));
  }

  StoredTable& table_;
  Session& session_;
  Statement statement_;
  std::vector<std::size_t> columns_;
  bool row_ids_;
  std::size_t key_count_;
  RowId row_id_ = 0;
  std::int64_t row_count_ = 0;
  bool done_ = false;
};

ScanAnswer StoredTable::Plan(const ScanShape& shape) const {
  ScanAnswer answer;
  const Choice choice = Choose(*table_, shape);
  answer.seeks = choice.match.seeks;
  answer.exact = std::all_of(
      shape.constraints.begin(), shape.constraints.end(),
      [&](const Constraint& c) { return Comparable(table_->columns[c.column]); });
  answer.ordered = choice.match.ordered;
  Statement count = session_.Reader(database_).Prepare(
      "SELECT row_count FROM table_stat WHERE table_id = ?");
  count.BindInt(1, table_->object_id);
  double rows = count.Next() == Step::kRow ? static_cast<double>(count.Int(0)) : 1000;
  if (choice.index != nullptr) {
    const std::size_t part_count = choice.index->parts.size();
    if (choice.match.equal_count == part_count && choice.index->unique) {
      rows = 1;
    } else {
      for (std::size_t i = 0; i < choice.match.equal_count; ++i) rows /= 20;
      if (choice.match.range) rows /= 4;
    }
  }
  answer.row_count = std::max(1.0, rows);
  return answer;
}

namespace {

void BindRequest(Statement& statement, const std::vector<Cell>& cells,
                 const std::optional<std::uint64_t>& row_limit) {
  int index = 1;
  for (const Cell& cell : cells) BindCell(statement, index++, cell);
  if (!row_limit) return;
  statement.BindInt(index, static_cast<std::int64_t>(
                               std::min<std::uint64_t>(*row_limit, 1ull << 62)));
}

}  // namespace

// All rows at once, through the connection that the other session writes with: nothing
// of ours is open there when it goes on.
std::unique_ptr<RowCursor> StoredTable::OpenDirty(const std::string& text,
                                                  const std::vector<Cell>& cells,
                                                  const ScanRequest& request) {
  std::vector<Row> rows;
  Connection& writer = database_->writer();
  const Alone alone(writer);
  Statement statement = writer.PrepareApart(text);
  Step step = Step::kFailed;
  if (statement) {
    BindRequest(statement, cells, request.row_limit);
    while ((step = statement.Next()) == Step::kRow) {
      Row& row = rows.emplace_back(columns_.size());
      int position = 0;
      for (const std::size_t column : request.shape.columns) {
        DecodeColumn(table_->columns[column].type, statement, position++, row[column]);
      }
    }
  }
  if (step != Step::kDone) {
    RaiseSql(601, 12, 3, "Could not continue scan with NOLOCK due to data movement.");
  }
  return std::make_unique<RowsCursor>(std::move(rows));
}

std::unique_ptr<RowCursor> StoredTable::Open(const ScanRequest& request) {
  const ScanShape& shape = request.shape;
  const Choice choice = Choose(*table_, shape);
  std::vector<std::size_t> columns = shape.columns;
  std::string text;
  for (const std::size_t column : columns) {
    text += (text.empty() ? "" : ",") + table_->columns[column].physical;
  }
  std::size_t key_count = 0;
  if (shape.row_ids) {
    if (table_->layout == Layout::kClustered) {
      for (const IndexMeta::Part& part : table_->ClusteredIndex()->parts) {
        text += (text.empty() ? "" : ",") +
                table_->ColumnById(part.column_id)->OrderColumn();
        ++key_count;
      }
    } else {
      text += text.empty() ? "rowid" : ",rowid";
    }
  }
  text = "SELECT " + (text.empty() ? "1" : text) + " FROM " + table_->physical;
  const char* glue = " WHERE ";
  std::vector<Cell> cells;
  for (std::size_t i = 0; i < shape.constraints.size(); ++i) {
    const Constraint& constraint = shape.constraints[i];
    const ColumnMeta& column = table_->columns[constraint.column];
    if (!Comparable(column)) continue;
    text += glue + column.OrderColumn() + Operator(constraint.comparison) + "?";
    glue = " AND ";
    Cell& cell = cells.emplace_back();
    if (IsTextType(column.type.id)) {
      cell.kind = Cell::Kind::kBlob;
      const auto* held = std::get_if<Text>(&request.values[i].held);
      cell.bytes = TextSortKey(held == nullptr ? Text() : *held, column.type.collation,
                               catalog_->collation);
    } else {
      EncodeCell(column.type, request.values[i], cell);
    }
  }
  if (choice.match.ordered) {
    const char* comma = " ORDER BY ";
    for (const ScanShape::Order& order : shape.order) {
      text += comma + table_->columns[order.column].OrderColumn() +
              (order.descending ? " DESC" : "");
      comma = ",";
    }
  }
  if (request.row_limit) text += " LIMIT ?";
  if (dirty_ && !shape.row_ids) return OpenDirty(text, cells, request);
  Statement statement = session_.Reader(database_).Prepare(text);
  if (!statement) RaiseSql(208, 16, 1, "Invalid object name '" + name_ + "'.");
  BindRequest(statement, cells, request.row_limit);
  return std::make_unique<StoredCursor>(*this, session_, std::move(statement),
                                        std::move(columns), shape.row_ids, key_count);
}

}  // namespace mssql_cdc::sim

#include "sim/sql/operators.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "sim/sql/saved_row.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

bool NameLess::operator()(const std::string& a, const std::string& b) const {
  return LowerAscii(a) < LowerAscii(b);
}

int CompareWithNulls(const Value& a, const Value& b, const SqlType& type,
                     const CollationRule& rule) {
  if (a.IsNull() || b.IsNull()) return static_cast<int>(b.IsNull()) - a.IsNull();
  return CompareValues(a, b, type, rule);
}

void CheckStop(Context& context) {
  if (context.environment.stop_requested()) throw StopRequested{};
}

namespace {

class SingleRow final : public Operator {
 public:
  void Open(Context&) override { done_ = false; }
  bool Next(Context&) override { return !std::exchange(done_, true); }

 private:
  bool done_ = false;
};

// The value in the column's own type, if that loses nothing.
std::optional<Value> ColumnValue(const Value& compared, const ScanConstraintSpec& spec,
                                 const SqlType& column, const ConvertOptions& options) {
  if (IsText(column.id) && WouldTruncate(compared, spec.compared_type, column)) {
    return std::nullopt;
  }
  try {
    // char(5) compared with 'a' must not be padded into something else: blanks at the
    // end do not count, so it stays the same value.
    Value value = ConvertValue(compared, spec.compared_type, column, options);
    const Value back = ConvertValue(value, column, spec.compared_type, options);
    if (CompareValues(back, compared, spec.compared_type, spec.rule) != 0) {
      return std::nullopt;
    }
    return value;
  } catch (const SqlError&) {
    return std::nullopt;
  }
}

// What the constraint compares with, in the type of the comparison.
Value ComparedValue(const ScanConstraintSpec& spec, Context& context,
                    const ConvertOptions& options) {
  return ConvertValue(spec.value->Get(context), spec.value->type, spec.compared_type,
                      options);
}

class Scan final : public Operator {
 public:
  Scan(std::shared_ptr<TableSource> source, Slot first_slot, ScanShape shape,
       std::vector<ScanConstraintSpec> constraints, std::shared_ptr<RowId> row_id)
      : source_(std::move(source)),
        first_slot_(first_slot),
        shape_(std::move(shape)),
        constraints_(std::move(constraints)),
        row_id_(std::move(row_id)) {}

  void Open(Context& context) override {
    cursor_.reset();
    ScanRequest request;
    request.shape = shape_;
    request.shape.constraints.clear();
    const bool floored = context.floor && context.floor->source == source_.get();
    for (const ScanConstraintSpec& spec : constraints_) {
      // The floor is above every other lower bound. A source that looks for a lower one
      // would read what lies between.
      const bool lower = spec.comparison == Comparison::kGreater ||
                         spec.comparison == Comparison::kGreaterOrEqual;
      if (floored && spec.column == 0 && lower) continue;
      const SqlType& column = source_->columns()[spec.column].type;
      ConvertOptions options;
      options.collation = context.environment.database_collation();
      const Value compared = ComparedValue(spec, context, options);
      if (compared.IsNull()) return;  // A comparison with NULL holds for no row.
      const std::optional<Value> value = ColumnValue(compared, spec, column, options);
      // A value the column cannot have narrows nothing; every row is checked anyway.
      if (!value) continue;
      request.shape.constraints.push_back({spec.column, spec.comparison});
      request.values.push_back(*value);
    }
    if (floored) {
      request.shape.constraints.push_back({0, Comparison::kGreater});
      request.values.push_back(context.floor->above);
    }
    cursor_ = source_->Open(request);
  }

  bool Next(Context& context) override {
    CheckStop(context);
    if (!cursor_ || !cursor_->Next(row_)) return false;
    for (const std::size_t column : shape_.columns) {
      std::swap(context.slots[first_slot_ + column], row_[column]);
    }
    if (row_id_) *row_id_ = cursor_->row_id();
    return true;
  }

 private:
  std::shared_ptr<TableSource> source_;
  Slot first_slot_;
  ScanShape shape_;
  std::vector<ScanConstraintSpec> constraints_;
  std::shared_ptr<RowId> row_id_;
  std::unique_ptr<RowCursor> cursor_;
  Row row_;
};

class CursorScan final : public Operator {
 public:
  CursorScan(std::function<std::unique_ptr<RowCursor>(Context&)> open, Slot first_slot,
             std::size_t column_count)
      : open_(std::move(open)), first_slot_(first_slot), column_count_(column_count) {}
  void Open(Context& context) override { cursor_ = open_(context); }
  bool Next(Context& context) override {
    CheckStop(context);
    if (!cursor_ || !cursor_->Next(row_)) return false;
    for (std::size_t i = 0; i < column_count_; ++i) {
      context.slots[first_slot_ + i] = row_[i];
    }
    return true;
  }

 private:
  std::function<std::unique_ptr<RowCursor>(Context&)> open_;
  Slot first_slot_;
  std::size_t column_count_;
  std::unique_ptr<RowCursor> cursor_;
  Row row_;
};

class ValueRows final : public Operator {
 public:
  ValueRows(std::vector<std::vector<Bound>> rows, Slot first_slot)
      : rows_(std::move(rows)), first_slot_(first_slot) {}
  void Open(Context&) override { at_ = 0; }
  bool Next(Context& context) override {
    if (at_ == rows_.size()) return false;
    const std::vector<Bound>& row = rows_[at_++];
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i]->evaluate(context, context.slots[first_slot_ + i]);
    }
    return true;
  }

 private:
  std::vector<std::vector<Bound>> rows_;
  Slot first_slot_;
  std::size_t at_ = 0;
};

class Filter final : public Operator {
 public:
  Filter(OperatorPtr input, std::vector<Bound> conditions)
      : input_(std::move(input)), conditions_(std::move(conditions)) {}
  void Open(Context& context) override { input_->Open(context); }
  bool Next(Context& context) override {
    while (input_->Next(context)) {
      if (AllHold(conditions_, context)) return true;
    }
    return false;
  }

 private:
  OperatorPtr input_;
  std::vector<Bound> conditions_;
};

class Project final : public Operator {
 public:
  Project(OperatorPtr input, std::vector<Projection> projections)
      : input_(std::move(input)), projections_(std::move(projections)) {}
  void Open(Context& context) override { input_->Open(context); }
  bool Next(Context& context) override {
    if (!input_->Next(context)) return false;
    for (const Projection& projection : projections_) {
      Value& out = context.slots[projection.slot];
      if (const auto& slot = projection.expression->slot) {
        out = context.slots[*slot];
      } else {
        projection.expression->evaluate(context, out);
      }
    }
    return true;
  }

 private:
  OperatorPtr input_;
  std::vector<Projection> projections_;
};

class Sort final : public Operator {
 public:
  Sort(OperatorPtr input, std::vector<SortKeySpec> keys, std::vector<Slot> slots,
       std::function<std::optional<std::uint64_t>(Context&)> limit)
      : input_(std::move(input)),
        keys_(std::move(keys)),
        slots_(std::move(slots)),
        limit_(std::move(limit)) {}

  void Open(Context& context) override {
    rows_.clear();
    at_ = 0;
    const auto limit = limit_ ? limit_(context) : std::nullopt;
    const auto less = [this](const Item& a, const Item& b) { return Less(a, b); };
    input_->Open(context);
    std::uint64_t sequence = 0;
    if (limit == 0) return;
    while (input_->Next(context)) {
      Item item;
      for (const SortKeySpec& key : keys_)
        item.keys.push_back(key.expression->Get(context));
      item.sequence = sequence++;
      if (limit && rows_.size() == *limit) {
        // A heap with the last of the wanted rows on top.
        if (!less(item, rows_.front())) continue;
        std::pop_heap(rows_.begin(), rows_.end(), less);
        rows_.pop_back();
      }
      item.row = Save(slots_, context);
      rows_.push_back(std::move(item));
      if (limit) std::push_heap(rows_.begin(), rows_.end(), less);
    }
    std::sort(rows_.begin(), rows_.end(), less);
  }

  bool Next(Context& context) override {
    if (at_ == rows_.size()) return false;
    Item& item = rows_[at_++];
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      context.slots[slots_[i]] = std::move(item.row[i]);
    }
    return true;
  }

 private:
  struct Item {
    Row keys;
    Row row;
    std::uint64_t sequence = 0;  // Keeps equal rows as they came.
  };

  bool Less(const Item& a, const Item& b) const {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const int order = CompareWithNulls(a.keys[i], b.keys[i],
                                         keys_[i].expression->type, keys_[i].rule);
      if (order != 0) return keys_[i].descending ? order > 0 : order < 0;
    }
    return a.sequence < b.sequence;
  }

  OperatorPtr input_;
  std::vector<SortKeySpec> keys_;
  std::vector<Slot> slots_;
  std::function<std::optional<std::uint64_t>(Context&)> limit_;
  std::vector<Item> rows_;
  std::size_t at_ = 0;
};

class Limit final : public Operator {
 public:
  Limit(OperatorPtr input, LimitSpec spec)
      : input_(std::move(input)), spec_(std::move(spec)) {}

  void Open(Context& context) override {
    rows_.clear();
    seen_ = 0;
    last_.clear();
    count_.reset();
    skip_ = spec_.offset ? RowCountOf(spec_.offset, context, true) : 0;
    if (spec_.percent) {
      OpenPercent(context);
      return;
    }
    if (spec_.count) count_ = RowCountOf(spec_.count, context, spec_.fetch);
    if (count_ == 0) return;
    input_->Open(context);
  }

  bool Next(Context& context) override {
    if (spec_.percent) {
      if (seen_ == rows_.size()) return false;
      Restore(spec_.slots, rows_[seen_++], context);
      return true;
    }
    if (count_ == 0) return false;
    for (; skip_ > 0; --skip_) {
      if (!input_->Next(context)) return false;
    }
    if (count_ && seen_ >= *count_ && spec_.ties.empty()) return false;
    if (!input_->Next(context)) return false;
    if (!spec_.ties.empty() && count_) return WithTies(context);
    ++seen_;
    return true;
  }

 private:
  void OpenPercent(Context& context) {
    ConvertOptions options;
    const Value percent = ConvertValue(spec_.count->Get(context), spec_.count->type,
                                       TypeOf(TypeId::kFloat), options);
    const double share = percent.IsNull() ? 0 : std::get<double>(percent.held);
    if (share < 0 || share > 100) {
      RaiseSql(1031, 15, 1, "Percent values must be between 0 and 100.");
    }
    input_->Open(context);
    while (input_->Next(context)) rows_.push_back(Save(spec_.slots, context));
    const double wanted = share * static_cast<double>(rows_.size()) / 100;
    auto count = static_cast<std::size_t>(wanted);
    if (static_cast<double>(count) < wanted) ++count;
    rows_.resize(std::min(rows_.size(), count));
  }

  bool WithTies(Context& context) {
    Row keys;
    for (const SortKeySpec& key : spec_.ties)
      keys.push_back(key.expression->Get(context));
    if (seen_ >= *count_) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (CompareWithNulls(keys[i], last_[i], spec_.ties[i].expression->type,
                             spec_.ties[i].rule) != 0) {
          return false;
        }
      }
    }
    last_ = std::move(keys);
    ++seen_;
    return true;
  }

  OperatorPtr input_;
  LimitSpec spec_;
  std::optional<std::uint64_t> count_;
  std::uint64_t skip_ = 0;
  std::uint64_t seen_ = 0;
  Row last_;
  std::vector<Row> rows_;
};

class Distinct final : public Operator {
 public:
  Distinct(OperatorPtr input, std::vector<DistinctColumn> columns)
      : input_(std::move(input)), columns_(std::move(columns)) {}
  void Open(Context& context) override {
    seen_.clear();
    input_->Open(context);
  }
  bool Next(Context& context) override {
    while (input_->Next(context)) {
      std::string key;
      for (const DistinctColumn& column : columns_) {
        AppendHashKey(context.slots[column.slot], column.type, column.rule, key);
      }
      if (seen_.insert(std::move(key)).second) return true;
    }
    return false;
  }

 private:
  OperatorPtr input_;
  std::vector<DistinctColumn> columns_;
  std::unordered_set<std::string> seen_;
};

class Append final : public Operator {
 public:
  explicit Append(std::vector<OperatorPtr> inputs) : inputs_(std::move(inputs)) {}
  void Open(Context& context) override {
    at_ = 0;
    if (!inputs_.empty()) inputs_[0]->Open(context);
  }
  bool Next(Context& context) override {
    while (at_ < inputs_.size()) {
      if (inputs_[at_]->Next(context)) return true;
      if (++at_ < inputs_.size()) inputs_[at_]->Open(context);
    }
    return false;
  }

 private:
  std::vector<OperatorPtr> inputs_;
  std::size_t at_ = 0;
};

class SetDifference final : public Operator {
 public:
  SetDifference(OperatorPtr left, OperatorPtr right,
                std::vector<DistinctColumn> columns, bool intersect)
      : left_(std::move(left)),
        right_(std::move(right)),
        columns_(std::move(columns)),
        intersect_(intersect) {}
  void Open(Context& context) override {
    right_keys_.clear();
    seen_.clear();
    right_->Open(context);
    while (right_->Next(context)) right_keys_.insert(Key(context));
    left_->Open(context);
  }
  bool Next(Context& context) override {
    while (left_->Next(context)) {
      std::string key = Key(context);
      if (right_keys_.contains(key) != intersect_) continue;
      if (seen_.insert(std::move(key)).second) return true;
    }
    return false;
  }

 private:
  std::string Key(Context& context) const {
    std::string key;
    for (const DistinctColumn& column : columns_) {
      AppendHashKey(context.slots[column.slot], column.type, column.rule, key);
    }
    return key;
  }

  OperatorPtr left_, right_;
  std::vector<DistinctColumn> columns_;
  bool intersect_;
  std::unordered_set<std::string> right_keys_, seen_;
};

}  // namespace

std::optional<Value> ValueInColumn(const ScanConstraintSpec& spec,
                                   const SqlType& column, Context& context) {
  ConvertOptions options;
  options.collation = context.environment.database_collation();
  const Value compared = ComparedValue(spec, context, options);
  if (compared.IsNull()) return std::nullopt;
  return ColumnValue(compared, spec, column, options);
}

std::uint64_t RowCountOf(const Bound& expression, Context& context, bool fetch) {
  const Value value = expression->Get(context);
  if (!IsInteger(expression->type.id) && expression->type.id != TypeId::kDecimal &&
      expression->type.id != TypeId::kNull) {
    RaiseSql(fetch ? 10743 : 1060, 15, 1,
             "The number of rows provided for a TOP or FETCH clauses row count "
             "parameter must be an integer.");
  }
  if (value.IsNull()) {
    RaiseSql(1060, 15, 1,
             "The number of rows provided for a TOP or FETCH clauses row count "
             "parameter must be an integer.");
  }
  const Value count =
      ConvertValue(value, expression->type, TypeOf(TypeId::kBigInt), {});
  const std::int64_t number = std::get<std::int64_t>(count.held);
  if (number < 0) {
    if (fetch) {
      RaiseSql(10742, 15, 1,
               "The offset specified in a OFFSET clause may not be negative.");
    }
    RaiseSql(127, 15, 1, "A TOP N or FETCH rowcount value may not be negative.");
  }
  return static_cast<std::uint64_t>(number);
}

OperatorPtr MakeSingleRow() { return std::make_unique<SingleRow>(); }
OperatorPtr MakeScan(std::shared_ptr<TableSource> source, Slot first_slot,
                     ScanShape shape, std::vector<ScanConstraintSpec> constraints,
                     std::shared_ptr<RowId> row_id) {
  return std::make_unique<Scan>(std::move(source), first_slot, std::move(shape),
                                std::move(constraints), std::move(row_id));
}
OperatorPtr MakeCursorScan(std::function<std::unique_ptr<RowCursor>(Context&)> open,
                           Slot first_slot, std::size_t column_count) {
  return std::make_unique<CursorScan>(std::move(open), first_slot, column_count);
}
OperatorPtr MakeValues(std::vector<std::vector<Bound>> rows, Slot first_slot) {
  return std::make_unique<ValueRows>(std::move(rows), first_slot);
}
OperatorPtr MakeFilter(OperatorPtr input, std::vector<Bound> conditions) {
  if (conditions.empty()) return input;
  return std::make_unique<Filter>(std::move(input), std::move(conditions));
}
OperatorPtr MakeProject(OperatorPtr input, std::vector<Projection> projections) {
  return std::make_unique<Project>(std::move(input), std::move(projections));
}
OperatorPtr MakeSort(OperatorPtr input, std::vector<SortKeySpec> keys,
                     std::vector<Slot> slots,
                     std::function<std::optional<std::uint64_t>(Context&)> limit) {
  return std::make_unique<Sort>(std::move(input), std::move(keys), std::move(slots),
                                std::move(limit));
}
OperatorPtr MakeLimit(OperatorPtr input, LimitSpec spec) {
  return std::make_unique<Limit>(std::move(input), std::move(spec));
}
OperatorPtr MakeDistinct(OperatorPtr input, std::vector<DistinctColumn> columns) {
  return std::make_unique<Distinct>(std::move(input), std::move(columns));
}
OperatorPtr MakeAppend(std::vector<OperatorPtr> inputs) {
  return std::make_unique<Append>(std::move(inputs));
}
OperatorPtr MakeSetDifference(OperatorPtr left, OperatorPtr right,
                              std::vector<DistinctColumn> columns, bool intersect) {
  return std::make_unique<SetDifference>(std::move(left), std::move(right),
                                         std::move(columns), intersect);
}

}  // namespace mssql_cdc::sim

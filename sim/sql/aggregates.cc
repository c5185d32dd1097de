// Grouping and windows: the operators that fold rows.

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "sim/sql/decimals.h"
#include "sim/sql/operators.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

Value IntegerValue(std::int64_t number) {
  Value value;
  value.held = number;
  return value;
}

[[noreturn]] void RaiseSumOverflow(const SqlType& type) {
  RaiseSql(8115, 16, 2,
           "Arithmetic overflow error converting expression to data type " +
               TypeWord(type) + ".");
}

class FoldingAccumulator final : public Accumulator {
 public:
  explicit FoldingAccumulator(const AggregateSpec& spec) : spec_(spec) {}

  void Add(Context& context) override {
    if (!spec_.argument) {
      ++count_;
      return;
    }
    Value value = spec_.argument->Get(context);
    if (value.IsNull()) return;
    if (spec_.distinct) {
      std::string key;
      AppendHashKey(value, spec_.argument->type, spec_.rule, key);
      if (!seen_.insert(std::move(key)).second) return;
    }
    ++count_;
    switch (spec_.kind) {
      case AggregateKind::kCount:
        return;
      case AggregateKind::kMinimum:
      case AggregateKind::kMaximum: {
        if (!best_.IsNull()) {
          const int order =
              CompareValues(value, best_, spec_.argument->type, spec_.rule);
          if (spec_.kind == AggregateKind::kMinimum ? order >= 0 : order <= 0) return;
        }
        best_ = std::move(value);
        return;
      }
      case AggregateKind::kStringAgg: {
        Row keys;
        for (const SortKeySpec& key : spec_.within) {
          keys.push_back(key.expression->Get(context));
        }
        texts_.emplace_back(std::move(keys), std::get<Text>(value.held));
        return;
      }
      case AggregateKind::kChecksum:
        integer_ ^= std::get<std::int64_t>(value.held);
        return;
      default:
        AddNumber(value);
        return;
    }
  }

  Value Result(Context& context) override {
    if (spec_.kind == AggregateKind::kCount) {
      if (spec_.type.id == TypeId::kInt && count_ > INT32_MAX) {
        RaiseSumOverflow(spec_.type);
      }
      return IntegerValue(count_);
    }
    if (count_ == 0) return Value();
    Value value;
    switch (spec_.kind) {
      case AggregateKind::kMinimum:
      case AggregateKind::kMaximum:
        return best_;
      case AggregateKind::kStringAgg:
        value.held = JoinedText(context);
        return value;
      case AggregateKind::kChecksum:
        return IntegerValue(static_cast<std::int64_t>(integer_));
      case AggregateKind::kSum:
      case AggregateKind::kAverage:
        return SumOrAverage();
      default:
        return Spread();
    }
  }

 private:
  void AddNumber(const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value.held)) {
      integer_ += *integer;
    } else if (const auto* number = std::get_if<double>(&value.held)) {
      double_ += *number;
      squares_ += *number * *number;
    } else {
      const auto& decimal = std::get<Decimal>(value.held);
      decimal_.scale = decimal.scale;
      if (__builtin_add_overflow(decimal_.unscaled, decimal.unscaled,
                                 &decimal_.unscaled)) {
        RaiseSumOverflow(spec_.type);
      }
    }
  }

  Value SumOrAverage() const {
    const bool average = spec_.kind == AggregateKind::kAverage;
    Value value;
    if (IsInteger(spec_.type.id)) {
      const __int128 result = average ? integer_ / count_ : integer_;
      const bool fits = spec_.type.id == TypeId::kBigInt
                            ? result >= INT64_MIN && result <= INT64_MAX
                            : result >= INT32_MIN && result <= INT32_MAX;
      if (!fits) RaiseSumOverflow(spec_.type);
      value.held = static_cast<std::int64_t>(result);
    } else if (spec_.type.id == TypeId::kFloat) {
      value.held = average ? double_ / static_cast<double>(count_) : double_;
    } else {
      std::optional<Decimal> result = decimal_;
      if (average) result = DivideDecimals(decimal_, {count_, 0}, spec_.type.scale);
      if (result && !average) result = Rescale(*result, spec_.type.scale);
      if (!result || !FitsPrecision(*result, 38)) RaiseSumOverflow(spec_.type);
      value.held = *result;
    }
    return value;
  }

  Value Spread() const {
    const auto n = static_cast<double>(count_);
    const bool whole =
        spec_.kind == AggregateKind::kStdevP || spec_.kind == AggregateKind::kVarP;
    const double divisor = whole ? n : n - 1;
    if (divisor <= 0) return Value();
    const double variance = std::max(0.0, (squares_ - double_ * double_ / n) / divisor);
    const bool root =
        spec_.kind == AggregateKind::kStdev || spec_.kind == AggregateKind::kStdevP;
    Value value;
    value.held = root ? std::sqrt(variance) : variance;
    return value;
  }

  Text JoinedText(Context& context) {
    std::stable_sort(texts_.begin(), texts_.end(), [&](const auto& a, const auto& b) {
      for (std::size_t i = 0; i < spec_.within.size(); ++i) {
        const SortKeySpec& key = spec_.within[i];
        const int order =
            CompareWithNulls(a.first[i], b.first[i], key.expression->type, key.rule);
        if (order != 0) return key.descending ? order > 0 : order < 0;
      }
      return false;
    });
    const Value separator = spec_.separator->Get(context);
    Text joined;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (i > 0 && !separator.IsNull()) joined += std::get<Text>(separator.held);
      joined += texts_[i].second;
    }
    return joined;
  }

  AggregateSpec spec_;
  std::int64_t count_ = 0;
  __int128 integer_ = 0;
  double double_ = 0;
  double squares_ = 0;
  Decimal decimal_;
  Value best_;
  std::unordered_set<std::string> seen_;
  std::vector<std::pair<Row, Text>> texts_;
};

class Aggregate final : public Operator {
 public:
  Aggregate(OperatorPtr input, std::vector<GroupKeySpec> keys,
            std::vector<AggregateSpec> aggregates, bool scalar, bool first_row_decides)
      : input_(std::move(input)),
        keys_(std::move(keys)),
        aggregates_(std::move(aggregates)),
        scalar_(scalar),
        first_row_decides_(first_row_decides) {}

  void Open(Context& context) override {
    groups_.clear();
    index_.clear();
    at_ = 0;
    input_->Open(context);
    if (scalar_) groups_.push_back(NewGroup());
    std::string key;
    while (input_->Next(context)) {
      Group& group = scalar_ ? groups_.front() : GroupOf(context, key);
      for (const auto& accumulator : group.accumulators) accumulator->Add(context);
      if (first_row_decides_ && !group.accumulators[0]->Result(context).IsNull()) break;
    }
  }

  bool Next(Context& context) override {
    if (at_ == groups_.size()) return false;
    Group& group = groups_[at_++];
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      context.slots[keys_[i].slot] = group.keys[i];
    }
    for (std::size_t i = 0; i < aggregates_.size(); ++i) {
      context.slots[aggregates_[i].slot] = group.accumulators[i]->Result(context);
    }
    return true;
  }

 private:
  struct Group {
    Row keys;
    std::vector<std::unique_ptr<Accumulator>> accumulators;
  };

  Group NewGroup() const {
    Group group;
    for (const AggregateSpec& spec : aggregates_) {
      group.accumulators.push_back(MakeAccumulator(spec));
    }
    return group;
  }

  Group& GroupOf(Context& context, std::string& key) {
    key.clear();
    Row keys;
    for (const GroupKeySpec& spec : keys_) {
      keys.push_back(spec.expression->Get(context));
      AppendHashKey(keys.back(), spec.expression->type, spec.rule, key);
    }
    const auto [at, added] = index_.try_emplace(key, groups_.size());
    if (added) {
      groups_.push_back(NewGroup());
      groups_.back().keys = std::move(keys);
    }
    return groups_[at->second];
  }

  OperatorPtr input_;
  std::vector<GroupKeySpec> keys_;
  std::vector<AggregateSpec> aggregates_;
  bool scalar_;
  bool first_row_decides_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> index_;
  std::size_t at_ = 0;
};

class Window final : public Operator {
 public:
  Window(OperatorPtr input, std::vector<WindowSpec> windows, std::vector<Slot> slots)
      : input_(std::move(input)),
        windows_(std::move(windows)),
        slots_(std::move(slots)) {}

  void Open(Context& context) override {
    rows_.clear();
    at_ = 0;
    input_->Open(context);
    while (input_->Next(context)) {
      Row row;
      for (const Slot slot : slots_) row.push_back(context.slots[slot]);
      rows_.push_back(std::move(row));
    }
    results_.assign(windows_.size(), Row(rows_.size()));
    order_.resize(rows_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    for (std::size_t w = 0; w < windows_.size(); ++w) Compute(w, context);
  }

  bool Next(Context& context) override {
    if (at_ == rows_.size()) return false;
    const std::size_t row = order_[at_++];
    Load(row, context);
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      context.slots[windows_[w].slot] = results_[w][row];
    }
    return true;
  }

 private:
  struct Keys {
    Row partition;
    Row order;
  };

  void Load(std::size_t row, Context& context) const {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      context.slots[slots_[i]] = rows_[row][i];
  }

  int ComparePartition(const WindowSpec& spec, const Keys& a, const Keys& b) const {
    for (std::size_t i = 0; i < spec.partition.size(); ++i) {
      const int order =
          CompareWithNulls(a.partition[i], b.partition[i],
                           spec.partition[i].expression->type, spec.partition[i].rule);
      if (order != 0) return order;
    }
    return 0;
  }
  int CompareOrder(const WindowSpec& spec, const Keys& a, const Keys& b) const {
    for (std::size_t i = 0; i < spec.order.size(); ++i) {
      const int order = CompareWithNulls(
          a.order[i], b.order[i], spec.order[i].expression->type, spec.order[i].rule);
      if (order != 0) return spec.order[i].descending ? -order : order;
    }
    return 0;
  }

  void Compute(std::size_t w, Context& context) {
    const WindowSpec& spec = windows_[w];
    std::vector<Keys> keys(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      Load(row, context);
      for (const GroupKeySpec& key : spec.partition) {
        keys[row].partition.push_back(key.expression->Get(context));
      }
      for (const SortKeySpec& key : spec.order) {
        keys[row].order.push_back(key.expression->Get(context));
      }
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      const int order = ComparePartition(spec, keys[a], keys[b]);
      return order != 0 ? order < 0 : CompareOrder(spec, keys[a], keys[b]) < 0;
    });
    std::size_t first = 0;
    while (first < order_.size()) {
      std::size_t last = first + 1;
      while (last < order_.size() &&
             ComparePartition(spec, keys[order_[first]], keys[order_[last]]) == 0) {
        ++last;
      }
      ComputePartition(w, first, last, keys, context);
      first = last;
    }
  }

  void ComputePartition(std::size_t w, std::size_t first, std::size_t last,
                        const std::vector<Keys>& keys, Context& context) {
    const WindowSpec& spec = windows_[w];
    Row& results = results_[w];
    const auto peers = [&](std::size_t a, std::size_t b) {
      return CompareOrder(spec, keys[order_[a]], keys[order_[b]]) == 0;
    };
    const auto count = static_cast<std::int64_t>(last - first);
    std::int64_t rank = 1, dense = 1;
    std::int64_t tiles = 0;
    if (spec.kind == WindowKind::kNtile) {
      const Value value = spec.offset->Get(context);
      tiles = value.IsNull() ? 0 : std::get<std::int64_t>(value.held);
      if (tiles <= 0) {
        RaiseSql(4112, 16, 1,
                 "The function 'ntile' takes only a positive int or bigint expression "
                 "as its input.");
      }
    }
    for (std::size_t i = first; i < last; ++i) {
      const auto index = static_cast<std::int64_t>(i - first);
      if (i > first && !peers(i - 1, i)) {
        rank = index + 1;
        ++dense;
      }
      Value value;
      switch (spec.kind) {
        case WindowKind::kRowNumber:
          value = IntegerValue(index + 1);
          break;
        case WindowKind::kRank:
          value = IntegerValue(rank);
          break;
        case WindowKind::kDenseRank:
          value = IntegerValue(dense);
          break;
        case WindowKind::kPercentRank:
          value.held = count == 1 ? 0.0
                                  : static_cast<double>(rank - 1) /
                                        static_cast<double>(count - 1);
          break;
        case WindowKind::kCumeDist: {
          std::size_t end = i + 1;
          while (end < last && peers(i, end)) ++end;
          value.held = static_cast<double>(end - first) / static_cast<double>(count);
          break;
        }
        case WindowKind::kNtile: {
          // The first `count % tiles` tiles hold one row more.
          const std::int64_t size = count / tiles, larger = count % tiles;
          const std::int64_t in_larger = larger * (size + 1);
          value =
              IntegerValue(index < in_larger ? index / (size + 1) + 1
                                             : larger + (index - in_larger) / size + 1);
          break;
        }
        case WindowKind::kLag:
        case WindowKind::kLead:
          value = Neighbour(spec, i, first, last, context);
          break;
        case WindowKind::kFirstValue:
        case WindowKind::kLastValue:
        case WindowKind::kAggregate: {
          const auto [low, high] = FrameOf(spec, i, first, last, peers);
          // Without a frame of its own, peers share one result.
          if (spec.kind == WindowKind::kAggregate && i > first && !spec.rows &&
              (spec.order.empty() || peers(i - 1, i))) {
            value = results[order_[i - 1]];
          } else {
            value = OverFrame(spec, low, high, context);
          }
          break;
        }
      }
      results[order_[i]] = std::move(value);
    }
  }

  Value Neighbour(const WindowSpec& spec, std::size_t i, std::size_t first,
                  std::size_t last, Context& context) const {
    Load(order_[i], context);
    std::int64_t distance = 1;
    if (spec.offset) {
      const Value value = spec.offset->Get(context);
      distance = value.IsNull() ? 0 : std::get<std::int64_t>(value.held);
      if (distance < 0) {
        RaiseSql(8730, 16, 1,
                 "Offset parameter for Lag and Lead functions cannot be a negative "
                 "value.");
      }
    }
    const auto at = static_cast<std::int64_t>(i) +
                    (spec.kind == WindowKind::kLag ? -distance : distance);
    if (at < static_cast<std::int64_t>(first) ||
        at >= static_cast<std::int64_t>(last)) {
      return spec.default_value ? spec.default_value->Get(context) : Value();
    }
    Load(order_[static_cast<std::size_t>(at)], context);
    return spec.argument->Get(context);
  }

  template <typename Peers>
  std::pair<std::size_t, std::size_t> FrameOf(const WindowSpec& spec, std::size_t i,
                                              std::size_t first, std::size_t last,
                                              const Peers& peers) const {
    using Kind = ast::FrameBound::Kind;
    if (!spec.has_frame && spec.order.empty()) return {first, last};
    const auto clamp = [&](std::int64_t at) {
      return static_cast<std::size_t>(std::clamp(at, static_cast<std::int64_t>(first),
                                                 static_cast<std::int64_t>(last)));
    };
    const auto here = static_cast<std::int64_t>(i);
    std::size_t low = first;
    std::size_t high = last;
    switch (spec.first.kind) {
      case Kind::kUnboundedPreceding:
        break;
      case Kind::kPreceding:
        low = clamp(here - spec.first.offset);
        break;
      case Kind::kFollowing:
        low = clamp(here + spec.first.offset);
        break;
      case Kind::kCurrentRow:
        low = i;
        while (!spec.rows && low > first && peers(low - 1, i)) --low;
        break;
      case Kind::kUnboundedFollowing:
        low = last;
        break;
    }
    switch (spec.last.kind) {
      case Kind::kUnboundedFollowing:
        break;
      case Kind::kPreceding:
        high = clamp(here - spec.last.offset + 1);
        break;
      case Kind::kFollowing:
        high = clamp(here + spec.last.offset + 1);
        break;
      case Kind::kCurrentRow:
        high = i + 1;
        while (!spec.rows && high < last && peers(i, high)) ++high;
        break;
      case Kind::kUnboundedPreceding:
        high = first;
        break;
    }
    return {low, std::max(low, high)};
  }

  Value OverFrame(const WindowSpec& spec, std::size_t low, std::size_t high,
                  Context& context) const {
    if (spec.kind != WindowKind::kAggregate) {
      if (low == high) return Value();
      Load(order_[spec.kind == WindowKind::kFirstValue ? low : high - 1], context);
      return spec.argument->Get(context);
    }
    const std::unique_ptr<Accumulator> accumulator = MakeAccumulator(*spec.aggregate);
    for (std::size_t i = low; i < high; ++i) {
      Load(order_[i], context);
      accumulator->Add(context);
    }
    return accumulator->Result(context);
  }

  OperatorPtr input_;
  std::vector<WindowSpec> windows_;
  std::vector<Slot> slots_;
  std::vector<Row> rows_;
  std::vector<std::size_t> order_;
  std::vector<Row> results_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Accumulator> MakeAccumulator(const AggregateSpec& spec) {
  return std::make_unique<FoldingAccumulator>(spec);
}

OperatorPtr MakeAggregate(OperatorPtr input, std::vector<GroupKeySpec> keys,
                          std::vector<AggregateSpec> aggregates, bool scalar,
                          bool first_row_decides) {
  return std::make_unique<Aggregate>(std::move(input), std::move(keys),
                                     std::move(aggregates), scalar, first_row_decides);
}

OperatorPtr MakeWindow(OperatorPtr input, std::vector<WindowSpec> windows,
                       std::vector<Slot> slots) {
  return std::make_unique<Window>(std::move(input), std::move(windows),
                                  std::move(slots));
}

}  // namespace mssql_cdc::sim

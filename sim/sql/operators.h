// The operators of a plan. All stream, but Sort, Window, Aggregate, Distinct and the
// inner side of a hash join, which hold what they must.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sim/sql/bound.h"

namespace mssql_cdc::sim {

struct SortKeySpec {
  Bound expression;
  bool descending = false;
  CollationRule rule;
};

// One row without columns: a SELECT without FROM.
OperatorPtr MakeSingleRow();

struct ScanConstraintSpec {
  std::size_t column;
  Comparison comparison;
  Bound value;
  SqlType compared_type;  // What the comparison is carried out in.
  CollationRule rule;
};
// What the constraint's expression is now, as a value of the column's type; absent:
// NULL, or nothing that a column of this type can hold.
std::optional<Value> ValueInColumn(const ScanConstraintSpec& spec,
                                   const SqlType& column, Context& context);
OperatorPtr MakeScan(std::shared_ptr<TableSource> source, Slot first_slot,
                     ScanShape shape, std::vector<ScanConstraintSpec> constraints,
                     std::shared_ptr<RowId> row_id);

// `open` gives the rows; used for table functions.
OperatorPtr MakeCursorScan(std::function<std::unique_ptr<RowCursor>(Context&)> open,
                           Slot first_slot, std::size_t column_count);
OperatorPtr MakeValues(std::vector<std::vector<Bound>> rows, Slot first_slot);
OperatorPtr MakeFilter(OperatorPtr input, std::vector<Bound> conditions);

// For each left row, the right side is opened anew.
OperatorPtr MakeNestedLoop(OperatorPtr left, OperatorPtr right,
                           std::vector<Bound> conditions, bool keeps_left,
                           std::vector<Slot> right_slots);
// Reads its input once and plays it again at each Open.
OperatorPtr MakeSpool(OperatorPtr input, std::vector<Slot> slots);
// Plays the rows of the last Open again if the slots `known` hold what they held then;
// `slots`: those it fills. Requires that its rows depend on nothing else that changes.
OperatorPtr MakeRemembered(OperatorPtr input, std::vector<Slot> known,
                           std::vector<Slot> slots);
struct HashKeySpec {
  Bound left, right;  // Converted to one type.
  SqlType type;
  CollationRule rule;
};
OperatorPtr MakeHashJoin(OperatorPtr left, OperatorPtr right,
                         std::vector<HashKeySpec> keys, std::vector<Bound> conditions,
                         bool keeps_left, std::vector<Slot> right_slots);
OperatorPtr MakeFullJoin(OperatorPtr left, OperatorPtr right,
                         std::vector<Bound> conditions, std::vector<Slot> left_slots,
                         std::vector<Slot> right_slots);

struct Projection {
  Bound expression;
  Slot slot;
};
OperatorPtr MakeProject(OperatorPtr input, std::vector<Projection> projections);
// `limit`: only the first rows are wanted (evaluated at Open); null: all of them.
OperatorPtr MakeSort(OperatorPtr input, std::vector<SortKeySpec> keys,
                     std::vector<Slot> slots,
                     std::function<std::optional<std::uint64_t>(Context&)> limit);
struct LimitSpec {
  Bound count;   // Null: no limit.
  Bound offset;  // Null: none.
  bool percent = false;
  bool fetch = false;             // The count is of FETCH (10744), not of TOP.
  std::vector<SortKeySpec> ties;  // Of WITH TIES.
  std::vector<Slot> slots;
};
OperatorPtr MakeLimit(OperatorPtr input, LimitSpec spec);
// The number a TOP, OFFSET or FETCH means; raises 127, 1060, 10742, 10744.
std::uint64_t RowCountOf(const Bound& expression, Context& context, bool fetch);

struct DistinctColumn {
  Slot slot;
  SqlType type;
  CollationRule rule;
};
OperatorPtr MakeDistinct(OperatorPtr input, std::vector<DistinctColumn> columns);
// Rows of both inputs, each projected to `slots`.
OperatorPtr MakeAppend(std::vector<OperatorPtr> inputs);
// EXCEPT, INTERSECT over the same slots.
OperatorPtr MakeSetDifference(OperatorPtr left, OperatorPtr right,
                              std::vector<DistinctColumn> columns, bool intersect);

enum class AggregateKind : std::uint8_t {
  kCount,
  kSum,
  kAverage,
  kMinimum,
  kMaximum,
  kStringAgg,
  kStdev,
  kStdevP,
  kVar,
  kVarP,
  kChecksum,
};
struct AggregateSpec {
  AggregateKind kind;
  Bound argument;  // Null for COUNT(*). Already of the type summed up.
  bool distinct = false;
  SqlType type;   // Of the result.
  Slot slot = 0;  // Of the result.
  CollationRule rule;
  Bound separator;                  // STRING_AGG
  std::vector<SortKeySpec> within;  // STRING_AGG
};
struct GroupKeySpec {
  Bound expression;
  Slot slot = 0;
  CollationRule rule;
};
// `scalar`: without GROUP BY there is one row even of nothing. `first_row_decides`: a
// single MIN or MAX over rows that come in its order.
OperatorPtr MakeAggregate(OperatorPtr input, std::vector<GroupKeySpec> keys,
                          std::vector<AggregateSpec> aggregates, bool scalar,
                          bool first_row_decides);

enum class WindowKind : std::uint8_t {
  kRowNumber,
  kRank,
  kDenseRank,
  kPercentRank,
  kCumeDist,
  kNtile,
  kLag,
  kLead,
  kFirstValue,
  kLastValue,
  kAggregate,
};
struct WindowSpec {
  WindowKind kind;
  Bound argument;
  Bound offset;         // LAG, LEAD; the tile count of NTILE.
  Bound default_value;  // LAG, LEAD
  std::optional<AggregateSpec> aggregate;
  std::vector<GroupKeySpec> partition;
  std::vector<SortKeySpec> order;
  bool has_frame = false;
  bool rows = false;
  ast::FrameBound first;
  ast::FrameBound last;
  SqlType type;
  Slot slot = 0;
};
OperatorPtr MakeWindow(OperatorPtr input, std::vector<WindowSpec> windows,
                       std::vector<Slot> slots);

// One aggregate's running state, also used by windows.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  virtual void Add(Context& context) = 0;
  virtual Value Result(Context& context) = 0;
};
std::unique_ptr<Accumulator> MakeAccumulator(const AggregateSpec& spec);

// -1, 0, 1; NULLs first.
int CompareWithNulls(const Value& a, const Value& b, const SqlType& type,
                     const CollationRule& rule);
void CheckStop(Context& context);  // Raises StopRequested.
struct StopRequested {};

}  // namespace mssql_cdc::sim

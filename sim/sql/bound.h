// What the binder yields: typed expressions over numbered slots, ready to evaluate.
//
// A statement has one flat array of slots. Each column of each table in FROM, each
// group key, aggregate and output column has its own slot; operators fill them row by
// row, and expressions read them. A correlated subquery simply reads slots of the outer
// query. Bound trees live for one execution of one statement.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/sql/collation.h"
#include "sim/sql/convert.h"
#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

using Slot = std::uint32_t;

// Compares names as the database does: without regard to case.
struct NameLess {
  bool operator()(const std::string& a, const std::string& b) const;
};

// The variables of one batch or module.
struct VariableFrame {
  std::map<std::string, TypedValue, NameLess> values;
  std::map<std::string, std::shared_ptr<TableSource>, NameLess> tables;
  // Set: variables that are not declared are noted here and are NULL.
  std::vector<UndeclaredParameter>* undeclared = nullptr;
};

// What @@ROWCOUNT and its kin show, and ERROR_NUMBER() inside a CATCH block.
struct SessionState {
  std::int64_t row_count = 0;
  std::int32_t error_number = 0;
  std::int32_t nest_level = 0;
  std::vector<Message> caught;  // The innermost CATCH last.
};

// Rows of `source` are wanted only where its first column is above a value of it.
struct ScanFloor {
  const TableSource* source = nullptr;
  Value above;
};

struct Context {
  Environment& environment;
  SessionState& session;
  VariableFrame& variables;
  std::vector<Value> slots;
  std::optional<DateTimeValue> now;  // The same for the whole statement.
  std::optional<ScanFloor> floor;

  const DateTimeValue& Now() {
    if (!now) now = environment.Now();
    return *now;
  }
};

enum class Truth : std::uint8_t { kFalse, kTrue, kUnknown };

struct BoundExpression;
using Bound = std::shared_ptr<BoundExpression>;

struct BoundExpression {
  SqlType type;
  bool nullable = true;
  // How strongly the collation holds: explicit COLLATE, a column's, a literal's.
  enum class Coercibility : std::uint8_t { kExplicit, kImplicit, kDefault };
  Coercibility coercibility = Coercibility::kDefault;
  std::vector<Slot> slots;  // Those it reads, subqueries included.
  // NEWID() and the like, and subqueries: never evaluated ahead or only once.
  bool is_volatile = false;
  std::optional<Slot> slot;                 // It is nothing but this slot.
  bool identity = false, computed = false;  // Of a plain column.
  std::string name;                         // Of a plain column.
  std::string undeclared;                   // It is nothing but this parameter.

  // A value, or a condition's truth. Exactly one of them is set.
  std::function<void(Context&, Value&)> evaluate;
  std::function<Truth(Context&)> test;

  // Of conditions the planner looks into: AND, OR, comparisons, IS NULL.
  enum class Shape : std::uint8_t { kOther, kAnd, kOr, kComparison, kIsNull };
  Shape shape = Shape::kOther;
  Comparison comparison = Comparison::kEqual;
  Bound left, right;
  SqlType compared_type;
  CollationRule rule;

  bool IsCondition() const { return static_cast<bool>(test); }
  Value Get(Context& context) const {
    Value value;
    evaluate(context, value);
    return value;
  }
};

// One operator of a plan. Open starts (again) from the first row; Next fills the
// operator's slots and says whether there was a row.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual void Open(Context& context) = 0;
  virtual bool Next(Context& context) = 0;
  // What was kept from earlier rows of an outer query no longer holds.
  virtual void Forget() {}
};
using OperatorPtr = std::unique_ptr<Operator>;

struct OutputColumn {
  std::string name;
  SqlType type;
  bool nullable = true;
  bool identity = false;
  bool computed = false;
  Slot slot = 0;
};

}  // namespace mssql_cdc::sim

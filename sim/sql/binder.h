// Names to slots, types and conversions: from the parser's tree to bound expressions
// and queries. Raises 207, 208, 209, 4104, 8120, 137, 195 and the typing errors. One
// Binder serves one statement.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/sql/ast.h"
#include "sim/sql/bound.h"
#include "sim/sql/growing_query.h"
#include "sim/sql/operators.h"

namespace mssql_cdc::sim {

// A table of FROM, with a slot for each column.
struct BoundTable {
  std::string alias;      // Empty: the object's own name counts.
  bool any_case = false;  // The alias is a keyword (inserted, deleted), no name.
  ObjectName name;
  std::vector<OutputColumn> columns;
  std::vector<bool> used;
};

// GROUP BY of one query: what its SELECT list may refer to.
struct Grouping {
  std::vector<GroupKeySpec> keys;
  std::vector<std::string> key_texts;  // Normalised, to find the same expression again.
  std::vector<AggregateSpec> aggregates;
  std::vector<std::string> aggregate_texts;
  bool inside_aggregate = false;
};

struct Scope {
  const Scope* outer = nullptr;
  std::vector<std::shared_ptr<BoundTable>> tables;
  Grouping* grouping = nullptr;
  std::vector<WindowSpec>* windows = nullptr;  // Null where OVER may not stand (4108).
  const char* clause = "select list";          // For 8120.
};

struct WantedOrder {
  Slot slot;
  bool descending = false;
  bool operator==(const WantedOrder&) const = default;
};

struct Planned {
  OperatorPtr op;
  bool ordered = false;  // As wanted.
};

// A query, bound but not planned yet.
class BoundQuery {
 public:
  virtual ~BoundQuery() = default;
  // Makes the plan; called once.
  virtual Planned Plan(const std::vector<WantedOrder>& wanted) = 0;
  // Before Plan. Absent: it is no such query.
  virtual std::optional<GrowingQuery> Growing() const { return std::nullopt; }

  std::vector<OutputColumn> columns;
  std::vector<Slot> free_slots;  // Of outer queries.
  bool assigns_variables = false;
};
using QueryPtr = std::shared_ptr<BoundQuery>;

// A node of FROM.
struct FromNode {
  enum class Kind : std::uint8_t { kTable, kQuery, kFunction, kValues, kJoin };
  Kind kind = Kind::kTable;
  std::shared_ptr<BoundTable> table;
  std::shared_ptr<TableSource> source;
  QueryPtr query;
  std::function<std::unique_ptr<RowCursor>(Context&)> open;
  std::vector<std::vector<Bound>> rows;
  ast::JoinKind join = ast::JoinKind::kInner;
  std::unique_ptr<FromNode> left, right;
  std::vector<Bound> on;
  // The slots below this node; nobody else has one in between.
  Slot begin = 0, end = 0;
  std::vector<Slot> free_slots;  // What an APPLY's right side reads of the left.
  std::shared_ptr<RowId> row_id;
};
using FromPtr = std::unique_ptr<FromNode>;

// FROM and WHERE as a plan (plan.cc). `conditions` are taken apart at AND.
Planned PlanFrom(FromNode& from, std::vector<Bound> conditions,
                 const std::vector<WantedOrder>& wanted);
// a < b is b > a.
Comparison Mirrored(Comparison comparison);
void SplitConditions(const Bound& condition, std::vector<Bound>& conditions);
// The query of these parts, `order` in slots of tables or projections, if its answer
// only grows (growing_shape.cc).
std::optional<GrowingQuery> GrowingQueryOf(const FromNode& from,
                                           const std::vector<Bound>& conditions,
                                           const std::vector<Projection>& projections,
                                           const std::vector<WantedOrder>& order);
// All slots that rows of `from` are made of, as far as they are read.
void CollectSlots(const FromNode& from, std::vector<Slot>& slots);

class Binder {
 public:
  Binder(Environment& environment, SessionState& session, VariableFrame& variables);

  // Queries (bind_query.cc). `outer` may be null.
  QueryPtr BindSelect(const ast::Select& select, const Scope* outer);
  FromPtr BindFrom(const std::vector<ast::TableReferencePtr>& from, Scope& scope);
  void PushCommonTables(const std::vector<ast::CommonTable>& tables);
  // A table of its own, for UPDATE and DELETE without FROM.
  FromPtr BindTarget(std::shared_ptr<TableSource> source, const ObjectName& name,
                     const std::string& alias, Scope& scope);

  // Expressions (bind_expression.cc).
  Bound Bind(const ast::ExpressionPtr& expression, const Scope* scope);
  Bound BindCondition(const ast::ExpressionPtr& expression, const Scope* scope);
  Bound Convert(Bound operand, const SqlType& to, bool is_explicit = false,
                int style = 0);
  Bound Compare(ast::BinaryOperator op, Bound left, Bound right);
  Bound Arithmetic(ast::BinaryOperator op, Bound left, Bound right);
  CollationRule RuleFor(const SqlType& type) const;
  static Bound SlotReference(const OutputColumn& column);
  Bound Constant(const SqlType& type, Value value);
  // If `place` is an undeclared parameter, `type` is what it should have been.
  void SuggestType(const Bound& place, const SqlType& type);

  Slot NewSlot() { return next_slot_++; }
  Slot slot_count() const { return next_slot_; }
  // Slots must exist before expressions run.
  Context MakeContext() const;
  Environment& environment() { return environment_; }
  VariableFrame& variables() { return variables_; }
  SessionState& session() { return session_; }
  // Variables change while the statement runs: nothing is evaluated only once.
  void SetVariablesChange() { variables_change_ = true; }

  // For the function table (functions.cc).
  using Evaluator = std::function<Value(Context&, std::vector<Value>&)>;
  // NULL if any argument is NULL, unless `takes_null`.
  Bound Function(const SqlType& type, std::vector<Bound> arguments, Evaluator evaluator,
                 bool takes_null = false);
  Bound Fold(Bound expression);
  SqlType BranchType(std::span<const Bound> branches);
  Bound Branches(std::vector<std::pair<Bound, Bound>> branches, Bound otherwise);
  ConvertOptions Options(int style = 0) const;

 private:
  friend class QueryBlockBinder;

  Bound BindNode(const ast::ExpressionPtr& expression, const Scope* scope);
  Bound BindColumn(const ast::ColumnReference& reference, const Scope* scope);
  Bound ColumnOf(const Scope& scope, BoundTable& table, std::size_t column);
  Bound BindVariable(const ast::Variable& variable);
  Bound BindGlobal(const ast::GlobalVariable& variable);
  Bound BindUnary(const ast::Unary& node, const Scope* scope);
  Bound BindBinary(const ast::Binary& node, const Scope* scope);
  Bound BindLike(const ast::Like& node, const Scope* scope);
  Bound BindIn(const ast::InList& node, const Scope* scope);
  Bound BindInSelect(const ast::InSelect& node, const Scope* scope);
  Bound BindQuantified(const ast::Quantified& node, const Scope* scope);
  Bound BindExists(const ast::Exists& node, const Scope* scope);
  Bound BindScalarSelect(const ast::ScalarSelect& node, const Scope* scope);
  Bound BindCase(const ast::Case& node, const Scope* scope);
  Bound BindConvert(const ast::Convert& node, const Scope* scope);
  Bound BindCollate(const ast::Collate& node, const Scope* scope);
  Bound BindAtTimeZone(const ast::AtTimeZone& node, const Scope* scope);
  Bound BindCall(const ast::ExpressionPtr& expression, const ast::Call& call,
                 const Scope* scope);
  Bound BindAggregate(const ast::ExpressionPtr& expression, const ast::Call& call,
                      const Scope* scope);
  AggregateSpec MakeAggregateSpec(const ast::Call& call, const std::string& upper,
                                  const Scope* scope);
  Bound BindWindow(const ast::Call& call, const Scope* scope);
  Bound BindEngineFunction(const ast::Call& call, const Scope* scope);
  Bound GroupKeyOf(const ast::ExpressionPtr& expression, const Scope* scope);

  FromPtr BindTable(const ast::TableReference& table, Scope& scope);
  FromPtr BindJoin(const ast::Join& join, Scope& scope);
  FromPtr BindNamed(const ast::TableReference& table, const ast::NamedTable& named,
                    Scope& scope);
  FromPtr BindFunction(const ast::TableReference& table,
                       const ast::FunctionTable& function, Scope& scope);
  FromPtr BindDerived(const ast::Select& select, const std::string& alias,
                      const std::vector<std::string>& columns, const Scope* outer,
                      Scope& scope);
  FromPtr BindRows(const ast::ValuesTable& values, const ast::TableReference& table,
                   Scope& scope);
  QueryPtr BindBody(const ast::QueryExpression& body, const ast::Select* select,
                    const Scope* outer);
  QueryPtr BindSetOperation(const ast::SetOperation& operation,
                            const ast::Select* select, const Scope* outer);
  std::size_t SetOrderColumn(const ast::Expression& expression,
                             const std::vector<OutputColumn>& columns) const;
  const ast::CommonTable* FindCommonTable(const ObjectName& name) const;
  void AddTable(std::shared_ptr<BoundTable> table, Scope& scope);
  void MarkRead(Slot slot) { reads_.push_back(slot); }
  // Slots read since `mark` that did not exist before `first`.
  std::vector<Slot> FreeSince(std::size_t mark, Slot first) const;

  Environment& environment_;
  SessionState& session_;
  VariableFrame& variables_;
  Slot next_slot_ = 0;
  std::vector<Slot> reads_;
  bool variables_change_ = false;
  std::vector<const ast::CommonTable*> common_tables_;
  std::vector<std::shared_ptr<const void>> kept_;  // Trees of views.
  int view_depth_ = 0;
};

bool IsAggregateName(const std::string& upper);
bool ContainsAggregate(const ast::Expression& expression);
std::string UpperName(const std::string& name);
// Same expressions have the same text.
std::string NormalText(const ast::Expression& expression);

// The built-in functions that need no engine. Null: there is none of that name.
using BuiltIn = Bound (*)(Binder& binder, const ast::Call& call,
                          std::vector<Bound>& arguments);
BuiltIn FindBuiltIn(const std::string& upper);
// LIKE, also for PATINDEX.
bool MatchesLike(std::u16string_view text, std::u16string_view pattern,
                 std::optional<char16_t> escape, const CollationRule& rule);

}  // namespace mssql_cdc::sim

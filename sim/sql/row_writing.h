// What statements that write rows have in common: their target, the values as its
// columns take them, SET lists, OUTPUT and TOP.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/sql/statements.h"

namespace mssql_cdc::sim {

// Raises StopRequested where the sink wants no more.
void Check(bool wanted);
// A table by name or, if given, a table variable. Raises 208, 1087.
std::shared_ptr<TableSource> FindTarget(const ObjectName& name,
                                        const std::string& variable, Access access,
                                        const Run& run);
// The value as the column stores it; text that does not fit is an error.
Bound Assigned(Binder& binder, const Bound& value, const ColumnInfo& column,
               const std::string& table);
std::uint64_t TopOf(const std::optional<ast::Top>& top, Binder& binder,
                    Context& context);

// OUTPUT: where its rows go.
class Output {
 public:
  Output(const std::optional<ast::OutputClause>& clause, TableSource& target,
         Binder& binder, const Run& run);

  bool present() const { return present_; }
  bool sends_rows() const { return present_ && !into_; }

  void Begin();
  void Add(Context& context, const Row* deleted, const Row* inserted);
  void End();

 private:
  struct Pseudo {
    std::vector<Slot> slots;
  };

  void AddPseudoTable(const std::string& name, TableSource& target, Binder& binder,
                      Pseudo& pseudo);

  void AddItem(const ast::SelectItem& item, Binder& binder);

  void BindInto(const ast::OutputClause& clause, Binder& binder);

  static void Fill(Context& context, const Pseudo& pseudo, const Row* row);

  const Run& run_;
  bool present_ = false;
  Scope scope_;
  Pseudo inserted_, deleted_;
  std::vector<Bound> items_;
  std::vector<OutputColumn> columns_;
  std::shared_ptr<TableSource> into_;
  std::vector<std::size_t> into_columns_;
  std::vector<Row> rows_;
};

// SET column = expression of UPDATE and MERGE.
struct BoundAssignments {
  std::vector<std::size_t> columns;
  std::vector<Bound> values;

  void Bind(const std::vector<ast::Assignment>& assignments, TableSource& target,
            const Scope& scope, Binder& binder);

  Row Evaluate(Context& context) const;

 private:
  // SET @x = column = expression.
  void StoreVariable(const ast::Assignment& assignment, Binder& binder);
};

}  // namespace mssql_cdc::sim

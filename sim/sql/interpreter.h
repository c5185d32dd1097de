// Runs T-SQL text for one session: parse, bind, execute, and SQL Server's rules on what
// an error ends (statement, batch, transaction).

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/session.h"
#include "sim/sql/environment.h"

namespace mssql_cdc::sim {

class Interpreter {
 public:
  // Requires: `environment` outlives it.
  explicit Interpreter(Environment& environment);
  ~Interpreter();

  // EngineSession::Batch. Never throws. The sink gets a StatementDone for every
  // statement that has one, also after an error (row count absent).
  void Batch(const std::string& sql, ReplySink& sink);
  // EngineSession::ExecuteSql: also ReturnStatus and ReturnValue. Never throws.
  void ExecuteSql(const std::string& sql, std::vector<BoundParameter> parameters,
                  ReplySink& sink);
  // EngineSession::Procedure: a name as text, resolved by Environment::Call, or
  // sp_executesql. Never throws.
  void Procedure(const std::string& name, std::vector<BoundParameter> parameters,
                 ReplySink& sink);
  // What a stored procedure of the user's does: runs `body` in a scope of its own, from
  // within Environment::Call. Throws SqlError. Returns the status.
  std::int32_t RunModule(const std::string& name, const std::string& body,
                         std::vector<BoundParameter>& parameters, ReplySink& sink);

  // Sends the columns of what `sql` would return and runs nothing. Throws SqlError.
  void Describe(const std::string& sql, const std::vector<BoundParameter>& declared,
                ReplySink& sink);
  // The variables that `sql` uses and neither it nor `declared` declares, with the type
  // that the place of each suggests. Throws SqlError.
  std::vector<UndeclaredParameter> UndeclaredParameters(
      const std::string& sql, const std::vector<BoundParameter>& declared);

  std::int64_t last_row_count() const;  // @@ROWCOUNT

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "a.[b c].d" as typed by a client; nullopt if it is no name of one to four parts.
std::optional<ObjectName> ParseObjectName(std::string_view text);

// The type a TypeName means; raises 2715, 2716, 2750, 1001, ... Asks the environment
// only for names that are not built in. Types without a length get the default of a
// column (`in_cast`: 30 instead of 1).
SqlType ResolveType(const ast::TypeName& name, Environment& environment,
                    bool in_cast = false);

// An expression on its own, for defaults and computed columns.
class RowExpression {
 public:
  virtual ~RowExpression() = default;
  virtual const SqlType& type() const = 0;
  virtual bool nullable() const = 0;
  virtual Value Evaluate(const Row& row) = 0;
};
// Binds `expression` over `columns`, converted to `target` if given. A condition
// (CHECK) yields a bit, NULL where it is unknown. Raises 207, 128, ...
std::unique_ptr<RowExpression> BindRowExpression(const ast::ExpressionPtr& expression,
                                                 const std::vector<ColumnInfo>& columns,
                                                 const std::optional<SqlType>& target,
                                                 Environment& environment);
// The same from stored text, such as "(getdate())".
ast::ExpressionPtr ParseExpression(const std::string& text);
ast::Batch ParseBatch(const std::string& sql, bool quoted_identifier = true);

}  // namespace mssql_cdc::sim

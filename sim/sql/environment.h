// Through this interface a running statement sees the server: tables, functions,
// procedures, DDL, transactions, clock and dice. The engine implements it, one object
// for each session; sim/sql calls it from that session's thread only.
//
// An error of SQL Server is thrown as SqlError, inside the simulator only: T-SQL's own
// errors unwind to the nearest TRY, statement or batch, and so do these. The
// interpreter catches all of them, so nothing leaves an EngineSession's calls as an
// exception.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/session.h"
#include "sim/sql/ast.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

// What a statement fails with. Severity 20 and above ends the connection.
struct SqlError {
  Message message;
};

// Throws. The line is filled in by the interpreter where it is 0.
[[noreturn]] void RaiseSql(std::int32_t number, std::uint8_t severity,
                           std::uint8_t state, std::string text);

struct TypedValue {
  SqlType type;
  Value value;
};

using Row = std::vector<Value>;

// Names one row of a table as long as the statement runs.
using RowId = std::int64_t;

struct ColumnInfo {
  std::string name;
  SqlType type;
  bool nullable = true;
  bool identity = false;
  bool computed = false;
  // rowversion, computed: what INSERT and UPDATE may not name.
  bool generated = false;
};

enum class Comparison : std::uint8_t {
  kEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
};

// What a plan intends to ask of a scan, before the values are known.
struct ScanShape {
  struct Constraint {
    std::size_t column;
    Comparison comparison;
    bool operator==(const Constraint&) const = default;
  };
  struct Order {
    std::size_t column;
    bool descending = false;
    bool operator==(const Order&) const = default;
  };
  std::vector<Constraint> constraints;  // All of them hold (AND).
  std::vector<Order> order;
  // Columns whose values are used; others may come as NULL.
  std::vector<std::size_t> columns;
  bool row_ids = false;  // The cursor's row_id() will be asked.
};

// How a source would carry out a shape.
struct ScanAnswer {
  // One for each constraint of the shape. True: an index narrows the scan by it. The
  // executor checks every row again, so a source may always deliver more rows than the
  // constraints allow, never fewer.
  std::vector<bool> seeks;
  // True: no row is delivered that a constraint excludes.
  bool exact = false;
  // True: rows come in the shape's order, NULLs first ascending, text by its collation.
  bool ordered = false;
  // A rough guess of the rows delivered.
  double row_count = 1000;
};

// The values that go with a shape. Each is of the column's type, and never NULL.
struct ScanRequest {
  ScanShape shape;
  std::vector<Value> values;  // One for each constraint.
  // The source may stop after this many rows. Only given if the answer was `exact` and,
  // where an order was asked, `ordered`.
  std::optional<std::uint64_t> row_limit;
};

class RowCursor {
 public:
  virtual ~RowCursor() = default;
  // Fills `row` with one value for each column of the source. False: at the end.
  virtual bool Next(Row& row) = 0;
  // Of the row that Next gave last. Only if the shape asked for row ids.
  virtual RowId row_id() const { return 0; }
};

// Rows to be inserted: fills one value for each of the request's columns (of the
// column's type); false at the end.
using RowFeed = std::function<bool(Row&)>;

struct InsertRequest {
  std::vector<std::size_t> columns;  // The others get defaults, identity, NULL.
  RowFeed feed;
  // If set: called with each row as stored, all columns.
  std::function<void(const Row& inserted)> output;
};
struct UpdateRequest {
  std::vector<std::size_t> columns;
  // Gives the next row to update and its new values, one for each of `columns`. The
  // executor has read all rows before the first call.
  std::function<bool(RowId&, Row&)> feed;
  std::function<void(const Row& deleted, const Row& inserted)> output;
  bool of_merge = false;  // The part of a MERGE.
};
struct DeleteRequest {
  std::function<bool(RowId&)> feed;
  std::function<void(const Row& deleted)> output;
};

// Of a table of CDC, whose rows come commit by commit: its first column is their LSN,
// and what is there of a commit stays as it is.
struct Growth {
  std::int32_t database_id = 0;
  std::int32_t table_id = 0;
  // Counts what did change rows (cleanup, DDL, a restore, somebody's own DML).
  std::uint64_t rewrite_count = 0;
  // No row at or below this LSN, ten bytes, is still to come.
  std::string through;
};

// A table or view as one statement sees it.
class TableSource {
 public:
  virtual ~TableSource() = default;
  virtual const std::string& name()
      const = 0;  // "dbo.orders", for messages (515, 2628).
  virtual const std::vector<ColumnInfo>& columns() const = 0;
  virtual ScanAnswer Plan(const ScanShape& shape) const = 0;
  virtual std::unique_ptr<RowCursor> Open(const ScanRequest& request) = 0;
  // Absent: it is no such table, or not to this statement.
  virtual std::optional<Growth> growth() const { return std::nullopt; }
  // Return the number of rows. They check keys and NOT NULL (515, 2601, 2627) and the
  // login's rights. A source that cannot be written refuses (4406, 259, ...).
  virtual std::uint64_t Insert(const InsertRequest& request) = 0;
  virtual std::uint64_t Update(const UpdateRequest& request) = 0;
  virtual std::uint64_t Delete(const DeleteRequest& request) = 0;
};

// A scalar function of the engine's. Arguments are converted to `parameters` before the
// call; a parameter of type kNull takes whatever comes, as it is.
struct ScalarFunction {
  std::vector<SqlType> parameters;
  std::size_t argument_count_min = 0;  // The rest may be left out or be DEFAULT.
  SqlType result;
  // Missing and DEFAULT arguments are absent.
  std::function<Value(std::span<const std::optional<TypedValue>>)> call;
};

struct TableFunction {
  std::vector<SqlType> parameters;
  std::size_t argument_count_min = 0;
  std::vector<ColumnInfo> columns;
  std::function<std::unique_ptr<RowCursor>(std::span<const std::optional<TypedValue>>)>
      call;
};

// A variable that nobody declared, where that is no error but the question.
struct UndeclaredParameter {
  std::string name;
  std::optional<SqlType> type;  // The one of its first place that has any.
};

struct ProcedureArgument {
  std::string name;  // With @; empty if positional.
  SqlType type;
  Value value;
  bool output = false;      // The callee stores the new value in `type` and `value`.
  bool is_default = false;  // DEFAULT was written.
};

// What SET changes. The interpreter writes it, the engine reads it; Reset() restores
// it.
struct SessionSettings {
  bool nocount = false;
  bool xact_abort = false;
  bool implicit_transactions = false;
  bool quoted_identifier = true;
  bool ansi_nulls = true;
  bool ansi_padding = true;
  bool ansi_warnings = true;
  bool ansi_null_dflt_on = true;
  bool arithabort = true;
  bool concat_null_yields_null = true;
  bool numeric_roundabort = false;
  bool cursor_close_on_commit = false;
  bool fmtonly = false;
  bool noexec = false;
  bool parseonly = false;
  IsolationLevel isolation = IsolationLevel::kReadCommitted;
  std::int32_t lock_timeout_ms = -1;  // -1: waits for ever.
  std::int32_t deadlock_priority = 0;
  std::int32_t textsize = 2147483647;
  std::int64_t rowcount = 0;  // 0: no limit.
  std::uint8_t datefirst = 7;
  std::string dateformat = "mdy";
  std::string language = "us_english";
  std::vector<std::uint8_t> context_info;
};

class KeptRows;

enum class Access : std::uint8_t {
  kSelect,
  kPeek,  // SELECT that waits for no lock: NOLOCK.
  kLock,  // SELECT that locks the table until its transaction ends: TABLOCKX.
  kInsert,
  kUpdate,
  kDelete,
  kDefinition,
};

// What a statement is about to do, so that the engine can open a transaction for it.
enum class StatementKind : std::uint8_t { kRead, kWrite, kDefinition, kExecute };

class Environment {
 public:
  virtual ~Environment() = default;

  // Names. The result lives as long as the statement. Null: there is no such object
  // (the executor raises 208). Raises 229, 916, ... where the login may not.
  virtual std::shared_ptr<TableSource> FindTable(const ObjectName& name,
                                                 Access access) = 0;
  // While set, statements are compiled only: FindTable takes no lock and waits for
  // none.
  virtual void SetCompiling(bool) {}
  // The query behind a view of the user's; absent for tables and the engine's views.
  virtual std::optional<ast::CreateModule> FindView(const ObjectName& name) = 0;
  virtual std::optional<TableFunction> FindTableFunction(const ObjectName& name) = 0;
  virtual std::optional<ScalarFunction> FindScalarFunction(const ObjectName& name) = 0;
  // @@SPID, @@VERSION, ...; @@ROWCOUNT, @@ERROR and @@TRANCOUNT never arrive here. The
  // value may change between statements, the type may not. Absent: 137.
  virtual std::optional<TypedValue> GlobalVariable(const std::string& name) = 0;

  // Procedures. Absent: no such procedure (2812). Gives the return status; result sets
  // go to the sink, each ended by StatementDone. OUTPUT values go into `arguments`.
  virtual std::optional<std::int32_t> Call(const ObjectName& procedure,
                                           std::vector<ProcedureArgument>& arguments,
                                           ReplySink& sink) = 0;

  virtual void Define(const ast::DefinitionStatement& statement, ReplySink& sink) = 0;

  // A user-defined or system type by name (sysname is built in). Absent: 2715.
  virtual std::optional<SqlType> FindType(const ast::TypeName& name) = 0;

  // Transactions. Called between statements; each tells the sink what happened. They
  // raise 3902, 3903, 6401, ...
  virtual std::int32_t transaction_count() const = 0;
  // XACT_STATE(): 0 none, 1 may commit, -1 doomed.
  virtual std::int32_t transaction_state() const = 0;
  virtual void BeginTransaction(const std::string& name, ReplySink& sink) = 0;
  virtual void CommitTransaction(ReplySink& sink) = 0;
  virtual void RollbackTransaction(const std::string& name, ReplySink& sink) = 0;
  virtual void SaveTransaction(const std::string& name) = 0;
  // An error inside TRY under XACT_ABORT: the open transaction can only be rolled back.
  virtual void DoomTransaction() = 0;

  // Around every SELECT, DML, DDL and EXEC. Begin opens an implicit transaction if the
  // settings ask for one, or a statement-long one; End commits it, or undoes what this
  // statement did. Not called for control of flow.
  virtual void StatementBegins(StatementKind kind, ReplySink& sink) = 0;
  virtual void StatementEnds(bool succeeded, ReplySink& sink) = 0;
  // After compiling and after an expression of control of flow (IF, WHILE, SET): what
  // was read may change again.
  virtual void ReadsEnd() = 0;

  virtual SessionSettings& settings() = 0;
  // Rows that were sent before. Null: none are kept.
  virtual KeptRows* kept_rows() { return nullptr; }
  virtual void SetIdentityInsert(const ObjectName& table, bool on) = 0;
  virtual void Use(const std::string& database, ReplySink& sink) = 0;
  virtual const std::string& database_collation() const = 0;

  // The server's local date and time with its offset, to 100 ns.
  virtual DateTimeValue Now() = 0;
  virtual Guid NewGuid() = 0;
  virtual double Random() = 0;  // At least 0, below 1.
  // WAITFOR: moves the simulated clock or really waits; returns early if stopped.
  virtual void Wait(std::int64_t duration_ms) = 0;
  // An attention arrived; looked at between rows.
  virtual bool stop_requested() const = 0;
};

}  // namespace mssql_cdc::sim

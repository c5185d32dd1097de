// What the T-SQL parser yields: statements and expressions, by name only. Nothing here
// is resolved or typed; the binder does that against an Environment.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/value.h"

namespace mssql_cdc::sim {

// A name of up to four parts, as written but without brackets or quotes. Empty parts
// are those left out: "master..t" has database "master", schema "", object "t".
struct ObjectName {
  std::string server;
  std::string database;
  std::string schema;
  std::string object;
  std::int32_t line = 1;

  // "a.b.c": as SQL Server shows it in messages.
  std::string Text() const;
};

}  // namespace mssql_cdc::sim

namespace mssql_cdc::sim::ast {

struct Expression;
struct Select;
struct Statement;
using ExpressionPtr = std::shared_ptr<const Expression>;
using SelectPtr = std::shared_ptr<const Select>;
using StatementPtr = std::shared_ptr<const Statement>;

// A data type as written: int, nvarchar(max), decimal(18, 4), sysname.
struct TypeName {
  std::string schema;
  std::string name;                     // Lower case.
  std::vector<std::int32_t> arguments;  // kMax for max.
  std::int32_t line = 1;
};

// Expressions.

struct Literal {
  SqlType type;  // Of N'..' nvarchar, '..' varchar, 0x varbinary, 1.5 decimal, ...
  Value value;   // NULL has type kNull.
};
struct DefaultKeyword {};  // DEFAULT, in VALUES, SET and argument lists.
struct ColumnReference {
  std::vector<std::string> parts;  // [[[database.]schema.]table.]column.
};
struct Variable {
  std::string name;  // With @, as written.
};
struct GlobalVariable {
  std::string name;  // With @@, as written.
};
enum class UnaryOperator : std::uint8_t { kMinus, kPlus, kBitNot, kNot };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kBitAnd,
  kBitOr,
  kBitXor,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kAnd,
  kOr,
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct IsNull {
  ExpressionPtr operand;
  bool negated = false;
};
struct Like {
  ExpressionPtr operand, pattern, escape;  // `escape` may be null.
  bool negated = false;
};
struct Between {
  ExpressionPtr operand, low, high;
  bool negated = false;
};
struct InList {
  ExpressionPtr operand;
  std::vector<ExpressionPtr> items;
  bool negated = false;
};
struct InSelect {
  ExpressionPtr operand;
  SelectPtr select;
  bool negated = false;
};
struct Exists {
  SelectPtr select;
};
// expression op ANY|SOME|ALL (select)
struct Quantified {
  BinaryOperator op;
  ExpressionPtr operand;
  SelectPtr select;
  bool all = false;
};
struct ScalarSelect {
  SelectPtr select;
};
struct Case {
  ExpressionPtr operand;  // Null in a searched CASE.
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> branches;
  ExpressionPtr otherwise;  // May be null.
};
// CAST, TRY_CAST, CONVERT, TRY_CONVERT, PARSE is refused.
struct Convert {
  TypeName type;
  ExpressionPtr operand;
  ExpressionPtr style;   // May be null.
  bool attempt = false;  // The TRY_ forms.
};
struct Collate {
  ExpressionPtr operand;
  std::string collation;
};
struct AtTimeZone {
  ExpressionPtr operand, zone;
};
struct OrderItem {
  ExpressionPtr expression;
  bool descending = false;
};
struct FrameBound {
  enum class Kind : std::uint8_t {
    kUnboundedPreceding,
    kPreceding,
    kCurrentRow,
    kFollowing,
    kUnboundedFollowing,
  };
  Kind kind = Kind::kUnboundedPreceding;
  std::int64_t offset = 0;
};
struct Window {
  std::vector<ExpressionPtr> partition;
  std::vector<OrderItem> order;
  bool has_frame = false;
  bool rows = false;  // ROWS; else RANGE.
  FrameBound first;
  FrameBound last{FrameBound::Kind::kCurrentRow, 0};
};
// A function call. DATEADD and its kin carry the part's name in `date_part`.
struct Call {
  std::vector<std::string> name;  // [[database.]schema.]function.
  std::vector<ExpressionPtr> arguments;
  bool star = false;      // COUNT(*)
  bool distinct = false;  // COUNT(DISTINCT x)
  std::string date_part;
  std::shared_ptr<const Window> over;   // May be null.
  std::vector<OrderItem> within_group;  // STRING_AGG
};

struct Expression {
  std::int32_t line = 1;
  // The text in the batch, for DEFAULT and computed columns.
  std::string text;
  std::variant<Literal, DefaultKeyword, ColumnReference, Variable, GlobalVariable,
               Unary, Binary, IsNull, Like, Between, InList, InSelect, Exists,
               Quantified, ScalarSelect, Case, Convert, Collate, AtTimeZone, Call>
      node;
};

// Queries.

struct TableReference;
using TableReferencePtr = std::shared_ptr<const TableReference>;

struct NamedTable {
  ObjectName name;
  std::vector<std::string> hints;  // Upper case, of WITH (...).
};
struct VariableTable {
  std::string name;  // @t
};
struct FunctionTable {
  ObjectName name;
  std::vector<ExpressionPtr> arguments;  // DEFAULT allowed.
};
struct DerivedTable {
  SelectPtr select;
};
struct ValuesTable {
  std::vector<std::vector<ExpressionPtr>> rows;
};
enum class JoinKind : std::uint8_t {
  kInner,
  kLeft,
  kRight,
  kFull,
  kCross,
  kCrossApply,
  kOuterApply,
};
struct Join {
  JoinKind kind;
  TableReferencePtr left, right;
  ExpressionPtr on;  // Null for CROSS and APPLY.
};
struct TableReference {
  std::int32_t line = 1;
  std::string alias;
  std::vector<std::string> column_aliases;
  std::variant<NamedTable, VariableTable, FunctionTable, DerivedTable, ValuesTable,
               Join>
      node;
};

struct SelectItem {
  ExpressionPtr expression;  // Null for a star.
  std::string alias;
  std::vector<std::string> star_of;                    // t.* has {"t"}.
  std::string variable;                                // SELECT @x = expression.
  BinaryOperator assignment = BinaryOperator::kEqual;  // kAdd for +=, ...
  bool star = false;
  std::int32_t line = 1;
};

struct Top {
  ExpressionPtr count;
  bool percent = false;
  bool with_ties = false;
};

struct QuerySpecification {
  bool distinct = false;
  std::optional<Top> top;
  std::vector<SelectItem> items;
  std::optional<ObjectName> into;
  std::vector<TableReferencePtr> from;  // Comma-separated.
  ExpressionPtr where;
  std::vector<ExpressionPtr> group_by;
  ExpressionPtr having;
};

enum class SetOperator : std::uint8_t { kUnionAll, kUnion, kExcept, kIntersect };

struct QueryExpression;
using QueryExpressionPtr = std::shared_ptr<const QueryExpression>;
struct SetOperation {
  SetOperator op;
  QueryExpressionPtr left, right;
};
struct QueryExpression {
  std::int32_t line = 1;
  std::variant<QuerySpecification, SetOperation, ValuesTable> node;
};

struct CommonTable {
  std::string name;
  std::vector<std::string> columns;
  SelectPtr select;
  std::int32_t line = 1;
};

struct Select {
  std::int32_t line = 1;
  std::vector<CommonTable> with;
  QueryExpressionPtr body;
  std::vector<OrderItem> order_by;
  ExpressionPtr offset;
  ExpressionPtr fetch;
};

// Data modification.

struct Assignment {
  std::string column;    // Empty if only a variable is set.
  std::string variable;  // SET @x = column = expression.
  BinaryOperator op = BinaryOperator::kEqual;
  ExpressionPtr value;
};
struct OutputClause {
  std::vector<SelectItem> items;  // INSERTED.x, DELETED.x
  std::optional<ObjectName> into;
  std::string into_variable;
  std::vector<std::string> into_columns;
};
struct Execute;
struct Insert {
  std::vector<CommonTable> with;
  std::optional<Top> top;
  ObjectName target;
  std::string target_variable;
  std::vector<std::string> columns;
  std::optional<OutputClause> output;
  std::vector<std::vector<ExpressionPtr>> values;
  SelectPtr select;
  std::shared_ptr<const Execute> execute;
  bool default_values = false;
};
struct Update {
  std::vector<CommonTable> with;
  std::optional<Top> top;
  ObjectName target;  // A table, or an alias of FROM.
  std::string target_variable;
  std::vector<Assignment> assignments;
  std::optional<OutputClause> output;
  std::vector<TableReferencePtr> from;
  ExpressionPtr where;
};
struct Delete {
  std::vector<CommonTable> with;
  std::optional<Top> top;
  ObjectName target;
  std::string target_variable;
  std::optional<OutputClause> output;
  std::vector<TableReferencePtr> from;
  ExpressionPtr where;
};
struct MergeAction {
  enum class When : std::uint8_t { kMatched, kNotMatched, kNotMatchedBySource };
  When when;
  ExpressionPtr condition;                  // May be null.
  bool remove = false;                      // DELETE
  std::vector<Assignment> assignments;      // UPDATE SET
  std::vector<std::string> insert_columns;  // INSERT (...)
  std::vector<ExpressionPtr> insert_values;
};
struct Merge {
  std::vector<CommonTable> with;
  ObjectName target;
  std::string target_alias;
  TableReferencePtr source;
  ExpressionPtr on;
  std::vector<MergeAction> actions;
  std::optional<OutputClause> output;
};

// Data definition: handed to the Environment as they are.

struct IndexColumn {
  std::string name;
  bool descending = false;
};
struct KeyConstraint {
  std::string name;  // Empty: the server makes one.
  bool primary = false;
  std::optional<bool> clustered;
  std::vector<IndexColumn> columns;
};
struct ForeignKey {
  std::string name;
  std::vector<std::string> columns;
  ObjectName referenced;
  std::vector<std::string> referenced_columns;
};
struct CheckConstraint {
  std::string name;
  ExpressionPtr condition;
};
struct DefaultConstraint {
  std::string name;
  std::string column;
  ExpressionPtr value;
};
struct ColumnDefinition {
  std::string name;
  TypeName type;  // Name empty in a computed column.
  std::string collation;
  std::optional<bool> nullable;
  struct Identity {
    std::int64_t seed = 1;
    std::int64_t increment = 1;
  };
  std::optional<Identity> identity;
  ExpressionPtr computed;  // Of a computed column; `persisted` says PERSISTED.
  bool persisted = false;
  bool sparse = false;
  bool row_guid = false;
  std::optional<DefaultConstraint> default_value;
  std::int32_t line = 1;
};
struct TableConstraints {
  std::vector<KeyConstraint> keys;
  std::vector<ForeignKey> foreign_keys;
  std::vector<CheckConstraint> checks;
  std::vector<DefaultConstraint> defaults;  // Of ALTER TABLE ADD.
};
struct CreateTable {
  ObjectName name;
  std::vector<ColumnDefinition> columns;
  TableConstraints constraints;
};
struct DropTable {
  std::vector<ObjectName> names;
  bool if_exists = false;
};
struct AddColumns {
  std::vector<ColumnDefinition> columns;
  TableConstraints constraints;
};
struct AlterColumn {
  ColumnDefinition column;
};
struct DropColumns {
  std::vector<std::string> columns;
  std::vector<std::string> constraints;
  bool if_exists = false;
};
// REBUILD, CHECK CONSTRAINT, ENABLE CHANGE_TRACKING, ...: by its words.
struct AlterTableOption {
  std::vector<std::string> words;
};
// SWITCH [PARTITION n] TO target [PARTITION n]
struct SwitchPartition {
  ObjectName target;
};
struct AlterTable {
  ObjectName name;
  std::variant<AddColumns, AlterColumn, DropColumns, SwitchPartition, AlterTableOption>
      action;
};
struct TruncateTable {
  ObjectName name;
};
struct CreateIndex {
  std::string name;
  ObjectName table;
  bool unique = false;
  bool clustered = false;
  bool columnstore = false;
  std::vector<IndexColumn> columns;
  std::vector<std::string> included;
  ExpressionPtr filter;
};
struct DropIndex {
  std::string name;
  ObjectName table;
  bool if_exists = false;
};
struct CreateDatabase {
  std::string name;
  std::string collation;
};
struct DropDatabase {
  std::vector<std::string> names;
  bool if_exists = false;
};
// ALTER DATABASE name SET option [value]: "ALLOW_SNAPSHOT_ISOLATION", "ON".
struct AlterDatabase {
  std::string name;    // Empty for CURRENT.
  std::string option;  // Upper case; COLLATE and MODIFY NAME come as such.
  std::string value;
  // WITH ...: what becomes of others who are in the way. Absent: they are waited for.
  enum class Termination : std::uint8_t { kRollback, kNoWait };
  std::optional<Termination> termination;
};
struct CreateSchema {
  std::string name;
  std::string authorization;
};
struct DropSchema {
  std::string name;
  bool if_exists = false;
};
struct CreateLogin {
  std::string name;
  std::string password;
  std::string default_database;
};
struct AlterLogin {
  std::string name;
  std::optional<std::string> password;
  std::optional<std::string> default_database;
  std::optional<bool> enabled;
};
struct DropLogin {
  std::string name;
};
struct CreateUser {
  std::string name;
  std::string login;  // Empty: of the same name; "" with without_login: none.
  std::string default_schema;
  bool without_login = false;
};
struct DropUser {
  std::string name;
  bool if_exists = false;
};
struct CreateRole {
  std::string name;
  bool server = false;
};
struct DropRole {
  std::string name;
  bool if_exists = false;
  bool server = false;
};
struct AlterRole {
  std::string name;
  std::string member;
  bool add = true;  // ADD MEMBER; else DROP MEMBER.
  bool server = false;
};
// GRANT, DENY, REVOKE.
struct Permission {
  enum class Action : std::uint8_t { kGrant, kDeny, kRevoke };
  struct Right {
    std::string name;  // Upper case: "SELECT", "VIEW DATABASE STATE".
    std::vector<std::string> columns;
  };
  Action action;
  std::vector<Right> rights;
  // ON [OBJECT::|SCHEMA::|DATABASE::]name; empty class for a bare name.
  std::string securable_class;
  std::optional<ObjectName> securable;
  std::vector<std::string> principals;
  bool with_grant_option = false;
};
struct ProcedureParameter {
  std::string name;
  TypeName type;
  ExpressionPtr default_value;
  bool output = false;
};
// CREATE [OR ALTER] PROCEDURE|VIEW: `body` is the text of what follows AS.
struct CreateModule {
  enum class Kind : std::uint8_t { kProcedure, kView };
  Kind kind;
  ObjectName name;
  bool replace = false;  // CREATE OR ALTER, ALTER
  std::vector<ProcedureParameter> parameters;
  std::vector<std::string> columns;  // Of a view.
  std::string body;
  SelectPtr view;    // Of a view.
  std::string text;  // The whole statement.
};
struct DropModule {
  CreateModule::Kind kind;
  std::vector<ObjectName> names;
  bool if_exists = false;
};
using Definition =
    std::variant<CreateTable, DropTable, AlterTable, TruncateTable, CreateIndex,
                 DropIndex, CreateDatabase, DropDatabase, AlterDatabase, CreateSchema,
                 DropSchema, CreateLogin, AlterLogin, DropLogin, CreateUser, DropUser,
                 CreateRole, DropRole, AlterRole, Permission, CreateModule, DropModule>;
// With the statement's own text, which cdc.ddl_history shows.
struct DefinitionStatement {
  Definition definition;
  std::string text;
};

// Control of flow, session, transactions.

struct Argument {
  std::string name;     // With @; empty if positional.
  ExpressionPtr value;  // DefaultKeyword allowed.
  bool output = false;
};
struct Execute {
  ObjectName procedure;
  std::string procedure_variable;  // EXEC @name ...
  std::string result_variable;     // EXEC @status = ...
  std::vector<Argument> arguments;
  ExpressionPtr text;  // EXEC ('...'): the text to run; then `procedure` is empty.
};
struct Block {
  std::vector<StatementPtr> statements;
};
struct If {
  ExpressionPtr condition;
  StatementPtr then, otherwise;
};
struct While {
  ExpressionPtr condition;
  StatementPtr body;
};
struct Break {};
struct Continue {};
struct Return {
  ExpressionPtr value;
};
struct TryCatch {
  Block attempt, handler;
};
struct Throw {
  ExpressionPtr number, message, state;  // All null: rethrow.
};
struct RaiseError {
  std::vector<ExpressionPtr> arguments;  // Message or number, severity, state, ...
  bool with_nowait = false;
  bool with_log = false;
  bool with_seterror = false;
};
struct Print {
  ExpressionPtr value;
};
struct Declare {
  struct Item {
    std::string name;
    TypeName type;
    ExpressionPtr value;
    std::optional<CreateTable> table;  // DECLARE @t TABLE (...)
  };
  std::vector<Item> items;
};
struct SetVariable {
  std::string name;
  BinaryOperator op = BinaryOperator::kEqual;
  ExpressionPtr value;
};
// SET option[, option] ON|OFF, SET LOCK_TIMEOUT 5, SET DATEFORMAT mdy, SET TRANSACTION
// ISOLATION LEVEL x ("TRANSACTION ISOLATION LEVEL", value "READ COMMITTED").
struct SetOption {
  std::string name;   // Upper case.
  std::string value;  // Upper case word or number; empty if `expression` is there.
  ExpressionPtr expression;
  std::optional<ObjectName> table;  // Of IDENTITY_INSERT.
};
struct Use {
  std::string database;
};
struct TransactionControl {
  enum class Action : std::uint8_t { kBegin, kCommit, kRollback, kSave };
  Action action;
  std::string name;      // Empty if none.
  std::string variable;  // @name instead.
};
struct WaitFor {
  bool delay = true;  // DELAY; else TIME.
  ExpressionPtr value;
};
struct Checkpoint {};

struct Statement {
  std::int32_t line = 1;
  std::variant<std::shared_ptr<const Select>, Insert, Update, Delete, Merge,
               DefinitionStatement, Execute, Block, If, While, Break, Continue, Return,
               TryCatch, Throw, RaiseError, Print, Declare, SetVariable, SetOption, Use,
               TransactionControl, WaitFor, Checkpoint>
      node;
};

struct Batch {
  std::vector<StatementPtr> statements;
};

}  // namespace mssql_cdc::sim::ast

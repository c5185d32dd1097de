// One login's session: what a running statement sees of the server.
//
// It owns the session's connections to the database files, its open transaction and its
// rights. The tables it hands out, the procedures and the functions are in files of
// their own and work through the few members under "For tables, functions and
// procedures".

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/database.h"
#include "sim/engine/server.h"
#include "sim/session.h"
#include "sim/sql/environment.h"
#include "sim/sql/interpreter.h"

namespace mssql_cdc::sim {

class Session final : public EngineSession, public Environment {
 public:
  Session(std::shared_ptr<Server> server, LoginRecord login,
          const LoginRequest& request, std::shared_ptr<Database> database);
  ~Session() override;

  // EngineSession.
  void Batch(const std::string& sql, ReplySink& sink) override;
  void ExecuteSql(const std::string& sql, std::vector<BoundParameter> parameters,
                  ReplySink& sink) override;
  void Procedure(const std::string& name, std::vector<BoundParameter> parameters,
                 ReplySink& sink) override;
  void BeginTransaction(std::optional<IsolationLevel> level, ReplySink& sink) override;
  void CommitTransaction(bool next, ReplySink& sink) override;
  void RollbackTransaction(bool next, ReplySink& sink) override;
  void Reset(ReplySink& sink) override;
  const std::string& database() const override { return current_->name(); }
  const std::string& collation() const override { return collation_; }

  // Environment.
  std::shared_ptr<TableSource> FindTable(const ObjectName& name,
                                         Access access) override;
  std::optional<ast::CreateModule> FindView(const ObjectName& name) override;
  std::optional<TableFunction> FindTableFunction(const ObjectName& name) override;
  std::optional<ScalarFunction> FindScalarFunction(const ObjectName& name) override;
  std::optional<TypedValue> GlobalVariable(const std::string& name) override;
  std::optional<std::int32_t> Call(const ObjectName& procedure,
                                   std::vector<ProcedureArgument>& arguments,
                                   ReplySink& sink) override;
  void Define(const ast::DefinitionStatement& statement, ReplySink& sink) override;
  std::optional<SqlType> FindType(const ast::TypeName& name) override;
  std::int32_t transaction_count() const override { return transaction_count_; }
  std::int32_t transaction_state() const override;
  void BeginTransaction(const std::string& name, ReplySink& sink) override;
  void CommitTransaction(ReplySink& sink) override;
  void RollbackTransaction(const std::string& name, ReplySink& sink) override;
  void SaveTransaction(const std::string& name) override;
  void DoomTransaction() override { doomed_ = transaction_count_ > 0; }
  void StatementBegins(StatementKind kind, ReplySink& sink) override;
  void StatementEnds(bool succeeded, ReplySink& sink) override;
  void ReadsEnd() override;
  SessionSettings& settings() override { return settings_; }
  KeptRows* kept_rows() override { return &server_->kept_rows(); }
  void SetCompiling(bool compiling) override { compiling_ = compiling; }
  void SetIdentityInsert(const ObjectName& table, bool on) override;
  void Use(const std::string& database, ReplySink& sink) override;
  const std::string& database_collation() const override { return collation_; }
  DateTimeValue Now() override { return server_->Now(); }
  Guid NewGuid() override { return server_->NewGuid(); }
  double Random() override { return server_->Random(); }
  void Wait(std::int64_t duration_ms) override;
  bool stop_requested() const override { return EngineSession::stop_requested.load(); }

  // For tables, functions and procedures.
  // Ends what others do in `database`. False: others are there, and `rolls_back` is not
  // set.
  bool EndOthers(const std::shared_ptr<Database>& database, bool rolls_back);
  Server& server() { return *server_; }
  const LoginRecord& login() const { return login_; }
  const LoginRequest& request() const { return request_; }
  const std::shared_ptr<Database>& current() const { return current_; }
  // The database a name means; raises 911 or 916.
  std::shared_ptr<Database> DatabaseOf(const ObjectName& name);
  // What this session sees of a database now.
  CatalogPtr CatalogOf(const std::shared_ptr<Database>& database);
  Connection& Reader(const std::shared_ptr<Database>& database);
  // The session's transaction on `database`, begun now if there is none. Raises 1222.
  WriteTransaction& Write(const std::shared_ptr<Database>& database);
  // Whether this session's own transaction holds the database's writer lock.
  bool HoldsWriter(const std::shared_ptr<Database>& database) {
    return ViewOf(database).transaction != nullptr;
  }
  // The rewrites (WriteTransaction::Rewrites) behind what Reader() sees. Absent: it is
  // the session's own transaction, of which nobody else knows.
  std::optional<std::uint64_t> RewriteCount(const std::shared_ptr<Database>& database);
  // Ends the read snapshot, so that the next read sees what was committed since.
  void EndReads();
  // A table by name, of the default schema if none is given; null if there is none.
  TablePtr LookUp(const std::shared_ptr<Database>& database, const ObjectName& name);

  bool is_admin() const { return login_.admin; }
  // Whether this session is on a readable secondary: nothing can be written, and every
  // read is of a snapshot (S14).
  bool on_secondary() const;
  // Goes on although the server failed over or restored: for the session that asked.
  void Survive() { era_ = server_->era; }
  // The user this login is in `database`; absent: it may not enter.
  std::optional<std::string> UserIn(const Database& database,
                                    const Catalog& catalog) const;
  bool IsOwner(const Database& database, const Catalog& catalog) const;
  // Whether the login may do `right` to the table (all of `columns`, or all).
  bool May(const Database& database, const Catalog& catalog, const TableMeta& table,
           const std::string& right,
           const std::vector<std::string>& columns = {}) const;
  bool MayDatabase(const Database& database, const Catalog& catalog,
                   const std::string& right) const;
  // Gating of a capture instance: facts 1.9.
  bool MayReadInstance(const Database& database, const Catalog& catalog,
                       const CaptureInstance& instance) const;

  bool IdentityInsert(std::int32_t object_id) const {
    return identity_insert_ == object_id;
  }
  void SetLastIdentity(std::int64_t value) { last_identity_ = value; }
  std::optional<std::int64_t> last_identity() const { return last_identity_; }
  std::int64_t last_row_count() const { return interpreter_.last_row_count(); }
  Interpreter& interpreter() { return interpreter_; }
  // Cursors that are open on each table; an insert into one of them must not be seen by
  // the cursor that feeds it.
  std::map<std::int32_t, int>& open_cursors() { return open_cursors_; }

 private:
  struct View {
    std::shared_ptr<Database> database;
    std::unique_ptr<Connection> reader;
    CatalogPtr read_catalog;
    std::uint64_t rewrite_count = 0;  // Of the snapshot, while reading.
    bool reading = false;
    std::unique_ptr<WriteTransaction> transaction;
  };
  struct Frame {
    StatementKind kind = StatementKind::kRead;
    std::map<Database*, std::size_t> marks;
  };
  struct Save {
    std::string name;
    std::map<Database*, std::size_t> marks;
  };

  void Enter(const std::shared_ptr<Database>& database);
  View& ViewOf(const std::shared_ptr<Database>& database);
  void RequireAlive();
  // Whether a reader at the session's isolation level waits for no locks.
  bool ReadsVersions(const std::shared_ptr<Database>& database);
  // False: there was nobody to wait for. Raises 1205, 1222.
  bool WaitForTable(const std::shared_ptr<Database>& database, const TableMeta& table,
                    Access access);
  // What is locked from its first change on, until the transaction ends.
  void LockWritten(const std::shared_ptr<Database>& database, const TableMeta& table);
  bool ReadsDirty(const std::shared_ptr<Database>& database, const TableMeta& table,
                  Access access);
  Database::LockWait OwnWait() const;
  static void Require(Database::LockAnswer answer);
  std::shared_ptr<TableSource> ReadTable(const std::shared_ptr<Database>& database,
                                         const TablePtr& table, Access access);
  // Whether a statement is open that is no EXEC.
  bool RunsStatement() const;
  void FinishAutoCommit(bool succeeded);
  bool CommitAll();
  void ReleaseLocks();
  void RollbackAll();
  void EndTransaction(bool committed, ReplySink& sink);
  bool KeepsSnapshot() const;
  std::shared_ptr<Database> TemporaryDatabase();
  bool HasRight(const Catalog& catalog, const std::string& user, const TableMeta* table,
                const std::string& right, const std::string& column) const;

  std::shared_ptr<Server> server_;
  LoginRecord login_;
  LoginRequest request_;
  std::shared_ptr<Database> current_;
  DatabaseStay stay_;  // In current_.
  std::string collation_;
  std::map<Database*, View> views_;
  std::vector<Frame> frames_;
  std::vector<Save> saves_;
  std::set<std::shared_ptr<Database>> locked_;  // Where it holds locks on tables.
  std::shared_ptr<Database> temporary_;
  SessionSettings settings_;
  SessionSettings login_settings_;
  std::int32_t transaction_count_ = 0;
  std::string transaction_name_;
  std::uint64_t transaction_descriptor_ = 0;
  bool doomed_ = false;
  bool compiling_ = false;
  std::uint64_t era_ = 0;
  std::int32_t identity_insert_ = 0;
  std::optional<std::int64_t> last_identity_;
  std::map<std::int32_t, int> open_cursors_;
  Interpreter interpreter_;
};

// The engine's own procedures and functions, by schema and name in lower case.
std::optional<std::int32_t> CallProcedure(Session& session, const std::string& schema,
                                          const std::string& name,
                                          std::vector<ProcedureArgument>& arguments,
                                          ReplySink& sink);
std::optional<ScalarFunction> MetadataFunction(Session& session,
                                               const std::string& name);
std::optional<ScalarFunction> CdcFunction(Session& session, const std::string& name);
std::optional<TableFunction> CdcTableFunction(Session& session,
                                              const std::string& name);
// sys.*, INFORMATION_SCHEMA.* and the metadata tables of schema cdc; null: none of
// them.
std::shared_ptr<TableSource> SystemView(Session& session,
                                        const std::shared_ptr<Database>& database,
                                        const std::string& schema,
                                        const std::string& name);
void DefineObject(Session& session, const ast::DefinitionStatement& statement,
                  ReplySink& sink);

}  // namespace mssql_cdc::sim

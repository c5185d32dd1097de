#include "sim/engine/session.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {

Session::Session(std::shared_ptr<Server> server, LoginRecord login,
                 const LoginRequest& request, std::shared_ptr<Database> database)
    : server_(std::move(server)),
      login_(std::move(login)),
      request_(request),
      current_(std::move(database)),
      stay_(current_->stays()),
      collation_(current_->catalog()->collation),
      era_(server_->era),
      interpreter_(*this) {
  request_.password.clear();
  request_.access_token.reset();
}

Session::~Session() {
  RollbackAll();
  for (auto& [key, view] : views_) view.reader = nullptr;
}

void Session::Batch(const std::string& sql, ReplySink& sink) {
  interpreter_.Batch(sql, sink);
}

void Session::ExecuteSql(const std::string& sql, std::vector<BoundParameter> parameters,
                         ReplySink& sink) {
  interpreter_.ExecuteSql(sql, std::move(parameters), sink);
}

void Session::Procedure(const std::string& name, std::vector<BoundParameter> parameters,
                        ReplySink& sink) {
  interpreter_.Procedure(name, std::move(parameters), sink);
}

namespace {

// The wire's transaction requests have no statement around them that would catch.
template <typename Body>
void Guarded(ReplySink& sink, const Body& body) {
  try {
    body();
  } catch (const SqlError& error) {
    sink.SendMessage(error.message);
  }
}

}  // namespace

void Session::BeginTransaction(std::optional<IsolationLevel> level, ReplySink& sink) {
  if (level) settings_.isolation = *level;
  Guarded(sink, [&] { BeginTransaction(std::string(), sink); });
  sink.StatementDone(std::nullopt, 0xD4);
}

void Session::CommitTransaction(bool next, ReplySink& sink) {
  Guarded(sink, [&] { CommitTransaction(sink); });
  if (next) Guarded(sink, [&] { BeginTransaction(std::string(), sink); });
  sink.StatementDone(std::nullopt, 0xD5);
}

void Session::RollbackTransaction(bool next, ReplySink& sink) {
  Guarded(sink, [&] { RollbackTransaction(std::string(), sink); });
  if (next) Guarded(sink, [&] { BeginTransaction(std::string(), sink); });
  sink.StatementDone(std::nullopt, 0xD2);
}

void Session::Reset(ReplySink& sink) {
  if (transaction_count_ > 0) EndTransaction(false, sink);
  RollbackAll();
  settings_ = SessionSettings{};
  identity_insert_ = 0;
  last_identity_.reset();
  temporary_ = nullptr;
  const std::shared_ptr<Database> home = server_->FindDatabase(
      request_.database.empty() ? login_.default_database : request_.database);
  if (home != nullptr && home != current_) {
    sink.DatabaseChanged(current_->name(), home->name());
    Enter(home);
  }
}

void Session::Enter(const std::shared_ptr<Database>& database) {
  if (database != current_) stay_ = DatabaseStay(database->stays());
  current_ = database;
  collation_ = database->catalog()->collation;
}

bool Session::EndOthers(const std::shared_ptr<Database>& database, bool rolls_back) {
  const bool own = database == current_;
  if (!database->stays()->HoldsOthers(own ? 1 : 0)) return true;
  if (rolls_back) database->stays()->EndAll(own ? &stay_ : nullptr);
  return rolls_back;
}

// Names.

std::shared_ptr<Database> Session::DatabaseOf(const ObjectName& name) {
  if (!name.object.empty() && name.object[0] == '#') return TemporaryDatabase();
  if (name.database.empty() ||
      EqualsIgnoringAsciiCase(name.database, current_->name())) {
    return current_;
  }
  std::shared_ptr<Database> database = server_->FindDatabase(name.database);
  if (database == nullptr) {
    RaiseSql(911, 16, 1,
             "Database '" + name.database +
                 "' does not exist. Make sure that the name is entered correctly.");
  }
  if (!UserIn(*database, *database->catalog())) {
    RaiseSql(916, 14, 2,
             "The server principal \"" + login_.name +
                 "\" is not able to access the database \"" + database->name() +
                 "\" under the current security context.");
  }
  return database;
}

std::shared_ptr<Database> Session::TemporaryDatabase() {
  if (temporary_ == nullptr) {
    Result<std::shared_ptr<Database>> made = server_->NewTemporaryDatabase();
    if (!made.ok())
      RaiseSql(1101, 17, 1, "Could not allocate space in database 'tempdb'.");
    temporary_ = made.value();
  }
  return temporary_;
}

TablePtr Session::LookUp(const std::shared_ptr<Database>& database,
                         const ObjectName& name) {
  const CatalogPtr catalog = CatalogOf(database);
  if (!name.schema.empty()) return catalog->FindTable(name.schema, name.object);
  if (database == temporary_) return catalog->FindTable("dbo", name.object);
  const std::optional<std::string> user = UserIn(*database, *catalog);
  const Principal* principal = user ? catalog->FindPrincipal(*user) : nullptr;
  if (principal != nullptr) {
    if (TablePtr own = catalog->FindTable(principal->default_schema, name.object)) {
      return own;
    }
  }
  return catalog->FindTable("dbo", name.object);
}

namespace {

const char* RightOf(Access access) {
  switch (access) {
    case Access::kSelect:
    case Access::kPeek:
    case Access::kLock:
      return "SELECT";
    case Access::kInsert:
      return "INSERT";
    case Access::kUpdate:
      return "UPDATE";
    case Access::kDelete:
      return "DELETE";
    case Access::kDefinition:
      return "ALTER";
  }
  return "SELECT";
}

bool IsMapping(const TableMeta& table) {
  return EqualsIgnoringAsciiCase(table.schema, "cdc") &&
         (table.is_change_table || table.name == "lsn_time_mapping");
}

}  // namespace

bool Session::ReadsVersions(const std::shared_ptr<Database>& database) {
  return settings_.isolation == IsolationLevel::kSnapshot ||
         settings_.isolation == IsolationLevel::kReadUncommitted || on_secondary() ||
         (settings_.isolation == IsolationLevel::kReadCommitted &&
          CatalogOf(database)->read_committed_snapshot);
}

bool Session::WaitForTable(const std::shared_ptr<Database>& database,
                           const TableMeta& table, Access access) {
  const bool takes = access == Access::kLock;
  const bool writes = access != Access::kSelect;
  if (access == Access::kPeek || (!writes && ReadsVersions(database))) return false;
  if (!Does(Behaviour::kHeldLocks)) return false;
  const bool waits = database->IsLockedByOthers(table.object_id, this);
  Require(database->WaitForLock(table.object_id, takes, OwnWait()));
  if (takes) locked_.insert(database);
  return waits;
}

void Session::LockWritten(const std::shared_ptr<Database>& database,
                          const TableMeta& table) {
  if (database == temporary_ || !Does(Behaviour::kReadersWait)) return;
  Require(database->WaitForLock(table.object_id, true, OwnWait()));
  locked_.insert(database);
}

bool Session::ReadsDirty(const std::shared_ptr<Database>& database,
                         const TableMeta& table, Access access) {
  const bool dirty = access == Access::kPeek ||
                     (access == Access::kSelect &&
                      settings_.isolation == IsolationLevel::kReadUncommitted);
  return dirty && database != temporary_ && !on_secondary() && !HoldsWriter(database) &&
         Does(Behaviour::kDirtyReads) &&
         database->IsLockedByOthers(table.object_id, this);
}

std::shared_ptr<TableSource> Session::ReadTable(
    const std::shared_ptr<Database>& database, const TablePtr& table, Access access) {
  auto source = std::make_shared<StoredTable>(*this, database, table);
  if (access == Access::kDefinition) return source;
  if (ReadsDirty(database, *table, access)) source->ReadDirty();
  const auto fault = server_->TakeReadFault(table->FullName(), IsMapping(*table));
  if (fault && fault->row_count == 0 && Does(Behaviour::kReadFaults)) {
    RaiseFault(fault->number);
  }
  if (fault && fault->row_count > 0 && Does(Behaviour::kErrorsAfterRows)) {
    source->FailAfter(fault->row_count, fault->number);
  }
  return source;
}

std::shared_ptr<TableSource> Session::FindTable(const ObjectName& name, Access access) {
  const std::shared_ptr<Database> database = DatabaseOf(name);
  const bool reads =
      access == Access::kSelect || access == Access::kPeek || access == Access::kLock;
  const bool writes = !reads && access != Access::kDefinition;
  const std::string schema = LowerAscii(name.schema);
  if (std::shared_ptr<TableSource> view =
          SystemView(*this, database, schema, LowerAscii(name.object))) {
    return view;
  }
  const TablePtr table = LookUp(database, name);
  if (table == nullptr) return nullptr;
  const char* right = RightOf(access);
  const CatalogPtr catalog = CatalogOf(database);
  if (database != temporary_ && !May(*database, *catalog, *table, right)) {
    RaiseSql(229, 14, 5,
             std::string("The ") + right + " permission was denied on the object '" +
                 table->name + "', database '" + database->name() + "', schema '" +
                 table->schema + "'.");
  }
  if (compiling_) return std::make_shared<StoredTable>(*this, database, table);
  if (settings_.isolation == IsolationLevel::kSnapshot && database != temporary_ &&
      !catalog->snapshot_isolation && !on_secondary()) {
    RaiseSql(3952, 16, 1,
             "Snapshot isolation transaction failed accessing database '" +
                 database->name() +
                 "' because snapshot isolation is not allowed in this database. Use "
                 "ALTER DATABASE to allow snapshot isolation.");
  }
  const bool waited = WaitForTable(database, *table, access);
  const bool reading = std::any_of(open_cursors_.begin(), open_cursors_.end(),
                                   [](const auto& open) { return open.second > 0; });
  const bool rereads = waited && !reading && !KeepsSnapshot();
  // What the others committed meanwhile counts.
  if (rereads) EndReads();
  if (!writes) {
    const TablePtr now =
        waited ? CatalogOf(database)->TableById(table->object_id) : table;
    return now == nullptr ? nullptr : ReadTable(database, now, access);
  }
  // The lock comes before the rows are read that the statement is about to change.
  WriteTransaction& transaction = Write(database);
  LockWritten(database, *table);
  const TablePtr now = transaction.catalog()->TableById(table->object_id);
  if (now == nullptr) return nullptr;
  return std::make_shared<StoredTable>(*this, database, now);
}

std::optional<ast::CreateModule> Session::FindView(const ObjectName& name) {
  if (!name.object.empty() && name.object[0] == '#') return std::nullopt;
  const std::shared_ptr<Database> database = DatabaseOf(name);
  const CatalogPtr catalog = CatalogOf(database);
  const ModuleMeta* module =
      catalog->FindModule(name.schema.empty() ? "dbo" : name.schema, name.object);
  if (module == nullptr || !module->view) return std::nullopt;
  TableMeta stand_in;
  stand_in.object_id = module->object_id;
  stand_in.schema = module->schema;
  stand_in.name = module->name;
  if (!May(*database, *catalog, stand_in, "SELECT")) {
    RaiseSql(229, 14, 5,
             "The SELECT permission was denied on the object '" + module->name +
                 "', database '" + database->name() + "', schema '" + module->schema +
                 "'.");
  }
  const ast::Batch batch = ParseBatch(module->text);
  if (batch.statements.empty()) return std::nullopt;
  const auto* definition =
      std::get_if<ast::DefinitionStatement>(&batch.statements[0]->node);
  if (definition == nullptr) return std::nullopt;
  const auto* made = std::get_if<ast::CreateModule>(&definition->definition);
  return made == nullptr ? std::nullopt : std::optional(*made);
}

std::optional<TableFunction> Session::FindTableFunction(const ObjectName& name) {
  if (!EqualsIgnoringAsciiCase(name.schema, "cdc")) return std::nullopt;
  return CdcTableFunction(*this, name.object);
}

std::optional<ScalarFunction> Session::FindScalarFunction(const ObjectName& name) {
  const std::string object = LowerAscii(name.object);
  if (EqualsIgnoringAsciiCase(name.schema, "sys")) return CdcFunction(*this, object);
  if (!name.schema.empty()) return std::nullopt;
  return MetadataFunction(*this, object);
}

std::optional<std::int32_t> Session::Call(const ObjectName& procedure,
                                          std::vector<ProcedureArgument>& arguments,
                                          ReplySink& sink) {
  const std::string schema = LowerAscii(procedure.schema);
  const std::string object = LowerAscii(procedure.object);
  if (const auto status = CallProcedure(*this, schema, object, arguments, sink)) {
    return status;
  }
  const std::shared_ptr<Database> database = DatabaseOf(procedure);
  const CatalogPtr catalog = CatalogOf(database);
  const ModuleMeta* module =
      catalog->FindModule(schema.empty() ? "dbo" : procedure.schema, procedure.object);
  if (module == nullptr || module->view) return std::nullopt;
  TableMeta stand_in;
  stand_in.object_id = module->object_id;
  stand_in.schema = module->schema;
  stand_in.name = module->name;
  if (!May(*database, *catalog, stand_in, "EXECUTE")) {
    RaiseSql(229, 14, 5,
             "The EXECUTE permission was denied on the object '" + module->name +
                 "', database '" + database->name() + "', schema '" + module->schema +
                 "'.");
  }
  const ast::Batch batch = ParseBatch(module->text);
  const auto* definition =
      std::get_if<ast::DefinitionStatement>(&batch.statements.at(0)->node);
  const auto& made = std::get<ast::CreateModule>(definition->definition);
  std::vector<BoundParameter> bound;
  std::vector<std::size_t> source(made.parameters.size(), arguments.size());
  for (std::size_t i = 0; i < made.parameters.size(); ++i) {
    const ast::ProcedureParameter& parameter = made.parameters[i];
    BoundParameter value;
    value.name = parameter.name;
    value.type = ResolveType(parameter.type, *this);
    value.output = parameter.output;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const bool match =
          arguments[k].name.empty()
              ? k == i
              : EqualsIgnoringAsciiCase(arguments[k].name, parameter.name);
      if (match && !arguments[k].is_default) source[i] = k;
    }
    if (source[i] < arguments.size()) {
      value.value = arguments[source[i]].value;
    } else if (parameter.default_value != nullptr) {
      value.value = BindRowExpression(parameter.default_value, {}, value.type, *this)
                        ->Evaluate({});
    } else {
      RaiseSql(201, 16, 4,
               "Procedure or function '" + module->name + "' expects parameter '" +
                   parameter.name + "', which was not supplied.");
    }
    bound.push_back(std::move(value));
  }
  const std::int32_t status =
      interpreter_.RunModule(module->name, made.body, bound, sink);
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (source[i] >= arguments.size() || !arguments[source[i]].output) continue;
    arguments[source[i]].type = bound[i].type;
    arguments[source[i]].value = bound[i].value;
  }
  return status;
}

void Session::Define(const ast::DefinitionStatement& statement, ReplySink& sink) {
  DefineObject(*this, statement, sink);
}

std::optional<SqlType> Session::FindType(const ast::TypeName&) { return std::nullopt; }

void Session::SetIdentityInsert(const ObjectName& name, bool on) {
  const TablePtr table = LookUp(DatabaseOf(name), name);
  if (table == nullptr) {
    RaiseSql(1088, 16, 11,
             "Cannot find the object \"" + name.Text() +
                 "\" because it does not exist or you do not have permissions.");
  }
  if (!on) {
    if (identity_insert_ == table->object_id) identity_insert_ = 0;
    return;
  }
  if (identity_insert_ != 0 && identity_insert_ != table->object_id) {
    RaiseSql(8107, 16, 1,
             "IDENTITY_INSERT is already ON for another table. Cannot perform SET "
             "operation for table '" +
                 name.Text() + "'.");
  }
  identity_insert_ = table->object_id;
}

void Session::Use(const std::string& name, ReplySink& sink) {
  ObjectName target;
  target.database = name;
  const std::shared_ptr<Database> database = DatabaseOf(target);
  if (database != current_ && database->stays()->single_user() &&
      database->stays()->HoldsOthers(0)) {
    RaiseSql(924, 14, 1,
             "Database '" + database->name() +
                 "' is already open and can only have one user at a time.");
  }
  const std::string from = current_->name();
  Enter(database);
  sink.DatabaseChanged(from, database->name());
  Message message;
  message.number = 5701;
  message.state = 2;
  message.severity = 0;
  message.text = "Changed database context to '" + database->name() + "'.";
  sink.SendMessage(message);
}

void Session::Wait(std::int64_t duration_ms) {
  server_->Wait(duration_ms, EngineSession::stop_requested);
}

}  // namespace mssql_cdc::sim

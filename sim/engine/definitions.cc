// CREATE, DROP and TRUNCATE of tables, indexes, databases, schemas and modules.

#include "sim/engine/definitions.h"

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/table_layout.h"
#include "sim/sql/identifier.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::size_t kColumnsMax = 1024;

std::string SchemaOf(const ObjectName& name) {
  return name.schema.empty() ? "dbo" : name.schema;
}

std::string KeyName(const char* prefix, const TableMeta& table) {
  // SQL Server appends eight characters of the table's name and a number.
  char number[20];
  std::snprintf(number, sizeof(number), "%08X%08X",
                static_cast<unsigned>(table.object_id) * 2654435761u,
                static_cast<unsigned>(table.next_index_id) * 40503u +
                    static_cast<unsigned>(table.object_id));
  return std::string(prefix) + "__" + table.name.substr(0, 8) + "__" + number;
}

// Whether the first parenthesis of `text` is closed by its last character.
bool IsWrapped(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') return false;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\'') quoted = !quoted;
    if (quoted) continue;
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return false;
  }
  return true;
}

// A default as the catalogue shows it: in parentheses, a number in two pairs.
std::string DefaultText(std::string_view written) {
  std::string_view text = Trim(written);
  while (IsWrapped(text)) text = Trim(text.substr(1, text.size() - 2));
  const bool number = text.find_first_not_of("+-.0123456789") == std::string_view::npos;
  return (number ? "((" : "(") + std::string(text) + (number ? "))" : ")");
}

void RequireSchema(const Catalog& catalog, const std::string& schema) {
  if (catalog.FindSchema(schema) != nullptr) return;
  RaiseSql(2760, 16, 1,
           "The specified schema name \"" + schema +
               "\" either does not exist or you do not have permission to use it.");
}

void RequireFreeName(const Catalog& catalog, const std::string& schema,
                     const std::string& name) {
  if (catalog.FindTable(schema, name) == nullptr &&
      catalog.FindModule(schema, name) == nullptr) {
    return;
  }
  RaiseSql(2714, 16, 6,
           "There is already an object named '" + name + "' in the database.");
}

ColumnMeta ColumnOf(Session& session, const TableMeta& table,
                    const ast::ColumnDefinition& definition) {
  ColumnMeta column;
  column.name = definition.name;
  if (table.FindColumn(definition.name) != nullptr) {
    RaiseSql(2705, 16, 3,
             "Column names in each table must be unique. Column name '" +
                 definition.name + "' in table '" + table.name +
                 "' is specified more than once.");
  }
  if (definition.computed != nullptr) {
    column.computed_text = definition.computed->text;
    column.persisted = definition.persisted;
    std::vector<ColumnInfo> columns;
    for (const ColumnMeta& other : table.columns) {
      ColumnInfo info;
      info.name = other.name;
      info.type = other.type;
      info.nullable = other.nullable;
      columns.push_back(std::move(info));
    }
    const auto bound =
        BindRowExpression(definition.computed, columns, std::nullopt, session);
    column.type = bound->type();
    column.nullable = bound->nullable();
    column.type_name = SystemTypeName(column.type.id);
    return column;
  }
  column.type = ResolveType(definition.type, session);
  column.type_name =
      definition.type.name == "sysname" || definition.type.name == "numeric"
          ? definition.type.name
          : std::string(SystemTypeName(column.type.id));
  if (!definition.collation.empty()) column.type.collation = definition.collation;
  column.nullable = definition.nullable.value_or(definition.type.name != "sysname" &&
                                                 !definition.identity &&
                                                 column.type.id != TypeId::kRowVersion);
  if (definition.identity) {
    column.identity = true;
    column.nullable = false;
    column.seed = definition.identity->seed;
    column.increment = definition.identity->increment;
  }
  column.row_guid = definition.row_guid;
  column.sparse = definition.sparse;
  if (definition.default_value) {
    column.default_text = DefaultText(definition.default_value->value->text);
    column.default_name = definition.default_value->name.empty()
                              ? KeyName("DF", table) + definition.name.substr(0, 4)
                              : definition.default_value->name;
  }
  return column;
}

ForeignKeyMeta ForeignKeyOf(Session& session, const std::shared_ptr<Database>& database,
                            const TableMeta& table, const ast::ForeignKey& key) {
  ForeignKeyMeta meta;
  meta.name = key.name.empty() ? KeyName("FK", table) : key.name;
  const TablePtr other = session.LookUp(database, key.referenced);
  if (other == nullptr) {
    RaiseSql(1767, 16, 0,
             "Foreign key '" + meta.name + "' references invalid table '" +
                 key.referenced.Text() + "'.");
  }
  meta.referenced_id = other->object_id;
  for (const std::string& name : key.columns) {
    const ColumnMeta* column = table.FindColumn(name);
    if (column == nullptr) {
      RaiseSql(1769, 16, 1,
               "Foreign key '" + meta.name + "' references invalid column '" + name +
                   "' in referencing table '" + table.name + "'.");
    }
    meta.column_ids.push_back(column->column_id);
  }
  if (key.referenced_columns.empty() && other->PrimaryKey() != nullptr) {
    for (const auto& part : other->PrimaryKey()->parts) {
      meta.referenced_column_ids.push_back(part.column_id);
    }
  }
  for (const std::string& name : key.referenced_columns) {
    const ColumnMeta* column = other->FindColumn(name);
    if (column == nullptr) {
      RaiseSql(1770, 16, 0,
               "Foreign key '" + meta.name + "' references invalid column '" + name +
                   "' in referenced table '" + other->name + "'.");
    }
    meta.referenced_column_ids.push_back(column->column_id);
  }
  return meta;
}

}  // namespace

void RequireOwner(Session& session, const std::shared_ptr<Database>& database) {
  const CatalogPtr catalog = session.CatalogOf(database);
  const auto user = session.UserIn(*database, *catalog);
  if (session.IsOwner(*database, *catalog) ||
      (user && catalog->IsMember(*user, "db_ddladmin")) ||
      database->name() == "tempdb") {
    return;
  }
  RaiseSql(262, 14, 1,
           "CREATE TABLE permission denied in database '" + database->name() + "'.");
}

TablePtr TableToAlter(Session& session, const std::shared_ptr<Database>& database,
                      const ObjectName& name) {
  RequireOwner(session, database);
  session.Write(database);
  TablePtr table = session.LookUp(database, name);
  if (table == nullptr) {
    RaiseSql(4902, 16, 1,
             "Cannot find the object \"" + name.Text() +
                 "\" because it does not exist or you do not have permissions.");
  }
  return table;
}

IndexMeta& AddKey(TableMeta& table, const ast::KeyConstraint& key) {
  IndexMeta index;
  index.unique = true;
  index.primary = key.primary;
  index.constraint = true;
  index.clustered =
      key.clustered.value_or(key.primary && table.ClusteredIndex() == nullptr);
  if (index.clustered && table.ClusteredIndex() != nullptr) {
    RaiseSql(1902, 16, 3,
             "Cannot create more than one clustered index on table '" + table.name +
                 "'. Drop the existing clustered index '" +
                 table.ClusteredIndex()->name + "' before creating another.");
  }
  if (key.primary && table.PrimaryKey() != nullptr) {
    RaiseSql(1779, 16, 0,
             "Table '" + table.name + "' already has a primary key defined on it.");
  }
  index.name = key.name.empty() ? KeyName(key.primary ? "PK" : "UQ", table) : key.name;
  index.index_id = index.clustered ? 1 : table.next_index_id++;
  for (const ast::IndexColumn& part : key.columns) {
    const ColumnMeta* found = table.FindColumn(part.name);
    if (found == nullptr) {
      RaiseSql(1911, 16, 1,
               "Column name '" + part.name +
                   "' does not exist in the target table or view.");
    }
    const std::int32_t id = found->column_id;
    index.parts.push_back({id, part.descending});
    for (ColumnMeta& column : table.columns) {
      if (column.column_id == id && key.primary) column.nullable = false;
    }
  }
  table.indexes.push_back(std::move(index));
  return table.indexes.back();
}

void AddColumnDefinition(Session& session, TableMeta& table,
                         const ast::ColumnDefinition& definition,
                         const std::string& statement) {
  AddColumn(table, ColumnOf(session, table, definition));
  if (table.columns.size() <= kColumnsMax) return;
  RaiseSql(1702, 16, 1,
           statement + " failed because column '" + definition.name + "' in table '" +
               table.name + "' exceeds the maximum of 1024 columns.");
}

void AddConstraints(Session& session, const std::shared_ptr<Database>& database,
                    TableMeta& table, const ast::TableConstraints& constraints) {
  for (const ast::KeyConstraint& key : constraints.keys) AddKey(table, key);
  for (const ast::CheckConstraint& check : constraints.checks) {
    table.checks.push_back({check.name.empty() ? KeyName("CK", table) : check.name,
                            check.condition->text});
  }
  for (const ast::ForeignKey& key : constraints.foreign_keys) {
    table.foreign_keys.push_back(ForeignKeyOf(session, database, table, key));
  }
  for (const ast::DefaultConstraint& value : constraints.defaults) {
    for (ColumnMeta& column : table.columns) {
      if (!SameIdentifier(column.name, value.column, session)) continue;
      column.default_text = DefaultText(value.value->text);
      column.default_name = value.name.empty() ? KeyName("DF", table) : value.name;
    }
  }
}

void CreateTable(Session& session, const ast::CreateTable& statement) {
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.name);
  RequireOwner(session, database);
  WriteTransaction& transaction = session.Write(database);
  const std::string schema = SchemaOf(statement.name);
  RequireSchema(*transaction.catalog(), schema);
  RequireFreeName(*transaction.catalog(), schema, statement.name.object);
  TableMeta table;
  table.schema = transaction.catalog()->FindSchema(schema)->name;
  table.name = statement.name.object;
  table.object_id = transaction.Change().NewObjectId();
  table.create_date = IsoText(session.Now());
  for (const ast::ColumnDefinition& column : statement.columns) {
    AddColumnDefinition(session, table, column, "CREATE TABLE");
  }
  AddConstraints(session, database, table, statement.constraints);
  if (!CreateStorage(transaction.connection(), table)) {
    RaiseSql(1101, 17, 1, "Could not allocate space for '" + table.name + "'.");
  }
  const std::int32_t id = table.object_id;
  transaction.Change().tables[id] = std::make_shared<TableMeta>(std::move(table));
}

void RemoveTable(WriteTransaction& transaction, const TableMeta& table) {
  std::vector<std::string> names;
  for (const CaptureInstance* instance :
       transaction.catalog()->InstancesOf(table.object_id)) {
    names.push_back(instance->name);
  }
  for (const std::string& name : names) RemoveInstance(transaction, name);
  const std::int32_t id = table.object_id;
  transaction.connection().DropCache();
  DropStorage(transaction.connection(), table);
  Catalog& catalog = transaction.Change();
  std::erase_if(catalog.permissions, [&](const PermissionEntry& entry) {
    return entry.scope == "OBJECT" && entry.object_id == id;
  });
  catalog.tables.erase(id);
}

void DropTable(Session& session, const ast::DropTable& statement) {
  for (const ObjectName& name : statement.names) {
    const std::shared_ptr<Database> database = session.DatabaseOf(name);
    RequireOwner(session, database);
    WriteTransaction& transaction = session.Write(database);
    const TablePtr table = session.LookUp(database, name);
    if (table == nullptr) {
      if (statement.if_exists) continue;
      RaiseSql(3701, 11, 5,
               "Cannot drop the table '" + name.Text() +
                   "', because it does not exist or you do not have permission.");
    }
    for (const auto& [id, other] : transaction.catalog()->tables) {
      for (const ForeignKeyMeta& key : other->foreign_keys) {
        if (key.referenced_id != table->object_id || id == table->object_id) continue;
        RaiseSql(3726, 16, 1,
                 "Could not drop object '" + name.Text() +
                     "' because it is referenced by a FOREIGN KEY constraint.");
      }
    }
    RemoveTable(transaction, *table);
  }
}

void ReplaceTable(
    Session& session, WriteTransaction& transaction, const TableMeta& old,
    TableMeta next,
    const std::function<bool(std::size_t, const std::vector<Value>&, Value&)>& fill) {
  (void)session;
  const RebuildResult result =
      Rebuild(transaction.connection(), *transaction.catalog(), old, next, fill);
  if (result == RebuildResult::kDuplicate) {
    RaiseSql(1505, 16, 1,
             "The CREATE UNIQUE INDEX statement terminated because a duplicate key was "
             "found for the object name '" +
                 next.FullName() + "'.");
  }
  if (result == RebuildResult::kFailed) {
    RaiseSql(1101, 17, 1, "Could not allocate space for '" + next.name + "'.");
  }
  const std::int32_t id = next.object_id;
  transaction.Change().tables[id] = std::make_shared<TableMeta>(std::move(next));
}

void CreateIndex(Session& session, const ast::CreateIndex& statement) {
  if (statement.columnstore || statement.filter != nullptr) {
    RaiseSql(102, 15, 1, "Incorrect syntax near 'INDEX'.");
  }
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.table);
  const TablePtr table = TableToAlter(session, database, statement.table);
  if (table->FindIndex(statement.name) != nullptr) {
    RaiseSql(1913, 16, 1,
             "The operation failed because an index or statistics with name '" +
                 statement.name + "' already exists on table '" + table->FullName() +
                 "'.");
  }
  TableMeta next = *table;
  ast::KeyConstraint key;
  key.name = statement.name;
  key.clustered = statement.clustered;
  key.columns = statement.columns;
  IndexMeta& index = AddKey(next, key);
  index.unique = statement.unique;
  index.constraint = false;
  for (const std::string& name : statement.included) {
    const ColumnMeta* column = next.FindColumn(name);
    if (column != nullptr) index.included.push_back(column->column_id);
  }
  ReplaceTable(session, session.Write(database), *table, std::move(next), nullptr);
}

void DropIndex(Session& session, const ast::DropIndex& statement) {
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.table);
  const TablePtr table = TableToAlter(session, database, statement.table);
  const IndexMeta* index = table->FindIndex(statement.name);
  if (index == nullptr) {
    if (statement.if_exists) return;
    RaiseSql(3701, 11, 7,
             "Cannot drop the index '" + table->FullName() + "." + statement.name +
                 "', because it does not exist or you do not have permission.");
  }
  if (index->constraint) {
    RaiseSql(3723, 16, 4,
             "An explicit DROP INDEX is not allowed on index '" + table->FullName() +
                 "." + statement.name + "'. It is being used for " +
                 (index->primary ? "PRIMARY KEY" : "UNIQUE KEY") +
                 " constraint enforcement.");
  }
  const CatalogPtr catalog = session.CatalogOf(database);
  for (const CaptureInstance* instance : catalog->InstancesOf(table->object_id)) {
    if (!instance->index_name ||
        !catalog->SameName(*instance->index_name, index->name)) {
      continue;
    }
    RaiseSql(22983, 16, 1,
             "The unique index '" + index->name + "' on table '" + table->FullName() +
                 "' is used by Change Data Capture and cannot be dropped.");
  }
  TableMeta next = *table;
  std::erase_if(next.indexes,
                [&](const IndexMeta& i) { return i.name == index->name; });
  ReplaceTable(session, session.Write(database), *table, std::move(next), nullptr);
}

void TruncateTable(Session& session, const ast::TruncateTable& statement) {
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.name);
  const TablePtr table = TableToAlter(session, database, statement.name);
  WriteTransaction& transaction = session.Write(database);
  if (!transaction.catalog()->InstancesOf(table->object_id).empty() &&
      Does(Behaviour::kTruncateRefused)) {
    RaiseSql(4711, 16, 1,
             "Cannot truncate table '" + statement.name.Text() +
                 "' because it is published for replication or enabled for Change Data "
                 "Capture.");
  }
  transaction.connection().Prepare("DELETE FROM " + table->physical).Run();
  transaction.Rewrites();
  transaction.AddRowCount(table->object_id, -transaction.RowCount(table->object_id));
  for (const ColumnMeta& column : table->columns) {
    if (column.identity) {
      transaction.SetIdentity(table->object_id, column.seed - column.increment);
    }
  }
}

namespace {

void CreateModuleObject(Session& session, const ast::CreateModule& statement) {
  const std::shared_ptr<Database> database = session.DatabaseOf(statement.name);
  RequireOwner(session, database);
  WriteTransaction& transaction = session.Write(database);
  const std::string schema = SchemaOf(statement.name);
  RequireSchema(*transaction.catalog(), schema);
  const ModuleMeta* present =
      transaction.catalog()->FindModule(schema, statement.name.object);
  if (!statement.replace || present == nullptr) {
    RequireFreeName(*transaction.catalog(), schema, statement.name.object);
  }
  ModuleMeta module;
  module.object_id =
      present != nullptr ? present->object_id : transaction.Change().NewObjectId();
  module.schema = schema;
  module.name = statement.name.object;
  module.view = statement.kind == ast::CreateModule::Kind::kView;
  module.text = statement.text;
  module.create_date = IsoText(session.Now());
  Catalog& catalog = transaction.Change();
  std::erase_if(catalog.modules,
                [&](const ModuleMeta& m) { return m.object_id == module.object_id; });
  catalog.modules.push_back(std::move(module));
}

void DropModuleObject(Session& session, const ast::DropModule& statement) {
  for (const ObjectName& name : statement.names) {
    const std::shared_ptr<Database> database = session.DatabaseOf(name);
    RequireOwner(session, database);
    WriteTransaction& transaction = session.Write(database);
    const ModuleMeta* module =
        transaction.catalog()->FindModule(SchemaOf(name), name.object);
    if (module == nullptr) {
      if (statement.if_exists) continue;
      RaiseSql(3701, 11, 5,
               "Cannot drop the object '" + name.Text() +
                   "', because it does not exist or you do not have permission.");
    }
    const std::int32_t id = module->object_id;
    std::erase_if(transaction.Change().modules,
                  [&](const ModuleMeta& m) { return m.object_id == id; });
  }
}

void RequireServerAdmin(Session& session, const char* what) {
  if (session.is_admin()) return;
  RaiseSql(262, 14, 1, std::string(what) + " permission denied in database 'master'.");
}

void CreateDatabaseObject(Session& session, const ast::CreateDatabase& statement) {
  RequireServerAdmin(session, "CREATE DATABASE");
  if (session.server().FindDatabase(statement.name) != nullptr) {
    RaiseSql(1801, 16, 3,
             "Database '" + statement.name +
                 "' already exists. Choose a different database name.");
  }
  if (!session.server().CreateDatabase(statement.name, statement.collation).ok()) {
    RaiseSql(5123, 16, 1, "CREATE FILE encountered an operating system error.");
  }
}

void DropDatabaseObject(Session& session, const ast::DropDatabase& statement) {
  RequireServerAdmin(session, "DROP DATABASE");
  for (const std::string& name : statement.names) {
    const std::shared_ptr<Database> database = session.server().FindDatabase(name);
    if (database == nullptr) {
      if (statement.if_exists) continue;
      RaiseSql(3701, 11, 1,
               "Cannot drop the database '" + name +
                   "', because it does not exist or you do not have permission.");
    }
    if (database == session.current() || database->is_system() ||
        database->stays()->HoldsOthers(0)) {
      RaiseSql(3702, 16, 4,
               "Cannot drop database \"" + name + "\" because it is currently in use.");
    }
    (void)session.server().DropDatabase(name).ok();
  }
}

// Others are not waited for: who names no termination gets NO_WAIT's answer.
void SetSingleUser(Session& session, const std::shared_ptr<Database>& database,
                   const ast::AlterDatabase& statement) {
  const bool rolls_back =
      statement.termination == ast::AlterDatabase::Termination::kRollback;
  if (!session.EndOthers(database, rolls_back)) {
    RaiseSql(
        5070, 16, 2,
        "Database state cannot be changed while other users are using the database "
        "'" +
            database->name() + "'");
  }
  database->stays()->SetSingleUser(true);
}

void AlterDatabaseObject(Session& session, const ast::AlterDatabase& statement) {
  const std::shared_ptr<Database> database =
      statement.name.empty() ? session.current()
                             : session.server().FindDatabase(statement.name);
  if (database == nullptr) {
    RaiseSql(
        5011, 14, 5,
        "User does not have permission to alter database '" + statement.name +
            "', the database does not exist, or the database is not in a state that "
            "allows access checks.");
  }
  RequireOwner(session, database);
  if (statement.option == "SINGLE_USER" && !database->is_system()) {
    return SetSingleUser(session, database, statement);
  }
  if (statement.option == "MULTI_USER") {
    return database->stays()->SetSingleUser(false);
  }
  const bool on = EqualsIgnoringAsciiCase(statement.value, "ON");
  const bool off = EqualsIgnoringAsciiCase(statement.value, "OFF");
  Catalog& catalog = session.Write(database).Change();
  if (statement.option == "ALLOW_SNAPSHOT_ISOLATION" && (on || off)) {
    catalog.snapshot_isolation = on;
  } else if (statement.option == "READ_COMMITTED_SNAPSHOT" && (on || off)) {
    catalog.read_committed_snapshot = on;
  } else if (statement.option == "RECOVERY") {
    // The log is kept until it is captured under every recovery model.
  } else {
    RaiseSql(102, 15, 1, "Incorrect syntax near '" + statement.option + "'.");
  }
}

void CreateSchemaObject(Session& session, const ast::CreateSchema& statement) {
  RequireOwner(session, session.current());
  WriteTransaction& transaction = session.Write(session.current());
  if (transaction.catalog()->FindSchema(statement.name) != nullptr) {
    RaiseSql(
        2714, 16, 6,
        "There is already an object named '" + statement.name + "' in the database.");
  }
  Catalog& catalog = transaction.Change();
  catalog.schemas.push_back({catalog.next_schema_id++, statement.name});
}

void DropSchemaObject(Session& session, const ast::DropSchema& statement) {
  RequireOwner(session, session.current());
  WriteTransaction& transaction = session.Write(session.current());
  if (transaction.catalog()->FindSchema(statement.name) == nullptr) {
    if (statement.if_exists) return;
    RaiseSql(15151, 16, 1,
             "Cannot drop the schema '" + statement.name +
                 "', because it does not exist or you do not have permission.");
  }
  const CatalogPtr catalog = transaction.catalog();
  for (const auto& [id, table] : catalog->tables) {
    if (!catalog->SameName(table->schema, statement.name)) continue;
    RaiseSql(3729, 16, 1,
             "Cannot drop schema '" + statement.name +
                 "' because it is being referenced by object '" + table->name + "'.");
  }
  std::erase_if(transaction.Change().schemas, [&](const SchemaMeta& schema) {
    return catalog->SameName(schema.name, statement.name);
  });
}

}  // namespace

void DefineObject(Session& session, const ast::DefinitionStatement& statement,
                  ReplySink&) {
  const ast::Definition& definition = statement.definition;
  if (const auto* table = std::get_if<ast::CreateTable>(&definition)) {
    return CreateTable(session, *table);
  }
  if (const auto* drop = std::get_if<ast::DropTable>(&definition)) {
    return DropTable(session, *drop);
  }
  if (const auto* alter = std::get_if<ast::AlterTable>(&definition)) {
    return AlterTable(session, *alter, statement.text);
  }
  if (const auto* truncate = std::get_if<ast::TruncateTable>(&definition)) {
    return TruncateTable(session, *truncate);
  }
  if (const auto* index = std::get_if<ast::CreateIndex>(&definition)) {
    return CreateIndex(session, *index);
  }
  if (const auto* index = std::get_if<ast::DropIndex>(&definition)) {
    return DropIndex(session, *index);
  }
  if (const auto* made = std::get_if<ast::CreateDatabase>(&definition)) {
    return CreateDatabaseObject(session, *made);
  }
  if (const auto* drop = std::get_if<ast::DropDatabase>(&definition)) {
    return DropDatabaseObject(session, *drop);
  }
  if (const auto* alter = std::get_if<ast::AlterDatabase>(&definition)) {
    return AlterDatabaseObject(session, *alter);
  }
  if (const auto* made = std::get_if<ast::CreateSchema>(&definition)) {
    return CreateSchemaObject(session, *made);
  }
  if (const auto* drop = std::get_if<ast::DropSchema>(&definition)) {
    return DropSchemaObject(session, *drop);
  }
  if (const auto* module = std::get_if<ast::CreateModule>(&definition)) {
    return CreateModuleObject(session, *module);
  }
  if (const auto* module = std::get_if<ast::DropModule>(&definition)) {
    return DropModuleObject(session, *module);
  }
  if (const auto* permission = std::get_if<ast::Permission>(&definition)) {
    return ChangePermission(session, *permission);
  }
  DefinePrincipal(session, definition);
}

}  // namespace mssql_cdc::sim

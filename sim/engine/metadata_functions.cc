// OBJECT_ID, SERVERPROPERTY, HAS_PERMS_BY_NAME and other functions about the server,
// and the @@ variables.

#include <algorithm>
#include <map>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/rows_table.h"
#include "sim/engine/table_layout.h"
#include "sim/engine/type_facts.h"

namespace mssql_cdc::sim {
namespace {

using Arguments = std::span<const std::optional<TypedValue>>;
using Body = Value (*)(Session&, Arguments);

std::string TextAt(Arguments arguments, std::size_t index) {
  if (index >= arguments.size() || !arguments[index]) return {};
  return TextOf(arguments[index]->value);
}

std::optional<std::int64_t> IntAt(Arguments arguments, std::size_t index) {
  if (index >= arguments.size() || !arguments[index]) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(&arguments[index]->value.held);
  if (integer == nullptr) return std::nullopt;
  return *integer;
}

Value Variant(const std::string& text) {
  Value value = TextValue(text);
  value.variant_type = NVarChar(128);
  return value;
}

Value Variant(std::int64_t integer) {
  Value value = IntValue(integer);
  value.variant_type = IntType();
  return value;
}

bool CanSee(Session& session, const Database& database, const Catalog& catalog,
            const TableMeta& table) {
  for (const char* right :
       {"SELECT", "INSERT", "UPDATE", "DELETE", "VIEW DEFINITION"}) {
    if (session.May(database, catalog, table, right)) return true;
  }
  return false;
}

// The object a name means, as far as the login sees it.
std::optional<std::int32_t> ObjectByName(Session& session, const std::string& text) {
  const std::optional<ObjectName> name = ParseObjectName(text);
  if (!name) return std::nullopt;
  std::shared_ptr<Database> database = session.current();
  if (!name->database.empty() || (!name->object.empty() && name->object[0] == '#')) {
    try {
      database = session.DatabaseOf(*name);
    } catch (const SqlError&) {
      return std::nullopt;
    }
  }
  const CatalogPtr catalog = session.CatalogOf(database);
  if (const TablePtr table = session.LookUp(database, *name)) {
    if (!CanSee(session, *database, *catalog, *table)) return std::nullopt;
    return table->object_id;
  }
  const ModuleMeta* module =
      catalog->FindModule(name->schema.empty() ? "dbo" : name->schema, name->object);
  if (module != nullptr) return module->object_id;
  return std::nullopt;
}

Value ObjectId(Session& session, Arguments arguments) {
  const std::optional<std::int32_t> id = ObjectByName(session, TextAt(arguments, 0));
  if (!id) return {};
  const std::string type = LowerAscii(Trim(TextAt(arguments, 1)));
  const bool table = session.CatalogOf(session.current())->TableById(*id) != nullptr;
  if (type == "u" && !table) return {};
  if (type == "v" && table) return {};
  return IntValue(*id);
}

TablePtr TableAt(Session& session, Arguments arguments, std::size_t index) {
  const auto id = IntAt(arguments, index);
  if (!id) return nullptr;
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const TablePtr table = catalog->TableById(static_cast<std::int32_t>(*id));
  if (table == nullptr || !CanSee(session, *session.current(), *catalog, *table)) {
    return nullptr;
  }
  return table;
}

Value ObjectNameOf(Session& session, Arguments arguments) {
  const TablePtr table = TableAt(session, arguments, 0);
  return table == nullptr ? Value{} : TextValue(table->name);
}

Value ObjectSchemaName(Session& session, Arguments arguments) {
  const TablePtr table = TableAt(session, arguments, 0);
  return table == nullptr ? Value{} : TextValue(table->schema);
}

Value ColumnName(Session& session, Arguments arguments) {
  const TablePtr table = TableAt(session, arguments, 0);
  const auto id = IntAt(arguments, 1);
  if (table == nullptr || !id) return {};
  const ColumnMeta* column = table->ColumnById(static_cast<std::int32_t>(*id));
  return column == nullptr ? Value{} : TextValue(column->name);
}

Value ColumnLength(Session& session, Arguments arguments) {
  const std::optional<std::int32_t> id = ObjectByName(session, TextAt(arguments, 0));
  if (!id) return {};
  const TablePtr table = session.CatalogOf(session.current())->TableById(*id);
  const ColumnMeta* column =
      table == nullptr ? nullptr : table->FindColumn(TextAt(arguments, 1));
  return column == nullptr ? Value{} : IntValue(FactsOf(column->type).max_length);
}

Value ColumnProperty(Session& session, Arguments arguments) {
  const TablePtr table = TableAt(session, arguments, 0);
  const ColumnMeta* column =
      table == nullptr ? nullptr : table->FindColumn(TextAt(arguments, 1));
  if (column == nullptr) return {};
  const std::string property = LowerAscii(TextAt(arguments, 2));
  if (property == "isidentity") return BoolValue(column->identity);
  if (property == "iscomputed") return BoolValue(column->computed());
  if (property == "allowsnull") return BoolValue(column->nullable);
  if (property == "columnid") return IntValue(column->column_id);
  return {};
}

Value SchemaNameOf(Session& session, Arguments arguments) {
  const auto id = IntAt(arguments, 0);
  if (!id) return arguments.empty() || !arguments[0] ? TextValue("dbo") : Value{};
  for (const SchemaMeta& schema : session.CatalogOf(session.current())->schemas) {
    if (schema.id == *id) return TextValue(schema.name);
  }
  return {};
}

Value SchemaIdOf(Session& session, Arguments arguments) {
  const std::string name = TextAt(arguments, 0);
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const SchemaMeta* schema = catalog->FindSchema(name.empty() ? "dbo" : name);
  return schema == nullptr ? Value{} : IntValue(schema->id);
}

Value DbName(Session& session, Arguments arguments) {
  const auto id = IntAt(arguments, 0);
  if (!id) return TextValue(session.current()->name());
  const auto database = session.server().FindDatabase(static_cast<std::int32_t>(*id));
  return database == nullptr ? Value{} : TextValue(database->name());
}

Value DbId(Session& session, Arguments arguments) {
  const std::string name = TextAt(arguments, 0);
  if (name.empty()) return IntValue(session.current()->id());
  const auto database = session.server().FindDatabase(name);
  return database == nullptr ? Value{} : IntValue(database->id());
}

std::string VersionText(const EngineOptions& options) {
  return std::to_string(options.version.major) + "." +
         std::to_string(options.version.minor) + "." +
         std::to_string(options.version.build) + ".1";
}

Value ServerProperty(Session& session, Arguments arguments) {
  const EngineOptions& options = session.server().options();
  const std::string name = LowerAscii(TextAt(arguments, 0));
  if (name == "productversion") return Variant(VersionText(options));
  if (name == "productmajorversion")
    return Variant(std::to_string(options.version.major));
  if (name == "productminorversion")
    return Variant(std::to_string(options.version.minor));
  if (name == "productbuild") return Variant(std::to_string(options.version.build));
  if (name == "productlevel") return Variant("RTM");
  if (name == "edition") {
    return Variant(options.azure ? "SQL Azure" : "Developer Edition (64-bit)");
  }
  if (name == "engineedition") return Variant(options.azure ? 5 : 3);
  if (name == "servername" || name == "machinename")
    return Variant(options.server_name);
  if (name == "collation") return Variant(options.collation);
  if (name == "isclustered" || name == "ishadrenabled") return Variant(0);
  if (name == "isintegratedsecurityonly") return Variant(0);
  if (name == "processid") return Variant(1);
  return {};
}

Value DatabaseProperty(Session& session, Arguments arguments) {
  const auto database = session.server().FindDatabase(TextAt(arguments, 0));
  if (database == nullptr) return {};
  const std::string property = LowerAscii(TextAt(arguments, 1));
  if (property == "collation") return Variant(database->catalog()->collation);
  if (property == "status") return Variant("ONLINE");
  if (property == "updateability") {
    return Variant(session.on_secondary() ? "READ_ONLY" : "READ_WRITE");
  }
  if (property == "recovery") return Variant("FULL");
  return {};
}

Value HasPerms(Session& session, Arguments arguments) {
  const std::string kind = LowerAscii(TextAt(arguments, 1));
  const std::string right = [&] {
    std::string upper = TextAt(arguments, 2);
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    });
    return upper;
  }();
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const Database& database = *session.current();
  if (kind == "object") {
    const std::optional<ObjectName> name = ParseObjectName(TextAt(arguments, 0));
    if (!name) return {};
    const TablePtr table = session.LookUp(session.current(), *name);
    if (table != nullptr)
      return BoolValue(session.May(database, *catalog, *table, right));
    TableMeta stand_in;
    stand_in.schema = name->schema;
    stand_in.name = name->object;
    const bool metadata = EqualsIgnoringAsciiCase(name->schema, "cdc");
    if (metadata) return BoolValue(session.May(database, *catalog, stand_in, right));
    return IntValue(0);
  }
  if (kind == "database")
    return BoolValue(session.MayDatabase(database, *catalog, right));
  if (kind == "schema") {
    TableMeta stand_in;
    stand_in.schema = TextAt(arguments, 0);
    return BoolValue(session.May(database, *catalog, stand_in, right));
  }
  if (kind.empty()) return BoolValue(session.is_admin());
  return {};
}

Value IsServerRoleMember(Session& session, Arguments arguments) {
  const std::string role = LowerAscii(TextAt(arguments, 0));
  if (role == "public") return IntValue(1);
  const std::string name = TextAt(arguments, 1);
  bool admin = session.is_admin();
  if (!name.empty()) {
    const auto login = session.server().FindLogin(name);
    if (!login) return {};
    admin = login->admin;
  }
  const char* const kRoles[] = {"sysadmin",     "serveradmin", "securityadmin",
                                "processadmin", "setupadmin",  "bulkadmin",
                                "diskadmin",    "dbcreator"};
  const bool known = std::any_of(std::begin(kRoles), std::end(kRoles),
                                 [&](const char* each) { return role == each; });
  return known ? BoolValue(admin) : Value{};
}

Value IsMember(Session& session, Arguments arguments) {
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const std::string role = TextAt(arguments, 0);
  const Principal* principal = catalog->FindPrincipal(role);
  if (principal == nullptr || !principal->role) return {};
  const auto user = session.UserIn(*session.current(), *catalog);
  return BoolValue(user && catalog->IsMember(*user, role));
}

Value UserName(Session& session, Arguments) {
  const auto user =
      session.UserIn(*session.current(), *session.CatalogOf(session.current()));
  return user ? TextValue(*user) : Value{};
}

Value LoginName(Session& session, Arguments) { return TextValue(session.login().name); }
Value AppName(Session& session, Arguments) {
  return TextValue(session.request().application);
}
Value HostName(Session& session, Arguments) {
  return TextValue(session.request().host);
}

Value TimeZoneId(Session& session, Arguments) {
  const EngineOptions& options = session.server().options();
  if (!options.time_zone.empty()) return TextValue(options.time_zone);
  const std::int16_t offset = options.utc_offset_minutes;
  if (offset == 0) return TextValue("UTC");
  char text[16];
  std::snprintf(text, sizeof(text), "UTC%c%02d:%02d", offset < 0 ? '-' : '+',
                std::abs(offset) / 60, std::abs(offset) % 60);
  // The zones of a whole hour's offset are named without the minutes.
  return TextValue(offset % 60 == 0 ? std::string(text).substr(0, 6) : text);
}

Value LastIdentity(Session& session) {
  const auto last = session.last_identity();
  return last ? Value{Decimal{*last, 0}, {}} : Value{};
}

Value ScopeIdentity(Session& session, Arguments) { return LastIdentity(session); }

Value IdentCurrent(Session& session, Arguments arguments) {
  const auto id = ObjectByName(session, TextAt(arguments, 0));
  if (!id) return {};
  Statement read =
      session.Reader(session.current())
          .Prepare("SELECT identity_last FROM table_stat WHERE table_id = ?");
  read.BindInt(1, *id);
  if (read.Next() != Step::kRow || read.IsNull(0)) return {};
  return Value{Decimal{read.Int(0), 0}, {}};
}

Value RowCountBig(Session& session, Arguments) {
  return IntValue(session.last_row_count());
}

struct Entry {
  std::vector<SqlType> parameters;
  std::size_t argument_count_min;
  SqlType result;
  Body body;
};

SqlType Identity38() {
  SqlType type = TypeOf(TypeId::kDecimal);
  type.precision = 38;
  return type;
}

const std::map<std::string, Entry>& Entries() {
  static const auto* const kEntries = [] {
    const SqlType name = SysName();
    const SqlType text = NVarChar(4000);
    const SqlType number = IntType();
    const SqlType variant = TypeOf(TypeId::kSqlVariant);
    return new std::map<std::string, Entry>{
        {"object_id", {{text, text}, 1, number, ObjectId}},
        {"object_name", {{number, number}, 1, name, ObjectNameOf}},
        {"object_schema_name", {{number, number}, 1, name, ObjectSchemaName}},
        {"col_name", {{number, number}, 2, name, ColumnName}},
        {"col_length", {{text, name}, 2, TypeOf(TypeId::kSmallInt), ColumnLength}},
        {"columnproperty", {{number, name, name}, 3, number, ColumnProperty}},
        {"schema_name", {{number}, 0, name, SchemaNameOf}},
        {"schema_id", {{name}, 0, number, SchemaIdOf}},
        {"db_name", {{number}, 0, name, DbName}},
        {"db_id", {{name}, 0, TypeOf(TypeId::kSmallInt), DbId}},
        {"serverproperty", {{name}, 1, variant, ServerProperty}},
        {"databasepropertyex", {{name, name}, 2, variant, DatabaseProperty}},
        {"has_perms_by_name", {{text, name, name, name, name}, 3, number, HasPerms}},
        {"is_srvrolemember", {{name, name}, 1, number, IsServerRoleMember}},
        {"is_member", {{name}, 1, number, IsMember}},
        {"is_rolemember", {{name, name}, 1, number, IsMember}},
        {"user_name", {{number}, 0, name, UserName}},
        {"current_user", {{}, 0, name, UserName}},
        {"session_user", {{}, 0, name, UserName}},
        {"user", {{}, 0, name, UserName}},
        {"suser_sname", {{TypeOf(TypeId::kVarBinary, 85)}, 0, name, LoginName}},
        {"suser_name", {{number}, 0, name, LoginName}},
        {"system_user", {{}, 0, name, LoginName}},
        {"original_login", {{}, 0, name, LoginName}},
        {"app_name", {{}, 0, name, AppName}},
        {"host_name", {{}, 0, name, HostName}},
        {"current_timezone_id", {{}, 0, TypeOf(TypeId::kVarChar, 128), TimeZoneId}},
        {"scope_identity", {{}, 0, Identity38(), ScopeIdentity}},
        {"ident_current", {{name}, 1, Identity38(), IdentCurrent}},
        {"rowcount_big", {{}, 0, BigIntType(), RowCountBig}},
    };
  }();
  return *kEntries;
}

}  // namespace

std::optional<ScalarFunction> MetadataFunction(Session& session,
                                               const std::string& name) {
  const auto found = Entries().find(name);
  if (found == Entries().end()) return std::nullopt;
  // CURRENT_TIMEZONE_ID came with SQL Server 2022.
  if (name == "current_timezone_id" && session.server().options().version.major < 16 &&
      Does(Behaviour::kTimeZoneIdOf2022)) {
    return std::nullopt;
  }
  ScalarFunction function;
  function.parameters = found->second.parameters;
  function.argument_count_min = found->second.argument_count_min;
  function.result = found->second.result;
  function.call = [&session, body = found->second.body](Arguments arguments) {
    return body(session, arguments);
  };
  return function;
}

std::optional<TypedValue> Session::GlobalVariable(const std::string& name) {
  const std::string variable = LowerAscii(name);
  const EngineOptions& options = server_->options();
  if (variable == "@@spid")
    return TypedValue{TypeOf(TypeId::kSmallInt), IntValue(request_.spid)};
  if (variable == "@@version") {
    return TypedValue{
        NVarChar(300),
        TextValue(options.azure ? "Microsoft SQL Azure (RTM) - 12.0.2000.8 (simulated)"
                                : "Microsoft SQL Server " +
                                      std::string(ReleaseOf(options.version)) +
                                      " (RTM) - " + VersionText(options) +
                                      " (X64) \n\tDeveloper Edition (64-bit) on Linux "
                                      "(simulated)")};
  }
  if (variable == "@@servername")
    return TypedValue{SysName(), TextValue(options.server_name)};
  if (variable == "@@servicename")
    return TypedValue{SysName(), TextValue("MSSQLSERVER")};
  if (variable == "@@identity") return TypedValue{Identity38(), LastIdentity(*this)};
  if (variable == "@@microsoftversion") {
    return TypedValue{IntType(),
                      IntValue(options.version.major << 24 | options.version.build)};
  }
  if (variable == "@@lock_timeout") {
    return TypedValue{IntType(), IntValue(settings_.lock_timeout_ms)};
  }
  if (variable == "@@datefirst") {
    return TypedValue{TypeOf(TypeId::kTinyInt), IntValue(settings_.datefirst)};
  }
  if (variable == "@@textsize")
    return TypedValue{IntType(), IntValue(settings_.textsize)};
  if (variable == "@@language")
    return TypedValue{SysName(), TextValue(settings_.language)};
  if (variable == "@@langid") return TypedValue{TypeOf(TypeId::kSmallInt), IntValue(0)};
  if (variable == "@@max_precision")
    return TypedValue{TypeOf(TypeId::kTinyInt), IntValue(38)};
  if (variable == "@@max_connections") return TypedValue{IntType(), IntValue(32767)};
  if (variable == "@@nestlevel") return TypedValue{IntType(), IntValue(0)};
  if (variable == "@@procid") return TypedValue{IntType(), IntValue(0)};
  if (variable == "@@fetch_status") return TypedValue{IntType(), IntValue(0)};
  if (variable == "@@options") return TypedValue{IntType(), IntValue(5496)};
  return std::nullopt;
}

}  // namespace mssql_cdc::sim

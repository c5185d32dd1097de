// CREATE, ALTER and DROP of logins, users and roles; GRANT, DENY, REVOKE.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/definitions.h"

namespace mssql_cdc::sim {
namespace {

bool Same(std::string_view a, std::string_view b) {
  return EqualsIgnoringAsciiCase(a, b);
}

void RequireAdmin(Session& session) {
  if (session.is_admin()) return;
  RaiseSql(15247, 16, 1, "User does not have permission to perform this action.");
}

void RequireSecurity(Session& session) {
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const auto user = session.UserIn(*session.current(), *catalog);
  if (session.IsOwner(*session.current(), *catalog) ||
      (user && catalog->IsMember(*user, "db_securityadmin"))) {
    return;
  }
  RaiseSql(15247, 16, 1, "User does not have permission to perform this action.");
}

[[noreturn]] void RaiseMissing(const std::string& kind, const std::string& name) {
  RaiseSql(15151, 16, 1,
           "Cannot alter the " + kind + " '" + name +
               "', because it does not exist or you do not have permission.");
}

void Stored(const Status& status) {
  if (status.ok()) return;
  RaiseSql(15247, 16, 1, "User does not have permission to perform this action.");
}

void MakeLogin(Session& session, const ast::CreateLogin& statement) {
  RequireAdmin(session);
  if (session.server().FindLogin(statement.name)) {
    RaiseSql(15025, 16, 1,
             "The server principal '" + statement.name + "' already exists.");
  }
  LoginRecord login;
  login.name = statement.name;
  login.password_hash =
      Server::HashPassword(statement.password, session.server().NewSalt());
  if (!statement.default_database.empty()) {
    login.default_database = statement.default_database;
  }
  Stored(session.server().PutLogin(login));
}

void ChangeLogin(Session& session, const ast::AlterLogin& statement) {
  RequireAdmin(session);
  std::optional<LoginRecord> login = session.server().FindLogin(statement.name);
  if (!login) RaiseMissing("login", statement.name);
  if (statement.password) {
    login->password_hash =
        Server::HashPassword(*statement.password, session.server().NewSalt());
  }
  if (statement.default_database) login->default_database = *statement.default_database;
  if (statement.enabled) login->enabled = *statement.enabled;
  Stored(session.server().PutLogin(*login));
}

void RemoveLogin(Session& session, const ast::DropLogin& statement) {
  RequireAdmin(session);
  if (!session.server().FindLogin(statement.name))
    RaiseMissing("login", statement.name);
  Stored(session.server().DropLogin(statement.name));
}

void MakePrincipal(Session& session, Principal principal) {
  RequireSecurity(session);
  Catalog& catalog = session.Write(session.current()).Change();
  if (catalog.FindPrincipal(principal.name) != nullptr) {
    RaiseSql(15023, 16, 1,
             "User, group, or role '" + principal.name +
                 "' already exists in the current database.");
  }
  principal.id = catalog.next_principal_id++;
  catalog.principals.push_back(std::move(principal));
}

void MakeUser(Session& session, const ast::CreateUser& statement) {
  Principal principal;
  principal.name = statement.name;
  if (!statement.default_schema.empty())
    principal.default_schema = statement.default_schema;
  if (!statement.without_login) {
    const std::string login =
        statement.login.empty() ? statement.name : statement.login;
    if (!session.server().FindLogin(login)) {
      RaiseSql(15007, 16, 1,
               "'" + login + "' is not a valid login or you do not have permission.");
    }
    principal.login = login;
  }
  MakePrincipal(session, std::move(principal));
}

void RemovePrincipal(Session& session, const std::string& name, bool role,
                     bool if_exists) {
  RequireSecurity(session);
  Catalog& catalog = session.Write(session.current()).Change();
  const Principal* principal = catalog.FindPrincipal(name);
  if (principal == nullptr || principal->role != role || principal->fixed) {
    if (if_exists) return;
    RaiseMissing(role ? "role" : "user", name);
  }
  std::erase_if(catalog.members, [&](const auto& entry) {
    return Same(entry.first, name) || Same(entry.second, name);
  });
  std::erase_if(catalog.permissions,
                [&](const auto& entry) { return Same(entry.principal, name); });
  std::erase_if(catalog.principals,
                [&](const auto& entry) { return Same(entry.name, name); });
}

void ChangeRole(Session& session, const ast::AlterRole& statement) {
  if (statement.server) {
    RequireAdmin(session);
    std::optional<LoginRecord> login = session.server().FindLogin(statement.member);
    if (!login || !Same(statement.name, "sysadmin")) {
      RaiseMissing("server role", statement.name);
    }
    login->admin = statement.add;
    Stored(session.server().PutLogin(*login));
    return;
  }
  RequireSecurity(session);
  Catalog& catalog = session.Write(session.current()).Change();
  const Principal* role = catalog.FindPrincipal(statement.name);
  if (role == nullptr || !role->role) RaiseMissing("role", statement.name);
  if (catalog.FindPrincipal(statement.member) == nullptr) {
    RaiseSql(15151, 16, 1,
             "Cannot add the principal '" + statement.member +
                 "', because it does not exist or you do not have permission.");
  }
  if (statement.add && catalog.IsMember(statement.name, statement.member)) {
    RaiseSql(15413, 11, 1, "Cannot make a role a member of itself.");
  }
  std::erase_if(catalog.members, [&](const auto& entry) {
    return Same(entry.first, statement.name) && Same(entry.second, statement.member);
  });
  if (statement.add) catalog.members.emplace_back(statement.name, statement.member);
}

// Where a GRANT applies.
PermissionEntry ScopeOf(Session& session, const ast::Permission& statement) {
  PermissionEntry entry;
  const std::string kind = statement.securable_class;
  if (!statement.securable) {
    entry.scope = "DATABASE";
    return entry;
  }
  const ObjectName& name = *statement.securable;
  if (Same(kind, "DATABASE")) {
    entry.scope = "DATABASE";
    return entry;
  }
  const std::shared_ptr<Database>& database = session.current();
  const CatalogPtr catalog = session.CatalogOf(database);
  if (Same(kind, "SCHEMA")) {
    const SchemaMeta* schema = catalog->FindSchema(name.object);
    if (schema == nullptr) {
      RaiseSql(15151, 16, 1,
               "Cannot find the schema '" + name.object +
                   "', because it does not exist or you do not have permission.");
    }
    entry.scope = "SCHEMA";
    entry.schema = schema->name;
    return entry;
  }
  entry.scope = "OBJECT";
  if (const TablePtr table = session.LookUp(database, name)) {
    entry.object_id = table->object_id;
    return entry;
  }
  const ModuleMeta* module =
      catalog->FindModule(name.schema.empty() ? "dbo" : name.schema, name.object);
  if (module != nullptr) {
    entry.object_id = module->object_id;
    return entry;
  }
  if (Same(name.schema, "cdc")) {
    const auto view = SystemView(session, database, "cdc", LowerAscii(name.object));
    if (view != nullptr) {
      // The metadata tables have no object of their own; their right is the schema's.
      entry.scope = "SCHEMA";
      entry.schema = "cdc." + LowerAscii(name.object);
      return entry;
    }
    if (CdcTableFunction(session, name.object)) {
      entry.scope = "SCHEMA";
      entry.schema = "cdc." + LowerAscii(name.object);
      return entry;
    }
  }
  RaiseSql(15151, 16, 1,
           "Cannot find the object '" + name.object +
               "', because it does not exist or you do not have permission.");
}

}  // namespace

void ChangePermission(Session& session, const ast::Permission& statement) {
  RequireSecurity(session);
  const PermissionEntry scope = ScopeOf(session, statement);
  Catalog& catalog = session.Write(session.current()).Change();
  for (const std::string& principal : statement.principals) {
    if (catalog.FindPrincipal(principal) == nullptr) {
      RaiseSql(15151, 16, 1,
               "Cannot find the user '" + principal +
                   "', because it does not exist or you do not have permission.");
    }
    for (const ast::Permission::Right& right : statement.rights) {
      PermissionEntry entry = scope;
      entry.principal = principal;
      entry.right = right.name;
      entry.columns = right.columns;
      entry.deny = statement.action == ast::Permission::Action::kDeny;
      std::erase_if(catalog.permissions, [&](const PermissionEntry& old) {
        return Same(old.principal, principal) && old.right == entry.right &&
               old.scope == entry.scope && Same(old.schema, entry.schema) &&
               old.object_id == entry.object_id && old.columns == entry.columns;
      });
      if (statement.action != ast::Permission::Action::kRevoke) {
        catalog.permissions.push_back(std::move(entry));
      }
    }
  }
}

void DefinePrincipal(Session& session, const ast::Definition& definition) {
  if (const auto* login = std::get_if<ast::CreateLogin>(&definition)) {
    return MakeLogin(session, *login);
  }
  if (const auto* login = std::get_if<ast::AlterLogin>(&definition)) {
    return ChangeLogin(session, *login);
  }
  if (const auto* login = std::get_if<ast::DropLogin>(&definition)) {
    return RemoveLogin(session, *login);
  }
  if (const auto* user = std::get_if<ast::CreateUser>(&definition)) {
    return MakeUser(session, *user);
  }
  if (const auto* user = std::get_if<ast::DropUser>(&definition)) {
    return RemovePrincipal(session, user->name, false, user->if_exists);
  }
  if (const auto* role = std::get_if<ast::CreateRole>(&definition)) {
    if (role->server) RaiseSql(102, 15, 1, "Incorrect syntax near 'SERVER'.");
    Principal principal;
    principal.name = role->name;
    principal.role = true;
    return MakePrincipal(session, std::move(principal));
  }
  if (const auto* role = std::get_if<ast::DropRole>(&definition)) {
    return RemovePrincipal(session, role->name, true, role->if_exists);
  }
  if (const auto* role = std::get_if<ast::AlterRole>(&definition)) {
    return ChangeRole(session, *role);
  }
  RaiseSql(102, 15, 1, "Incorrect syntax near the statement.");
}

}  // namespace mssql_cdc::sim

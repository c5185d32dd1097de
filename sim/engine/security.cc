// Who may do what: users, roles, GRANT and DENY.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/session.h"

namespace mssql_cdc::sim {
namespace {

bool Same(std::string_view a, std::string_view b) {
  return EqualsIgnoringAsciiCase(a, b);
}

// What db_datareader and its kin may do by themselves.
std::optional<bool> ByFixedRole(const Catalog& catalog, const std::string& user,
                                const std::string& right) {
  const bool writes = right == "INSERT" || right == "UPDATE" || right == "DELETE";
  if (right == "SELECT" && catalog.IsMember(user, "db_denydatareader")) return false;
  if (writes && catalog.IsMember(user, "db_denydatawriter")) return false;
  if (right == "SELECT" && catalog.IsMember(user, "db_datareader")) return true;
  if (writes && catalog.IsMember(user, "db_datawriter")) return true;
  if (right == "ALTER" && catalog.IsMember(user, "db_ddladmin")) return true;
  return std::nullopt;
}

bool Covers(const PermissionEntry& entry, const TableMeta* table) {
  if (entry.scope == "DATABASE") return true;
  if (table == nullptr) return false;
  if (entry.scope == "SCHEMA") {
    // "cdc.change_tables" names a metadata table, which has no object of its own.
    return Same(entry.schema, table->schema) || Same(entry.schema, table->FullName());
  }
  return entry.object_id == table->object_id;
}

}  // namespace

std::optional<std::string> Session::UserIn(const Database& database,
                                           const Catalog& catalog) const {
  if (login_.admin) return "dbo";
  for (const Principal& principal : catalog.principals) {
    if (!principal.role && !principal.login.empty() &&
        Same(principal.login, login_.name)) {
      return principal.name;
    }
  }
  // Every login is guest in master, tempdb and msdb.
  if (database.is_system() && database.id() != 3) return "guest";
  return std::nullopt;
}

bool Session::IsOwner(const Database& database, const Catalog& catalog) const {
  if (login_.admin) return true;
  const std::optional<std::string> user = UserIn(database, catalog);
  return user && catalog.IsMember(*user, "db_owner");
}

bool Session::HasRight(const Catalog& catalog, const std::string& user,
                       const TableMeta* table, const std::string& right,
                       const std::string& column) const {
  std::optional<bool> fixed =
      table == nullptr ? std::nullopt : ByFixedRole(catalog, user, right);
  if (fixed == false) return false;
  bool granted = fixed.value_or(false);
  bool column_granted = false;
  for (const PermissionEntry& entry : catalog.permissions) {
    if (!catalog.IsMember(user, entry.principal) || !Covers(entry, table)) continue;
    if (entry.right != right && entry.right != "CONTROL" && entry.right != "ALL")
      continue;
    const bool of_columns = !entry.columns.empty();
    if (of_columns) {
      const bool named = std::any_of(entry.columns.begin(), entry.columns.end(),
                                     [&](const auto& c) { return Same(c, column); });
      if (!named) continue;
      if (entry.deny) return false;
      column_granted = true;
      continue;
    }
    if (entry.deny && Does(Behaviour::kDenyWins)) return false;
    if (!entry.deny) granted = true;
  }
  return granted || column_granted;
}

bool Session::May(const Database& database, const Catalog& catalog,
                  const TableMeta& table, const std::string& right,
                  const std::vector<std::string>& columns) const {
  if (IsOwner(database, catalog)) return true;
  const std::optional<std::string> user = UserIn(database, catalog);
  if (!user) return false;
  if (columns.empty()) return HasRight(catalog, *user, &table, right, {});
  return std::all_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return HasRight(catalog, *user, &table, right, column);
  });
}

bool Session::MayDatabase(const Database& database, const Catalog& catalog,
                          const std::string& right) const {
  if (IsOwner(database, catalog)) return true;
  const std::optional<std::string> user = UserIn(database, catalog);
  if (!user) return false;
  return right == "CONNECT" || HasRight(catalog, *user, nullptr, right, {});
}

bool Session::MayReadInstance(const Database& database, const Catalog& catalog,
                              const CaptureInstance& instance) const {
  if (IsOwner(database, catalog)) return true;
  const std::optional<std::string> user = UserIn(database, catalog);
  if (!user) return false;
  if (instance.role && !catalog.IsMember(*user, *instance.role) &&
      Does(Behaviour::kGatingRole)) {
    return false;
  }
  const TablePtr source = catalog.TableById(instance.source_id);
  if (source == nullptr) return false;
  std::vector<std::string> columns;
  for (const CapturedColumn& column : instance.columns) columns.push_back(column.name);
  if (!Does(Behaviour::kAllCapturedColumns)) columns.resize(1);
  return May(database, catalog, *source, "SELECT", columns);
}

}  // namespace mssql_cdc::sim

#include "sim/engine/catalog.h"

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/sql/identifier.h"

namespace mssql_cdc::sim {
namespace {

bool Same(std::string_view a, std::string_view b) {
  return EqualsIgnoringAsciiCase(a, b);
}

template <typename Items, typename Test>
auto* Find(Items& items, const Test& test) {
  const auto found = std::find_if(items.begin(), items.end(), test);
  return found == items.end() ? nullptr : &*found;
}

}  // namespace

const ColumnMeta* TableMeta::FindColumn(std::string_view column) const {
  return Find(columns, [&](const ColumnMeta& c) { return Same(c.name, column); });
}

const ColumnMeta* TableMeta::ColumnById(std::int32_t column_id) const {
  return Find(columns, [&](const ColumnMeta& c) { return c.column_id == column_id; });
}

std::optional<std::size_t> TableMeta::IndexOf(std::int32_t column_id) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].column_id == column_id) return i;
  }
  return std::nullopt;
}

const IndexMeta* TableMeta::FindIndex(std::string_view index) const {
  return Find(indexes, [&](const IndexMeta& i) { return Same(i.name, index); });
}

const IndexMeta* TableMeta::ClusteredIndex() const {
  return Find(indexes, [](const IndexMeta& i) { return i.clustered; });
}

const IndexMeta* TableMeta::PrimaryKey() const {
  return Find(indexes, [](const IndexMeta& i) { return i.primary; });
}

Catalog Catalog::New(const std::string& collation) {
  Catalog catalog;
  catalog.collation = collation;
  catalog.next_object_id = 901578250;
  catalog.schemas = {{1, "dbo"}, {2, "guest"}, {3, "INFORMATION_SCHEMA"}, {4, "sys"}};
  auto add = [&](std::int32_t id, std::string name, bool role) {
    Principal principal;
    principal.id = id;
    principal.name = std::move(name);
    principal.role = role;
    principal.fixed = true;
    if (id == 1) principal.login = "sa";
    catalog.principals.push_back(std::move(principal));
  };
  add(0, "public", true);
  add(1, "dbo", false);
  add(2, "guest", false);
  const char* const kFixedRoles[] = {
      "db_owner",      "db_accessadmin",    "db_securityadmin",
      "db_ddladmin",   "db_backupoperator", "db_datareader",
      "db_datawriter", "db_denydatareader", "db_denydatawriter"};
  std::int32_t id = 16384;
  for (const char* name : kFixedRoles) add(id++, name, true);
  catalog.members.emplace_back("db_owner", "dbo");
  return catalog;
}

bool Catalog::case_sensitive() const {
  return Does(Behaviour::kCaseSensitiveNames) && IsCaseSensitive(collation);
}

bool Catalog::SameName(std::string_view a, std::string_view b) const {
  return case_sensitive() ? a == b : Same(a, b);
}

TablePtr Catalog::FindTable(std::string_view schema, std::string_view name) const {
  const bool exact = case_sensitive();
  for (const auto& [id, table] : tables) {
    if (exact ? table->name == name && table->schema == schema
              : Same(table->name, name) && Same(table->schema, schema)) {
      return table;
    }
  }
  return nullptr;
}

TablePtr Catalog::TableById(std::int32_t object_id) const {
  const auto found = tables.find(object_id);
  return found == tables.end() ? nullptr : found->second;
}

const ModuleMeta* Catalog::FindModule(std::string_view schema,
                                      std::string_view name) const {
  return Find(modules, [&](const ModuleMeta& m) {
    return SameName(m.name, name) && SameName(m.schema, schema);
  });
}

const SchemaMeta* Catalog::FindSchema(std::string_view name) const {
  return Find(schemas, [&](const SchemaMeta& s) { return SameName(s.name, name); });
}

const CaptureInstance* Catalog::FindInstance(std::string_view name) const {
  return Find(instances,
              [&](const CaptureInstance& i) { return SameName(i.name, name); });
}

CaptureInstance* Catalog::FindInstance(std::string_view name) {
  return Find(instances,
              [&](const CaptureInstance& i) { return SameName(i.name, name); });
}

std::vector<const CaptureInstance*> Catalog::InstancesOf(std::int32_t source_id) const {
  std::vector<const CaptureInstance*> found;
  for (const CaptureInstance& instance : instances) {
    if (instance.source_id == source_id) found.push_back(&instance);
  }
  return found;
}

const Principal* Catalog::FindPrincipal(std::string_view name) const {
  return Find(principals, [&](const Principal& p) { return Same(p.name, name); });
}

bool Catalog::IsMember(std::string_view member, std::string_view role) const {
  if (Same(member, role) || Same(role, "public")) return true;
  for (const auto& [parent, child] : members) {
    // Roles form no cycles: ALTER ROLE refuses them.
    if (Same(child, member) && IsMember(parent, role)) return true;
  }
  return false;
}

std::int32_t Catalog::NewObjectId() {
  // SQL Server steps by 16000057 and stays positive.
  const std::int64_t next = std::int64_t{next_object_id} + 16000057;
  next_object_id =
      static_cast<std::int32_t>(next > 2147483647 ? next - 2000000000 : next);
  return next_object_id;
}

std::string_view SystemTypeName(TypeId id) {
  switch (id) {
    case TypeId::kBit:
      return "bit";
    case TypeId::kTinyInt:
      return "tinyint";
    case TypeId::kSmallInt:
      return "smallint";
    case TypeId::kNull:
    case TypeId::kInt:
      return "int";
    case TypeId::kBigInt:
      return "bigint";
    case TypeId::kReal:
      return "real";
    case TypeId::kFloat:
      return "float";
    case TypeId::kDecimal:
      return "decimal";
    case TypeId::kMoney:
      return "money";
    case TypeId::kSmallMoney:
      return "smallmoney";
    case TypeId::kDate:
      return "date";
    case TypeId::kTime:
      return "time";
    case TypeId::kDateTime:
      return "datetime";
    case TypeId::kSmallDateTime:
      return "smalldatetime";
    case TypeId::kDateTime2:
      return "datetime2";
    case TypeId::kDateTimeOffset:
      return "datetimeoffset";
    case TypeId::kChar:
      return "char";
    case TypeId::kVarChar:
      return "varchar";
    case TypeId::kNChar:
      return "nchar";
    case TypeId::kNVarChar:
      return "nvarchar";
    case TypeId::kText:
      return "text";
    case TypeId::kNText:
      return "ntext";
    case TypeId::kXml:
      return "xml";
    case TypeId::kBinary:
      return "binary";
    case TypeId::kVarBinary:
      return "varbinary";
    case TypeId::kImage:
      return "image";
    case TypeId::kRowVersion:
      return "timestamp";
    case TypeId::kUniqueIdentifier:
      return "uniqueidentifier";
    case TypeId::kSqlVariant:
      return "sql_variant";
  }
  return "int";
}

}  // namespace mssql_cdc::sim

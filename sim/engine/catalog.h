// What a database consists of: schemas, tables, users, rights, capture instances.
//
// A Catalog is a value. A transaction that changes it works on a copy, which replaces
// the published one when the transaction commits, so readers never see half a change.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/engine/lsn.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

struct ColumnMeta {
  std::int32_t column_id = 0;
  std::string name;
  SqlType type;
  std::string type_name;  // As sys.types shows it: "int", "sysname", "nvarchar".
  bool nullable = true;
  bool identity = false;
  std::int64_t seed = 1;
  std::int64_t increment = 1;
  std::string default_name;
  std::string default_text;   // Empty: no default.
  std::string computed_text;  // Empty: not computed.
  bool persisted = false;
  bool row_guid = false;
  bool sparse = false;
  std::string physical;  // SQLite's column.
  std::string
      sort_physical;  // SQLite's column of the sort key; empty if there is none.

  bool computed() const { return !computed_text.empty(); }
  // The SQLite column that orders this one.
  const std::string& OrderColumn() const {
    return sort_physical.empty() ? physical : sort_physical;
  }
};

struct IndexMeta {
  struct Part {
    std::int32_t column_id = 0;
    bool descending = false;
  };
  std::int32_t index_id = 0;
  std::string name;
  bool unique = false;
  bool primary = false;
  bool constraint = false;  // A PRIMARY KEY or UNIQUE constraint: 2627, else 2601.
  bool clustered = false;
  std::vector<Part> parts;
  std::vector<std::int32_t> included;
};

struct CheckMeta {
  std::string name;
  std::string text;
};

struct ForeignKeyMeta {
  std::string name;
  std::vector<std::int32_t> column_ids;
  std::int32_t referenced_id = 0;
  std::vector<std::int32_t> referenced_column_ids;
};

// How a table lies in SQLite.
enum class Layout : std::uint8_t {
  kHeap,        // By rowid.
  kIntegerKey,  // The one key column is the rowid.
  kClustered,   // WITHOUT ROWID, by the clustered key.
};

struct TableMeta {
  std::int32_t object_id = 0;
  std::string schema;
  std::string name;
  std::string create_date;  // ISO, server-local.
  Layout layout = Layout::kHeap;
  std::string physical;  // SQLite's table.
  bool is_change_table = false;
  bool is_ms_shipped = false;
  std::int32_t next_column_id = 1;
  std::int32_t next_index_id = 2;
  std::vector<ColumnMeta> columns;
  std::vector<IndexMeta> indexes;
  std::vector<CheckMeta> checks;
  std::vector<ForeignKeyMeta> foreign_keys;

  const ColumnMeta* FindColumn(std::string_view column) const;  // Ignores case.
  const ColumnMeta* ColumnById(std::int32_t column_id) const;
  std::optional<std::size_t> IndexOf(std::int32_t column_id) const;
  const IndexMeta* FindIndex(std::string_view index) const;
  const IndexMeta* ClusteredIndex() const;
  const IndexMeta* PrimaryKey() const;
  std::string FullName() const { return schema + "." + name; }
};
using TablePtr = std::shared_ptr<const TableMeta>;

struct CapturedColumn {
  std::string name;
  std::int32_t column_id = 0;  // Of the source.
  std::string type_name;
  std::int32_t ordinal = 0;
  bool computed = false;
};

struct CaptureInstance {
  std::string name;
  std::int32_t source_id = 0;
  std::int32_t change_table_id = 0;
  // Absent until the capture job has met the log record that created the instance.
  std::optional<Lsn> start_lsn;
  bool net_changes = false;
  std::optional<std::string> role;
  std::optional<std::string> index_name;
  std::optional<std::string> filegroup;
  bool partition_switch = true;
  DateTimeValue create_date;
  std::vector<CapturedColumn> columns;
  std::vector<std::int32_t> key_column_ids;
};

struct DdlEntry {
  std::int32_t source_id = 0;
  std::int32_t change_table_id = 0;
  bool required_column_update = false;
  std::string command;
  Lsn lsn;
  DateTimeValue time;
};

struct Principal {
  std::int32_t id = 0;
  std::string name;
  bool role = false;
  std::string login;  // Of a user; empty: without login.
  std::string default_schema = "dbo";
  bool fixed = false;
};

struct PermissionEntry {
  std::string principal;
  bool deny = false;
  std::string right;                 // "SELECT"
  std::string scope;                 // "DATABASE", "SCHEMA", "OBJECT"
  std::string schema;                // Of SCHEMA.
  std::int32_t object_id = 0;        // Of OBJECT.
  std::vector<std::string> columns;  // Empty: all.
};

struct ModuleMeta {
  std::int32_t object_id = 0;
  std::string schema;
  std::string name;
  bool view = false;
  std::string text;
  std::string create_date;
};

struct JobMeta {
  std::string type;  // "capture", "cleanup"
  std::int32_t maxtrans = 500;
  std::int32_t maxscans = 10;
  bool continuous = true;
  std::int64_t pollinginterval = 5;
  std::int64_t retention = 4320;
  std::int64_t threshold = 5000;
  bool stopped = false;
};

struct SchemaMeta {
  std::int32_t id = 0;
  std::string name;
};

struct Catalog {
  std::string collation = "SQL_Latin1_General_CP1_CI_AS";
  bool snapshot_isolation = false;
  bool read_committed_snapshot = false;
  bool cdc_enabled = false;
  std::int32_t next_object_id = 0;
  std::int32_t next_schema_id = 5;
  std::int32_t next_principal_id = 5;
  std::vector<SchemaMeta> schemas;
  std::map<std::int32_t, TablePtr> tables;
  std::vector<CaptureInstance> instances;
  std::vector<DdlEntry> ddl_history;
  std::vector<Principal> principals;
  std::vector<std::pair<std::string, std::string>> members;  // Role, member.
  std::vector<PermissionEntry> permissions;
  std::vector<ModuleMeta> modules;
  std::vector<JobMeta> jobs;

  static Catalog New(const std::string& collation);
  static Result<Catalog> FromJson(std::string_view text);
  std::string ToJson() const;

  // Names are compared as the database's collation does.
  bool case_sensitive() const;
  bool SameName(std::string_view a, std::string_view b) const;
  TablePtr FindTable(std::string_view schema, std::string_view name) const;
  TablePtr TableById(std::int32_t object_id) const;
  const ModuleMeta* FindModule(std::string_view schema, std::string_view name) const;
  const SchemaMeta* FindSchema(std::string_view name) const;
  const CaptureInstance* FindInstance(std::string_view name) const;
  CaptureInstance* FindInstance(std::string_view name);
  std::vector<const CaptureInstance*> InstancesOf(std::int32_t source_id) const;
  const Principal* FindPrincipal(std::string_view name) const;
  // Whether `member` is `role`, directly or through other roles; everybody is public.
  bool IsMember(std::string_view member, std::string_view role) const;
  std::int32_t NewObjectId();
};

// "nvarchar", "decimal": the system type's name.
std::string_view SystemTypeName(TypeId id);

}  // namespace mssql_cdc::sim

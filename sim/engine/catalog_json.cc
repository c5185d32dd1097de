// The catalog's form in the database file.

#include <nlohmann/json.hpp>

#include "sim/engine/catalog.h"

namespace mssql_cdc::sim {
namespace {

using Json = nlohmann::json;

Json Put(const SqlType& type) {
  return {static_cast<int>(type.id), type.length, type.precision, type.scale,
          type.collation};
}

void Get(const Json& json, SqlType& type) {
  type.id = static_cast<TypeId>(json.at(0).get<int>());
  type.length = json.at(1).get<std::int32_t>();
  type.precision = json.at(2).get<std::uint8_t>();
  type.scale = json.at(3).get<std::uint8_t>();
  type.collation = json.at(4).get<std::string>();
}

Json Put(const Lsn& lsn) {
  return std::vector<int>(lsn.bytes.begin(), lsn.bytes.end());
}
void Get(const Json& json, Lsn& lsn) {
  for (std::size_t i = 0; i < lsn.bytes.size(); ++i) {
    lsn.bytes[i] = json.at(i).get<std::uint8_t>();
  }
}

Json Put(const DateTimeValue& at) { return {at.days, at.ticks, at.offset_minutes}; }
void Get(const Json& json, DateTimeValue& at) {
  at.days = json.at(0).get<std::int32_t>();
  at.ticks = json.at(1).get<std::int64_t>();
  at.offset_minutes = json.at(2).get<std::int16_t>();
}

// One list of members serves both directions: Write and Read visit the same fields.
struct Write {
  Json json = Json::object();

  void operator()(const char* key, const SqlType& value) { json[key] = Put(value); }
  void operator()(const char* key, const Lsn& value) { json[key] = Put(value); }
  void operator()(const char* key, const DateTimeValue& value) {
    json[key] = Put(value);
  }
  void operator()(const char* key, const std::optional<Lsn>& value) {
    if (value) json[key] = Put(*value);
  }
  void operator()(const char* key, const std::optional<std::string>& value) {
    if (value) json[key] = *value;
  }
  template <typename T>
  void operator()(const char* key, const std::vector<T>& values);
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
};

struct Read {
  const Json& json;

  void operator()(const char* key, SqlType& value) { Get(json.at(key), value); }
  void operator()(const char* key, Lsn& value) { Get(json.at(key), value); }
  void operator()(const char* key, DateTimeValue& value) { Get(json.at(key), value); }
  void operator()(const char* key, std::optional<Lsn>& value) {
    if (json.contains(key)) Get(json.at(key), value.emplace());
  }
  void operator()(const char* key, std::optional<std::string>& value) {
    if (json.contains(key)) value = json.at(key).get<std::string>();
  }
  void operator()(const char* key, Layout& value) {
    value = static_cast<Layout>(json.at(key).get<int>());
  }
  template <typename T>
  void operator()(const char* key, std::vector<T>& values);
  void operator()(const char* key, bool& value) {
    // A switch that an older file does not know stays as it is.
    if (json.contains(key)) value = json.at(key).get<bool>();
  }
  template <typename T>
  void operator()(const char* key, T& value) {
    value = json.at(key).get<T>();
  }
};

template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, ColumnMeta>
void Fields(V& v, X& x) {
  v("id", x.column_id), v("name", x.name), v("type", x.type), v("tn", x.type_name);
  v("null", x.nullable), v("ident", x.identity), v("seed", x.seed);
  v("incr", x.increment), v("dn", x.default_name), v("dt", x.default_text);
  v("ct", x.computed_text), v("pers", x.persisted), v("guid", x.row_guid);
  v("sparse", x.sparse), v("phys", x.physical), v("sort", x.sort_physical);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, IndexMeta::Part>
void Fields(V& v, X& x) {
  v("id", x.column_id), v("desc", x.descending);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, IndexMeta>
void Fields(V& v, X& x) {
  v("id", x.index_id), v("name", x.name), v("unique", x.unique), v("pk", x.primary);
  v("con", x.constraint), v("clu", x.clustered), v("parts", x.parts);
  v("inc", x.included);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, CheckMeta>
void Fields(V& v, X& x) {
  v("name", x.name), v("text", x.text);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, ForeignKeyMeta>
void Fields(V& v, X& x) {
  v("name", x.name), v("cols", x.column_ids), v("ref", x.referenced_id);
  v("refcols", x.referenced_column_ids);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, TableMeta>
void Fields(V& v, X& x) {
  v("id", x.object_id), v("schema", x.schema), v("name", x.name);
  v("created", x.create_date), v("layout", x.layout), v("phys", x.physical);
  v("ct", x.is_change_table), v("ms", x.is_ms_shipped), v("nextc", x.next_column_id);
  v("nexti", x.next_index_id), v("cols", x.columns), v("idx", x.indexes);
  v("checks", x.checks), v("fks", x.foreign_keys);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, CapturedColumn>
void Fields(V& v, X& x) {
  v("name", x.name), v("id", x.column_id), v("tn", x.type_name), v("ord", x.ordinal);
  v("comp", x.computed);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, CaptureInstance>
void Fields(V& v, X& x) {
  v("name", x.name), v("src", x.source_id), v("ct", x.change_table_id);
  v("start", x.start_lsn), v("net", x.net_changes), v("role", x.role);
  v("index", x.index_name), v("fg", x.filegroup), v("switch", x.partition_switch);
  v("created", x.create_date), v("cols", x.columns), v("keys", x.key_column_ids);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, DdlEntry>
void Fields(V& v, X& x) {
  v("src", x.source_id), v("ct", x.change_table_id), v("req", x.required_column_update);
  v("cmd", x.command), v("lsn", x.lsn), v("time", x.time);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, Principal>
void Fields(V& v, X& x) {
  v("id", x.id), v("name", x.name), v("role", x.role), v("login", x.login);
  v("schema", x.default_schema), v("fixed", x.fixed);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, PermissionEntry>
void Fields(V& v, X& x) {
  v("who", x.principal), v("deny", x.deny), v("right", x.right), v("scope", x.scope);
  v("schema", x.schema), v("object", x.object_id), v("cols", x.columns);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, ModuleMeta>
void Fields(V& v, X& x) {
  v("id", x.object_id), v("schema", x.schema), v("name", x.name), v("view", x.view);
  v("text", x.text), v("created", x.create_date);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, JobMeta>
void Fields(V& v, X& x) {
  v("type", x.type), v("mt", x.maxtrans), v("ms", x.maxscans), v("cont", x.continuous);
  v("poll", x.pollinginterval), v("ret", x.retention), v("thr", x.threshold);
  v("stopped", x.stopped);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, SchemaMeta>
void Fields(V& v, X& x) {
  v("id", x.id), v("name", x.name);
}
template <typename V, typename X>
  requires std::is_same_v<std::remove_const_t<X>, Catalog>
void Fields(V& v, X& x) {
  v("collation", x.collation), v("si", x.snapshot_isolation);
  v("rcsi", x.read_committed_snapshot), v("cdc", x.cdc_enabled);
  v("nexto", x.next_object_id), v("nexts", x.next_schema_id);
  v("nextp", x.next_principal_id), v("schemas", x.schemas);
  v("instances", x.instances), v("ddl", x.ddl_history), v("principals", x.principals);
  v("members", x.members), v("perms", x.permissions), v("modules", x.modules);
  v("jobs", x.jobs);
}

template <typename T>
void Write::operator()(const char* key, const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) {
    if constexpr (requires(Write w) { Fields(w, value); }) {
      Write inner;
      Fields(inner, value);
      list.push_back(std::move(inner.json));
    } else {
      list.push_back(Json(value));
    }
  }
  json[key] = std::move(list);
}

template <typename T>
void Read::operator()(const char* key, std::vector<T>& values) {
  values.clear();
  for (const Json& item : json.at(key)) {
    T& value = values.emplace_back();
    if constexpr (requires(Read r) { Fields(r, value); }) {
      Read inner{item};
      Fields(inner, value);
    } else {
      value = item.get<T>();
    }
  }
}

}  // namespace

std::string Catalog::ToJson() const {
  Write write;
  Fields(write, *this);
  std::vector<TableMeta> flat;
  for (const auto& [id, table] : tables) flat.push_back(*table);
  write("tables", flat);
  return write.json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Catalog> Catalog::FromJson(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Catalog catalog;
    Read read{json};
    Fields(read, catalog);
    std::vector<TableMeta> flat;
    read("tables", flat);
    for (TableMeta& table : flat) {
      const std::int32_t id = table.object_id;
      catalog.tables.emplace(id, std::make_shared<TableMeta>(std::move(table)));
    }
    return catalog;
  } catch (const Json::exception& failure) {
    return Error(ErrorId::kSimulatorFailed).With("catalog", failure.what());
  }
}

}  // namespace mssql_cdc::sim

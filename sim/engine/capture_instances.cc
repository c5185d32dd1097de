// Enabling and disabling change data capture for a database and for tables.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/definitions.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

bool Same(std::string_view a, std::string_view b) {
  return EqualsIgnoringAsciiCase(a, b);
}

constexpr std::size_t kInstanceNameMax = 100;
constexpr std::size_t kCapturedColumnsMax = 1024;

// cdc.lsn_time_mapping, clustered by start_lsn (facts 1.1).
TableMeta MappingTable(Catalog& catalog, const std::string& create_date) {
  TableMeta table;
  table.object_id = catalog.NewObjectId();
  table.schema = "cdc";
  table.name = "lsn_time_mapping";
  table.create_date = create_date;
  table.is_ms_shipped = true;
  AddColumn(table, PlainColumn("start_lsn", BinaryType(10), false));
  AddColumn(table, PlainColumn("tran_begin_time", DateTimeType(), true));
  AddColumn(table, PlainColumn("tran_end_time", DateTimeType(), true));
  AddColumn(table, PlainColumn("tran_id", VarBinaryOf(10), true));
  AddColumn(table, PlainColumn("tran_begin_lsn", BinaryType(10), true));
  IndexMeta clustered;
  clustered.index_id = 1;
  clustered.name = "lsn_time_mapping_clustered_idx";
  clustered.unique = true;
  clustered.clustered = true;
  clustered.parts = {{1, false}};
  IndexMeta by_time;
  by_time.index_id = table.next_index_id++;
  by_time.name = "lsn_time_mapping_nonunique_idx";
  by_time.parts = {{3, false}};
  table.indexes = {clustered, by_time};
  return table;
}

// cdc.<instance>_CT: the header, the captured columns, __$command_id last, unless the
// table is `old` (facts 1.1: KB3030352 brought that column).
TableMeta ChangeTable(Catalog& catalog, const CaptureInstance& instance,
                      const TableMeta& source, const std::string& create_date,
                      bool old) {
  TableMeta table;
  table.object_id = catalog.NewObjectId();
  table.schema = "cdc";
  table.name = instance.name + "_CT";
  table.create_date = create_date;
  table.is_change_table = true;
  table.is_ms_shipped = true;
  AddColumn(table, PlainColumn("__$start_lsn", BinaryType(10), false));
  AddColumn(table, PlainColumn("__$end_lsn", BinaryType(10), true));
  AddColumn(table, PlainColumn("__$seqval", BinaryType(10), false));
  AddColumn(table, PlainColumn("__$operation", IntType(), false));
  AddColumn(table, PlainColumn("__$update_mask", VarBinaryOf(128), true));
  for (const CapturedColumn& captured : instance.columns) {
    const ColumnMeta& column = *source.ColumnById(captured.column_id);
    SqlType type = column.type;
    if (type.id == TypeId::kRowVersion && Does(Behaviour::kRowVersionBinary)) {
      type = BinaryType(8);
    }
    AddColumn(table, PlainColumn(column.name, type, true));
  }
  IndexMeta clustered;
  clustered.index_id = 1;
  clustered.name = instance.name + "_CT_clustered_idx";
  clustered.unique = true;
  clustered.clustered = true;
  clustered.parts = {{1, false}, {3, false}, {4, false}};
  if (!old) {
    // SQLite's keys take no NULL; the simulator writes none here either.
    const ColumnMeta& command =
        AddColumn(table, PlainColumn(kCommandIdName, IntType(), false));
    clustered.parts.insert(clustered.parts.begin() + 1, {command.column_id, false});
  }
  table.indexes = {clustered};
  return table;
}

// "[a], [b]" or "a,b"; brackets are taken off.
std::vector<std::string> SplitColumns(const std::string& list) {
  std::vector<std::string> names;
  std::string name;
  bool quoted = false;
  auto finish = [&](bool was_quoted) {
    const std::string trimmed = was_quoted ? name : std::string(Trim(name));
    if (!trimmed.empty()) names.push_back(trimmed);
    name.clear();
  };
  bool was_quoted = false;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (quoted) {
      if (c == ']' && i + 1 < list.size() && list[i + 1] == ']') {
        name.push_back(list[++i]);
      } else if (c == ']') {
        quoted = false;
      } else {
        name.push_back(c);
      }
    } else if (c == '[' && Trim(name).empty() && Does(Behaviour::kNamesQuoted)) {
      name.clear();
      quoted = true;
      was_quoted = true;
    } else if (c == ',') {
      finish(was_quoted);
      was_quoted = false;
    } else if (!was_quoted) {
      name.push_back(c);
    }
  }
  finish(was_quoted);
  return names;
}

const IndexMeta* KeyIndex(const TableMeta& table, const EnableTable& request) {
  if (!request.index_name) return table.PrimaryKey();
  const IndexMeta* index = table.FindIndex(*request.index_name);
  if (index == nullptr) {
    RaiseSql(22928, 16, 1,
             "Index name '" + *request.index_name + "' is not an index for table '" +
                 table.FullName() + "'. Specify a valid index name for the table.");
  }
  if (!index->unique) {
    RaiseSql(22929, 16, 1,
             "Index '" + index->name +
                 "' must be a unique index or a primary key of table '" +
                 table.FullName() + "'.");
  }
  for (const IndexMeta::Part& part : index->parts) {
    if (!table.ColumnById(part.column_id)->nullable) continue;
    RaiseSql(22838, 16, 1,
             "All columns of a CDC unique index must be defined as NOT NULL. Index '" +
                 index->name + "' selected as the CDC unique index for source table '" +
                 table.FullName() + "' does not meet this requirement.");
  }
  return index;
}

std::vector<CapturedColumn> ColumnsOf(const TableMeta& table,
                                      const EnableTable& request,
                                      const std::vector<std::int32_t>& keys) {
  std::vector<const ColumnMeta*> chosen;
  if (!request.captured_column_list) {
    for (const ColumnMeta& column : table.columns) chosen.push_back(&column);
  } else {
    for (const std::string& name : SplitColumns(*request.captured_column_list)) {
      const ColumnMeta* column = table.FindColumn(name);
      if (column == nullptr) {
        RaiseSql(22930, 16, 1,
                 "Could not locate column '" + name + "' of source table '" +
                     table.FullName() + "' specified in @captured_column_list.");
      }
      if (std::find(chosen.begin(), chosen.end(), column) != chosen.end()) {
        RaiseSql(22943, 16, 1,
                 "Columns specified in the captured column list '" +
                     *request.captured_column_list + "' must be unique. Column '" +
                     name + "' is specified twice.");
      }
      chosen.push_back(column);
    }
    if (!Does(Behaviour::kOrdinalsFollowList)) {
      std::sort(chosen.begin(), chosen.end(), [](const auto* a, const auto* b) {
        return a->column_id < b->column_id;
      });
    }
    for (const std::int32_t key : keys) {
      const bool held =
          std::any_of(chosen.begin(), chosen.end(),
                      [&](const auto* column) { return column->column_id == key; });
      if (!held) {
        RaiseSql(
            22942, 16, 1,
            "Columns specified in the captured column list must hold all columns of "
            "the index that identifies rows.");
      }
    }
  }
  if (chosen.size() > kCapturedColumnsMax) {
    RaiseSql(
        22925, 16, 1,
        "The number of columns captured by capture instance exceeds the maximum of "
        "1024.");
  }
  std::vector<CapturedColumn> columns;
  for (const ColumnMeta* column : chosen) {
    CapturedColumn captured;
    captured.name = column->name;
    captured.column_id = column->column_id;
    captured.type_name =
        column->type_name == "sysname" ? "nvarchar" : column->type_name;
    captured.ordinal = static_cast<std::int32_t>(columns.size()) + 1;
    captured.computed = column->computed();
    columns.push_back(std::move(captured));
  }
  return columns;
}

void RequireDbo(Session& session) {
  if (session.IsOwner(*session.current(), *session.CatalogOf(session.current())))
    return;
  RaiseSql(
      22904, 16, 1,
      "Caller is not authorized to initiate the requested action. DBO privileges are "
      "required.");
}

std::string InstanceName(const Catalog& catalog, const TableMeta& table,
                         const EnableTable& request) {
  const std::string name =
      request.capture_instance.value_or(table.schema + "_" + table.name);
  if (Utf16(name).size() > kInstanceNameMax && Does(Behaviour::kInstanceNameLimit)) {
    RaiseSql(22927, 16, 1,
             "Capture instance name '" + name +
                 "' exceeds the length limit of 100 characters. Specify a name that "
                 "satisfies the length constraint.");
  }
  if (catalog.FindInstance(name) != nullptr) {
    RaiseSql(22926, 16, 1,
             "Could not create a capture instance because the capture instance name '" +
                 name +
                 "' already exists in the current database. Specify an explicit unique "
                 "name for the parameter @capture_instance.");
  }
  if (catalog.InstancesOf(table.object_id).size() >= 2 &&
      Does(Behaviour::kTwoInstancesAtMost)) {
    RaiseSql(
        22962, 16, 1,
        "Two capture instances already exist for source table '" + table.FullName() +
            "'. A table can have at most two capture instances. If the current "
            "tracking options are not appropriate, disable change tracking for the "
            "obsolete instance by using sys.sp_cdc_disable_table and retry the "
            "operation.");
  }
  return name;
}

void MakeRole(Catalog& catalog, const std::optional<std::string>& role) {
  if (!role || catalog.FindPrincipal(*role) != nullptr) return;
  Principal principal;
  principal.id = catalog.next_principal_id++;
  principal.name = *role;
  principal.role = true;
  catalog.principals.push_back(std::move(principal));
}

void MakeJobs(Catalog& catalog) {
  for (const char* type : {"capture", "cleanup"}) {
    const bool present =
        std::any_of(catalog.jobs.begin(), catalog.jobs.end(),
                    [&](const JobMeta& job) { return job.type == type; });
    if (present) continue;
    JobMeta job;
    job.type = type;
    catalog.jobs.push_back(std::move(job));
  }
}

}  // namespace

void RequireCdc(Session& session) {
  if (session.CatalogOf(session.current())->cdc_enabled) return;
  RaiseSql(
      22901, 16, 1,
      "The database '" + session.current()->name() +
          "' is not enabled for Change Data Capture. Ensure that the correct database "
          "context is set and retry the operation. To report on the databases enabled "
          "for Change Data Capture, query the is_cdc_enabled column in the "
          "sys.databases catalog view.");
}

void EnableCdc(Session& session) {
  if (!session.is_admin()) {
    RaiseSql(22902, 16, 1,
             "Caller is not authorized to initiate the requested action. Sysadmin "
             "privileges are required.");
  }
  const std::shared_ptr<Database>& database = session.current();
  if (database->is_system()) {
    RaiseSql(22989, 16, 1,
             "Could not enable Change Data Capture for database '" + database->name() +
                 "'. Change data capture is not supported on system databases, or on a "
                 "distribution database.");
  }
  WriteTransaction& transaction = session.Write(database);
  if (transaction.catalog()->FindSchema("cdc") != nullptr ||
      transaction.catalog()->FindPrincipal("cdc") != nullptr) {
    RaiseSql(22906, 16, 1,
             "The database '" + database->name() +
                 "' cannot be enabled for Change Data Capture because a database user "
                 "named 'cdc' or a schema named 'cdc' already exists in the current "
                 "database. These objects are required exclusively by Change Data "
                 "Capture. Drop or rename the user or schema and retry the operation.");
  }
  Catalog& catalog = transaction.Change();
  catalog.cdc_enabled = true;
  catalog.schemas.push_back({catalog.next_schema_id++, "cdc"});
  Principal user;
  user.id = catalog.next_principal_id++;
  user.name = "cdc";
  user.default_schema = "cdc";
  user.fixed = true;
  catalog.principals.push_back(std::move(user));
  TableMeta mapping = MappingTable(catalog, IsoText(session.Now()));
  if (!CreateStorage(transaction.connection(), mapping)) {
    RaiseSql(22830, 16, 1, "Could not update the metadata for Change Data Capture.");
  }
  const std::int32_t id = mapping.object_id;
  transaction.Change().tables[id] = std::make_shared<TableMeta>(std::move(mapping));
}

void DisableCdc(Session& session) {
  if (!session.is_admin()) {
    RaiseSql(22902, 16, 1,
             "Caller is not authorized to initiate the requested action. Sysadmin "
             "privileges are required.");
  }
  if (!session.CatalogOf(session.current())->cdc_enabled) return;
  WriteTransaction& transaction = session.Write(session.current());
  while (!transaction.catalog()->instances.empty()) {
    const std::string name = transaction.catalog()->instances.front().name;
    RemoveInstance(transaction, name);
  }
  if (const TablePtr mapping =
          transaction.catalog()->FindTable("cdc", "lsn_time_mapping")) {
    RemoveTable(transaction, *mapping);
  }
  transaction.connection().Prepare("DELETE FROM log_change").Run();
  transaction.connection().Prepare("DELETE FROM log_transaction").Run();
  Catalog& catalog = transaction.Change();
  catalog.cdc_enabled = false;
  catalog.jobs.clear();
  std::erase_if(catalog.schemas, [](const SchemaMeta& s) { return s.name == "cdc"; });
  std::erase_if(catalog.principals, [](const Principal& p) { return p.name == "cdc"; });
}

void EnableCdcTable(Session& session, const EnableTable& request) {
  RequireCdc(session);
  RequireDbo(session);
  const std::shared_ptr<Database>& database = session.current();
  WriteTransaction& transaction = session.Write(database);
  const TablePtr source =
      transaction.catalog()->FindTable(request.schema, request.name);
  if (source == nullptr) {
    RaiseSql(
        22931, 16, 1,
        "Source table '" + request.schema + "." + request.name +
            "' does not exist in the current database. Ensure that the correct "
            "database context is set. Specify a valid schema and table name for the "
            "database.");
  }
  if (Same(source->schema, "cdc")) {
    RaiseSql(
        22974, 16, 1,
        "Tables contained in the changed data capture schema cannot be enabled for "
        "Change Data Capture.");
  }
  CaptureInstance instance;
  instance.name = InstanceName(*transaction.catalog(), *source, request);
  const IndexMeta* key = KeyIndex(*source, request);
  if (request.supports_net_changes.value_or(false) && key == nullptr) {
    RaiseSql(
        22939, 16, 1,
        "The parameter @supports_net_changes is set to 1, but the source table does "
        "not have a primary key defined and no alternate unique index has been "
        "specified.");
  }
  instance.net_changes = request.supports_net_changes.value_or(key != nullptr);
  instance.source_id = source->object_id;
  instance.role = request.role;
  if (key != nullptr) {
    instance.index_name = key->name;
    for (const auto& part : key->parts)
      instance.key_column_ids.push_back(part.column_id);
  }
  instance.filegroup = request.filegroup_name;
  instance.partition_switch = request.allow_partition_switch;
  instance.create_date = RoundedToDateTime(session.Now());
  instance.columns = ColumnsOf(*source, request, instance.key_column_ids);
  Catalog& catalog = transaction.Change();
  MakeRole(catalog, request.role);
  MakeJobs(catalog);
  TableMeta table = ChangeTable(catalog, instance, *source, IsoText(session.Now()),
                                database->makes_old_change_tables);
  if (!CreateStorage(transaction.connection(), table)) {
    RaiseSql(22832, 16, 1,
             "Could not update the metadata that indicates table is enabled for Change "
             "Data Capture.");
  }
  instance.change_table_id = table.object_id;
  const std::string name = instance.name;
  catalog.tables[table.object_id] = std::make_shared<TableMeta>(table);
  catalog.instances.push_back(std::move(instance));
  transaction.Log(LogAction::kInstance, source->object_id, transaction.NextRecord(),
                  name, {});
}

void UpgradeChangeTables(Session& session) {
  WriteTransaction& transaction = session.Write(session.current());
  const CatalogPtr before = transaction.catalog();
  for (const CaptureInstance& instance : before->instances) {
    const TablePtr table = before->TableById(instance.change_table_id);
    if (table == nullptr || HasCommandId(*table)) continue;
    // The index stays as it is: SQLite's keys take no NULL.
    TableMeta next = *table;
    AddColumn(next, PlainColumn(kCommandIdName, IntType(), true));
    if (Rebuild(transaction.connection(), *before, *table, next, nullptr) !=
        RebuildResult::kDone) {
      RaiseSql(22830, 16, 1, "Could not update the metadata for Change Data Capture.");
    }
    const std::int32_t id = next.object_id;
    transaction.Change().tables[id] = std::make_shared<TableMeta>(std::move(next));
  }
}

void RemoveInstance(WriteTransaction& transaction, const std::string& name) {
  const CaptureInstance* instance = transaction.catalog()->FindInstance(name);
  if (instance == nullptr) return;
  const std::int32_t table_id = instance->change_table_id;
  Catalog& catalog = transaction.Change();
  std::erase_if(catalog.ddl_history, [&](const DdlEntry& entry) {
    return entry.change_table_id == table_id;
  });
  std::erase_if(catalog.instances, [&](const CaptureInstance& i) {
    return i.change_table_id == table_id;
  });
  const TablePtr table = transaction.catalog()->TableById(table_id);
  if (table != nullptr && Does(Behaviour::kDisablingDropsAtOnce)) {
    RemoveTable(transaction, *table);
  }
}

void DisableCdcTable(Session& session, const std::string& schema,
                     const std::string& name, const std::string& capture_instance) {
  RequireCdc(session);
  RequireDbo(session);
  WriteTransaction& transaction = session.Write(session.current());
  const TablePtr source = transaction.catalog()->FindTable(schema, name);
  const bool all = Same(capture_instance, "all");
  std::vector<std::string> names;
  if (source != nullptr) {
    for (const CaptureInstance* instance :
         transaction.catalog()->InstancesOf(source->object_id)) {
      if (all || transaction.catalog()->SameName(instance->name, capture_instance)) {
        names.push_back(instance->name);
      }
    }
  }
  if (names.empty()) {
    RaiseSql(22960, 16, 1,
             "Change data capture instance '" + capture_instance +
                 "' has not been enabled for the source table '" + schema + "." + name +
                 "'. Use sys.sp_cdc_help_change_data_capture to verify the capture "
                 "instance name and retry the operation.");
  }
  for (const std::string& each : names) RemoveInstance(transaction, each);
}

}  // namespace mssql_cdc::sim

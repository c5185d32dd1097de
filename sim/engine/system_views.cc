#include "sim/engine/system_views.h"

#include <algorithm>

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/table_layout.h"
#include "sim/engine/type_facts.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::string_view kCdcNames[] = {"change_tables", "captured_columns",
                                          "index_columns", "ddl_history"};

Value LsnOrNull(const std::optional<Lsn>& lsn) {
  return lsn ? BytesValue(lsn->bytes.data(), lsn->bytes.size()) : Value{};
}

Value OrNull(const std::optional<std::string>& text) {
  return text ? TextValue(*text) : Value{};
}

ViewPtr ChangeTables(const ViewContext& context) {
  std::vector<Row> rows;
  for (const CaptureInstance& i : context.catalog->instances) {
    rows.push_back({IntValue(i.change_table_id), IntValue(0), IntValue(i.source_id),
                    TextValue(i.name), LsnOrNull(i.start_lsn), Value{},
                    BoolValue(i.net_changes), Value{}, OrNull(i.role),
                    OrNull(i.index_name), OrNull(i.filegroup), TimeValue(i.create_date),
                    BoolValue(i.partition_switch)});
  }
  return std::make_shared<RowsTable>(
      "cdc.change_tables",
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("version", IntType()),
          Info("source_object_id", IntType()),
          Info("capture_instance", SysName(), false), Info("start_lsn", BinaryType(10)),
          Info("end_lsn", BinaryType(10)), Info("supports_net_changes", BitType()),
          Info("has_drop_pending", BitType()), Info("role_name", SysName()),
          Info("index_name", SysName()), Info("filegroup_name", SysName()),
          Info("create_date", DateTimeType()),
          Info("partition_switch", BitType(), false)},
      std::move(rows));
}

ViewPtr CapturedColumns(const ViewContext& context) {
  std::vector<Row> rows;
  for (const CaptureInstance& instance : context.catalog->instances) {
    for (const CapturedColumn& column : instance.columns) {
      rows.push_back({IntValue(instance.change_table_id), TextValue(column.name),
                      IntValue(column.column_id), TextValue(column.type_name),
                      IntValue(column.ordinal), BoolValue(column.computed)});
    }
  }
  return std::make_shared<RowsTable>(
      "cdc.captured_columns",
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("column_name", SysName(), false),
          Info("column_id", IntType()), Info("column_type", SysName(), false),
          Info("column_ordinal", IntType(), false), Info("is_computed", BitType())},
      std::move(rows));
}

ViewPtr IndexColumnsOfCdc(const ViewContext& context) {
  std::vector<Row> rows;
  for (const CaptureInstance& instance : context.catalog->instances) {
    std::int32_t ordinal = 0;
    for (const std::int32_t id : instance.key_column_ids) {
      std::string name;
      for (const CapturedColumn& column : instance.columns) {
        if (column.column_id == id) name = column.name;
      }
      rows.push_back({IntValue(instance.change_table_id), TextValue(name),
                      IntValue(++ordinal), IntValue(id)});
    }
  }
  return std::make_shared<RowsTable>(
      "cdc.index_columns",
      std::vector<ColumnInfo>{Info("object_id", IntType(), false),
                              Info("column_name", SysName(), false),
                              Info("index_ordinal", TypeOf(TypeId::kTinyInt), false),
                              Info("column_id", IntType(), false)},
      std::move(rows));
}

ViewPtr DdlHistory(const ViewContext& context) {
  std::vector<Row> rows;
  for (const DdlEntry& entry : context.catalog->ddl_history) {
    rows.push_back({IntValue(entry.source_id), IntValue(entry.change_table_id),
                    BoolValue(entry.required_column_update), TextValue(entry.command),
                    LsnOrNull(entry.lsn), TimeValue(entry.time)});
  }
  return std::make_shared<RowsTable>(
      "cdc.ddl_history",
      std::vector<ColumnInfo>{
          Info("source_object_id", IntType()), Info("object_id", IntType(), false),
          Info("required_column_update", BitType()),
          Info("ddl_command", NVarChar(kMax)), Info("ddl_lsn", BinaryType(10), false),
          Info("ddl_time", DateTimeType())},
      std::move(rows));
}

ViewPtr CdcJobs(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& database : context.session.server().Databases()) {
    for (const JobMeta& job : database->catalog()->jobs) {
      Guid id;
      id.bytes[0] = static_cast<std::uint8_t>(database->id());
      id.bytes[15] = job.type == "capture" ? 1 : 2;
      rows.push_back({IntValue(database->id()), TextValue(job.type), Value{id, {}},
                      IntValue(job.maxtrans), IntValue(job.maxscans),
                      BoolValue(job.continuous), IntValue(job.pollinginterval),
                      IntValue(job.retention), IntValue(job.threshold)});
    }
  }
  return std::make_shared<RowsTable>(
      "dbo.cdc_jobs",
      std::vector<ColumnInfo>{
          Info("database_id", IntType(), false), Info("job_type", NVarChar(20), false),
          Info("job_id", TypeOf(TypeId::kUniqueIdentifier)),
          Info("maxtrans", IntType()), Info("maxscans", IntType()),
          Info("continuous", BitType()), Info("pollinginterval", BigIntType()),
          Info("retention", BigIntType()), Info("threshold", BigIntType())},
      std::move(rows));
}

void RequireSelect(const ViewContext& context, const std::string& name) {
  TableMeta stand_in;
  stand_in.schema = "cdc";
  stand_in.name = name;
  if (context.session.May(*context.database, *context.catalog, stand_in, "SELECT"))
    return;
  RaiseSql(229, 14, 5,
           "The SELECT permission was denied on the object '" + name + "', database '" +
               context.database->name() + "', schema 'cdc'.");
}

}  // namespace

bool ViewContext::Visible(const TableMeta& table) const {
  for (const char* right :
       {"SELECT", "INSERT", "UPDATE", "DELETE", "VIEW DEFINITION"}) {
    if (session.May(*database, *catalog, table, right)) return true;
  }
  return false;
}

std::int32_t ViewContext::SchemaId(const std::string& schema) const {
  const SchemaMeta* found = catalog->FindSchema(schema);
  return found == nullptr ? 0 : found->id;
}

ViewPtr CdcView(const ViewContext& context, const std::string& name) {
  if (!context.catalog->cdc_enabled) return nullptr;
  const bool known = std::find(std::begin(kCdcNames), std::end(kCdcNames), name) !=
                     std::end(kCdcNames);
  if (!known) return nullptr;
  RequireSelect(context, name);
  if (name == "change_tables") return ChangeTables(context);
  if (name == "captured_columns") return CapturedColumns(context);
  if (name == "index_columns") return IndexColumnsOfCdc(context);
  return DdlHistory(context);
}

std::shared_ptr<TableSource> SystemView(Session& session,
                                        const std::shared_ptr<Database>& database,
                                        const std::string& schema,
                                        const std::string& name) {
  const bool jobs = name == "cdc_jobs" && database->name() == "msdb" &&
                    (schema.empty() || schema == "dbo");
  if (schema != "sys" && schema != "cdc" && schema != "information_schema" && !jobs) {
    return nullptr;
  }
  const ViewContext context{session, database, session.CatalogOf(database)};
  // Azure SQL Database has no msdb of its own: the jobs are the database's.
  if (schema == "cdc" && name == "cdc_jobs" && session.server().options().azure &&
      context.catalog->cdc_enabled) {
    return CdcJobs(context);
  }
  if (jobs) return CdcJobs(context);
  if (schema == "cdc") return CdcView(context, name);
  if (schema == "information_schema") return InformationView(context, name);
  if (ViewPtr view = ServerView(context, name)) return view;
  if (ViewPtr view = ObjectView(context, name)) return view;
  return ColumnView(context, name);
}

}  // namespace mssql_cdc::sim

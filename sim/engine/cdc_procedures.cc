// sys.sp_cdc_*: facts 1.5, 1.7, 1.8.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/procedure_arguments.h"
#include "sim/engine/procedures.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"
#include "sim/engine/type_facts.h"
#include "sim/quoting.h"

namespace mssql_cdc::sim {
namespace {

Value LsnOrNull(const std::optional<Lsn>& lsn) {
  return lsn ? BytesValue(lsn->bytes.data(), lsn->bytes.size()) : Value{};
}

Value TextOrNull(const std::optional<std::string>& text) {
  return text ? TextValue(*text) : Value{};
}

std::int32_t EnableTableCall(Session& session, std::vector<ProcedureArgument>& given) {
  const Arguments arguments(
      "sp_cdc_enable_table",
      {"@source_schema", "@source_name", "@role_name", "@capture_instance",
       "@supports_net_changes", "@index_name", "@captured_column_list",
       "@filegroup_name", "@allow_partition_switch"},
      given);
  EnableTable request;
  request.schema = arguments.RequiredText(0);
  request.name = arguments.RequiredText(1);
  // It has no default, but may be NULL.
  arguments.Require(2);
  request.role = arguments.Text(2);
  request.capture_instance = arguments.Text(3);
  if (const auto net = arguments.Int(4)) request.supports_net_changes = *net != 0;
  request.index_name = arguments.Text(5);
  request.captured_column_list = arguments.Text(6);
  request.filegroup_name = arguments.Text(7);
  request.allow_partition_switch = arguments.Int(8).value_or(1) != 0;
  EnableCdcTable(session, request);
  return 0;
}

std::vector<ColumnInfo> HelpColumns() {
  return {Info("source_schema", SysName()),
          Info("source_table", SysName()),
          Info("capture_instance", SysName()),
          Info("object_id", IntType()),
          Info("source_object_id", IntType()),
          Info("start_lsn", BinaryType(10)),
          Info("end_lsn", BinaryType(10)),
          Info("supports_net_changes", BitType()),
          Info("has_drop_pending", BitType()),
          Info("role_name", SysName()),
          Info("index_name", SysName()),
          Info("filegroup_name", SysName()),
          Info("create_date", DateTimeType()),
          Info("index_column_list", NVarChar(kMax)),
          Info("captured_column_list", NVarChar(kMax))};
}

std::int32_t HelpCall(Session& session, std::vector<ProcedureArgument>& given,
                      ReplySink& sink) {
  const Arguments arguments("sp_cdc_help_change_data_capture",
                            {"@source_schema", "@source_name"}, given);
  RequireCdc(session);
  const auto schema = arguments.Text(0);
  const auto name = arguments.Text(1);
  if (schema.has_value() != name.has_value()) {
    RaiseSql(
        22972, 16, 1,
        "When calling stored procedure [sys].[sp_cdc_help_change_data_capture], if "
        "either of the parameters @source_schema or @source_name is non-NULL, then "
        "both must be.");
  }
  session.Reader(session.current());
  const CatalogPtr catalog = session.CatalogOf(session.current());
  std::vector<Row> rows;
  for (const CaptureInstance& instance : catalog->instances) {
    const TablePtr source = catalog->TableById(instance.source_id);
    if (source == nullptr ||
        (!session.MayReadInstance(*session.current(), *catalog, instance) &&
         Does(Behaviour::kHelpIsEmpty))) {
      continue;
    }
    if (schema && (!catalog->SameName(source->schema, *schema) ||
                   !catalog->SameName(source->name, *name))) {
      continue;
    }
    std::string index_columns;
    for (const std::int32_t id : instance.key_column_ids) {
      for (const CapturedColumn& column : instance.columns) {
        if (column.column_id != id) continue;
        index_columns += (index_columns.empty() ? "" : ", ") + Bracketed(column.name);
      }
    }
    std::string captured;
    for (const CapturedColumn& column : instance.columns) {
      captured += (captured.empty() ? "" : ", ") + Bracketed(column.name);
    }
    rows.push_back({TextValue(source->schema), TextValue(source->name),
                    TextValue(instance.name), IntValue(instance.change_table_id),
                    IntValue(instance.source_id), LsnOrNull(instance.start_lsn),
                    Value{}, BoolValue(instance.net_changes), Value{},
                    TextOrNull(instance.role), TextOrNull(instance.index_name),
                    TextOrNull(instance.filegroup), TimeValue(instance.create_date),
                    index_columns.empty() ? Value{} : TextValue(index_columns),
                    TextValue(captured)});
  }
  SendRows(sink, HelpColumns(), rows);
  return 0;
}

// The instance, if the caller may see it; else 22981.
const CaptureInstance& VisibleInstance(Session& session, const Catalog& catalog,
                                       const std::string& name) {
  const CaptureInstance* instance = catalog.FindInstance(name);
  if (instance == nullptr ||
      !session.MayReadInstance(*session.current(), catalog, *instance)) {
    RaiseSql(22981, 16, 1, "Object does not exist or access is denied.");
  }
  return *instance;
}

std::int32_t CapturedColumnsCall(Session& session,
                                 std::vector<ProcedureArgument>& given,
                                 ReplySink& sink) {
  const Arguments arguments("sp_cdc_get_captured_columns", {"@capture_instance"},
                            given);
  RequireCdc(session);
  session.Reader(session.current());
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const CaptureInstance& instance =
      VisibleInstance(session, *catalog, arguments.RequiredText(0));
  const TablePtr source = catalog->TableById(instance.source_id);
  const TablePtr changes = catalog->TableById(instance.change_table_id);
  const std::vector<ColumnInfo> columns = {
      Info("source_schema", SysName()),
      Info("source_table", SysName()),
      Info("capture_instance", SysName()),
      Info("column_name", SysName()),
      Info("column_id", IntType()),
      Info("column_ordinal", IntType()),
      Info("data_type", SysName()),
      Info("character_maximum_length", IntType()),
      Info("numeric_precision", TypeOf(TypeId::kTinyInt)),
      Info("numeric_precision_radix", TypeOf(TypeId::kSmallInt)),
      Info("numeric_scale", IntType()),
      Info("datetime_precision", TypeOf(TypeId::kSmallInt))};
  std::vector<Row> rows;
  for (std::size_t i = 0; i < instance.columns.size(); ++i) {
    const CapturedColumn& column = instance.columns[i];
    const TypeFacts facts = FactsOf(changes->columns[i + 5].type);
    rows.push_back(
        {TextValue(source->schema), TextValue(source->name), TextValue(instance.name),
         TextValue(column.name), IntValue(column.column_id), IntValue(column.ordinal),
         TextValue(column.type_name),
         column.type_name == "timestamp" ? Value{}
                                         : IntOrNull(facts.character_maximum_length),
         IntOrNull(facts.numeric_precision), IntOrNull(facts.numeric_precision_radix),
         IntOrNull(facts.numeric_scale), IntOrNull(facts.datetime_precision)});
  }
  SendRows(sink, columns, rows);
  return 0;
}

std::int32_t DdlHistoryCall(Session& session, std::vector<ProcedureArgument>& given,
                            ReplySink& sink) {
  const Arguments arguments("sp_cdc_get_ddl_history", {"@capture_instance"}, given);
  RequireCdc(session);
  session.Reader(session.current());
  const CatalogPtr catalog = session.CatalogOf(session.current());
  const CaptureInstance& instance =
      VisibleInstance(session, *catalog, arguments.RequiredText(0));
  const TablePtr source = catalog->TableById(instance.source_id);
  std::vector<Row> rows;
  for (const DdlEntry& entry : catalog->ddl_history) {
    if (entry.change_table_id != instance.change_table_id) continue;
    rows.push_back({TextValue(source->schema), TextValue(source->name),
                    TextValue(instance.name), BoolValue(entry.required_column_update),
                    TextValue(entry.command), LsnOrNull(entry.lsn),
                    TimeValue(entry.time)});
  }
  SendRows(
      sink,
      {Info("source_schema", SysName()), Info("source_table", SysName()),
       Info("capture_instance", SysName()), Info("required_column_update", BitType()),
       Info("ddl_command", NVarChar(kMax)), Info("ddl_lsn", BinaryType(10)),
       Info("ddl_time", DateTimeType())},
      rows);
  return 0;
}

void RequireDbo(Session& session) {
  if (session.IsOwner(*session.current(), *session.CatalogOf(session.current())))
    return;
  RaiseSql(
      22904, 16, 1,
      "Caller is not authorized to initiate the requested action. DBO privileges are "
      "required.");
}

// Gives the change tables of before KB3030352 their __$command_id.
std::int32_t UpgradeCall(Session& session, std::vector<ProcedureArgument>& given) {
  const Arguments arguments("sp_cdc_vupgrade", {}, given);
  RequireCdc(session);
  RequireDbo(session);
  UpgradeChangeTables(session);
  return 0;
}

std::int32_t ScanCall(Session& session, std::vector<ProcedureArgument>& given) {
  const Arguments arguments(
      "sp_cdc_scan", {"@maxtrans", "@maxscans", "@continuous", "@pollinginterval"},
      given);
  RequireCdc(session);
  RequireDbo(session);
  RequireNoTransaction(session, "sp_cdc_scan");
  const ScanResult result =
      Capture(session.server(), session.current(),
              static_cast<std::int32_t>(arguments.Int(0).value_or(500)),
              static_cast<std::int32_t>(arguments.Int(1).value_or(10)));
  session.EndReads();
  if (result.error != 0) RaiseFault(result.error);
  return 0;
}

std::int32_t CleanupCall(Session& session, std::vector<ProcedureArgument>& given) {
  Arguments arguments(
      "sp_cdc_cleanup_change_table",
      {"@capture_instance", "@low_water_mark", "@threshold", "@fCleanupFailed"}, given);
  const std::shared_ptr<Database>& database = session.current();
  CatalogPtr catalog = session.CatalogOf(database);
  if (!catalog->cdc_enabled) {
    RaiseSql(22910, 16, 1,
             "The cleanup request for database '" + database->name() +
                 "' failed. The database is not enabled for Change Data Capture.");
  }
  RequireDbo(session);
  RequireNoTransaction(session, "sp_cdc_cleanup_change_table");
  const std::string name = arguments.RequiredText(0);
  const CaptureInstance* instance = catalog->FindInstance(name);
  if (instance == nullptr) {
    RaiseSql(22981, 16, 1, "Object does not exist or access is denied.");
  }
  const std::int64_t threshold = arguments.Int(2).value_or(5000);
  if (threshold <= 0) {
    RaiseSql(
        22850, 16, 1,
        "The threshold value specified for the Change Data Capture cleanup process "
        "must be greater than 0.");
  }
  arguments.Require(1);
  if (const std::optional<Lsn> mark = arguments.BinaryLsn(1)) {
    const TablePtr mapping = catalog->FindTable("cdc", "lsn_time_mapping");
    Statement look = session.Reader(database).Prepare(
        "SELECT 1 FROM " + mapping->physical + " WHERE " +
        mapping->columns[0].physical + " = ?");
    look.BindBlob(1, mark->bytes.data(), 10);
    if (look.Next() != Step::kRow) {
      RaiseSql(
          22964, 16, 1,
          "LSN {" + mark->Hex() +
              "}, specified as the new low end point for the change table associated "
              "with capture instance '" +
              instance->name + "', is not within the Change Data Capture timeline.");
    }
    session.EndReads();
    MoveLowWaterMark(session.server(), database, *mark, instance->name);
  }
  session.EndReads();
  DeleteBelowLowWaterMark(session.server(), database, std::nullopt);
  arguments.SetOutput(3, BitType(), IntValue(0));
  return 0;
}

std::int32_t PutJobCall(Session& session, std::vector<ProcedureArgument>& given,
                        bool add) {
  std::vector<std::string> names = {"@job_type"};
  if (add) names.emplace_back("@start_job");
  for (const char* name : {"@maxtrans", "@maxscans", "@continuous", "@pollinginterval",
                           "@retention", "@threshold"}) {
    names.emplace_back(name);
  }
  const Arguments arguments(add ? "sp_cdc_add_job" : "sp_cdc_change_job", names, given);
  RequireCdc(session);
  RequireDbo(session);
  const std::string type = arguments.Text(0).value_or("capture");
  if (!EqualsIgnoringAsciiCase(type, "capture") &&
      !EqualsIgnoringAsciiCase(type, "cleanup")) {
    RaiseSql(22918, 16, 1,
             "The value specified for the parameter @job_type is not valid.");
  }
  Catalog& catalog = session.Write(session.current()).Change();
  JobMeta* job = FindJob(catalog, type);
  if (add && job == nullptr) {
    JobMeta fresh;
    fresh.type = LowerAscii(type);
    catalog.jobs.push_back(std::move(fresh));
    job = &catalog.jobs.back();
  }
  if (job == nullptr) {
    RaiseSql(22929, 16, 1, "The specified '" + type + "' job does not exist.");
  }
  const std::size_t first = add ? 2 : 1;
  if (const auto n = arguments.Int(first))
    job->maxtrans = static_cast<std::int32_t>(*n);
  if (const auto n = arguments.Int(first + 1))
    job->maxscans = static_cast<std::int32_t>(*n);
  if (const auto n = arguments.Int(first + 2)) job->continuous = *n != 0;
  if (const auto n = arguments.Int(first + 3)) job->pollinginterval = *n;
  if (const auto n = arguments.Int(first + 4)) job->retention = *n;
  if (const auto n = arguments.Int(first + 5)) job->threshold = *n;
  return 0;
}

std::int32_t DropJobCall(Session& session, std::vector<ProcedureArgument>& given) {
  const Arguments arguments("sp_cdc_drop_job", {"@job_type"}, given);
  RequireCdc(session);
  RequireDbo(session);
  const std::string type = arguments.Text(0).value_or("capture");
  std::erase_if(
      session.Write(session.current()).Change().jobs,
      [&](const JobMeta& job) { return EqualsIgnoringAsciiCase(job.type, type); });
  return 0;
}

// sp_cdc_start_job and sp_cdc_stop_job.
std::int32_t RunJobCall(Session& session, std::vector<ProcedureArgument>& given,
                        bool stop) {
  const Arguments arguments(stop ? "sp_cdc_stop_job" : "sp_cdc_start_job",
                            {"@job_type"}, given);
  RequireCdc(session);
  RequireDbo(session);
  const std::string type = arguments.Text(0).value_or("capture");
  JobMeta* job = FindJob(session.Write(session.current()).Change(), type);
  if (job == nullptr) {
    RaiseSql(22929, 16, 1, "The specified '" + type + "' job does not exist.");
  }
  job->stopped = stop;
  return 0;
}

std::int32_t HelpJobsCall(Session& session, std::vector<ProcedureArgument>& given,
                          ReplySink& sink) {
  const Arguments arguments("sp_cdc_help_jobs", {}, given);
  RequireCdc(session);
  const CatalogPtr catalog = session.CatalogOf(session.current());
  std::vector<Row> rows;
  for (const JobMeta& job : catalog->jobs) {
    const bool capture = job.type == "capture";
    Guid id;
    id.bytes[0] = static_cast<std::uint8_t>(session.current()->id());
    id.bytes[15] = capture ? 1 : 2;
    rows.push_back(
        {Value{id, {}}, TextValue(job.type),
         TextValue("cdc." + session.current()->name() + "_" + job.type),
         IntValue(capture ? job.maxtrans : 0), IntValue(capture ? job.maxscans : 0),
         BoolValue(capture && job.continuous),
         IntValue(capture ? job.pollinginterval : 0),
         IntValue(capture ? 0 : job.retention), IntValue(capture ? 0 : job.threshold)});
  }
  SendRows(sink,
           {Info("job_id", TypeOf(TypeId::kUniqueIdentifier)),
            Info("job_type", NVarChar(20)), Info("job_name", SysName()),
            Info("maxtrans", IntType()), Info("maxscans", IntType()),
            Info("continuous", BitType()), Info("pollinginterval", BigIntType()),
            Info("retention", BigIntType()), Info("threshold", BigIntType())},
           rows);
  return 0;
}

}  // namespace

void RequireNoTransaction(Session& session, const char* procedure) {
  if (session.transaction_count() == 0 && !session.HoldsWriter(session.current()))
    return;
  RaiseSql(226, 16, 6,
           std::string(procedure) +
               " statement not allowed within multi-statement transaction.");
}

std::optional<std::int32_t> CdcProcedure(Session& session, const std::string& name,
                                         std::vector<ProcedureArgument>& given,
                                         ReplySink& sink) {
  if (name == "sp_cdc_enable_db") {
    if (session.CatalogOf(session.current())->cdc_enabled && session.is_admin()) {
      Message message;
      message.number = 22905;
      message.severity = 10;
      message.text = "Database '" + session.current()->name() +
                     "' is already enabled for Change Data Capture. Ensure that the "
                     "correct database context is set, and retry the operation.";
      sink.SendMessage(message);
      return 0;
    }
    EnableCdc(session);
    return 0;
  }
  if (name == "sp_cdc_disable_db") {
    DisableCdc(session);
    return 0;
  }
  if (name == "sp_cdc_enable_table") return EnableTableCall(session, given);
  if (name == "sp_cdc_disable_table") {
    const Arguments arguments("sp_cdc_disable_table",
                              {"@source_schema", "@source_name", "@capture_instance"},
                              given);
    DisableCdcTable(session, arguments.RequiredText(0), arguments.RequiredText(1),
                    arguments.RequiredText(2));
    return 0;
  }
  if (name == "sp_cdc_help_change_data_capture") return HelpCall(session, given, sink);
  if (name == "sp_cdc_get_captured_columns") {
    return CapturedColumnsCall(session, given, sink);
  }
  if (name == "sp_cdc_get_ddl_history") return DdlHistoryCall(session, given, sink);
  if (name == "sp_cdc_vupgrade") return UpgradeCall(session, given);
  if (name == "sp_cdc_scan") return ScanCall(session, given);
  if (name == "sp_cdc_cleanup_change_table") return CleanupCall(session, given);
  if (name == "sp_cdc_add_job") return PutJobCall(session, given, true);
  if (name == "sp_cdc_change_job") return PutJobCall(session, given, false);
  if (name == "sp_cdc_drop_job") return DropJobCall(session, given);
  if (name == "sp_cdc_start_job") return RunJobCall(session, given, false);
  if (name == "sp_cdc_stop_job") return RunJobCall(session, given, true);
  if (name == "sp_cdc_help_jobs") return HelpJobsCall(session, given, sink);
  return std::nullopt;
}

}  // namespace mssql_cdc::sim

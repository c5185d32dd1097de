// sys.databases, principals and the dm_ views.

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/system_views.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

// A row of mostly constant columns: name, type and value side by side.
class OneByOne {
 public:
  OneByOne& Add(const char* name, const SqlType& type, Value value) {
    if (first_) columns_.push_back(Info(name, type));
    row_.push_back(std::move(value));
    return *this;
  }
  void End() {
    first_ = false;
    rows_.push_back(std::move(row_));
    row_.clear();
  }
  // `empty` gives the columns where there is no row.
  ViewPtr Done(const std::string& name) {
    return std::make_shared<RowsTable>(name, std::move(columns_), std::move(rows_));
  }
  void DropRows() { rows_.clear(); }

 private:
  bool first_ = true;
  std::vector<ColumnInfo> columns_;
  Row row_;
  std::vector<Row> rows_;
};

SqlType Tiny() { return TypeOf(TypeId::kTinyInt); }
SqlType GuidType() { return TypeOf(TypeId::kUniqueIdentifier); }

bool Pending(const ViewContext& context, const std::shared_ptr<Database>& database) {
  if (!database->catalog()->cdc_enabled) return false;
  Statement read =
      context.session.Reader(database).Prepare("SELECT 1 FROM log_transaction LIMIT 1");
  return read.Next() == Step::kRow;
}

ViewPtr DatabasesView(const ViewContext& context) {
  OneByOne table;
  for (const auto& database : context.session.server().Databases()) {
    const CatalogPtr catalog = database->catalog();
    if (!context.session.UserIn(*database, *catalog)) continue;
    const bool replication =
        Pending(context, database) && Does(Behaviour::kLogReuseWait);
    const bool single = database->stays()->single_user();
    table.Add("name", SysName(), TextValue(database->name()))
        .Add("database_id", IntType(), IntValue(database->id()))
        .Add("create_date", DateTimeType(),
             TimeValue(FromIsoText(database->create_date())))
        .Add("compatibility_level", Tiny(),
             IntValue(context.session.server().options().version.major * 10))
        .Add("collation_name", SysName(), TextValue(catalog->collation))
        .Add("user_access", Tiny(), IntValue(single ? 1 : 0))
        .Add("user_access_desc", NVarChar(60),
             TextValue(single ? "SINGLE_USER" : "MULTI_USER"))
        .Add("is_read_only", BitType(), IntValue(0))
        .Add("state", Tiny(), IntValue(0))
        .Add("state_desc", NVarChar(60), TextValue("ONLINE"))
        .Add("snapshot_isolation_state", Tiny(), IntValue(catalog->snapshot_isolation))
        .Add("snapshot_isolation_state_desc", NVarChar(60),
             TextValue(catalog->snapshot_isolation ? "ON" : "OFF"))
        .Add("is_read_committed_snapshot_on", BitType(),
             IntValue(catalog->read_committed_snapshot))
        .Add("recovery_model", Tiny(), IntValue(1))
        .Add("recovery_model_desc", NVarChar(60), TextValue("FULL"))
        .Add("log_reuse_wait", Tiny(), IntValue(replication ? 6 : 0))
        .Add("log_reuse_wait_desc", NVarChar(60),
             TextValue(replication ? "REPLICATION" : "NOTHING"))
        .Add("is_cdc_enabled", BitType(), IntValue(catalog->cdc_enabled))
        .Add("is_encrypted", BitType(), IntValue(0));
    table.End();
  }
  return table.Done("sys.databases");
}

ViewPtr RecoveryStatus(const ViewContext& context) {
  OneByOne table;
  for (const auto& database : context.session.server().Databases()) {
    Guid guid;
    const std::uint64_t seed = context.session.server().options().seed;
    for (std::size_t i = 0; i < 8; ++i) {
      guid.bytes[i] = static_cast<std::uint8_t>(seed >> (8 * i));
    }
    guid.bytes[15] = static_cast<std::uint8_t>(database->id());
    Guid fork = guid;
    fork.bytes[8] = static_cast<std::uint8_t>(database->recovery_fork());
    const bool forked = database->recovery_fork() > 0;
    table.Add("database_id", IntType(), IntValue(database->id()))
        .Add("database_guid", GuidType(), Value{guid, {}})
        .Add("family_guid", GuidType(), Value{guid, {}})
        .Add("recovery_fork_guid", GuidType(), Value{fork, {}})
        .Add("first_recovery_fork_guid", GuidType(),
             forked ? Value{guid, {}} : Value{});
    table.End();
  }
  return table.Done("sys.database_recovery_status");
}

ViewPtr WaitStats(const ViewContext& context) {
  // The simulator waits for nobody; the wait types readers ask for are there with zero.
  OneByOne table;
  for (const char* type : {"ASYNC_NETWORK_IO", "LCK_M_S", "PAGEIOLATCH_SH"}) {
    table
        .Add("session_id", TypeOf(TypeId::kSmallInt),
             IntValue(context.session.request().spid))
        .Add("wait_type", NVarChar(60), TextValue(type))
        .Add("waiting_tasks_count", BigIntType(), IntValue(0))
        .Add("wait_time_ms", BigIntType(), IntValue(0))
        .Add("max_wait_time_ms", BigIntType(), IntValue(0))
        .Add("signal_wait_time_ms", BigIntType(), IntValue(0));
    table.End();
  }
  return table.Done("sys.dm_exec_session_wait_stats");
}

ViewPtr SessionsView(const ViewContext& context) {
  OneByOne table;
  const LoginRequest& request = context.session.request();
  table.Add("session_id", TypeOf(TypeId::kSmallInt), IntValue(request.spid))
      .Add("login_time", DateTimeType(),
           TimeValue(RoundedToDateTime(context.session.Now())))
      .Add("host_name", SysName(), TextValue(request.host))
      .Add("program_name", SysName(), TextValue(request.application))
      .Add("login_name", SysName(), TextValue(context.session.login().name))
      .Add("original_login_name", SysName(), TextValue(context.session.login().name))
      .Add("status", NVarChar(30), TextValue("running"))
      .Add("is_user_process", BitType(), IntValue(1))
      .Add("database_id", TypeOf(TypeId::kSmallInt),
           IntValue(context.session.current()->id()))
      .Add("transaction_isolation_level", TypeOf(TypeId::kSmallInt),
           IntValue(static_cast<int>(context.session.settings().isolation) + 1))
      .Add("lock_timeout", IntType(),
           IntValue(context.session.settings().lock_timeout_ms));
  table.End();
  return table.Done("sys.dm_exec_sessions");
}

// Of all sessions together, which is session 0 (the view's page at Microsoft Learn).
Server::ScanSession Aggregate(const std::vector<Server::ScanSession>& scans) {
  Server::ScanSession all = scans.back();
  all.session_id = all.error_count = all.empty_count = 0;
  all.transaction_count = all.command_count = 0;
  all.start_time = scans.front().start_time;
  for (const Server::ScanSession& scan : scans) {
    all.error_count += scan.error_count;
    all.empty_count += scan.empty_count;
    all.transaction_count += scan.transaction_count;
    all.command_count += scan.command_count;
    all.end_time = std::max(all.end_time, scan.end_time);
  }
  return all;
}

std::string PhaseOf(const Server::ScanSession& scan) {
  if (scan.session_id == 0) return "Aggregate";
  return scan.error_count > 0 ? "Aborted" : "Done";
}

ViewPtr ScanSessions(const ViewContext& context) {
  OneByOne table;
  std::vector<Server::ScanSession> scans = context.session.server().Scans();
  std::erase_if(scans, [&](const auto& scan) {
    return scan.database != context.database->name();
  });
  const bool none = scans.empty();
  if (none) scans.emplace_back();
  scans.insert(scans.begin(), Aggregate(scans));
  for (const Server::ScanSession& scan : scans) {
    table.Add("session_id", IntType(), IntValue(scan.session_id))
        .Add("start_time", DateTimeType(),
             TimeValue(RoundedToDateTime(scan.start_time)))
        .Add("end_time", DateTimeType(), TimeValue(RoundedToDateTime(scan.end_time)))
        .Add("duration", BigIntType(), IntValue(0))
        .Add("scan_phase", NVarChar(200), TextValue(PhaseOf(scan)))
        .Add("error_count", IntType(), IntValue(scan.error_count))
        .Add("start_lsn", NVarChar(23), TextValue(scan.first_lsn.Hex()))
        .Add("end_lsn", NVarChar(23), TextValue(scan.last_lsn.Hex()))
        .Add("tran_count", BigIntType(), IntValue(scan.transaction_count))
        .Add("command_count", BigIntType(), IntValue(scan.command_count))
        .Add("latency", IntType(), IntValue(0))
        .Add("empty_scan_count", IntType(), IntValue(scan.empty_count))
        .Add("failed_sessions_count", IntType(), IntValue(scan.error_count));
    table.End();
  }
  if (none) table.DropRows();
  return table.Done("sys.dm_cdc_log_scan_sessions");
}

ViewPtr CdcErrors(const ViewContext& context) {
  OneByOne table;
  std::vector<Server::CaptureError> errors = context.session.server().CaptureErrors();
  std::erase_if(errors, [&](const auto& error) {
    return error.database != context.database->name();
  });
  const bool none = errors.empty();
  if (none) errors.emplace_back();
  for (const Server::CaptureError& error : errors) {
    table.Add("session_id", IntType(), IntValue(1))
        .Add("phase_number", IntType(), IntValue(7))
        .Add("entry_time", DateTimeType(), TimeValue(RoundedToDateTime(error.time)))
        .Add("error_number", IntType(), IntValue(error.number))
        .Add("error_severity", IntType(), IntValue(16))
        .Add("error_state", IntType(), IntValue(1))
        .Add("error_message", NVarChar(1024), TextValue(error.message))
        .Add("start_lsn", NVarChar(23), Value{})
        .Add("begin_lsn", NVarChar(23), Value{})
        .Add("sequence_value", NVarChar(23), Value{});
    table.End();
  }
  if (none) table.DropRows();
  return table.Done("sys.dm_cdc_errors");
}

// The services of this server; Debezium asks here whether the Agent is running, which
// carries out the capture job.
ViewPtr ServerServices(const ViewContext& context) {
  if (!context.session.is_admin()) {
    RaiseSql(300, 14, 1,
             "VIEW SERVER STATE permission was denied on object 'server', database "
             "'master'.");
  }
  OneByOne table;
  const SqlType text = NVarChar(256);
  const struct {
    const char* name;
    bool runs;
  } services[] = {
      {"SQL Server (MSSQLSERVER)", true},
      {"SQL Server Agent (MSSQLSERVER)", context.session.server().agent_runs},
  };
  for (const auto& [name, runs] : services) {
    table.Add("servicename", text, TextValue(name))
        .Add("startup_type", IntType(), IntValue(2))
        .Add("startup_type_desc", text, TextValue("Automatic"))
        .Add("status", IntType(), IntValue(runs ? 4 : 1))
        .Add("status_desc", text, TextValue(runs ? "Running" : "Stopped"))
        .Add("process_id", IntType(), Value{})
        .Add("last_startup_time", TypeOf(TypeId::kDateTimeOffset), Value{})
        .Add("service_account", text, TextValue("NT SERVICE\\MSSQLSERVER"))
        .Add("filename", text, Value{})
        .Add("is_clustered", NVarChar(1), TextValue("N"))
        .Add("cluster_nodename", text, Value{})
        .Add("instant_file_initialization_enabled", NVarChar(1), TextValue("N"));
    table.End();
  }
  return table.Done("sys.dm_server_services");
}

ViewPtr DatabasePrincipals(const ViewContext& context) {
  OneByOne table;
  for (const Principal& principal : context.catalog->principals) {
    table.Add("name", SysName(), TextValue(principal.name))
        .Add("principal_id", IntType(), IntValue(principal.id))
        .Add("type", TypeOf(TypeId::kChar, 1), TextValue(principal.role ? "R" : "S"))
        .Add("type_desc", NVarChar(60),
             TextValue(principal.role ? "DATABASE_ROLE" : "SQL_USER"))
        .Add("default_schema_name", SysName(),
             principal.role ? Value{} : TextValue(principal.default_schema))
        .Add("is_fixed_role", BitType(), BoolValue(principal.role && principal.fixed));
    table.End();
  }
  return table.Done("sys.database_principals");
}

ViewPtr RoleMembers(const ViewContext& context) {
  OneByOne table;
  const bool none = context.catalog->members.empty();
  for (const auto& [role, member] : context.catalog->members) {
    const Principal* r = context.catalog->FindPrincipal(role);
    const Principal* m = context.catalog->FindPrincipal(member);
    table.Add("role_principal_id", IntType(), IntValue(r == nullptr ? 0 : r->id))
        .Add("member_principal_id", IntType(), IntValue(m == nullptr ? 0 : m->id));
    table.End();
  }
  if (none) {
    table.Add("role_principal_id", IntType(), Value{})
        .Add("member_principal_id", IntType(), Value{});
    table.End();
    table.DropRows();
  }
  return table.Done("sys.database_role_members");
}

ViewPtr ServerPrincipals(const ViewContext& context) {
  OneByOne table;
  std::int64_t id = 256;
  for (const LoginRecord& login : context.session.server().Logins()) {
    ++id;
    if (!context.session.is_admin() && login.name != context.session.login().name)
      continue;
    table.Add("name", SysName(), TextValue(login.name))
        .Add("principal_id", IntType(), IntValue(id))
        .Add("type", TypeOf(TypeId::kChar, 1), TextValue("S"))
        .Add("type_desc", NVarChar(60), TextValue("SQL_LOGIN"))
        .Add("is_disabled", BitType(), BoolValue(!login.enabled))
        .Add("default_database_name", SysName(), TextValue(login.default_database));
    table.End();
  }
  return table.Done("sys.server_principals");
}

}  // namespace

ViewPtr ServerView(const ViewContext& context, const std::string& name) {
  if (name == "databases") return DatabasesView(context);
  if (name == "database_recovery_status") return RecoveryStatus(context);
  if (name == "dm_exec_session_wait_stats") return WaitStats(context);
  if (name == "dm_exec_sessions") return SessionsView(context);
  if (name == "dm_cdc_log_scan_sessions") return ScanSessions(context);
  if (name == "dm_cdc_errors") return CdcErrors(context);
  if (name == "dm_server_services") return ServerServices(context);
  if (name == "database_principals") return DatabasePrincipals(context);
  if (name == "database_role_members") return RoleMembers(context);
  if (name == "server_principals") return ServerPrincipals(context);
  return nullptr;
}

}  // namespace mssql_cdc::sim

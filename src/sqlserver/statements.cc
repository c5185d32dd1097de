#include "sqlserver/statements.h"

#include <map>
#include <utility>

#include "sqlserver/question.h"

namespace mssql_cdc::sqlserver {
namespace {

Parameter TextParameter(std::string name, std::string_view text) {
  return {std::move(name), Parameter::Kind::kNVarChar, std::string(text), 0};
}

Parameter LsnParameter(std::string name, const LsnBytes& lsn) {
  return {std::move(name), Parameter::Kind::kBinary10,
          std::string(reinterpret_cast<const char*>(lsn.data()), lsn.size()), 0};
}

// The offset, in minutes, that `zone` has at `time`: a local time, or a UTC one.
std::string OffsetAt(const std::string& time, const std::string& zone) {
  return "DATEPART(TZOFFSET, " + time + " AT TIME ZONE N'" + zone + "')";
}

// Whether the server's clock went back at a commit up to z.lsn that was made in the
// three hours before z.t. A minute is allowed for, since commits are not written down
// in the order of their times to the second.
constexpr std::string_view kClockWentBack =
    "EXISTS (SELECT 1 FROM cdc.lsn_time_mapping AS d WHERE d.start_lsn <= z.lsn "
    "AND d.tran_end_time > DATEADD(hour, -3, z.t) "
    "AND d.tran_end_time <= DATEADD(minute, 1, z.t) "
    "AND d.tran_end_time < DATEADD(minute, -1, (SELECT TOP (1) p.tran_end_time "
    "FROM cdc.lsn_time_mapping AS p WHERE p.start_lsn < d.start_lsn "
    "ORDER BY p.start_lsn DESC)))";

// tran_end_time (of `alias`, "m." or nothing) as the answer carries it. The zone's name
// was checked before it came here, and holds no quote.
//
// z.b and z.a are the zone's offsets some hours before and after. Where they differ,
// the time may be before the change, after it, or, when the clock went back, both: the
// hour that is there twice. Then the order of the commits tells which one it is. AT
// TIME ZONE alone always takes the first.
std::string CommitTime(std::string_view alias, const std::optional<std::string>& zone) {
  const std::string row(alias.empty() ? "lsn_time_mapping." : alias);
  if (!zone) return std::string(alias) + "tran_end_time";
  const std::string time = "CAST(" + row + "tran_end_time AS datetime2(3))";
  const std::string with_before = "DATEADD(minute, -z.b, z.t)";
  const std::string with_after = "DATEADD(minute, -z.a, z.t)";
  const auto is_wrong = [&](const std::string& utc, const char* offset) {
    return OffsetAt("(" + utc + " AT TIME ZONE 'UTC')", *zone) + " <> " + offset;
  };
  return "(SELECT CASE WHEN z.b = z.a THEN " + with_after + " WHEN " +
         is_wrong(with_before, "z.b") + " THEN " + with_after + " WHEN " +
         is_wrong(with_after, "z.a") + " THEN " + with_before + " WHEN " +
         std::string(kClockWentBack) + " THEN " + with_after + " ELSE " + with_before +
         " END FROM (SELECT " + row + "start_lsn AS lsn, " + time + " AS t, " +
         OffsetAt("DATEADD(hour, -3, " + time + ")", *zone) + " AS b, " +
         OffsetAt("DATEADD(hour, 3, " + time + ")", *zone) + " AS a) AS z)";
}

std::string NewestCommit(const std::optional<std::string>& zone) {
  return "SELECT TOP (1) start_lsn AS lsn, " + CommitTime("", zone) +
         " AS commit_time FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC";
}

constexpr std::string_view kNetworkWait =
    "SELECT wait_time_ms AS wait_ms FROM sys.dm_exec_session_wait_stats "
    "WHERE session_id = @@SPID AND wait_type = 'ASYNC_NETWORK_IO'";

std::string SourceTable(std::string_view schema, std::string_view table) {
  return QuoteName(schema) + "." + QuoteName(table);
}

}  // namespace

std::string QuoteName(std::string_view name) {
  std::string quoted = "[";
  for (const char c : name) {
    quoted += c;
    if (c == ']') quoted += c;
  }
  return quoted + "]";
}

std::string SettingsBefore(const SourceSettings& settings) {
  std::string sql;
  if (settings.lock_timeout_ms) {
    sql += "SET LOCK_TIMEOUT " + std::to_string(*settings.lock_timeout_ms) + "; ";
  }
  if (settings.snapshot_isolation) sql += "SET TRANSACTION ISOLATION LEVEL SNAPSHOT; ";
  return sql;
}

std::string SettingsAfter(const SourceSettings& settings) {
  std::string sql;
  if (settings.snapshot_isolation) {
    sql += "; SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
  }
  if (settings.lock_timeout_ms) sql += "; SET LOCK_TIMEOUT -1";
  return sql;
}

std::string ChangeTableName(std::string_view capture_instance) {
  return "cdc." + QuoteName(std::string(capture_instance) + "_CT");
}

Request AskServerClock() {
  return Asking(
      Question::ServerClock{},
      "SELECT CAST(SERVERPROPERTY('ProductMajorVersion') AS int) AS major_version, "
      "CAST(SERVERPROPERTY('EngineEdition') AS int) AS engine_edition, "
      "DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS offset_minutes");
}

Request AskServerZone() {
  return Asking(Question::ServerZone{}, "SELECT CURRENT_TIMEZONE_ID() AS zone");
}

Request ListInstances() {
  return Asking(Question::Instances{}, "EXEC sys.sp_cdc_help_change_data_capture");
}

Request ListColumns(std::string_view capture_instance, std::string_view source_schema,
                    std::string_view source_table) {
  return Asking(Question::Columns{std::string(capture_instance)},
                "EXEC sys.sp_cdc_get_captured_columns @capture_instance = @instance; "
                "SELECT name, column_id, is_computed FROM sys.columns "
                "WHERE object_id = OBJECT_ID(@source); "
                "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID(@changes)",
                {TextParameter("@instance", capture_instance),
                 TextParameter("@source", SourceTable(source_schema, source_table)),
                 TextParameter("@changes", ChangeTableName(capture_instance))});
}

Request AskNetworkWait() { return {std::string(kNetworkWait), {}}; }

Request Poll(const PollQuestion& question) {
  Request request = Asking(question, "");
  request.parameters.push_back(LsnParameter("@after", question.after));
  request.parameters.push_back(TextParameter("@schema", question.source_schema));
  request.parameters.push_back(TextParameter("@table", question.source_table));
  std::string& sql = request.sql;
  // The age is the difference of two readings of one clock: no zone comes into it.
  sql = "SELECT TOP (1) start_lsn AS lsn, " + CommitTime("", question.zone) +
        " AS commit_time, DATEDIFF(second, tran_end_time, GETDATE()) AS age_seconds "
        "FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC; "
        "SELECT (SELECT MIN(start_lsn) FROM cdc.lsn_time_mapping) AS oldest_lsn, "
        "(SELECT " +
        CommitTime("", question.zone) +
        " FROM cdc.lsn_time_mapping WHERE start_lsn = @after) AS position_time, "
        "DATEPART(TZOFFSET, SYSDATETIMEOFFSET()) AS offset_minutes; "
        "IF EXISTS (SELECT 1 FROM cdc.lsn_time_mapping WHERE start_lsn > @after) BEGIN "
        "EXEC sys.sp_cdc_help_change_data_capture @source_schema = @schema, "
        "@source_name = @table";
  for (std::size_t i = 0; i < question.capture_instances.size(); ++i) {
    const std::string name = "@instance" + std::to_string(i);
    sql += "; EXEC sys.sp_cdc_get_ddl_history @capture_instance = " + name;
    request.parameters.push_back(TextParameter(name, question.capture_instances[i]));
  }
  if (question.row_count_max) {
    sql += "; SELECT COUNT_BIG(*) AS row_count FROM (SELECT TOP (" +
           std::to_string(*question.row_count_max) + ") [__$start_lsn] FROM " +
           ChangeTableName(question.counted_instance) +
           " WHERE [__$start_lsn] > @after) AS c";
  }
  if (question.commit_count_max) {
    sql += "; SELECT TOP (1) lsn, commit_time FROM (SELECT TOP (" +
           std::to_string(*question.commit_count_max) + ") start_lsn AS lsn, " +
           CommitTime("", question.zone) +
           " AS commit_time FROM cdc.lsn_time_mapping WHERE start_lsn > @after";
    if (question.through_max) {
      sql += " AND start_lsn <= @through";
      request.parameters.push_back(LsnParameter("@through", *question.through_max));
    }
    sql += " ORDER BY start_lsn) AS c ORDER BY lsn DESC";
  }
  sql += " END";
  return request;
}

Request WatchChanges(const WatchQuestion& question) {
  std::string sql =
      "SELECT TOP (1) start_lsn AS lsn, DATEDIFF(second, tran_end_time, GETDATE()) AS "
      "age_seconds FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC; SELECT ";
  std::vector<Parameter> parameters;
  std::map<LsnBytes, std::string> names;  // Most tables wait above the same commit.
  for (std::size_t i = 0; i < question.tables.size(); ++i) {
    const WatchQuestion::Table& table = question.tables[i];
    const auto [name, is_new] =
        names.try_emplace(table.after, "@after" + std::to_string(names.size()));
    if (is_new) parameters.push_back(LsnParameter(name->second, table.after));
    sql += i == 0 ? "CASE WHEN " : ", CASE WHEN ";
    for (std::size_t k = 0; k < table.capture_instances.size(); ++k) {
      sql += (k == 0 ? "EXISTS (SELECT 1 FROM " : " OR EXISTS (SELECT 1 FROM ") +
             ChangeTableName(table.capture_instances[k]) + " WHERE [__$start_lsn] > " +
             name->second + ")";
    }
    sql += " THEN 1 ELSE 0 END AS t" + std::to_string(i);
  }
  return {std::move(sql), std::move(parameters)};
}

std::string Selected(const SelectedColumn& column, std::string_view prefix) {
  const std::string name = QuoteName(column.name);
  const std::string whole = std::string(prefix) + name;
  if (column.cast_to.empty()) return whole;
  return "CAST(" + whole + " AS " + column.cast_to + ") AS " + name;
}

Request ReadChanges(const ChangesQuestion& question) {
  const std::string_view command_id = question.command_id ? ", c.[__$command_id]" : "";
  std::string sql = "SELECT c.[__$start_lsn], c.[__$seqval], c.[__$operation]";
  sql += command_id;
  sql += ", " + CommitTime("m.", question.zone) + " AS commit_time";
  for (const SelectedColumn& column : question.columns) {
    sql += ", " + Selected(column, "c.");
  }
  if (question.update_mask) sql += ", c.[__$update_mask]";
  sql += " FROM " + ChangeTableName(question.capture_instance) +
         " AS c JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = c.[__$start_lsn] "
         "WHERE c.[__$start_lsn] > @after AND c.[__$start_lsn] <= @through "
         "ORDER BY c.[__$start_lsn]";
  sql += command_id;
  sql +=
      ", c.[__$seqval], c.[__$operation]; "
      "SELECT sys.fn_cdc_get_min_lsn(@instance) AS min_lsn; SELECT ";
  sql += CommitTime("", question.zone) +
         " AS commit_time FROM cdc.lsn_time_mapping "
         "WHERE start_lsn = sys.fn_cdc_get_min_lsn(@instance); " +
         NewestCommit(question.zone);
  if (question.network_wait) {
    sql += "; ";
    sql += kNetworkWait;
  }
  return Asking(question, std::move(sql),
                {LsnParameter("@after", question.after),
                 LsnParameter("@through", question.through),
                 TextParameter("@instance", question.capture_instance)});
}

Request AskTiles(const TilesQuestion& question) {
  return Asking(
      question,
      "SELECT MAX([__$start_lsn]) AS last_lsn, COUNT_BIG(*) AS row_count FROM "
      "(SELECT [__$start_lsn], NTILE(" +
          std::to_string(question.tile_count) +
          ") OVER (ORDER BY [__$start_lsn]) AS tile FROM " +
          ChangeTableName(question.capture_instance) +
          " WHERE [__$start_lsn] > @after AND [__$start_lsn] <= @through) AS t "
          "GROUP BY tile ORDER BY last_lsn",
      {LsnParameter("@after", question.after),
       LsnParameter("@through", question.through)});
}

Request AskNewestCommit(const std::optional<std::string>& zone) {
  return Asking(Question::NewestCommit{}, NewestCommit(zone));
}

Request AskCommitTime(const LsnBytes& lsn, const std::optional<std::string>& zone) {
  return Asking(Question::CommitTime{lsn, false},
                "SELECT " + CommitTime("", zone) +
                    " AS commit_time FROM cdc.lsn_time_mapping WHERE start_lsn = @lsn",
                {LsnParameter("@lsn", lsn)});
}

Request AskCommitTimeAtOrBelow(const LsnBytes& lsn,
                               const std::optional<std::string>& zone) {
  return Asking(Question::CommitTime{lsn, true},
                "SELECT TOP (1) " + CommitTime("", zone) +
                    " AS commit_time FROM cdc.lsn_time_mapping WHERE start_lsn <= @lsn "
                    "ORDER BY start_lsn DESC",
                {LsnParameter("@lsn", lsn)});
}

Request AskCaptureJobs() {
  return {"SELECT job_type FROM msdb.dbo.cdc_jobs WHERE database_id = DB_ID()", {}};
}

Request AskCaptureErrors() {
  return {
      "SELECT TOP (1) error_number, DATEDIFF(second, entry_time, GETDATE()) AS "
      "age_seconds FROM sys.dm_cdc_errors ORDER BY entry_time DESC",
      {}};
}

Request AskMinLsn(std::string_view capture_instance) {
  return Asking(Question::MinLsn{std::string(capture_instance)},
                "SELECT sys.fn_cdc_get_min_lsn(@instance) AS min_lsn",
                {TextParameter("@instance", capture_instance)});
}

Request AskKeyExtent(std::string_view schema, std::string_view table,
                     std::string_view key, const SourceSettings& settings) {
  // Two subqueries, so that each is one seek in the key's index.
  const std::string from =
      "(" + QuoteName(key) + ") AS bigint) FROM " + SourceTable(schema, table) + ")";
  return Asking(Question::KeyExtent{std::string(table), std::string(key)},
                SettingsBefore(settings) + "SELECT (SELECT CAST(MIN" + from +
                    " AS min_key, (SELECT CAST(MAX" + from + " AS max_key" +
                    SettingsAfter(settings));
}

Request CountRows(std::string_view schema, std::string_view table,
                  const SourceSettings& settings) {
  return {SettingsBefore(settings) + "SELECT COUNT_BIG(*) AS row_count FROM " +
              SourceTable(schema, table) + SettingsAfter(settings),
          {}};
}

Request ReadSnapshot(const SnapshotQuestion& question) {
  std::string sql = SettingsBefore(question.settings) + "SELECT ";
  for (std::size_t i = 0; i < question.columns.size(); ++i) {
    sql += (i == 0 ? "" : ", ") + Selected(question.columns[i], "");
  }
  sql += " FROM " + SourceTable(question.schema, question.table);
  const std::string key = QuoteName(question.key);
  if (question.after) sql += " WHERE " + key + " > " + std::to_string(*question.after);
  if (question.through) {
    const std::string below = key + " <= " + std::to_string(*question.through);
    sql += question.after ? " AND " + below
                          : " WHERE (" + below + " OR " + key + " IS NULL)";
  }
  return Asking(question, sql + SettingsAfter(question.settings));
}

}  // namespace mssql_cdc::sqlserver

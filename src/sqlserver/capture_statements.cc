#include "sqlserver/capture_statements.h"

namespace mssql_cdc::sqlserver {

Request AskCaptureTimes() {
  return {
      "SELECT CONVERT(varchar(30), SYSUTCDATETIME(), 126) AS now_text; "
      "SELECT TOP (1) start_lsn AS lsn, DATEDIFF(second, tran_end_time, GETDATE()) AS "
      "age_seconds FROM cdc.lsn_time_mapping ORDER BY start_lsn DESC",
      {}};
}

Request AskNewestScan() {
  return {
      "SELECT CONVERT(varchar(30), end_time, 126) AS scan_text, error_count "
      "FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0",
      {}};
}

}  // namespace mssql_cdc::sqlserver

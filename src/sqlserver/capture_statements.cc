#include "sqlserver/capture_statements.h"

namespace mssql_cdc::sqlserver {

Request AskCaptureTimes() {
  return {
      "SELECT CONVERT(varchar(30), SYSDATETIME(), 126) AS now_text, "
      "CONVERT(varchar(30), MAX(tran_end_time), 126) AS newest_text, "
      "MAX(start_lsn) AS newest_lsn FROM cdc.lsn_time_mapping",
      {}};
}

Request AskNewestScan() {
  return {
      "SELECT CONVERT(varchar(30), end_time, 126) AS scan_text, error_count "
      "FROM sys.dm_cdc_log_scan_sessions WHERE session_id = 0",
      {}};
}

}  // namespace mssql_cdc::sqlserver

// What is asked of the capture job's progress.

#pragma once

#include "sqlserver/session.h"

namespace mssql_cdc::sqlserver {

// The server's clock and the newest entry of the mapping, times as texts that sort:
// now_text, newest_text, newest_lsn. One row.
Request AskCaptureTimes();

// When the newest scan of the log ended, and how many errors all of them met:
// scan_text, in the same clock, error_count. No row on a secondary and before the first
// scan. Needs VIEW DATABASE STATE (sys.dm_cdc_log_scan_sessions).
Request AskNewestScan();

}  // namespace mssql_cdc::sqlserver

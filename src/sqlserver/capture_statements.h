// What is asked of the capture job's progress.

#pragma once

#include "sqlserver/session.h"

namespace mssql_cdc::sqlserver {

// The time in UTC, now_text; then the newest entry of the mapping, if there is any:
// lsn, age_seconds, which is the difference of two readings of one clock.
Request AskCaptureTimes();

// When the newest scan of the log ended, and how many errors all of them met:
// scan_text, in the server's zone, error_count. No row on a secondary and before the
// first scan. Needs VIEW DATABASE STATE (sys.dm_cdc_log_scan_sessions).
Request AskNewestScan();

}  // namespace mssql_cdc::sqlserver

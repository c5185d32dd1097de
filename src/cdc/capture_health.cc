#include "cdc/capture_health.h"

namespace mssql_cdc::cdc {

bool IsStalled(const std::optional<std::int64_t>& age_seconds) {
  return !age_seconds || *age_seconds > kCaptureSilentSecondsMax;
}

std::string DescribeStall(const CaptureHealth& health) {
  std::string text = "the capture job has written nothing";
  if (health.age_seconds) {
    text += " for " + std::to_string(*health.age_seconds / 60) + " minutes";
  } else {
    text += " that is left";
  }
  if (health.has_capture_job == false) {
    // Jobs are in msdb, which an availability group does not carry along.
    return text + ": this server has no capture job for the database; " +
           "EXEC sys.sp_cdc_add_job @job_type = N'capture' makes one";
  }
  // An error from before the last entry has been overcome.
  const bool is_newer = !health.age_seconds || !health.error_age_seconds ||
                        *health.error_age_seconds <= *health.age_seconds;
  if (health.error_number && is_newer) {
    return text + ": its last error is " + std::to_string(*health.error_number) +
           ", see sys.dm_cdc_errors";
  }
  if (health.has_capture_job == true) {
    return text + ": see that SQL Server Agent runs and the job is started " +
           "(EXEC sys.sp_cdc_start_job)";
  }
  return text + ": see SQL Server Agent, msdb.dbo.cdc_jobs and sys.dm_cdc_errors, " +
         "which this login may not";
}

}  // namespace mssql_cdc::cdc

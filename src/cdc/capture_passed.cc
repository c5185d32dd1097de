#include "cdc/capture_passed.h"

namespace mssql_cdc::cdc {

bool CapturePassed::Hear(const CaptureTimes& times) {
  if (times.newest_commit && *times.newest_commit > moment_) return true;
  if (!times.scan_end || *times.scan_end <= moment_) return false;
  const bool is_second = first_ && *times.scan_end > *first_->scan_end;
  const bool found_nothing = is_second && times.newest_lsn == first_->newest_lsn &&
                             times.error_count == first_->error_count;
  if (found_nothing) return true;
  if (is_second || !first_) first_ = times;
  return false;
}

}  // namespace mssql_cdc::cdc

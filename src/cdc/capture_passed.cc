#include "cdc/capture_passed.h"

namespace mssql_cdc::cdc {
namespace {

bool HasCapturedSince(const CaptureTimes& moment, const CaptureTimes& times) {
  if (!times.newest_lsn || times.newest_lsn <= moment.newest_lsn) return false;
  if (!times.newest_age_seconds || *times.newest_age_seconds < 0) return false;
  // A second that has begun counts as a whole one.
  const std::int64_t age_us = (*times.newest_age_seconds + 1) * 1'000'000;
  return age_us <= times.now_us - moment.now_us;
}

}  // namespace

bool CapturePassed::Hear(const CaptureTimes& times) {
  if (HasCapturedSince(moment_, times)) return true;
  if (!times.scan_end || times.scan_end == scan_end_) return false;
  scan_end_ = times.scan_end;
  const bool found_nothing = first_ && times.newest_lsn == first_->newest_lsn &&
                             times.error_count == first_->error_count;
  if (found_nothing) return true;
  first_ = times;
  return false;
}

}  // namespace mssql_cdc::cdc

// Decides whether the capture job has read all that was committed by a moment.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cdc/lsn.h"

namespace mssql_cdc::cdc {

// As the server tells it; times are texts of its clock that sort.
struct CaptureTimes {
  std::string now;
  std::optional<std::string> newest_commit;  // Of the mapping's newest entry.
  std::optional<Lsn> newest_lsn;
  std::optional<std::string> scan_end;  // Absent too where the login may not see it.
  std::optional<std::int64_t> error_count = {};  // Of all scans.
};

// Begins with the moment, then is told what the server says from time to time.
class CapturePassed {
 public:
  explicit CapturePassed(std::string moment) : moment_(std::move(moment)) {}

  // Yes: the newest captured commit is later than the moment; or a whole scan of the
  // log began after it and found nothing, on a server where nothing happens. Such a
  // scan is the second of two that ended after the moment.
  bool Hear(const CaptureTimes& times);

 private:
  std::string moment_;
  std::optional<CaptureTimes> first_;  // When the first of the two was seen.
};

}  // namespace mssql_cdc::cdc

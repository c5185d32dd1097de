// Decides whether the capture job has read all that was committed by a moment.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cdc/lsn.h"

namespace mssql_cdc::cdc {

// As the server tells it. Times of its mapping and of its scans are in its own zone,
// whose hours can come twice: no such time is compared with another moment's.
struct CaptureTimes {
  std::int64_t now_us = 0;        // UTC. Asked for before the rest.
  std::optional<Lsn> newest_lsn;  // Of the mapping's newest entry, by LSN.
  // How long ago that was committed, in whole seconds of the server's clock; less than
  // nothing where the clock has gone back since.
  std::optional<std::int64_t> newest_age_seconds = {};
  // When the newest scan ended, as a text that tells it from another; absent too where
  // the login may not see it.
  std::optional<std::string> scan_end = {};
  std::optional<std::int64_t> error_count = {};  // Of all scans.
};

// Begins with what the server says at the moment, then is told what it says from time
// to time.
class CapturePassed {
 public:
  explicit CapturePassed(CaptureTimes moment)
      : moment_(std::move(moment)), scan_end_(moment_.scan_end) {}

  // Yes: a commit that was captured since is younger than the moment; or a whole scan
  // of the log began after it and found nothing, on a server where nothing happens.
  // Such a scan is the second of two that ended after the moment.
  bool Hear(const CaptureTimes& times);

 private:
  CaptureTimes moment_;
  std::optional<std::string> scan_end_;  // Of the newest scan that was heard of.
  std::optional<CaptureTimes> first_;    // When the first of the two was seen.
};

}  // namespace mssql_cdc::cdc

// Option metricsPath: what reading a batch showed, as files that outlive a stop between
// the batch's commit to the target and its facts row.
//
// The existing package's layout below <metricsPath>/<sink id>: <from>-<to>.json for
// each range, event-*.json for each event. They are there from before the batch's
// commit until its facts are written. Nothing depends on them: one that cannot be
// written or read is a warning, and the facts lack what it held.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "pipeline/source_events.h"

namespace mssql_cdc::runtime {

struct RangeMetrics {
  cdc::LsnWindow window;
  std::int64_t row_count = 0;
  std::int64_t size_bytes = 0;
  double read_seconds = 0;
  std::optional<double> rtt_ms;
  std::optional<std::int64_t> network_wait_ms;
  std::optional<std::int64_t> retention_watermark_us;
  std::optional<std::int64_t> source_max_commit_us;

  bool operator==(const RangeMetrics&) const = default;
};

class MetricsFiles {
 public:
  // `metrics_path` is a directory or a file: URI of one; others are refused before.
  MetricsFiles(const std::string& metrics_path, const std::string& sink_id);

  // Errors, here and below: FileFailed, FileRefused.
  Status WriteRange(const RangeMetrics& range) const;
  Status WriteEvent(const cdc::SourceEvent& event) const;
  // Those of ranges inside `window`; what is no such file is left out.
  Result<std::vector<RangeMetrics>> ReadRanges(const cdc::LsnWindow& window) const;
  // All JSON files of the directory: no batch needs them any more.
  Status RemoveAll() const;

  const std::string& directory() const { return directory_; }

 private:
  Result<std::vector<std::string>> Names() const;

  std::string directory_;
};

// The directory that option metricsPath names, or nullopt for a place that is none of
// this machine.
std::optional<std::string> LocalDirectory(const std::string& metrics_path);

}  // namespace mssql_cdc::runtime

// Rows of the facts table and the metadata of the target's commits.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "columns/batch.h"

namespace mssql_cdc::pipeline {

// One row, NULL where absent. Times are microseconds UTC. Members are in table order.
struct FactsRow {
  using Text = std::optional<std::string>;
  using Number = std::optional<std::int64_t>;
  using Real = std::optional<double>;

  Text app_id;
  Number batch_id;
  Number rows;
  Text min_lsn;
  Text max_lsn;
  Number min_commit_ts;
  Number max_commit_ts;
  Number deletes;
  Number inserts;
  Number updates;
  Number started_at;
  Number duration_ms;
  Real source_rtt_ms;
  Real read_seconds;
  Real read_mb;
  Number network_wait_ms;
  Number retention_watermark_ts;
  Real retention_headroom_hours;
  Text event;
  Number lost_from_ts;
  Number lost_to_ts;
  Number source_max_commit_ts;
  Real capture_lag_seconds;
  Real ingestion_lag_seconds;
  Text end_lsn;
  Number end_commit_ts;
  Text detail;
  Text target;
  Number written_at;

  bool operator==(const FactsRow&) const = default;
};

// The rows as one batch in FactsTable()'s columns.
columns::RecordBatch FactsBatch(const std::vector<FactsRow>& rows);

// What a batch wrote.
struct BatchCounts {
  std::int64_t rows = 0;
  std::optional<cdc::Lsn> min_lsn;
  std::optional<cdc::Lsn> max_lsn;
  std::optional<std::int64_t> min_commit_us;
  std::optional<std::int64_t> max_commit_us;
  std::int64_t deletes = 0;
  std::int64_t inserts = 0;
  std::int64_t updates = 0;

  bool operator==(const BatchCounts&) const = default;
};

// What reading a batch showed; of a batch that read nothing there is none.
struct ReadMetrics {
  cdc::Offset end;  // The batch's end.
  std::optional<double> rtt_ms;
  double read_seconds = 0;
  std::int64_t size_bytes = 0;
  std::optional<std::int64_t> network_wait_ms;
  std::optional<std::int64_t> retention_watermark_us;
  std::optional<std::int64_t> source_max_commit_us;
  std::optional<std::int64_t> observed_at_us;  // This machine's clock at that moment.
};

struct BatchRun {
  std::string app_id;  // Of the sink: the generation's.
  std::string target;
  std::int64_t batch_id = 0;
  std::int64_t started_at_us = 0;
  std::int64_t duration_ms = 0;
  std::int64_t written_at_us = 0;
};

FactsRow BatchFacts(const BatchRun& run, const BatchCounts& counts,
                    const std::optional<ReadMetrics>& metrics);

// `value` to so many decimals, halves to even on the binary value, as Python's round().
double RoundTo(double value, int decimals);

// What was read, in the target's commit: compact JSON. Counts are null when they were
// not known before the write.
std::string BatchMetadata(const std::optional<BatchCounts>& counts,
                          std::int64_t batch_id, std::string_view app_id);

struct ParsedBatchMetadata {
  std::int64_t batch_id = 0;
  std::string app_id;
  std::optional<BatchCounts> counts;
};
// Reads BatchMetadata()'s text; nullopt for any other.
std::optional<ParsedBatchMetadata> ParseBatchMetadata(std::string_view text);

// Of a whole snapshot's commit: {"snapshot": ..., "lsn": ..., "commit_ts": ...}.
std::string SnapshotMetadata(std::string_view capture_instance,
                             const cdc::Offset& stamp);

// Of a seed's commit: {"seed": ..., "lsn": ..., "commit_ts": ...}.
std::string SeedMetadata(std::string_view capture_instance, const cdc::Offset& stamp);

struct ParsedSnapshotMetadata {
  std::string capture_instance;
  cdc::Offset stamp;
};
// Reads SnapshotMetadata()'s text, and a seed's; nullopt for any other.
std::optional<ParsedSnapshotMetadata> ParseSnapshotMetadata(std::string_view text);

struct SnapshotRun {
  std::string app_id;  // Of the sink: the generation's.
  std::string target;
  cdc::Offset stamp;
  std::optional<std::int64_t> rows;  // Absent with the times: found, not read.
  std::optional<std::int64_t> started_at_us;
  std::optional<std::int64_t> duration_ms;
  std::int64_t written_at_us = 0;
  std::string kind = "bootstrap";  // Or "resnapshot", after a gap:
  std::int64_t generation = 0;
  std::optional<std::int64_t> lost_from_us = std::nullopt;
  std::optional<std::int64_t> lost_to_us = std::nullopt;
  std::optional<std::string> detail = std::nullopt;
};

// A snapshot is about to be read; without a detail, a full one.
FactsRow SnapshotOpenFacts(const SnapshotRun& run);
// How its chunks are cut.
FactsRow SnapshotPlanFacts(const SnapshotRun& run);
// It is in the target: the `bootstrap` or `resnapshot` row.
FactsRow BootstrapFacts(const SnapshotRun& run);

// A chunk is in the target. The times are its wave's.
struct ChunkRun {
  std::string app_id;
  std::string target;
  cdc::Offset stamp;  // Of the wave.
  std::optional<cdc::Offset> high;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> started_at_us;
  std::optional<std::int64_t> duration_ms;
  std::optional<double> read_seconds;
  std::optional<double> read_mb;
  std::string detail;
  std::int64_t written_at_us = 0;
};
FactsRow SnapshotChunkFacts(const ChunkRun& run);

}  // namespace mssql_cdc::pipeline

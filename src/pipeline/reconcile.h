// Decides what a comparison of silver with its source looks at, and what it makes of
// what it finds.
//
// First both sides are counted per slice of a whole-number key, and slices put together
// to buckets; then the buckets that differ, and a sample of the others, are compared
// row by row. What was changed meanwhile is in flight, not wrong.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/dice.h"
#include "columns/batch.h"
#include "columns/value_text.h"
#include "pipeline/apply_chunks.h"

namespace mssql_cdc::pipeline {

// Keys with a distance: whole numbers, and dates as days since 1970-01-01.
enum class OrdinalKind : std::uint8_t { kNumber, kDate };

struct SliceCount {
  std::int64_t rows = 0;
  columns::Int128 key_sum = 0;

  bool operator==(const SliceCount&) const = default;
};
// By slice: the key divided by the width, rounded down.
using Slices = std::map<std::int64_t, SliceCount>;

// Some 100,000 slices over the keys there are. Requires min <= max.
std::int64_t SliceWidth(std::int64_t min, std::int64_t max);
std::int64_t SliceOf(std::int64_t key, std::int64_t width);

enum class BucketStatus : std::uint8_t { kMatch, kInFlight, kMismatch };
std::string_view NameOf(BucketStatus status);

struct Bucket {
  OrdinalKind kind = OrdinalKind::kNumber;
  std::optional<std::int64_t> lo;  // Absent: open.
  std::optional<std::int64_t> hi;  // Exclusive; absent: open.
  std::int64_t source_rows = 0;
  std::int64_t silver_rows = 0;
  std::optional<columns::Int128> source_key_sum;
  std::optional<columns::Int128> silver_key_sum;
  BucketStatus status = BucketStatus::kMatch;
  bool hashed = false;
};

// The JSON of a bucket's bounds: 7, or "2026-01-31". A day before the first date is the
// first, one after the last date is open.
std::optional<std::string> BoundJson(OrdinalKind kind,
                                     const std::optional<std::int64_t>& bound);

// Buckets of at least `bucket_rows` rows, the last one of what is left; none where both
// sides are empty. `moved`: slices with keys in flight. Requires 1 <= bucket_rows.
std::vector<Bucket> CutBuckets(std::int64_t width, const Slices& source,
                               const Slices& silver,
                               const std::set<std::int64_t>& moved,
                               std::int64_t bucket_rows);

// A bucket of everything, where keys have no distance.
Bucket WholeBucket(std::int64_t source_rows, std::int64_t silver_rows, bool moved);

// Positions of the buckets to compare row by row: those that differ, and of the
// others a share of `fraction`, rounded up. Beside keys in flight there can be wrong
// ones: rows tell them apart.
std::vector<std::size_t> ChooseBuckets(const std::vector<Bucket>& buckets,
                                       double fraction, Dice& dice);

// One difference, or one thing that is wrong with a chunk.
struct Finding {
  std::optional<std::string> bucket_lo;  // JSON
  std::optional<std::string> bucket_hi;
  std::optional<std::string> key;  // JSON
  std::string failure_type;
  std::string detail;  // JSON
};

// What MISSING_TARGET, MISSING_SOURCE and RECORD_DIFF say. `silver_lsn`: of silver's
// row; `columns`: those that differ.
std::string DetailOf(const std::optional<std::string>& silver_lsn,
                     const std::optional<std::vector<std::string>>& columns);

// The chunks of bronze's snapshot against what the facts tell of them. `rows` and
// `stamps` (lowest) are bronze's, by chunk.
std::vector<Finding> CheckChunks(const OpenSnapshot& snapshot, bool is_complete,
                                 const std::map<std::int64_t, std::int64_t>& rows,
                                 const std::map<std::int64_t, cdc::Lsn>& stamps);

struct ReportRun {
  std::string run_id;
  std::int64_t run_at_us = 0;
  std::string silver;
  std::int64_t silver_version = 0;
  std::optional<std::string> silver_lsn;
  std::optional<std::string> source_lsn;      // Of the counts.
  std::optional<std::string> row_source_lsn;  // Of the rows.
};

// The report's rows: buckets, chunks, keys.
columns::RecordBatch ReportBatch(const ReportRun& run,
                                 const std::vector<Bucket>& buckets,
                                 const std::vector<Finding>& chunks,
                                 const std::vector<Finding>& keys);

// The key of a row as a JSON object, NULLs kept: {"order_id":3}.
std::string KeyJson(const columns::RecordBatch& batch, std::int64_t row,
                    const std::vector<std::string>& keys);

}  // namespace mssql_cdc::pipeline

// What the facts and the plans table say of chunked snapshots, for who applies them:
// which chunks there are, what keys each one covers and how recent it is.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "columns/schema.h"
#include "pipeline/plan_rows.h"

namespace mssql_cdc::pipeline {

struct SnapshotChunk {
  std::int64_t number = 0;
  std::int64_t wave = 0;
  std::optional<std::string> lo;  // JSON; absent: open.
  std::optional<std::string> hi;  // JSON, exclusive; absent: open.
  bool is_last = false;
  std::optional<std::int64_t> rows;
  cdc::Lsn stamp;  // Its rows are at least that recent.

  bool operator==(const SnapshotChunk&) const = default;
};

struct OpenSnapshot {
  cdc::Lsn lsn;
  std::vector<std::string> keys;
  std::vector<SnapshotChunk> chunks;

  bool operator==(const OpenSnapshot&) const = default;
};

// A row of the facts table about a snapshot.
struct SnapshotFact {
  std::string event;
  std::string target;
  std::optional<cdc::Lsn> min_lsn;
  std::optional<cdc::Lsn> max_lsn;
  std::optional<std::int64_t> rows;
  std::string detail;
  std::string app_id = {};  // Whose snapshot it is; empty where it is not known.
  std::optional<std::int64_t> written_at_us = {};
};

// Without what a stream of before said of a snapshot at the LSN of the newest chunked
// one. On a database where nothing happens, a target that is begun anew under another
// app_id has its snapshot at the same LSN, and only the newest is of that target.
std::vector<SnapshotFact> OfNewestStream(std::vector<SnapshotFact> facts);

// Whether an open row is of a chunked snapshot: all but those that say "full".
bool IsChunkedOpen(const SnapshotFact& fact);

// The newest whole or complete snapshot.
std::optional<cdc::Lsn> NewestCompletion(const std::vector<SnapshotFact>& facts);
// Whether that one had rows; false too where they were not counted.
bool CompletionHadRows(const std::vector<SnapshotFact>& facts);
// The newest chunked snapshot that was opened.
std::optional<cdc::Lsn> NewestChunkedOpen(const std::vector<SnapshotFact>& facts);

// The snapshot `lsn` whole: key columns and chunks, from `facts` and, where those leave
// out key values, from `plans`. Errors: PlansRowMissing (facts plans_table, event,
// snapshot, chunk).
Result<OpenSnapshot> AssembleSnapshot(const cdc::Lsn& lsn,
                                      const std::vector<SnapshotFact>& facts,
                                      const std::vector<PlansRow>& plans,
                                      const std::string& plans_table);

// Which chunk of a single-key snapshot covers a key.
class ChunkRanges {
 public:
  // Covers nothing unless silver's key is the one column that the snapshot is cut on,
  // of a type whose order is the same everywhere: integers, DATE, TIMESTAMP_NTZ.
  ChunkRanges(const OpenSnapshot& open, const std::vector<SnapshotChunk>& chunks,
              const std::vector<columns::Field>& keys);

  bool empty() const { return ranges_.empty(); }
  // The stamp of the chunk that covers the key, the newest if there are several. A NULL
  // key is in a chunk that is open on both sides.
  std::optional<cdc::Lsn> StampOf(const std::optional<std::int64_t>& key) const;

 private:
  struct Range {
    std::optional<std::int64_t> lo;
    std::optional<std::int64_t> hi;  // Exclusive.
    cdc::Lsn stamp;
  };
  std::vector<Range> ranges_;
};

}  // namespace mssql_cdc::pipeline

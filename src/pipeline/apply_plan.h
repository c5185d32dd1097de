// Decides which rows of bronze bring silver up to date.
//
// Silver has one row per key: the newest image. What is applied is a window of changes
// up to the head of bronze, whole snapshots that replace everything, and the chunks of
// a snapshot that is still open, as they arrive.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "pipeline/apply_chunks.h"

namespace mssql_cdc::pipeline {

// Where silver stands, as the control table keeps it.
struct SilverPosition {
  std::optional<cdc::Lsn> applied;        // applied_lsn
  std::optional<cdc::Lsn> rebuilt_from;   // snapshot_lsn
  std::optional<cdc::Lsn> open_snapshot;  // open_snapshot_lsn
  std::optional<std::int64_t> wave;       // snapshot_wave

  bool operator==(const SilverPosition&) const = default;
};

struct ApplyFacts {
  SilverPosition position;
  bool has_facts = false;              // A facts table is given and there.
  std::optional<cdc::Lsn> completion;  // Of the newest whole or complete snapshot.
  std::optional<OpenSnapshot> open;    // The newest chunked one, complete or not.
  // The completion is of a bronze that was there before: this one has none of its rows.
  bool completion_is_gone = false;
  // Of bronze, above position.rebuilt_from.
  std::optional<cdc::Lsn> whole;  // The newest whole snapshot with rows.
  bool has_chunk_rows = false;    // Also above `completion` and `whole`.
  // For messages.
  std::string bronze;
  std::vector<std::string> facts_targets;
};

struct ApplyWindow {
  bool rebuild = false;  // Rows of silver whose keys are not met go.
  std::optional<cdc::Lsn> snapshot;
  std::optional<cdc::Lsn> changes_above;  // Absent: all changes.
  std::optional<cdc::Lsn> snapshot_rows;  // The whole snapshot whose rows count.
  std::optional<OpenSnapshot> open;       // It is open still; its chunks are:
  std::vector<SnapshotChunk> chunks;      // Those to be applied now.
  // Bronze was made anew and has no snapshot yet, nor one that is open.
  bool is_before_snapshot = false;
  // Changes from here on can outrank a row of those chunks, applied or not.
  std::optional<cdc::Lsn> echo_from;

  // A merge is needed whatever rows there are.
  bool must_merge() const {
    return (rebuild && snapshot.has_value()) || !chunks.empty();
  }
  // No row with a smaller _start_lsn counts, nor one that has it if it is exclusive.
  struct Bound {
    cdc::Lsn lsn;
    bool is_exclusive = false;
  };
  std::optional<Bound> LowerBound() const;
};

// Errors: SnapshotUnexplained when bronze has rows of chunks that no facts tell of and
// no newer whole snapshot makes good.
Result<ApplyWindow> PlanApply(const ApplyFacts& facts);

// What a row of bronze says of itself.
struct RowMark {
  int operation = 0;
  cdc::Lsn lsn;
  std::optional<cdc::Lsn> snapshot;  // _snapshot
  std::optional<std::int64_t> chunk;

  bool is_change() const { return operation != 0; }
};

enum class RowRole : std::uint8_t {
  kNone,   // Of no concern.
  kBase,   // A change or a row of a whole snapshot.
  kChunk,  // A row of a chunk that is applied now.
  kEcho,   // A change that may be applied already; it can only outrank chunk rows.
};
RowRole RoleOf(const ApplyWindow& window, const RowMark& row);

// Where silver stands once the window is applied; `top` is the largest LSN of its
// changes.
SilverPosition PositionAfter(const ApplyWindow& window, const SilverPosition& before,
                             const std::optional<cdc::Lsn>& top);

}  // namespace mssql_cdc::pipeline

// Decides what the next micro-batch reads. Pure: facts in, plan out.
//
// A batch always ends at a commit: an entry of cdc.lsn_time_mapping, or the newest LSN
// known when the run froze its end.

#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "cdc/lsn.h"
#include "cdc/offset.h"

namespace mssql_cdc::cdc {

// What the server and the checkpoint said, gathered before planning.
struct BatchFacts {
  Offset position;  // Everything up to here is in the target.
  std::optional<Offset>
      server_max;  // Newest mapping entry; absent: none was ever written,
                   // or cleanup took them all on an idle database.
  // The mapping's oldest entry: of those below it nothing is known.
  std::optional<Lsn> server_oldest;
  // When the server says that the position was committed; absent: it is no entry.
  std::optional<std::int64_t> position_commit_us;
  // With a limit of n commits a batch: the n-th mapping entry above the position, or
  // the last one if there are fewer.
  std::optional<Offset> limited_end;
  std::optional<Offset> frozen_end;  // Where a run that ends by itself ends.
  // Where the newest capture instance begins, which the mapping need not have reached.
  std::optional<Lsn> newest_start = {};
};

struct ReadChanges {
  LsnWindow window;
  std::optional<std::int64_t> commit_us;  // Of window.through.
  bool operator==(const ReadChanges&) const = default;
};
struct Wait {
  enum class Reason : std::uint8_t {
    kCaptureHasNotRun,
    kCaughtUp,
    kFrozenEndReached,  // The run is complete.
    // The server has no commit so new, nor an instance that begins there: perhaps it
    // never gets there, and what comes before is never read.
    kPositionUnreached,
  } reason;
  bool operator==(const Wait&) const = default;
};
// The server's newest commit is below one that was read from it: it was restored or
// failed over to a copy that lacks the end. Reading on would skip or repeat changes
// unnoticed.
struct ReportBehind {
  Lsn position;
  Lsn server_max;
  bool operator==(const ReportBehind&) const = default;
};
// The server has gone past the position, but on another way: the commit that was read
// last is not in its history, or was made at another time.
struct ReportFork {
  Lsn position;
  std::optional<std::int64_t> commit_us;         // As it was read.
  std::optional<std::int64_t> server_commit_us;  // Absent: no such commit.
  bool operator==(const ReportFork&) const = default;
};
// A pending batch that ends where it begins: nothing to read, but to be recorded.
struct ReadNothing {
  bool operator==(const ReadNothing&) const = default;
};

using BatchPlan =
    std::variant<ReadChanges, ReadNothing, Wait, ReportBehind, ReportFork>;

// The plan for a new batch. Total; never reads at or below the position, never beyond
// server_max or frozen_end. What it reads of a window, and whether that is still there,
// is read_plan.h's. A position without a commit time was not read from the server (an
// explicit start, one just below an instance's first LSN), so it may lie above
// server_max: that waits, and says why.
BatchPlan PlanBatch(const BatchFacts& facts);

// The plan for a batch whose end an earlier run wrote down: to exactly that end.
BatchPlan PlanReplay(const BatchFacts& facts, const Offset& pending_end);

}  // namespace mssql_cdc::cdc

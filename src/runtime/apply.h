// Brings a silver table up to date with bronze, in one commit.
//
// Merge on read: the newest image of every key in the window is found from keys and
// order alone; silver's files are probed by key; rows that are replaced or deleted are
// marked, the new images appended. A rerun after a stop at any moment does what is
// left: a row of silver gives way only to a newer image, and the position moves last.

#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dice.h"
#include "base/error.h"
#include "lake/lake.h"
#include "pipeline/apply_plan.h"
#include "runtime/control_updates.h"
#include "runtime/known_facts.h"
#include "runtime/silver_config.h"

namespace mssql_cdc::runtime {

struct ApplyParts {
  lake::Lake& lake;
  Clock& clock;
  Dice& dice;
  ControlUpdates* control = nullptr;  // As ControlTable's `joined`.
  KnownFacts* known = nullptr;        // Kept from one apply of this silver to the next.
};

struct ApplyOutcome {
  bool bronze_found = true;
  bool rebuilt = false;
  pipeline::SilverPosition position;
  std::optional<std::int64_t> finalized_until_us;
  std::int64_t window_row_count = 0;  // Rows of bronze that counted.
  std::int64_t added_count = 0;       // Rows of silver, as the next ones.
  std::int64_t removed_count = 0;
  std::int64_t rewritten_row_count = 0;
  std::int64_t size_bytes = 0;  // Of data files written.
  std::int64_t elapsed_ms = 0;
  std::vector<std::string> warnings;
};

// Errors: SilverKeyInvalid, RowsOfAnotherInstance, SnapshotUnexplained,
// PlansRowMissing; LakeConflict when other writers of silver kept committing first; the
// lake's.
Result<ApplyOutcome> Apply(const SilverConfig& config, const ApplyParts& parts);

}  // namespace mssql_cdc::runtime

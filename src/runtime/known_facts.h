// What one table's silver knows of the facts: many streams may write into one facts
// table, a commit a batch, and an apply asks only for the few rows about snapshots.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/apply_chunks.h"

namespace mssql_cdc::runtime {

// userMetadata of a commit to the facts table whose rows are batches alone, no events.
inline constexpr char kNoEvents[] = R"({"events":0})";

struct KnownFacts {
  std::optional<std::int64_t> version;  // Of the facts table; absent: nothing is known.
  std::vector<pipeline::SnapshotFact> facts;
};

}  // namespace mssql_cdc::runtime

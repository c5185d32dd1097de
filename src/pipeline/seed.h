// Decides whether a copy of the source table that somebody already has can stand in for
// a snapshot, and at which LSN.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"

namespace mssql_cdc::pipeline {

// Where a copy ends: every commit at or below it is in the copy. An LSN, or a time
// (microseconds UTC).
using AsOf = std::variant<cdc::Lsn, std::int64_t>;

// Reads 0x and up to 20 hexadecimal digits, or ISO 8601 with or without an offset; no
// offset is UTC. Errors: OptionInvalid.
Result<AsOf> ParseAsOf(std::string_view text);

struct SeedFacts {
  std::string target;
  std::string capture_instance;
  AsOf as_of;
  std::optional<cdc::Lsn> lsn;  // Of a time: the last commit at or before it.
  bool reseed = false;
  std::vector<cdc::Offset> whole;  // Snapshots of the table in the target.
  std::vector<cdc::Lsn> chunked;
  std::optional<cdc::Lsn> server_max;
  std::vector<cdc::CaptureInstance> instances;  // Oldest first, not empty.
};

// It is there already.
struct SeedIsThere {
  cdc::Offset stamp;
  bool operator==(const SeedIsThere&) const = default;
};
struct AppendSeed {
  cdc::Lsn lsn;
  bool operator==(const AppendSeed&) const = default;
};
using SeedPlan = std::variant<SeedIsThere, AppendSeed>;

// Errors: DataLoss if the changes right after the copy are gone (facts
// capture_instance, position, first_readable, cause); SnapshotExists (facts target,
// lsn, snapshot) at another LSN; OptionInvalid for an LSN above the server's newest.
Result<SeedPlan> PlanSeed(const SeedFacts& facts);

}  // namespace mssql_cdc::pipeline

// Decides where a new stream starts: from a snapshot that is already in the target,
// from one that another run opened, or from one yet to be taken.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cdc/lsn.h"
#include "cdc/offset.h"
#include "pipeline/snapshot_events.h"

namespace mssql_cdc::pipeline {

struct BootstrapFactsGathered {
  std::string app_id;
  SnapshotMode mode = SnapshotMode::kFull;  // In which this run takes snapshots.
  // The newest whole snapshot of the table in the target.
  std::optional<cdc::Offset> in_target;
  std::vector<SnapshotEvent> events;  // Of this target, any stream.
};

// Nothing is read; the `bootstrap` row is offered again.
struct StartFromTarget {
  cdc::Offset stamp;
  bool operator==(const StartFromTarget&) const = default;
};
// A chunked snapshot, or one of an empty table: nothing is read nor written.
struct StartFromFacts {
  cdc::Offset stamp;
  bool operator==(const StartFromFacts&) const = default;
};
struct TakeSnapshot {
  bool operator==(const TakeSnapshot&) const = default;
};
struct OpenChunked {
  bool operator==(const OpenChunked&) const = default;
};

using BootstrapPlan =
    std::variant<StartFromTarget, StartFromFacts, TakeSnapshot, OpenChunked>;

// Requires that the mode is not locked (CheckModeLock).
BootstrapPlan PlanBootstrap(const BootstrapFactsGathered& facts);

// The newest of two stamps.
std::optional<cdc::Offset> NewerStamp(const std::optional<cdc::Offset>& a,
                                      const std::optional<cdc::Offset>& b);

}  // namespace mssql_cdc::pipeline

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

namespace mssql_cdc::pipeline {

// A facts row about a snapshot of the target: event snapshot_open, bootstrap or
// resnapshot.
struct SnapshotEvent {
  std::string event;
  std::string app_id;
  cdc::Lsn lsn;
  std::optional<std::int64_t> commit_us;
  std::optional<std::int64_t> rows;
  std::string detail;
};

struct BootstrapFactsGathered {
  std::string app_id;
  // The newest whole snapshot of the table in the target.
  std::optional<cdc::Offset> in_target;
  std::vector<SnapshotEvent> events;  // Of this target, any stream.
};

// Nothing is read; the `bootstrap` row is offered again.
struct StartFromTarget {
  cdc::Offset stamp;
  bool operator==(const StartFromTarget&) const = default;
};
// A complete chunked snapshot, or one of an empty table: nothing is read nor written.
struct StartFromFacts {
  cdc::Offset stamp;
  bool operator==(const StartFromFacts&) const = default;
};
struct TakeSnapshot {
  bool operator==(const TakeSnapshot&) const = default;
};

using BootstrapPlan = std::variant<StartFromTarget, StartFromFacts, TakeSnapshot>;

// Errors: SnapshotModeLocked while a chunked snapshot of the stream is open (facts
// app_id, lsn).
Result<BootstrapPlan> PlanBootstrap(const BootstrapFactsGathered& facts);

// Whether `sink_id` is `app_id` or one of its generations (app_id.g<digits>).
bool IsOfFamily(std::string_view sink_id, std::string_view app_id);

// The newest of two stamps.
std::optional<cdc::Offset> NewerStamp(const std::optional<cdc::Offset>& a,
                                      const std::optional<cdc::Offset>& b);

}  // namespace mssql_cdc::pipeline

// What happens when changes were removed before a stream read them: it goes on from a
// new snapshot in its next generation, with a checkpoint and a sink id of its own.
//
// The generation's file beside the checkpoint is what makes that final. Everything
// before it is found again after a stop: the open row, the snapshot's rows, its
// resnapshot row.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cdc/offset.h"
#include "pipeline/snapshot_events.h"

namespace mssql_cdc::pipeline {

// The content of _mssql_cdc_generation.json.
struct GenerationState {
  std::int64_t generation = 0;
  std::optional<cdc::Offset> start;       // Of generations from 1 on: their snapshot.
  std::optional<std::int64_t> at_us;      // When it was begun.
  std::optional<cdc::Offset> recovering;  // While a recovery is open: what it is from.
  std::optional<std::int64_t> failed_at_us;

  bool operator==(const GenerationState&) const = default;
  std::string Json() const;
  // Errors: CheckpointUnreadable (fact reason).
  static Result<GenerationState> Parse(std::string_view json);
};

struct RecoveryFacts {
  std::string app_id;
  std::string capture_instance;
  SnapshotMode mode = SnapshotMode::kFull;
  bool bootstrap = false;
  GenerationState state;
  std::optional<cdc::Offset> position;  // Of the live generation's checkpoint.
  std::optional<cdc::Lsn> server_max;
  std::vector<cdc::CaptureInstance> instances;  // Oldest first, not empty.
  std::vector<SnapshotEvent> events;
  std::optional<cdc::Offset> in_target;  // The newest whole snapshot.
  double interval_days = 7;
  std::int64_t now_us = 0;
};

struct Recovery {
  cdc::Offset from;         // The last change that is known.
  cdc::Lsn first_readable;  // What is between is lost.
  std::int64_t generation = 0;
  // A snapshot that an earlier attempt left; nothing is read for it.
  std::optional<cdc::Offset> reuse;

  bool operator==(const Recovery&) const = default;
};

// Whether PlanRecovery needs to know `in_target`, which is dear to find out.
bool NeedsTarget(const RecoveryFacts& facts);

// nullopt: nothing is lost, or nothing was read yet. Errors: DataLoss (facts
// capture_instance, position, first_readable, cause) if the last re-snapshot, or failed
// attempt, is less than interval_days ago.
Result<std::optional<Recovery>> PlanRecovery(const RecoveryFacts& facts);

}  // namespace mssql_cdc::pipeline

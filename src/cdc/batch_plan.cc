#include "cdc/batch_plan.h"

#include <algorithm>

namespace mssql_cdc::cdc {
namespace {

// Zones differ by quarters of an hour. A commit time that another clock converted (a
// server before 2022, whose offset changed; another reader's rule for the hour that the
// clock repeats) is off by a multiple of that.
constexpr std::int64_t kZoneStepUs = 15LL * 60 * 1'000'000;

// Whether the server's history lacks the commit at the position. The mapping keeps its
// entries up to cleanup's mark, so one between its ends must be there.
bool IsForked(const BatchFacts& facts) {
  const Offset& position = facts.position;
  if (!position.commit_us || !facts.server_max || !facts.server_oldest) return false;
  if (position.lsn < *facts.server_oldest) return false;
  if (!facts.position_commit_us) return true;
  return (*facts.position_commit_us - *position.commit_us) % kZoneStepUs != 0;
}

ReportFork Fork(const BatchFacts& facts) {
  return {facts.position.lsn, facts.position.commit_us, facts.position_commit_us};
}

}  // namespace

BatchPlan PlanBatch(const BatchFacts& facts) {
  const Lsn position = facts.position.lsn;
  const bool is_ahead = facts.server_max && facts.server_max->lsn < position;
  if (is_ahead && facts.position.commit_us) {
    return ReportBehind{position, facts.server_max->lsn};
  }
  const bool is_instances = facts.newest_start && position < *facts.newest_start;
  if (is_ahead && !is_instances) return Wait{Wait::Reason::kPositionUnreached};
  if (IsForked(facts)) return Fork(facts);
  if (facts.frozen_end && facts.frozen_end->lsn <= position) {
    return Wait{Wait::Reason::kFrozenEndReached};
  }
  if (!facts.server_max) return Wait{Wait::Reason::kCaptureHasNotRun};
  Offset end = *facts.server_max;
  if (facts.frozen_end && facts.frozen_end->lsn < end.lsn) end = *facts.frozen_end;
  if (facts.limited_end && position < facts.limited_end->lsn &&
      facts.limited_end->lsn < end.lsn) {
    end = *facts.limited_end;
  }
  if (end.lsn <= position) return Wait{Wait::Reason::kCaughtUp};
  return ReadChanges{{position, end.lsn}, end.commit_us};
}

BatchPlan PlanReplay(const BatchFacts& facts, const Offset& pending_end) {
  const Lsn position = facts.position.lsn;
  if (pending_end.lsn <= position) return ReadNothing{};
  if (facts.server_max && facts.server_max->lsn < pending_end.lsn) {
    return ReportBehind{pending_end.lsn, facts.server_max->lsn};
  }
  if (IsForked(facts)) return Fork(facts);
  return ReadChanges{{position, pending_end.lsn}, pending_end.commit_us};
}

}  // namespace mssql_cdc::cdc

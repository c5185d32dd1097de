#include "cdc/batch_plan.h"

#include <algorithm>

namespace mssql_cdc::cdc {
namespace {

// The plan to read up to `end`, unless that is no longer possible. Requires position <
// end.
BatchPlan ReadUpTo(const BatchFacts& facts, const Offset& end) {
  if (!facts.instance_min) return ReportMissingInstance{};
  const LsnWindow window{facts.position.lsn, end.lsn};
  if (CleanupReached(window, facts.instance_min)) {
    return ReportGap{facts.position.lsn, *facts.instance_min};
  }
  return ReadChanges{window, end.commit_us};
}

}  // namespace

bool CleanupReached(const LsnWindow& window, const std::optional<Lsn>& instance_min) {
  if (!instance_min) return true;
  // The first LSN not yet read must still be there; instance_min is itself readable.
  // Next() is absent only at the top, which no window starts at.
  const std::optional<Lsn> first_unread = window.after.Next();
  return first_unread && *first_unread < *instance_min;
}

BatchPlan PlanBatch(const BatchFacts& facts) {
  const Lsn position = facts.position.lsn;
  const bool is_ahead = facts.server_max && facts.server_max->lsn < position;
  if (is_ahead && facts.position.commit_us) {
    return ReportFork{position, facts.server_max->lsn};
  }
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
  return ReadUpTo(facts, end);
}

BatchPlan PlanReplay(const BatchFacts& facts, const Offset& pending_end) {
  const Lsn position = facts.position.lsn;
  if (pending_end.lsn <= position) return ReadNothing{};
  if (!facts.instance_min) return ReportMissingInstance{};
  if (facts.server_max && facts.server_max->lsn < pending_end.lsn) {
    return ReportFork{pending_end.lsn, facts.server_max->lsn};
  }
  return ReadUpTo(facts, pending_end);
}

}  // namespace mssql_cdc::cdc

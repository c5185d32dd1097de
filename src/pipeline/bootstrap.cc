#include "pipeline/bootstrap.h"

namespace mssql_cdc::pipeline {

std::optional<cdc::Offset> NewerStamp(const std::optional<cdc::Offset>& a,
                                      const std::optional<cdc::Offset>& b) {
  if (!a || !b) return a ? a : b;
  return a->lsn < b->lsn ? b : a;
}

BootstrapPlan PlanBootstrap(const BootstrapFactsGathered& facts) {
  if (facts.in_target) return StartFromTarget{*facts.in_target};
  const std::optional<OpenedSnapshot> opened = OpenedBy(facts.events, facts.app_id);
  if (opened && opened->detail.mode == SnapshotMode::kChunked) {
    return StartFromFacts{opened->stamp};
  }
  std::optional<cdc::Offset> of_empty_table;
  for (const SnapshotEvent& event : facts.events) {
    if (event.event != "bootstrap" || event.rows != 0) continue;
    if (event.app_id != facts.app_id) continue;
    of_empty_table =
        NewerStamp(of_empty_table, cdc::Offset{event.lsn, event.commit_us});
  }
  if (of_empty_table) return StartFromFacts{*of_empty_table};
  if (facts.mode == SnapshotMode::kChunked) return OpenChunked{};
  return TakeSnapshot{};
}

}  // namespace mssql_cdc::pipeline

#include "pipeline/bootstrap.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mssql_cdc::pipeline {
namespace {

// An open row says "full" exactly, or it is of a chunked snapshot.
bool IsChunkedOpen(const SnapshotEvent& event) {
  if (event.event != "snapshot_open") return false;
  const nlohmann::json detail = nlohmann::json::parse(event.detail, nullptr, false);
  if (!detail.is_object()) return true;
  const auto mode = detail.find("mode");
  return mode == detail.end() || *mode != "full";
}

bool IsCompletion(const SnapshotEvent& event) {
  return event.event == "bootstrap" || event.event == "resnapshot";
}

}  // namespace

bool IsOfFamily(std::string_view sink_id, std::string_view app_id) {
  if (!sink_id.starts_with(app_id)) return false;
  std::string_view rest = sink_id.substr(app_id.size());
  if (rest.empty()) return true;
  if (!rest.starts_with(".g") || rest.size() == 2) return false;
  rest.remove_prefix(2);
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<cdc::Offset> NewerStamp(const std::optional<cdc::Offset>& a,
                                      const std::optional<cdc::Offset>& b) {
  if (!a || !b) return a ? a : b;
  return a->lsn < b->lsn ? b : a;
}

Result<BootstrapPlan> PlanBootstrap(const BootstrapFactsGathered& facts) {
  std::optional<cdc::Lsn> completed;
  for (const SnapshotEvent& event : facts.events) {
    if (!IsOfFamily(event.app_id, facts.app_id) || !IsCompletion(event)) continue;
    completed = std::max(completed, std::optional<cdc::Lsn>(event.lsn));
  }
  std::optional<cdc::Offset> chunked;
  std::optional<cdc::Offset> of_empty_table;
  for (const SnapshotEvent& event : facts.events) {
    if (!IsOfFamily(event.app_id, facts.app_id)) continue;
    const cdc::Offset stamp{event.lsn, event.commit_us};
    if (IsChunkedOpen(event)) {
      if (!completed || *completed < event.lsn) {
        return Error(ErrorId::kSnapshotModeLocked)
            .With("app_id", event.app_id)
            .With("lsn", event.lsn.Text())
            .With("mode", "chunked");
      }
      if (event.app_id == facts.app_id) chunked = NewerStamp(chunked, stamp);
    } else if (event.event == "bootstrap" && event.rows == 0 &&
               event.app_id == facts.app_id) {
      of_empty_table = NewerStamp(of_empty_table, stamp);
    }
  }
  if (facts.in_target) return BootstrapPlan(StartFromTarget{*facts.in_target});
  if (chunked) return BootstrapPlan(StartFromFacts{*chunked});
  if (of_empty_table) return BootstrapPlan(StartFromFacts{*of_empty_table});
  return BootstrapPlan(TakeSnapshot{});
}

}  // namespace mssql_cdc::pipeline

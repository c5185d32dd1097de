#include "pipeline/plan_rows.h"

#include <algorithm>
#include <utility>

#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = PlanRows::Json;

// The members that a plans row has and a facts row leaves out.
std::vector<const char*> PlansOnly(const std::string& event) {
  if (event == "snapshot_open") return {"keys", "plan"};
  if (event == "snapshot_plan") return {"chunks"};
  return {"lo", "hi"};
}

}  // namespace

bool IsOfAnother(const Json& payload, const std::string& sink_id) {
  return TextMember(payload, "app_id").value_or(sink_id) != sink_id;
}

bool IsWhole(const std::string& event, const Json& detail) {
  return std::ranges::any_of(PlansOnly(event),
                             [&](const char* key) { return detail.contains(key); });
}

PlanRows::PlanRows(const std::vector<PlansRow>& rows,
                   const std::optional<std::string>& sink_id) {
  for (const PlansRow& row : rows) {
    std::optional<Json> json = ParseObject(row.detail);
    if (!json || (sink_id && IsOfAnother(*json, *sink_id))) continue;
    RowKey key(row.event, IntegerMember(*json, "chunk"), IntegerMember(*json, "wave"));
    by_key_[std::move(key)] = *std::move(json);
  }
}

std::optional<Json> PlanRows::Whole(const std::string& event,
                                    const Json& detail) const {
  if (IsWhole(event, detail)) return detail;
  const auto found = by_key_.find(
      {event, IntegerMember(detail, "chunk"), IntegerMember(detail, "wave")});
  if (found == by_key_.end()) return std::nullopt;
  return found->second;
}

std::vector<Json> PlanRows::OfWave(std::int64_t wave) const {
  std::vector<Json> chunks;
  for (const auto& [key, json] : by_key_) {
    if (std::get<0>(key) == "snapshot_chunk" && std::get<2>(key) == wave) {
      chunks.push_back(json);
    }
  }
  return chunks;
}

}  // namespace mssql_cdc::pipeline

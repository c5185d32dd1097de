#include "pipeline/source_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace mssql_cdc::pipeline {
namespace {

using OrderedJson = nlohmann::ordered_json;
constexpr auto kReplace = OrderedJson::error_handler_t::replace;
constexpr cdc::SourceEvent::Kind kKinds[] = {cdc::SourceEvent::Kind::kSchemaChange,
                                             cdc::SourceEvent::Kind::kInstanceSwitched,
                                             cdc::SourceEvent::Kind::kDataSkipped};

using Time = std::optional<std::int64_t>;

OrderedJson TimeJson(const Time& us) { return us ? OrderedJson(*us) : OrderedJson(); }

Time TimeOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

Error Unreadable() {
  return Error(ErrorId::kCheckpointUnreadable)
      .With("reason", "what it notes of a batch is malformed");
}

// What makes two events the same one. A skip's `to` may move while the batch is tried.
std::string IdentityOf(const cdc::SourceEvent& event) {
  std::string identity = cdc::NameOf(event.kind);
  identity += '\n' + event.capture_instance + '\n';
  if (event.kind != cdc::SourceEvent::Kind::kDataSkipped) {
    return identity + event.at.lsn.Text();
  }
  const auto detail = nlohmann::json::parse(event.detail, nullptr, false);
  if (!detail.is_object()) return identity;
  return identity + TextOf(detail, "from") +
         (detail.value("certain", false) ? "1" : "0");
}

}  // namespace

FactsRow EventFacts(const BatchRun& run, const cdc::SourceEvent& event) {
  FactsRow row;
  row.app_id = run.app_id;
  row.batch_id = run.batch_id;
  row.rows = row.deletes = row.inserts = row.updates = 0;
  row.min_lsn = row.max_lsn = row.end_lsn = event.at.lsn.Text();
  row.min_commit_ts = row.max_commit_ts = row.end_commit_ts = event.at.commit_us;
  row.event = cdc::NameOf(event.kind);
  row.detail = event.detail;
  if (event.kind == cdc::SourceEvent::Kind::kDataSkipped) {
    row.lost_from_ts = event.lost_from_us;
    row.lost_to_ts = event.lost_to_us;
  }
  row.target = run.target;
  row.written_at = run.written_at_us;
  return row;
}

std::optional<std::string> WarningsDetail(const std::vector<std::string>& warnings) {
  std::string list;
  std::vector<std::string> seen;
  for (const std::string& warning : warnings) {
    if (std::ranges::find(seen, warning) != seen.end()) continue;
    seen.push_back(warning);
    if (!list.empty()) list += ", ";
    list += OrderedJson(warning).dump(-1, ' ', true, kReplace);
  }
  if (list.empty()) return std::nullopt;
  return "{\"warnings\": [" + list + "]}";
}

std::string BatchNote::Json() const {
  OrderedJson json;
  json["batch_id"] = batch_id;
  json["events"] = OrderedJson::array();
  for (const cdc::SourceEvent& event : events) {
    OrderedJson item;
    item["event"] = cdc::NameOf(event.kind);
    item["capture_instance"] = event.capture_instance;
    item["lsn"] = event.at.lsn.Text();
    item["commit_us"] = TimeJson(event.at.commit_us);
    item["detail"] = event.detail;
    item["lost_from_us"] = TimeJson(event.lost_from_us);
    item["lost_to_us"] = TimeJson(event.lost_to_us);
    json["events"].push_back(std::move(item));
  }
  json["warnings"] = warnings;
  return json.dump(-1, ' ', true, kReplace);
}

Result<BatchNote> BatchNote::Parse(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !TimeOf(json, "batch_id") || !json.contains("events") ||
      !json["events"].is_array()) {
    return Unreadable();
  }
  BatchNote note;
  note.batch_id = *TimeOf(json, "batch_id");
  for (const auto& item : json["events"]) {
    if (!item.is_object()) return Unreadable();
    cdc::SourceEvent event;
    const std::string name = TextOf(item, "event");
    const auto* kind = std::ranges::find(kKinds, name, cdc::NameOf);
    const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(TextOf(item, "lsn"));
    if (kind == std::end(kKinds) || !lsn.ok()) return Unreadable();
    event.kind = *kind;
    event.capture_instance = TextOf(item, "capture_instance");
    event.at = {lsn.value(), TimeOf(item, "commit_us")};
    event.detail = TextOf(item, "detail");
    event.lost_from_us = TimeOf(item, "lost_from_us");
    event.lost_to_us = TimeOf(item, "lost_to_us");
    note.events.push_back(std::move(event));
  }
  for (const auto& warning : json.value("warnings", nlohmann::json::array())) {
    if (warning.is_string()) note.warnings.push_back(warning.get<std::string>());
  }
  return note;
}

BatchNote Merge(const BatchNote& earlier, BatchNote now) {
  if (earlier.batch_id != now.batch_id) return now;
  BatchNote merged{now.batch_id, {}, earlier.warnings};
  for (const cdc::SourceEvent& event : earlier.events) {
    const bool is_found_again =
        std::ranges::any_of(now.events, [&](const cdc::SourceEvent& other) {
          return IdentityOf(other) == IdentityOf(event);
        });
    if (!is_found_again) merged.events.push_back(event);
  }
  std::ranges::move(now.events, std::back_inserter(merged.events));
  std::ranges::move(now.warnings, std::back_inserter(merged.warnings));
  return merged;
}

}  // namespace mssql_cdc::pipeline

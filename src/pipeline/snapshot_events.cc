#include "pipeline/snapshot_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

bool IsCompletion(const SnapshotEvent& event) {
  return event.event == "bootstrap" || event.event == "resnapshot";
}

OpenedSnapshot Opened(const SnapshotEvent& event) {
  return {event.app_id,
          {event.lsn, event.commit_us},
          ParseOpenDetail(event.detail),
          event.written_at_us,
          false};
}

Error Locked(const OpenedSnapshot& open) {
  const bool is_full = open.detail.mode == SnapshotMode::kFull;
  return Error(ErrorId::kSnapshotModeLocked)
      .With("app_id", open.sink_id)
      .With("lsn", open.stamp.lsn.Text())
      .With("mode", NameOf(open.detail.mode))
      .With("generation", std::to_string(open.detail.generation))
      .With("finish", is_full ? "run with snapshot = full until its snapshot is done"
                              : "run mssql-cdc backfill until it says done");
}

}  // namespace

const char* NameOf(SnapshotMode mode) {
  return mode == SnapshotMode::kFull ? "full" : "chunked";
}

OpenDetail ParseOpenDetail(std::string_view detail) {
  OpenDetail open;
  const auto json = ParseObject(detail);
  if (!json) return open;
  if (TextMember(*json, "mode") == "full") open.mode = SnapshotMode::kFull;
  open.generation = IntegerMember(*json, "generation").value_or(0);
  open.kind = TextMember(*json, "kind")
                  .value_or(open.generation == 0 ? "bootstrap" : "resnapshot");
  open.lost_from_us = TimeMember(*json, "lost_from_ts");
  open.lost_to_us = TimeMember(*json, "lost_to_ts");
  open.switch_batch_id = IntegerMember(*json, "switch_batch_id");
  return open;
}

bool IsOfFamily(std::string_view sink_id, std::string_view app_id) {
  if (!sink_id.starts_with(app_id)) return false;
  std::string_view rest = sink_id.substr(app_id.size());
  if (rest.empty()) return true;
  if (!rest.starts_with(".g") || rest.size() == 2) return false;
  rest.remove_prefix(2);
  return std::all_of(rest.begin(), rest.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::string SinkIdOf(std::string_view app_id, std::int64_t generation) {
  std::string sink_id(app_id);
  if (generation != 0) sink_id += ".g" + std::to_string(generation);
  return sink_id;
}

std::vector<OpenedSnapshot> OpenedOf(const std::vector<SnapshotEvent>& events,
                                     std::string_view app_id) {
  std::optional<cdc::Lsn> completed;
  std::vector<OpenedSnapshot> opened;
  for (const SnapshotEvent& event : events) {
    if (!IsOfFamily(event.app_id, app_id)) continue;
    if (IsCompletion(event)) completed = std::max(completed, std::optional(event.lsn));
    if (event.event == "snapshot_open") opened.push_back(Opened(event));
  }
  for (OpenedSnapshot& each : opened) {
    each.is_complete = completed && *completed >= each.stamp.lsn;
  }
  return opened;
}

std::optional<OpenedSnapshot> OpenedBy(const std::vector<SnapshotEvent>& events,
                                       std::string_view sink_id) {
  std::optional<OpenedSnapshot> best;
  for (const SnapshotEvent& event : events) {
    if (event.event != "snapshot_open" || event.app_id != sink_id) continue;
    OpenedSnapshot opened = Opened(event);
    const bool is_better =
        !best || (opened.detail.mode == best->detail.mode
                      ? best->stamp.lsn < opened.stamp.lsn
                      : opened.detail.mode == SnapshotMode::kChunked);
    if (is_better) best = std::move(opened);
  }
  if (!best) return best;
  best->is_complete =
      std::any_of(events.begin(), events.end(), [&](const SnapshotEvent& event) {
        return IsCompletion(event) && event.app_id == sink_id &&
               event.lsn >= best->stamp.lsn;
      });
  return best;
}

std::optional<OpenedSnapshot> NewestChunked(const std::vector<SnapshotEvent>& events,
                                            std::string_view app_id) {
  std::optional<OpenedSnapshot> newest;
  for (OpenedSnapshot& opened : OpenedOf(events, app_id)) {
    if (opened.detail.mode != SnapshotMode::kChunked) continue;
    if (!newest || newest->stamp.lsn < opened.stamp.lsn) newest = std::move(opened);
  }
  return newest;
}

Status CheckModeLock(const std::vector<SnapshotEvent>& events, std::string_view app_id,
                     std::optional<SnapshotMode> wanted, const IsLost& is_lost) {
  const std::vector<OpenedSnapshot> all = OpenedOf(events, app_id);
  const auto has_chunked = [&](const std::string& sink_id) {
    return std::any_of(all.begin(), all.end(), [&](const OpenedSnapshot& each) {
      return each.sink_id == sink_id && each.detail.mode == SnapshotMode::kChunked;
    });
  };
  const OpenedSnapshot* blocking = nullptr;
  for (const OpenedSnapshot& each : all) {
    if (each.is_complete || each.detail.mode == wanted) continue;
    const bool is_dead = each.detail.mode == SnapshotMode::kFull &&
                         (has_chunked(each.sink_id) || is_lost(each.stamp.lsn));
    if (is_dead) continue;
    if (blocking == nullptr || blocking->stamp.lsn < each.stamp.lsn) blocking = &each;
  }
  if (blocking != nullptr) return Locked(*blocking);
  return Unit{};
}

}  // namespace mssql_cdc::pipeline

#include "pipeline/chunked_snapshot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = nlohmann::ordered_json;

Error Unreadable(std::string_view event, std::string reason) {
  return Error(ErrorId::kCheckpointUnreadable)
      .With("event", std::string(event))
      .With("reason", std::move(reason));
}

// The whole payload of a facts row.
Result<Json> WholeOf(const PlanRows& plans, const std::string& event,
                     const Json& detail, const std::string& plans_table,
                     const cdc::Lsn& snapshot) {
  std::optional<Json> whole = plans.Whole(event, detail);
  if (whole) return *std::move(whole);
  return Error(ErrorId::kSnapshotPlanLost)
      .With("table", plans_table)
      .With("event", event)
      .With("lsn", snapshot.Text());
}

Result<Extent> ParseExtent(const Json& json, std::size_t key_count) {
  if (!json.is_object()) return Unreadable("snapshot_open", "it has no plan");
  if (TextMember(json, "kind") == "int") {
    const std::optional<std::int64_t> min = IntegerMember(json, "lo");
    const std::optional<std::int64_t> max = IntegerMember(json, "hi");
    if (!min || !max) return Unreadable("snapshot_open", "its plan has no bounds");
    return Extent(IntegerExtent{*min, *max, IntegerMember(json, "rows").value_or(0)});
  }
  TRY_ASSIGN(std::optional<Key> max, ParseKey(json.value("max", Json()), key_count));
  return Extent(SeekExtent{std::move(max)});
}

Result<ChunkedOpen> ParseOpen(const Json& json, const OpenDetail& detail) {
  ChunkedOpen open;
  open.detail = detail;
  const auto keys = json.find("keys");
  if (keys == json.end() || !keys->is_array()) {
    return Unreadable("snapshot_open", "it has no keys");
  }
  for (const Json& key : *keys) {
    if (!key.is_string()) return Unreadable("snapshot_open", "a key is no text");
    open.keys.push_back(key.get<std::string>());
  }
  TRY_ASSIGN(open.extent, ParseExtent(json.value("plan", Json()), open.keys.size()));
  return open;
}

Result<KeyRange> ParseRange(const Json& lo, const Json& hi, std::size_t key_count) {
  KeyRange range;
  TRY_ASSIGN(range.lo, ParseKey(lo, key_count));
  TRY_ASSIGN(range.hi, ParseKey(hi, key_count));
  return range;
}

Result<ChunkPlan> ParsePlan(const Json& json, std::size_t key_count) {
  ChunkPlan plan;
  plan.chunk_rows = IntegerMember(json, "chunk_rows").value_or(0);
  const auto chunks = json.find("chunks");
  if (chunks == json.end() || !chunks->is_array() || chunks->empty()) {
    return Unreadable("snapshot_plan", "it has no chunks");
  }
  for (const Json& each : *chunks) {
    if (!each.is_array() || each.size() != 2) {
      return Unreadable("snapshot_plan", "a chunk is no pair");
    }
    TRY_ASSIGN(KeyRange range, ParseRange(each[0], each[1], key_count));
    plan.chunks.push_back(std::move(range));
  }
  return plan;
}

Result<Chunk> ParseChunk(const Json& json, std::size_t key_count) {
  Chunk chunk;
  const std::optional<std::int64_t> number = IntegerMember(json, "chunk");
  if (!number) return Unreadable("snapshot_chunk", "it has no number");
  chunk.chunk = *number;
  chunk.is_last = json.value("last", Json(false)) == true;
  TRY_ASSIGN(chunk.range,
             ParseRange(json.value("lo", Json()), json.value("hi", Json()), key_count));
  return chunk;
}

// Adds a snapshot_chunk row of the facts.
void AddDone(const SnapshotEvent& event, const Json& detail, ChunkedState& state) {
  const std::int64_t number = IntegerMember(detail, "chunk").value_or(0);
  const std::int64_t wave = IntegerMember(detail, "wave").value_or(0);
  ++state.done_count;
  state.row_count += event.rows.value_or(0);
  state.next_chunk = std::max(state.next_chunk, number + 1);
  if (detail.value("last", Json(false)) == true) state.last_chunk_is_done = true;
  state.last_stamp = std::max(state.last_stamp, event.min_lsn);
  if (!state.last_wave || *state.last_wave < wave) {
    state.last_wave = wave;
    state.last_wave_ms = event.duration_ms;
    state.last_wave_chunk_count = 0;
  }
  if (state.last_wave == wave) ++state.last_wave_chunk_count;
}

}  // namespace

Result<ChunkedState> ReadChunkedState(const OpenedSnapshot& opened,
                                      const std::vector<SnapshotEvent>& events,
                                      const std::vector<PlansRow>& rows,
                                      const std::string& plans_table) {
  ChunkedState state;
  state.opened = opened;
  const cdc::Lsn snapshot = opened.stamp.lsn;
  const PlanRows plans(rows, opened.sink_id);
  const auto is_ours = [&](const SnapshotEvent& event, const char* name) {
    return event.event == name && event.app_id == opened.sink_id;
  };
  Json open_detail;
  for (const SnapshotEvent& event : events) {
    if (!is_ours(event, "snapshot_open") || event.lsn != snapshot) continue;
    const Json detail = ParseObject(event.detail).value_or(Json::object());
    if (TextMember(detail, "mode") != "full") open_detail = detail;
  }
  const auto whole_of = [&](const char* event, const Json& detail) {
    return WholeOf(plans, event, detail, plans_table, snapshot);
  };
  state.is_whole_in_facts = IsWhole("snapshot_open", open_detail);
  TRY_ASSIGN(const Json whole, whole_of("snapshot_open", open_detail));
  TRY_ASSIGN(state.open, ParseOpen(whole, opened.detail));
  const std::size_t key_count = state.open.keys.size();
  for (const SnapshotEvent& event : events) {
    const bool is_plan = is_ours(event, "snapshot_plan");
    if (!is_plan && !is_ours(event, "snapshot_chunk")) continue;
    const std::optional<Json> detail = ParseObject(event.detail);
    if (!detail || LsnMember(*detail, "snapshot") != snapshot) continue;
    if (!is_plan) {
      AddDone(event, *detail, state);
    } else if (!state.plan) {
      TRY_ASSIGN(const Json plan, whole_of("snapshot_plan", *detail));
      TRY_ASSIGN(state.plan, ParsePlan(plan, key_count));
    }
  }
  for (const Json& json : plans.OfWave(state.last_wave.value_or(-1) + 1)) {
    TRY_ASSIGN(Chunk chunk, ParseChunk(json, key_count));
    state.noted.push_back(std::move(chunk));
  }
  return state;
}

std::int64_t DoneChunkCount(const OpenedSnapshot& opened,
                            const std::vector<SnapshotEvent>& events) {
  return std::ranges::count_if(events, [&](const SnapshotEvent& event) {
    if (event.event != "snapshot_chunk" || event.app_id != opened.sink_id) return false;
    const std::optional<Json> detail = ParseObject(event.detail);
    return detail && LsnMember(*detail, "snapshot") == opened.stamp.lsn;
  });
}

Result<std::optional<ChunkPlan>> StoredPlan(const std::vector<PlansRow>& rows,
                                            const std::string& sink_id,
                                            std::size_t key_count) {
  std::optional<ChunkPlan> stored;
  for (const PlansRow& row : rows) {
    const std::optional<Json> json = ParseObject(row.detail);
    if (!json || row.event != "snapshot_plan" || IsOfAnother(*json, sink_id)) continue;
    TRY_ASSIGN(stored, ParsePlan(*json, key_count));
  }
  return stored;
}

ChunkedStep NextStep(const ChunkedState& state) {
  if (state.opened.is_complete) return NothingLeft{};
  if (!state.plan) return MakePlan{};
  const auto chunk_count = static_cast<std::int64_t>(state.plan->chunks.size());
  if (state.last_chunk_is_done || state.next_chunk >= chunk_count) {
    return WriteCompletion{};
  }
  return ReadWave{state.last_wave.value_or(-1) + 1, state.noted};
}

std::int64_t ChunkCountOf(const WaveSizing& sizing, std::int64_t left_chunk_count) {
  double round_count = 1;
  if (sizing.round_seconds && sizing.target_seconds > 0) {
    double seconds = sizing.target_seconds;
    if (sizing.left_seconds) seconds = std::min(seconds, *sizing.left_seconds);
    const double pace = std::max(*sizing.round_seconds, 1e-3);
    const auto most = static_cast<double>(left_chunk_count);
    round_count = std::clamp(std::floor(seconds / pace), 1.0, std::max(1.0, most));
  }
  const std::int64_t rounds = static_cast<std::int64_t>(round_count);
  return std::min(left_chunk_count, rounds * sizing.parallel_count);
}

std::vector<Chunk> TakeChunks(const ChunkPlan& plan, std::int64_t first,
                              std::int64_t count) {
  std::vector<Chunk> chunks;
  const auto end = static_cast<std::int64_t>(plan.chunks.size());
  for (std::int64_t i = first; i < std::min(end, first + count); ++i) {
    chunks.push_back({i, plan.chunks[static_cast<std::size_t>(i)], i + 1 == end});
  }
  return chunks;
}

std::vector<DoneChunk> RebuildChunks(
    const ChunkPlan& plan, std::int64_t first,
    const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
  std::map<std::int64_t, std::int64_t> row_counts;
  for (const auto& [chunk, count] : rows) {
    if (chunk >= first) row_counts[chunk] += count;
  }
  std::vector<DoneChunk> done;
  if (row_counts.empty()) return done;
  const std::int64_t count = row_counts.rbegin()->first - first + 1;
  for (Chunk& chunk : TakeChunks(plan, first, count)) {
    const std::int64_t row_count = row_counts[chunk.chunk];
    done.push_back({std::move(chunk), row_count, {}, {}, {}});
  }
  return done;
}

}  // namespace mssql_cdc::pipeline

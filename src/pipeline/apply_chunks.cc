#include "pipeline/apply_chunks.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "columns/value_text.h"
#include "pipeline/json_text.h"
#include "pipeline/snapshot_events.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = nlohmann::ordered_json;
using columns::Kind;

Json ParseDetail(const std::string& detail) {
  return ParseObject(detail).value_or(Json::object());
}

struct PlanSearch {
  const PlanRows plans;
  const std::string& plans_table;
  std::string snapshot;
};

// The payload of a facts row, with what the plans table keeps of it.
Result<Json> Whole(const std::string& event, const Json& detail,
                   const PlanSearch& search) {
  std::optional<Json> found = search.plans.Whole(event, detail);
  if (found) return *std::move(found);
  Error error(ErrorId::kPlansRowMissing);
  error.Add("plans_table", search.plans_table);
  error.Add("event", event);
  error.Add("snapshot", search.snapshot);
  if (const auto chunk = IntegerMember(detail, "chunk")) {
    error.Add("chunk", std::to_string(*chunk));
  }
  return error;
}

std::optional<std::string> BoundOf(const Json& whole, const char* key) {
  const auto found = whole.find(key);
  if (found == whole.end() || found->is_null()) return std::nullopt;
  return found->dump();
}

// A bound of one key: the value itself, or the only one of a list.
Json OnlyValue(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_array() && json.size() == 1) return json[0];
  return json;
}

enum class Side : std::uint8_t { kLow, kHigh };

// A timestamp's microseconds; a lower bound with digits below them moves up.
std::optional<std::int64_t> TimestampBound(const std::string& text, Side side) {
  const std::optional<std::int64_t> us = ParseIsoUs(text);
  if (!us) return std::nullopt;
  const auto point = text.find('.');
  bool has_rest = false;
  for (std::size_t i = point == std::string::npos ? text.size() : point + 7;
       i < text.size(); ++i) {
    has_rest = has_rest || (text[i] >= '1' && text[i] <= '9');
  }
  return side == Side::kLow && has_rest ? *us + 1 : *us;
}

struct Bound {
  std::optional<std::int64_t> value;
  bool is_usable = true;
};

Bound ParseBound(const std::optional<std::string>& text, Kind kind, Side side) {
  if (!text) return {};
  const Json json = OnlyValue(*text);
  switch (kind) {
    case Kind::kInt16:
    case Kind::kInt32:
    case Kind::kInt64:
      if (json.is_number_unsigned() &&
          json.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
        return {std::nullopt, side == Side::kHigh};
      }
      if (json.is_number_integer()) return {json.get<std::int64_t>()};
      // Digits beyond 64 bits arrive as a float.
      if (json.is_number_float() && json.get<double>() > 9e18) {
        return {std::nullopt, side == Side::kHigh};
      }
      return {std::nullopt, false};
    case Kind::kDate32: {
      if (!json.is_string()) return {std::nullopt, false};
      const std::optional<std::int32_t> days =
          columns::ParseDateText(json.get<std::string>().substr(0, 10));
      if (!days) return {std::nullopt, false};
      return {*days};
    }
    case Kind::kTimestampNtz: {
      if (!json.is_string()) return {std::nullopt, false};
      const std::optional<std::int64_t> us =
          TimestampBound(json.get<std::string>(), side);
      return {us, us.has_value()};
    }
    default:
      return {std::nullopt, false};
  }
}

bool IsCompletion(const SnapshotFact& fact) {
  return fact.event == "bootstrap" || fact.event == "resnapshot";
}

}  // namespace

bool IsChunkedOpen(const SnapshotFact& fact) {
  return fact.event == "snapshot_open" &&
         ParseOpenDetail(fact.detail).mode == SnapshotMode::kChunked;
}

std::vector<SnapshotFact> OfNewestStream(std::vector<SnapshotFact> facts) {
  std::optional<SnapshotFact> open;
  for (const SnapshotFact& fact : facts) {
    if (!IsChunkedOpen(fact) || fact.app_id.empty()) continue;
    const bool is_newer =
        !open || fact.max_lsn > open->max_lsn ||
        (fact.max_lsn == open->max_lsn && fact.written_at_us > open->written_at_us);
    if (is_newer) open = fact;
  }
  if (!open || !open->max_lsn) return facts;
  std::erase_if(facts, [&](const SnapshotFact& fact) {
    if (fact.app_id.empty() || fact.app_id == open->app_id) return false;
    if (fact.event == "snapshot_chunk") {
      return LsnMember(ParseDetail(fact.detail), "snapshot") == *open->max_lsn;
    }
    const bool is_before = fact.written_at_us < open->written_at_us;
    return fact.max_lsn == open->max_lsn && is_before &&
           (IsCompletion(fact) || fact.event == "snapshot_open");
  });
  return facts;
}

std::optional<cdc::Lsn> NewestCompletion(const std::vector<SnapshotFact>& facts) {
  std::optional<cdc::Lsn> newest;
  for (const SnapshotFact& fact : facts) {
    if (IsCompletion(fact)) newest = std::max(newest, fact.max_lsn);
  }
  return newest;
}

bool CompletionHadRows(const std::vector<SnapshotFact>& facts) {
  const std::optional<cdc::Lsn> newest = NewestCompletion(facts);
  return std::any_of(facts.begin(), facts.end(), [&](const SnapshotFact& fact) {
    return IsCompletion(fact) && fact.max_lsn == newest && fact.rows.value_or(0) > 0;
  });
}

std::optional<cdc::Lsn> NewestChunkedOpen(const std::vector<SnapshotFact>& facts) {
  std::optional<cdc::Lsn> newest;
  for (const SnapshotFact& fact : facts) {
    if (IsChunkedOpen(fact)) newest = std::max(newest, fact.max_lsn);
  }
  return newest;
}

Result<OpenSnapshot> AssembleSnapshot(const cdc::Lsn& lsn,
                                      const std::vector<SnapshotFact>& facts,
                                      const std::vector<PlansRow>& plans,
                                      const std::string& plans_table) {
  OpenSnapshot snapshot{lsn, {}, {}};
  std::optional<std::string> sink_id;
  for (const SnapshotFact& fact : facts) {
    const bool says = IsChunkedOpen(fact) && fact.max_lsn == lsn;
    if (says && !fact.app_id.empty()) sink_id = fact.app_id;
  }
  const PlanSearch search{PlanRows(plans, sink_id), plans_table, lsn.Text()};
  for (const SnapshotFact& fact : facts) {
    const Json detail = ParseDetail(fact.detail);
    if (IsChunkedOpen(fact) && fact.max_lsn == lsn) {
      TRY_ASSIGN(const Json whole, Whole(fact.event, detail, search));
      snapshot.keys.clear();
      const auto keys = whole.find("keys");
      if (keys == whole.end() || !keys->is_array()) continue;
      for (const Json& key : *keys) {
        if (key.is_string()) snapshot.keys.push_back(key.get<std::string>());
      }
    }
    if (fact.event != "snapshot_chunk" || LsnMember(detail, "snapshot") != lsn)
      continue;
    TRY_ASSIGN(const Json whole, Whole(fact.event, detail, search));
    SnapshotChunk chunk;
    chunk.number = IntegerMember(detail, "chunk").value_or(0);
    chunk.wave = IntegerMember(detail, "wave").value_or(0);
    chunk.lo = BoundOf(whole, "lo");
    chunk.hi = BoundOf(whole, "hi");
    chunk.is_last = detail.value("last", Json(false)) == true;
    chunk.rows = fact.rows;
    chunk.stamp = fact.min_lsn.value_or(lsn);
    snapshot.chunks.push_back(std::move(chunk));
  }
  return snapshot;
}

ChunkRanges::ChunkRanges(const OpenSnapshot& open,
                         const std::vector<SnapshotChunk>& chunks,
                         const std::vector<columns::Field>& keys) {
  if (keys.size() != 1 || open.keys.size() != 1 || keys[0].name != open.keys[0]) return;
  for (const SnapshotChunk& chunk : chunks) {
    const Bound lo = ParseBound(chunk.lo, keys[0].type.kind, Side::kLow);
    const Bound hi = ParseBound(chunk.hi, keys[0].type.kind, Side::kHigh);
    if (!lo.is_usable || !hi.is_usable) continue;
    switch (keys[0].type.kind) {
      case Kind::kInt16:
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDate32:
      case Kind::kTimestampNtz:
        ranges_.push_back({lo.value, hi.value, chunk.stamp});
        break;
      default:
        break;
    }
  }
}

std::optional<cdc::Lsn> ChunkRanges::StampOf(
    const std::optional<std::int64_t>& key) const {
  std::optional<cdc::Lsn> stamp;
  for (const Range& range : ranges_) {
    const bool is_open = !range.lo && !range.hi;
    const bool covers =
        key ? (!range.lo || *key >= *range.lo) && (!range.hi || *key < *range.hi)
            : is_open;
    if (covers) stamp = std::max(stamp, std::optional(range.stamp));
  }
  return stamp;
}

}  // namespace mssql_cdc::pipeline

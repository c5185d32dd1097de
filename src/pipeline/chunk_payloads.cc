// The texts that a chunked snapshot leaves on disk. Their keys are a contract with
// other programs: keys are only ever added.

#include <nlohmann/json.hpp>
#include <utility>

#include "pipeline/chunked_snapshot.h"
#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = nlohmann::ordered_json;

Json ExtentJson(const Extent& extent) {
  Json json;
  if (const auto* integer = std::get_if<IntegerExtent>(&extent)) {
    json["kind"] = "int";
    json["lo"] = integer->min;
    json["hi"] = integer->max;
    json["rows"] = integer->row_estimate;
  } else {
    json["kind"] = "keyset";
    json["max"] = KeyJson(std::get<SeekExtent>(extent).max);
  }
  return json;
}

template <typename T>
Json NumberOrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string Txn(std::string_view app_id, const char* what, const cdc::Lsn& snapshot) {
  return std::string(app_id) + "#" + what + "." + snapshot.Text();
}

std::optional<DoneChunk> ParseDoneChunk(const Json& json, std::size_t key_count) {
  if (!json.is_object()) return std::nullopt;
  const std::optional<std::int64_t> number = IntegerMember(json, "chunk");
  if (!number) return std::nullopt;
  DoneChunk done;
  done.chunk.chunk = *number;
  done.chunk.is_last = json.value("last", Json(false)) == true;
  Result<std::optional<Key>> lo = ParseKey(json.value("lo", Json()), key_count);
  Result<std::optional<Key>> hi = ParseKey(json.value("hi", Json()), key_count);
  if (!lo.ok() || !hi.ok()) return std::nullopt;
  done.chunk.range = {std::move(lo).value(), std::move(hi).value()};
  done.rows = IntegerMember(json, "rows");
  done.high_lsn = LsnMember(json, "high_lsn");
  done.read_seconds = NumberMember(json, "read_seconds");
  done.read_mb = NumberMember(json, "read_mb");
  return done;
}

}  // namespace

DetailTexts OpenTexts(const ChunkedOpen& open) {
  Json json;
  json["mode"] = NameOf(open.detail.mode);
  json["kind"] = open.detail.kind;
  json["generation"] = open.detail.generation;
  json["lost_from_ts"] = TimeJson(open.detail.lost_from_us);
  json["lost_to_ts"] = TimeJson(open.detail.lost_to_us);
  if (open.detail.switch_batch_id) {
    json["switch_batch_id"] = *open.detail.switch_batch_id;
  }
  DetailTexts texts{JsonText(json), {}};
  json["keys"] = open.keys;
  json["plan"] = ExtentJson(open.extent);
  texts.whole = JsonText(json);
  return texts;
}

DetailTexts PlanTexts(const cdc::Lsn& snapshot, const ChunkedOpen& open,
                      const ChunkPlan& plan) {
  Json json;
  json["snapshot"] = snapshot.Text();
  json["kind"] = std::holds_alternative<IntegerExtent>(open.extent) ? "int" : "keyset";
  json["keys"] = open.keys;
  json["chunk_rows"] = plan.chunk_rows;
  Json whole = json;
  whole["chunks"] = Json::array();
  for (const KeyRange& range : plan.chunks) {
    whole["chunks"].push_back(Json::array({KeyJson(range.lo), KeyJson(range.hi)}));
  }
  json["chunk_count"] = plan.chunks.size();
  whole["chunk_count"] = plan.chunks.size();
  return {JsonText(json), JsonText(whole)};
}

DetailTexts ChunkTexts(const cdc::Lsn& snapshot, std::int64_t wave,
                       const Chunk& chunk) {
  Json json;
  json["snapshot"] = snapshot.Text();
  json["wave"] = wave;
  json["chunk"] = chunk.chunk;
  Json whole = json;
  whole["lo"] = KeyJson(chunk.range.lo);
  whole["hi"] = KeyJson(chunk.range.hi);
  json["last"] = chunk.is_last;
  whole["last"] = chunk.is_last;
  return {JsonText(json), JsonText(whole)};
}

std::string PlansText(const std::string& whole, std::string_view app_id) {
  Json json = Json::parse(whole);
  json["app_id"] = app_id;
  return JsonText(json);
}

std::string CompletionText(const cdc::Lsn& snapshot, std::int64_t chunk_count,
                           std::int64_t row_count, const cdc::Lsn& last_stamp) {
  Json json;
  json["snapshot"] = snapshot.Text();
  json["chunks"] = chunk_count;
  json["rows"] = row_count;
  json["last_lsn"] = last_stamp.Text();
  return JsonText(json);
}

std::string WaveText(const WaveRecord& record) {
  Json json;
  json["backfill"] = record.txn_app_id;
  json["wave"] = record.wave;
  json["lsn"] = record.stamp.Text();
  json["attempt"] = record.attempt;
  json["chunks"] = Json::array();
  for (const DoneChunk& done : record.chunks) {
    Json chunk;
    chunk["chunk"] = done.chunk.chunk;
    chunk["lo"] = KeyJson(done.chunk.range.lo);
    chunk["hi"] = KeyJson(done.chunk.range.hi);
    chunk["last"] = done.chunk.is_last;
    chunk["rows"] = NumberOrNull(done.rows);
    chunk["high_lsn"] = done.high_lsn ? Json(done.high_lsn->Text()) : Json();
    chunk["read_seconds"] = NumberOrNull(done.read_seconds);
    chunk["read_mb"] = NumberOrNull(done.read_mb);
    json["chunks"].push_back(std::move(chunk));
  }
  if (!record.capture_instance.empty()) {
    json["capture_instance"] = record.capture_instance;
  }
  return JsonText(json);
}

std::optional<WaveRecord> ParseWave(std::string_view text, std::size_t key_count) {
  const auto json = ParseObject(text);
  if (!json) return std::nullopt;
  const std::optional<std::string> txn = TextMember(*json, "backfill");
  const std::optional<std::int64_t> wave = IntegerMember(*json, "wave");
  const std::optional<cdc::Lsn> stamp = LsnMember(*json, "lsn");
  const auto chunks = json->find("chunks");
  if (!txn || !wave || !stamp || chunks == json->end() || !chunks->is_array()) {
    return std::nullopt;
  }
  WaveRecord record{*txn,
                    *wave,
                    *stamp,
                    TextMember(*json, "attempt").value_or(""),
                    TextMember(*json, "capture_instance").value_or(""),
                    {}};
  for (const Json& each : *chunks) {
    std::optional<DoneChunk> done = ParseDoneChunk(each, key_count);
    if (!done) return std::nullopt;
    record.chunks.push_back(*std::move(done));
  }
  return record;
}

std::optional<WaveSnapshot> SnapshotOfWave(std::string_view text) {
  const auto json = ParseObject(text);
  if (!json) return std::nullopt;
  const std::optional<std::string> txn = TextMember(*json, "backfill");
  constexpr std::string_view kMark = "#snap.";
  const std::size_t at = txn ? txn->rfind(kMark) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(txn->substr(at + kMark.size()));
  if (!lsn.ok()) return std::nullopt;
  return WaveSnapshot{lsn.value(), TextMember(*json, "capture_instance")};
}

Result<std::vector<Chunk>> ParseChunksOption(std::string_view text,
                                             std::size_t key_count) {
  const auto refuse = [&] {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "snapshotChunks")
        .With("allowed",
              "a JSON list of [chunk, lo, hi], with a value for each key "
              "column of lo and hi, or null")
        .With("key_columns", std::to_string(key_count));
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return refuse();
  std::vector<Chunk> chunks;
  for (const Json& each : json) {
    if (!each.is_array() || each.size() != 3 || !each[0].is_number_integer()) {
      return refuse();
    }
    Result<std::optional<Key>> lo = ParseKey(each[1], key_count);
    Result<std::optional<Key>> hi = ParseKey(each[2], key_count);
    if (!lo.ok() || !hi.ok()) return refuse();
    chunks.push_back({each[0].get<std::int64_t>(),
                      {std::move(lo).value(), std::move(hi).value()},
                      false});
  }
  return chunks;
}

std::string OpenTxn(std::string_view app_id, const cdc::Lsn& snapshot) {
  return Txn(app_id, "snapopen", snapshot);
}
std::string PlanTxn(std::string_view app_id, const cdc::Lsn& snapshot) {
  return Txn(app_id, "snapplan", snapshot);
}
std::string WaveTxn(std::string_view app_id, const cdc::Lsn& snapshot) {
  return Txn(app_id, "snap", snapshot);
}
std::string ChunksTxn(std::string_view app_id, const cdc::Lsn& snapshot) {
  return Txn(app_id, "snapchunks", snapshot);
}
std::string SwitchDoneTxn(std::string_view app_id, const cdc::Lsn& snapshot) {
  return Txn(app_id, "snapdone", snapshot);
}

}  // namespace mssql_cdc::pipeline

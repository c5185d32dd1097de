#include "pipeline/facts.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/text.h"
#include "pipeline/chunked_snapshot.h"
#include "pipeline/tables.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::ColumnBuilder;
using columns::Kind;
using Json = nlohmann::ordered_json;

using Member = std::variant<FactsRow::Text FactsRow::*, FactsRow::Number FactsRow::*,
                            FactsRow::Real FactsRow::*>;

// In table order.
constexpr Member kMembers[] = {
    &FactsRow::app_id,
    &FactsRow::batch_id,
    &FactsRow::rows,
    &FactsRow::min_lsn,
    &FactsRow::max_lsn,
    &FactsRow::min_commit_ts,
    &FactsRow::max_commit_ts,
    &FactsRow::deletes,
    &FactsRow::inserts,
    &FactsRow::updates,
    &FactsRow::started_at,
    &FactsRow::duration_ms,
    &FactsRow::source_rtt_ms,
    &FactsRow::read_seconds,
    &FactsRow::read_mb,
    &FactsRow::network_wait_ms,
    &FactsRow::retention_watermark_ts,
    &FactsRow::retention_headroom_hours,
    &FactsRow::event,
    &FactsRow::lost_from_ts,
    &FactsRow::lost_to_ts,
    &FactsRow::source_max_commit_ts,
    &FactsRow::capture_lag_seconds,
    &FactsRow::ingestion_lag_seconds,
    &FactsRow::end_lsn,
    &FactsRow::end_commit_ts,
    &FactsRow::detail,
    &FactsRow::target,
    &FactsRow::written_at,
};

void Append(ColumnBuilder& builder, const FactsRow::Text& value) {
  if (value) {
    builder.AppendBytes(*value);
  } else {
    builder.AppendNull();
  }
}
void Append(ColumnBuilder& builder, const FactsRow::Number& value) {
  if (value) {
    builder.AppendInt64(*value);
  } else {
    builder.AppendNull();
  }
}
void Append(ColumnBuilder& builder, const FactsRow::Real& value) {
  if (value) {
    builder.AppendFloat64(*value);
  } else {
    builder.AppendNull();
  }
}

FactsRow::Text LsnText(const std::optional<cdc::Lsn>& lsn) {
  if (!lsn) return std::nullopt;
  return lsn->Text();
}

double Seconds(std::int64_t later_us, std::int64_t earlier_us) {
  return static_cast<double>(later_us - earlier_us) / 1e6;
}

std::string Dump(const Json& json, bool compact) {
  std::string text;
  constexpr auto kReplace = Json::error_handler_t::replace;
  if (compact) return json.dump(-1, ' ', true, kReplace);
  // A default dump of Python's json module: blanks after colons and commas.
  text += '{';
  for (auto item = json.begin(); item != json.end(); ++item) {
    if (text.size() > 1) text += ", ";
    text += Json(item.key()).dump(-1, ' ', true, kReplace) + ": " +
            item.value().dump(-1, ' ', true, kReplace);
  }
  return text + '}';
}

Json LsnJson(const std::optional<cdc::Lsn>& lsn) {
  return lsn ? Json(lsn->Text()) : Json();
}

Json TimeJson(const std::optional<std::int64_t>& us) {
  return us ? Json(IsoMillis(*us)) : Json();
}

// The integer called `key`, or nullopt.
std::optional<std::int64_t> IntegerOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<std::string> TextOf(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<cdc::Lsn> LsnOf(const Json& json, const char* key) {
  const std::optional<std::string> text = TextOf(json, key);
  if (!text) return std::nullopt;
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(*text);
  if (!lsn.ok()) return std::nullopt;
  return lsn.value();
}

std::optional<std::int64_t> TimeOf(const Json& json, const char* key) {
  const std::optional<std::string> text = TextOf(json, key);
  return text ? ParseIsoUs(*text) : std::nullopt;
}

// What open and bootstrap rows share.
FactsRow SnapshotFacts(const SnapshotRun& run, std::string event) {
  FactsRow row;
  row.app_id = run.app_id;
  row.deletes = row.inserts = row.updates = 0;
  row.min_lsn = row.max_lsn = row.end_lsn = run.stamp.lsn.Text();
  row.min_commit_ts = row.max_commit_ts = row.end_commit_ts = run.stamp.commit_us;
  row.event = std::move(event);
  row.target = run.target;
  row.written_at = run.written_at_us;
  return row;
}

std::string StampMetadata(const char* key, std::string_view capture_instance,
                          const cdc::Offset& stamp) {
  Json json;
  json[key] = std::string(capture_instance);
  json["lsn"] = stamp.lsn.Text();
  json["commit_ts"] = cdc::CommitText(stamp.commit_us);
  return Dump(json, false);
}

void AddGap(const SnapshotRun& run, FactsRow& row) {
  row.lost_from_ts = run.lost_from_us;
  row.lost_to_ts = row.retention_watermark_ts = run.lost_to_us;
  if (run.lost_to_us && run.stamp.commit_us) {
    row.retention_headroom_hours =
        RoundTo(Seconds(*run.stamp.commit_us, *run.lost_to_us) / 3600, 2);
  }
}

}  // namespace

columns::RecordBatch FactsBatch(const std::vector<FactsRow>& rows) {
  auto schema = std::make_shared<columns::Schema>(FactsTable().schema);
  columns::RecordBatch batch{schema, static_cast<std::int64_t>(rows.size()), {}};
  for (std::size_t i = 0; i < schema->fields.size(); ++i) {
    ColumnBuilder builder(schema->fields[i].type, batch.row_count);
    std::visit(
        [&](auto member) {
          for (const FactsRow& row : rows) Append(builder, row.*member);
        },
        kMembers[i]);
    batch.columns.push_back(std::make_shared<const columns::Column>(builder.Finish()));
  }
  return batch;
}

double RoundTo(double value, int decimals) {
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return std::strtod(text, nullptr);
}

FactsRow BatchFacts(const BatchRun& run, const BatchCounts& counts,
                    const std::optional<ReadMetrics>& metrics) {
  FactsRow row;
  row.app_id = run.app_id;
  row.batch_id = run.batch_id;
  row.rows = counts.rows;
  row.min_lsn = LsnText(counts.min_lsn);
  row.max_lsn = LsnText(counts.max_lsn);
  row.min_commit_ts = counts.min_commit_us;
  row.max_commit_ts = counts.max_commit_us;
  row.deletes = counts.deletes;
  row.inserts = counts.inserts;
  row.updates = counts.updates;
  row.started_at = run.started_at_us;
  row.duration_ms = run.duration_ms;
  row.target = run.target;
  row.written_at = run.written_at_us;
  if (!metrics) return row;

  if (metrics->rtt_ms) row.source_rtt_ms = RoundTo(*metrics->rtt_ms, 1);
  row.read_seconds = RoundTo(metrics->read_seconds, 3);
  row.read_mb = RoundTo(static_cast<double>(metrics->size_bytes) / 1e6, 6);
  row.network_wait_ms = metrics->network_wait_ms;
  row.end_lsn = metrics->end.lsn.Text();
  row.end_commit_ts = metrics->end.commit_us;
  row.retention_watermark_ts = metrics->retention_watermark_us;
  row.source_max_commit_ts = metrics->source_max_commit_us;
  if (metrics->source_max_commit_us && metrics->observed_at_us) {
    row.capture_lag_seconds =
        RoundTo(Seconds(*metrics->observed_at_us, *metrics->source_max_commit_us), 3);
  }
  const std::optional<std::int64_t> position =
      metrics->end.commit_us ? metrics->end.commit_us : counts.max_commit_us;
  if (position && metrics->retention_watermark_us) {
    row.retention_headroom_hours =
        RoundTo(Seconds(*position, *metrics->retention_watermark_us) / 3600, 2);
  }
  if (position && metrics->source_max_commit_us) {
    row.ingestion_lag_seconds =
        RoundTo(Seconds(*metrics->source_max_commit_us, *position), 3);
  }
  return row;
}

std::string BatchMetadata(const std::optional<BatchCounts>& counts,
                          std::int64_t batch_id, std::string_view app_id) {
  Json json;
  const auto count = [&](std::int64_t BatchCounts::* member) {
    return counts ? Json((*counts).*member) : Json();
  };
  const BatchCounts known = counts.value_or(BatchCounts{});
  json["rows"] = count(&BatchCounts::rows);
  json["min_lsn"] = LsnJson(known.min_lsn);
  json["max_lsn"] = LsnJson(known.max_lsn);
  json["min_commit_ts"] = TimeJson(known.min_commit_us);
  json["max_commit_ts"] = TimeJson(known.max_commit_us);
  json["deletes"] = count(&BatchCounts::deletes);
  json["inserts"] = count(&BatchCounts::inserts);
  json["updates"] = count(&BatchCounts::updates);
  json["batch_id"] = batch_id;
  json["app_id"] = std::string(app_id);
  return Dump(json, true);
}

std::optional<ParsedBatchMetadata> ParseBatchMetadata(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const std::optional<std::int64_t> batch_id = IntegerOf(json, "batch_id");
  std::optional<std::string> app_id = TextOf(json, "app_id");
  if (!batch_id || !app_id) return std::nullopt;
  ParsedBatchMetadata parsed{*batch_id, *std::move(app_id), std::nullopt};
  const std::optional<std::int64_t> rows = IntegerOf(json, "rows");
  const std::optional<std::int64_t> deletes = IntegerOf(json, "deletes");
  const std::optional<std::int64_t> inserts = IntegerOf(json, "inserts");
  const std::optional<std::int64_t> updates = IntegerOf(json, "updates");
  if (rows && deletes && inserts && updates) {
    parsed.counts = BatchCounts{*rows,
                                LsnOf(json, "min_lsn"),
                                LsnOf(json, "max_lsn"),
                                TimeOf(json, "min_commit_ts"),
                                TimeOf(json, "max_commit_ts"),
                                *deletes,
                                *inserts,
                                *updates};
  }
  return parsed;
}

std::string SnapshotMetadata(std::string_view capture_instance,
                             const cdc::Offset& stamp) {
  return StampMetadata("snapshot", capture_instance, stamp);
}

std::string SeedMetadata(std::string_view capture_instance, const cdc::Offset& stamp) {
  return StampMetadata("seed", capture_instance, stamp);
}

std::optional<ParsedSnapshotMetadata> ParseSnapshotMetadata(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  std::optional<std::string> instance = TextOf(json, "snapshot");
  if (!instance) instance = TextOf(json, "seed");
  const std::optional<cdc::Lsn> lsn = LsnOf(json, "lsn");
  if (!instance || !lsn) return std::nullopt;
  return ParsedSnapshotMetadata{*std::move(instance),
                                {*lsn, TimeOf(json, "commit_ts")}};
}

FactsRow SnapshotOpenFacts(const SnapshotRun& run) {
  FactsRow row = SnapshotFacts(run, "snapshot_open");
  row.rows = 0;
  AddGap(run, row);
  row.detail = run.detail;
  if (!row.detail) {
    const OpenDetail full{SnapshotMode::kFull, run.kind,       run.generation,
                          run.lost_from_us,    run.lost_to_us, std::nullopt};
    row.detail = OpenTexts({full, {}, SeekExtent{}}).detail;
  }
  return row;
}

FactsRow SnapshotPlanFacts(const SnapshotRun& run) {
  FactsRow row = SnapshotFacts(run, "snapshot_plan");
  row.rows = 0;
  row.started_at = run.started_at_us;
  row.duration_ms = run.duration_ms;
  row.detail = run.detail;
  return row;
}

FactsRow BootstrapFacts(const SnapshotRun& run) {
  FactsRow row = SnapshotFacts(run, run.kind);
  row.rows = run.rows;
  row.started_at = run.started_at_us;
  row.duration_ms = run.duration_ms;
  AddGap(run, row);
  row.detail = run.detail;
  return row;
}

FactsRow SnapshotChunkFacts(const ChunkRun& run) {
  FactsRow row;
  row.app_id = run.app_id;
  row.rows = run.rows;
  row.deletes = row.inserts = row.updates = 0;
  row.min_lsn = run.stamp.lsn.Text();
  row.min_commit_ts = run.stamp.commit_us;
  if (run.high) {
    row.max_lsn = run.high->lsn.Text();
    row.max_commit_ts = run.high->commit_us;
  }
  row.started_at = run.started_at_us;
  row.duration_ms = run.duration_ms;
  row.read_seconds = run.read_seconds;
  row.read_mb = run.read_mb;
  row.event = "snapshot_chunk";
  row.detail = run.detail;
  row.target = run.target;
  row.written_at = run.written_at_us;
  return row;
}

}  // namespace mssql_cdc::pipeline

#include "pipeline/reconcile.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/case_fold.h"
#include "base/text.h"
#include "columns/take.h"
#include "pipeline/tables.h"

namespace mssql_cdc::pipeline {
namespace {

using columns::ColumnBuilder;
using columns::Int128;
using columns::Kind;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kSliceCountMax = 99'000;

SliceCount At(const Slices& slices, std::int64_t slice) {
  const auto found = slices.find(slice);
  return found == slices.end() ? SliceCount{} : found->second;
}

// As Python's json module writes it: blanks after colons and commas.
std::string Spaced(const Json& json) {
  std::string text = "{";
  for (auto item = json.begin(); item != json.end(); ++item) {
    if (text.size() > 1) text += ", ";
    text += Json(item.key()).dump(-1, ' ', true, Json::error_handler_t::replace) +
            ": " + item.value().dump(-1, ' ', true, Json::error_handler_t::replace);
  }
  return text + '}';
}

Finding ChunkFinding(const OpenSnapshot& snapshot, std::int64_t chunk, const char* type,
                     const SnapshotChunk* facts) {
  Finding finding;
  finding.failure_type = type;
  if (facts != nullptr) {
    finding.bucket_lo = facts->lo;
    finding.bucket_hi = facts->hi;
  }
  Json detail;
  detail["snapshot"] = snapshot.lsn.Text();
  detail["chunk"] = chunk;
  finding.detail = Spaced(detail);
  return finding;
}

Finding With(Finding finding, const char* name, const Json& value) {
  Json detail = Json::parse(finding.detail);
  detail[name] = value;
  finding.detail = Spaced(detail);
  return finding;
}

// What is wrong with how one chunk lies among the others; nullptr: nothing.
const char* TilingProblem(std::int64_t number,
                          const std::vector<const SnapshotChunk*>& of_number,
                          const SnapshotChunk* before) {
  if (of_number.empty()) return "no facts row";
  if (of_number.size() > 1) return "more than one facts row";
  const SnapshotChunk& chunk = *of_number.front();
  if (number == 0) return chunk.lo ? "the first chunk is not open below" : nullptr;
  if (before == nullptr) return nullptr;
  if (before->is_last) return "a chunk after the last one";
  return before->hi != chunk.lo ? "does not begin where the one before ends" : nullptr;
}

Json CellJson(const columns::Column& column, std::int64_t row) {
  if (columns::IsNull(column, row)) return nullptr;
  switch (column.type.kind) {
    case Kind::kBool:
      return columns::BoolValue(column, row);
    case Kind::kInt16:
      return columns::FixedValue<std::int16_t>(column, row);
    case Kind::kInt32:
      return columns::FixedValue<std::int32_t>(column, row);
    case Kind::kInt64:
      return columns::FixedValue<std::int64_t>(column, row);
    case Kind::kDate32:
      return columns::DateText(columns::FixedValue<std::int32_t>(column, row));
    case Kind::kTimestampNtz:
    case Kind::kTimestampUtc:
      return columns::TimestampText(columns::FixedValue<std::int64_t>(column, row));
    case Kind::kFloat32:
      return columns::FloatText(columns::FixedValue<float>(column, row));
    case Kind::kFloat64:
      return columns::FloatText(columns::FixedValue<double>(column, row));
    case Kind::kDecimal128:
      return columns::DecimalText(columns::FixedValue<__int128>(column, row),
                                  column.type.scale);
    case Kind::kUtf8:
      return std::string(columns::BytesValue(column, row));
    case Kind::kBinary: {
      const std::string_view bytes = columns::BytesValue(column, row);
      return "0x" + HexUpper({reinterpret_cast<const std::uint8_t*>(bytes.data()),
                              bytes.size()});
    }
  }
  return nullptr;
}

// Builds the report's columns side by side.
class ReportBuilder {
 public:
  explicit ReportBuilder(const ReportRun& run) : run_(run) {
    auto schema = std::make_shared<columns::Schema>(ReportTable().schema);
    for (const columns::Field& field : schema->fields) {
      builders_.emplace_back(field.type, 16);
    }
    schema_ = std::move(schema);
  }

  void Add(const Bucket& bucket) {
    Begin(run_.source_lsn);
    Text(BoundJson(bucket.kind, bucket.lo));
    Text(BoundJson(bucket.kind, bucket.hi));
    Number(bucket.source_rows);
    Sum(bucket.source_key_sum);
    Number(bucket.silver_rows);
    Sum(bucket.silver_key_sum);
    Text(std::string(NameOf(bucket.status)));
    builders_[index_++].AppendBool(bucket.hashed);
    Nulls(3);
  }
  void Add(const Finding& finding, const std::optional<std::string>& source_lsn) {
    Begin(source_lsn);
    Text(finding.bucket_lo);
    Text(finding.bucket_hi);
    Nulls(6);
    Text(finding.key);
    Text(finding.failure_type);
    Text(finding.detail);
  }
  columns::RecordBatch Finish() {
    columns::RecordBatch batch{schema_, row_count_, {}};
    for (ColumnBuilder& builder : builders_) {
      batch.columns.push_back(
          std::make_shared<const columns::Column>(builder.Finish()));
    }
    return batch;
  }

 private:
  void Begin(const std::optional<std::string>& source_lsn) {
    index_ = 0;
    ++row_count_;
    Text(run_.run_id);
    Number(run_.run_at_us);
    Text(run_.silver);
    Number(run_.silver_version);
    Text(run_.silver_lsn);
    Text(source_lsn);
  }
  void Text(const std::optional<std::string>& text) {
    ColumnBuilder& out = builders_[index_++];
    if (text) {
      out.AppendBytes(*text);
    } else {
      out.AppendNull();
    }
  }
  void Number(std::int64_t number) { builders_[index_++].AppendInt64(number); }
  void Sum(const std::optional<Int128>& sum) {
    ColumnBuilder& out = builders_[index_++];
    if (sum) {
      out.AppendDecimal(*sum);
    } else {
      out.AppendNull();
    }
  }
  void Nulls(int count) {
    while (count-- > 0) builders_[index_++].AppendNull();
  }

  const ReportRun& run_;
  columns::SchemaPtr schema_;
  std::vector<ColumnBuilder> builders_;
  std::size_t index_ = 0;
  std::int64_t row_count_ = 0;
};

}  // namespace

std::int64_t SliceWidth(std::int64_t min, std::int64_t max) {
  const std::uint64_t extent =
      static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min);
  return static_cast<std::int64_t>(extent / kSliceCountMax + 1);
}

std::int64_t SliceOf(std::int64_t key, std::int64_t width) {
  return key >= 0 ? key / width : (key + 1) / width - 1;
}

std::optional<std::string> BoundJson(OrdinalKind kind,
                                     const std::optional<std::int64_t>& bound) {
  constexpr std::int64_t kDayMin = -719'162;   // 0001-01-01
  constexpr std::int64_t kDayMax = 2'932'896;  // 9999-12-31
  if (!bound) return std::nullopt;
  if (kind == OrdinalKind::kNumber) return std::to_string(*bound);
  if (*bound > kDayMax) return std::nullopt;
  const auto day = static_cast<std::int32_t>(std::max(*bound, kDayMin));
  return '"' + columns::DateText(day) + '"';
}

std::string_view NameOf(BucketStatus status) {
  switch (status) {
    case BucketStatus::kMatch:
      return "MATCH";
    case BucketStatus::kInFlight:
      return "IN_FLIGHT";
    case BucketStatus::kMismatch:
      return "MISMATCH";
  }
  return "";
}

std::vector<Bucket> CutBuckets(std::int64_t width, const Slices& source,
                               const Slices& silver,
                               const std::set<std::int64_t>& moved,
                               std::int64_t bucket_rows) {
  std::set<std::int64_t> all;
  for (const auto& [slice, count] : source) all.insert(slice);
  for (const auto& [slice, count] : silver) all.insert(slice);
  std::vector<Bucket> buckets;
  std::vector<std::int64_t> begins;
  std::int64_t held = bucket_rows;
  for (const std::int64_t slice : all) {
    if (held >= bucket_rows) {
      Bucket bucket;
      bucket.source_key_sum = bucket.silver_key_sum = 0;
      buckets.push_back(bucket);
      begins.push_back(slice);
      held = 0;
    }
    Bucket& bucket = buckets.back();
    const SliceCount one = At(source, slice);
    const SliceCount other = At(silver, slice);
    bucket.source_rows += one.rows;
    bucket.silver_rows += other.rows;
    *bucket.source_key_sum += one.key_sum;
    *bucket.silver_key_sum += other.key_sum;
    held += std::max(one.rows, other.rows);
  }
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    Bucket& bucket = buckets[i];
    const std::int64_t last = i + 1 < begins.size() ? begins[i + 1] - 1 : *all.rbegin();
    // Numbers beyond 64 bits are keys beyond every key: open.
    std::int64_t bound = 0;
    if (!__builtin_mul_overflow(begins[i], width, &bound)) bucket.lo = bound;
    const bool is_open = __builtin_add_overflow(last, std::int64_t{1}, &bound) ||
                         __builtin_mul_overflow(bound, width, &bound);
    if (!is_open) bucket.hi = bound;
    const bool agrees = bucket.source_rows == bucket.silver_rows &&
                        bucket.source_key_sum == bucket.silver_key_sum;
    const auto in_flight = moved.lower_bound(begins[i]);
    const bool is_moving = in_flight != moved.end() && *in_flight <= last;
    bucket.status = agrees      ? BucketStatus::kMatch
                    : is_moving ? BucketStatus::kInFlight
                                : BucketStatus::kMismatch;
  }
  return buckets;
}

Bucket WholeBucket(std::int64_t source_rows, std::int64_t silver_rows, bool moved) {
  Bucket bucket;
  bucket.source_rows = source_rows;
  bucket.silver_rows = silver_rows;
  bucket.status = source_rows == silver_rows ? BucketStatus::kMatch
                  : moved                    ? BucketStatus::kInFlight
                                             : BucketStatus::kMismatch;
  return bucket;
}

std::vector<std::size_t> ChooseBuckets(const std::vector<Bucket>& buckets,
                                       double fraction, Dice& dice) {
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const bool differs = buckets[i].status == BucketStatus::kMismatch;
    (differs ? chosen : others).push_back(i);
  }
  const auto wanted = static_cast<std::size_t>(
      std::ceil(fraction * static_cast<double>(others.size())));
  for (std::size_t i = 0; i < wanted && i < others.size(); ++i) {
    const std::size_t at = i + dice.Below(others.size() - i);
    std::swap(others[i], others[at]);
    chosen.push_back(others[i]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string DetailOf(const std::optional<std::string>& silver_lsn,
                     const std::optional<std::vector<std::string>>& columns) {
  Json detail = Json::object();
  if (silver_lsn) detail["silver_start_lsn"] = *silver_lsn;
  if (columns) {
    std::string names;
    for (const std::string& name : *columns) {
      if (!names.empty()) names += ", ";
      names += name;
    }
    detail["columns"] = names;
  }
  return detail.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<Finding> CheckChunks(const OpenSnapshot& snapshot, bool is_complete,
                                 const std::map<std::int64_t, std::int64_t>& rows,
                                 const std::map<std::int64_t, cdc::Lsn>& stamps) {
  std::map<std::int64_t, std::vector<const SnapshotChunk*>> by_number;
  for (const SnapshotChunk& chunk : snapshot.chunks) {
    by_number[chunk.number].push_back(&chunk);
  }
  std::vector<Finding> findings;
  const std::int64_t highest = by_number.empty() ? -1 : by_number.rbegin()->first;
  const SnapshotChunk* before = nullptr;
  for (std::int64_t number = 0; number <= highest; ++number) {
    const std::vector<const SnapshotChunk*> known = by_number[number];
    const SnapshotChunk* chunk = known.empty() ? nullptr : known.front();
    if (const char* problem = TilingProblem(number, known, before)) {
      findings.push_back(With(ChunkFinding(snapshot, number, "CHUNK_TILING", chunk),
                              "problem", problem));
    }
    before = chunk;
    if (chunk == nullptr) continue;
    const auto held = rows.find(number);
    const std::int64_t bronze_rows = held == rows.end() ? 0 : held->second;
    if (chunk->rows && *chunk->rows != bronze_rows) {
      findings.push_back(With(With(ChunkFinding(snapshot, number, "CHUNK_ROWS", chunk),
                                   "facts_rows", *chunk->rows),
                              "bronze_rows", bronze_rows));
    }
    cdc::Lsn lowest = chunk->stamp;
    const auto stamp = stamps.find(number);
    if (stamp != stamps.end()) lowest = std::min(lowest, stamp->second);
    if (lowest < snapshot.lsn) {
      findings.push_back(With(ChunkFinding(snapshot, number, "CHUNK_STAMP", chunk),
                              "lsn", lowest.Text()));
    }
  }
  if (!is_complete) return findings;
  if (before != nullptr && !before->is_last) {
    findings.push_back(With(ChunkFinding(snapshot, highest, "CHUNK_TILING", before),
                            "problem", "the last chunk does not say so"));
  }
  for (const auto& [number, count] : rows) {
    if (by_number.contains(number) && !by_number[number].empty()) continue;
    findings.push_back(With(With(ChunkFinding(snapshot, number, "CHUNK_ROWS", nullptr),
                                 "facts_rows", nullptr),
                            "bronze_rows", count));
  }
  return findings;
}

columns::RecordBatch ReportBatch(const ReportRun& run,
                                 const std::vector<Bucket>& buckets,
                                 const std::vector<Finding>& chunks,
                                 const std::vector<Finding>& keys) {
  ReportBuilder report(run);
  for (const Bucket& bucket : buckets) report.Add(bucket);
  for (const Finding& finding : chunks) report.Add(finding, std::nullopt);
  for (const Finding& finding : keys) report.Add(finding, run.row_source_lsn);
  return report.Finish();
}

std::string KeyJson(const columns::RecordBatch& batch, std::int64_t row,
                    const std::vector<std::string>& keys) {
  Json json = Json::object();
  for (const std::string& key : keys) {
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      if (!EqualsIgnoringCase(batch.schema->fields[i].name, key)) continue;
      json[key] = CellJson(*batch.columns[i], row);
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mssql_cdc::pipeline

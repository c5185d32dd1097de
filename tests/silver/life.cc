#include "tests/silver/life.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "pipeline/facts.h"
#include "pipeline/tables.h"

namespace mssql_cdc::silver {
namespace {

using columns::ColumnBuilder;
using columns::Kind;

std::vector<columns::Field> Captured(bool with_w) {
  std::vector<columns::Field> fields = {
      {"id", {Kind::kInt64}}, {"r", {Kind::kUtf8}}, {"v", {Kind::kUtf8}}};
  if (with_w) fields.push_back({"w", {Kind::kUtf8}});
  return fields;
}

std::string WOf(const std::string& v) { return "w" + v; }

void AppendNumber(ColumnBuilder& out, const std::optional<std::int64_t>& value) {
  if (!value) {
    out.AppendNull();
  } else if (out.type().kind == Kind::kInt32) {
    out.AppendInt32(static_cast<std::int32_t>(*value));
  } else {
    out.AppendInt64(*value);
  }
}

void AppendText(ColumnBuilder& out, const std::optional<std::string>& value) {
  if (value) {
    out.AppendBytes(*value);
  } else {
    out.AppendNull();
  }
}

void AppendCell(const BronzeRow& row, const std::string& column, ColumnBuilder& out) {
  const bool is_change = row.operation != 0;
  if (column == "_capture_instance") return out.AppendBytes(row.instance);
  if (column == "_start_lsn") return out.AppendBytes(LsnText(row.lsn));
  if (column == "_seqval") {
    return AppendText(out,
                      row.seqval ? std::optional(LsnText(*row.seqval)) : std::nullopt);
  }
  if (column == "_operation") return out.AppendInt32(row.operation);
  if (column == "_command_id") return AppendNumber(out, row.command_id);
  if (column == "_commit_ts") return out.AppendInt64(row.lsn * 1'000'000);
  if (column == "id") return out.AppendInt64(row.id);
  if (column == "r") return out.AppendBytes(RegionOf(row.id));
  if (column == "v") return out.AppendBytes(row.v);
  if (column == "w") {
    return AppendText(out, row.has_w ? std::optional(WOf(row.v)) : std::nullopt);
  }
  if (column == "_batch_id") {
    return AppendNumber(out, is_change ? std::optional<std::int64_t>(1) : std::nullopt);
  }
  if (column == "_snapshot") {
    return AppendText(
        out, row.snapshot ? std::optional(LsnText(*row.snapshot)) : std::nullopt);
  }
  return AppendNumber(out, row.chunk);
}

void Check(const Status& status) {
  if (!status.ok()) throw Wrong{status.error().Text()};
}

void Append(lake::Lake& lake, const std::string& location, columns::RecordBatch batch) {
  if (batch.row_count == 0) return;
  const columns::SchemaPtr schema = batch.schema;
  std::vector<columns::RecordBatch> batches;
  batches.push_back(std::move(batch));
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(columns::ReadBatches(schema, std::move(batches)));
  lake::AppendSpec spec;
  spec.merge_schema = true;
  const auto done = lake.Append(location, std::move(sources), spec);
  if (!done.ok()) throw Wrong{done.error().Text()};
}

std::string Bound(const std::optional<std::int64_t>& bound) {
  return bound ? std::to_string(*bound) : "null";
}

}  // namespace

std::string LsnText(std::int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%020llX",
                static_cast<unsigned long long>(number));
  return text;
}

const std::vector<std::string>& Instances() {
  static const std::vector<std::string> kNames = {"dbo_t", "dbo_t_2", "dbo_t_3"};
  return kNames;
}

std::string RegionOf(std::int64_t id) { return id % 3 == 0 ? "north" : "south"; }

Life::Life(std::uint64_t seed, lake::Lake& lake, const runtime::SilverConfig& config,
           KindCounts& counts)
    : dice_(seed), lake_(lake), config_(config), counts_(counts) {
  const auto create = [&](const std::string& at,
                          const pipeline::TableDefinition& table) {
    Check(lake.Create(at, {table.schema, table.description, table.properties}));
  };
  create(config.bronze_location, pipeline::BronzeTable(Captured(false), true));
  create(config.facts_location, pipeline::FactsTable());
  create(config.plans_location, pipeline::PlansTable());
  history_.emplace_back();
  changes_.emplace_back();
  for (int i = 0; i < 3; ++i) Commit();
}

std::optional<std::int64_t> Life::AnyKey() {
  if (source_.empty()) return std::nullopt;
  auto at = source_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(dice_.Below(source_.size())));
  return at->first;
}

std::string Life::AnyValue() { return "v" + std::to_string(dice_.Below(1000)); }

void Life::Record(const BronzeRow& change) {
  BronzeRow row = change;
  row.lsn = static_cast<std::int64_t>(changes_.size() - 1);
  row.command_id = command_;
  row.seqval = seqval_;
  row.instance = Instances()[starts_.size()];
  row.has_w = !starts_.empty();
  changes_.back().push_back(row);
}

// One transaction of a few statements.
void Life::Commit() {
  changes_.emplace_back();
  command_ = 0;
  const std::uint64_t count = 1 + dice_.Below(4);
  for (std::uint64_t i = 0; i < count; ++i) Statement();
  history_.push_back(source_);
}

void Life::Statement() {
  ++command_;
  ++seqval_;
  const std::optional<std::int64_t> key = AnyKey();
  switch (key ? dice_.Below(8) : 0) {
    case 2:
      Record({.operation = 3, .id = *key, .v = source_[*key]});
      source_[*key] = AnyValue();
      Record({.operation = 4, .id = *key, .v = source_[*key]});
      return Count("update");
    case 3:
      Record({.operation = 1, .id = *key, .v = source_[*key]});
      source_.erase(*key);
      return Count("delete");
    case 4:
      return UpdateKey(*key);
    case 5:
      return ShiftKeys();
    case 6:
      return SwapKeys(*key);
    case 7:
      Record({.operation = 1, .id = *key, .v = source_[*key]});
      ++command_;
      ++seqval_;
      source_[*key] = AnyValue();
      Record({.operation = 2, .id = *key, .v = source_[*key]});
      return Count("delete and insert of one key");
    default: {
      const auto id = static_cast<std::int64_t>(dice_.Below(40));
      if (source_.contains(id)) return;
      source_[id] = AnyValue();
      Record({.operation = 2, .id = id, .v = source_[id]});
      return Count("insert");
    }
  }
}

// Before and after or, deferred, a delete and an insert.
void Life::UpdateKey(std::int64_t key) {
  const auto id = static_cast<std::int64_t>(dice_.Below(40));
  if (source_.contains(id)) return;
  const std::string v = source_[key];
  const bool deferred = dice_.Chance(1, 2);
  Record({.operation = deferred ? 1 : 3, .id = key, .v = v});
  if (deferred) ++seqval_;
  source_.erase(key);
  source_[id] = v;
  Record({.operation = deferred ? 2 : 4, .id = id, .v = v});
  Count(deferred ? "deferred key update" : "key update");
}

// Every key one further: all deletes, then all inserts.
void Life::ShiftKeys() {
  const Rows before = source_;
  source_.clear();
  for (const auto& [id, v] : before) {
    Record({.operation = 1, .id = id, .v = v});
    ++seqval_;
  }
  for (const auto& [id, v] : before) {
    source_[id + 1] = v;
    Record({.operation = 2, .id = id + 1, .v = v});
    ++seqval_;
  }
  Count("key shift");
}

void Life::SwapKeys(std::int64_t key) {
  const std::int64_t other = *AnyKey();
  if (other == key) return;
  Record({.operation = 1, .id = key, .v = source_[key]});
  Record({.operation = 1, .id = other, .v = source_[other]});
  std::swap(source_[key], source_[other]);
  ++seqval_;
  Record({.operation = 2, .id = key, .v = source_[key]});
  Record({.operation = 2, .id = other, .v = source_[other]});
  Count("key swap");
}

void Life::Put(const std::vector<BronzeRow>& rows) {
  const bool with_w = std::any_of(rows.begin(), rows.end(),
                                  [](const BronzeRow& row) { return row.has_w; });
  auto schema = std::make_shared<columns::Schema>(
      pipeline::BronzeTable(Captured(with_w), true).schema);
  columns::RecordBatch batch{schema, static_cast<std::int64_t>(rows.size()), {}};
  for (const columns::Field& field : schema->fields) {
    ColumnBuilder out(field.type, batch.row_count);
    for (const BronzeRow& row : rows) AppendCell(row, field.name, out);
    batch.columns.push_back(std::make_shared<const columns::Column>(out.Finish()));
  }
  Append(lake_, config_.bronze_location, std::move(batch));
}

void Life::Fact(const std::string& app_id, const std::string& event,
                std::int64_t min_lsn, std::int64_t max_lsn, std::int64_t rows,
                const std::string& detail) {
  pipeline::FactsRow row;
  row.app_id = app_id;
  row.rows = rows;
  row.min_lsn = LsnText(min_lsn);
  row.max_lsn = LsnText(max_lsn);
  row.event = event;
  if (!detail.empty()) row.detail = detail;
  row.target = config_.bronze;
  Append(lake_, config_.facts_location, pipeline::FactsBatch({row}));
}

void Life::Plan(std::int64_t snapshot, const std::string& event,
                const std::string& detail) {
  auto schema = std::make_shared<columns::Schema>(pipeline::PlansTable().schema);
  columns::RecordBatch batch{schema, 1, {}};
  for (const std::string& text : {LsnText(snapshot), event, detail}) {
    ColumnBuilder out({Kind::kUtf8}, 1);
    out.AppendBytes(text);
    batch.columns.push_back(std::make_shared<const columns::Column>(out.Finish()));
  }
  Append(lake_, config_.plans_location, std::move(batch));
}

void Life::Stream() {
  const auto newest = static_cast<std::int64_t>(changes_.size() - 1);
  if (streamed_ == newest) return;
  const std::int64_t through = streamed_ + 1 +
                               static_cast<std::int64_t>(dice_.Below(
                                   static_cast<std::uint64_t>(newest - streamed_)));
  std::vector<BronzeRow> rows;
  for (std::int64_t lsn = streamed_ + 1; lsn <= through; ++lsn) {
    const auto& changes = changes_[static_cast<std::size_t>(lsn)];
    rows.insert(rows.end(), changes.begin(), changes.end());
  }
  Put(rows);
  const std::int64_t before = std::exchange(streamed_, through);
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    if (before <= starts_[i] && starts_[i] < through) TakeSwitch(starts_[i], i + 1);
  }
}

std::string Life::AppId() const {
  return generation_ == 0 ? "app" : "app.g" + std::to_string(generation_);
}

// From the next commit on, a newer instance captures the table.
void Life::SwitchInstance() {
  if (starts_.size() + 1 == Instances().size()) return;
  starts_.push_back(static_cast<std::int64_t>(changes_.size() - 1));
  Count("switch of the capture instance");
}

// The stream has read past a start: with snapshot_on_switch, a snapshot is taken.
void Life::TakeSwitch(std::int64_t start_lsn, std::size_t instance) {
  Fact(AppId(), "capture_instance_switched", start_lsn, start_lsn, 0,
       Instances()[instance - 1] + " -> " + Instances()[instance]);
  Count("switch read by the stream");
  if (open_ || has_gap_ || dice_.Chance(1, 3)) return;
  if (dice_.Chance(1, 2)) {
    // Of this one no event tells.
    ReadTable(static_cast<std::int64_t>(changes_.size() - 1));
    return Count("whole snapshot after a switch");
  }
  if (start_lsn <= whole_at_) return;
  Open(start_lsn, R"(, "switch_batch_id": 1)");
  Count("chunked snapshot after a switch");
}

// Changes are lost; only a snapshot makes silver right again.
void Life::Gap() {
  Commit();
  streamed_ = static_cast<std::int64_t>(changes_.size() - 1);
  has_gap_ = true;
  Fact(AppId(), "data_skipped", streamed_, streamed_, 0, "{}");
  Count("gap");
}

// The whole table into bronze, stamped, while it goes on changing.
void Life::ReadTable(std::int64_t stamp) {
  for (std::uint64_t i = dice_.Below(3); i > 0; --i) Commit();
  const bool has_w = !starts_.empty() && streamed_ > starts_[0];
  std::vector<BronzeRow> rows;
  for (const auto& [id, v] : source_) {
    rows.push_back({.instance = Instances()[starts_.size()],
                    .lsn = stamp,
                    .operation = 0,
                    .id = id,
                    .v = v,
                    .snapshot = stamp,
                    .has_w = has_w});
  }
  Put(rows);
  if (!has_w) narrow_stamps_.insert(stamp);
  read_at_ = std::max(read_at_, static_cast<std::int64_t>(changes_.size() - 1));
  if (!rows.empty()) whole_at_ = std::max(whole_at_, stamp);
}

void Life::WholeSnapshot() {
  if (open_) return;
  const auto stamp = static_cast<std::int64_t>(changes_.size() - 1);
  if (has_gap_) {
    ++generation_;
    streamed_ = std::max(streamed_, stamp);
    Count("new generation, whole");
  }
  ReadTable(stamp);
  Fact(AppId(), has_gap_ ? "resnapshot" : "bootstrap", stamp, stamp,
       static_cast<std::int64_t>(source_.size()), "");
  whole_at_ = std::max(whole_at_, stamp);
  has_gap_ = false;
  Count(source_.empty() ? "snapshot of an empty table" : "whole snapshot");
}

void Life::OpenChunked() {
  if (open_ && dice_.Chance(2, 3)) return;
  if (open_) Count("chunked snapshot superseded");
  Commit();
  if (has_gap_) {
    ++generation_;
    Count("new generation, chunked");
  }
  const auto newest = static_cast<std::int64_t>(changes_.size() - 1);
  Open(newest, "");
  if (has_gap_) streamed_ = std::max(streamed_, newest);
}

void Life::Open(std::int64_t lsn, const std::string& more) {
  OpenSnapshot open;
  open.lsn = lsn;
  open.event = has_gap_ ? "resnapshot" : "bootstrap";
  open.app_id = AppId();
  std::set<std::int64_t> cuts;
  for (std::uint64_t i = 1 + dice_.Below(3); i > 0; --i) {
    cuts.insert(static_cast<std::int64_t>(1 + dice_.Below(45)));
  }
  std::optional<std::int64_t> lo;
  for (const std::int64_t cut : cuts) {
    open.chunks.push_back(Chunk{lo, cut});
    lo = cut;
  }
  open.chunks.push_back(Chunk{lo, std::nullopt});
  const std::string keys = config_.keys.size() == 1 ? "[\"id\"]" : "[\"id\", \"r\"]";
  const std::string detail = R"({"mode": "chunked", "kind": ")" + open.event +
                             R"(", "generation": )" + std::to_string(generation_) +
                             more;
  Plan(open.lsn, "snapshot_open", detail + R"(, "keys": )" + keys + R"(, "plan": {}})");
  Fact(open.app_id, "snapshot_open", open.lsn, open.lsn, 0, detail + "}");
  open_ = std::move(open);
  Count("chunked snapshot");
}

void Life::Wave() {
  if (!open_) return;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < open_->chunks.size(); ++i) {
    if (!open_->chunks[i].is_done && numbers.size() < 1 + dice_.Below(2)) {
      numbers.push_back(i);
    }
  }
  if (numbers.empty()) return Complete();
  const auto stamp = static_cast<std::int64_t>(changes_.size() - 1);
  for (std::uint64_t i = dice_.Below(3); i > 0; --i) Commit();
  const std::string snapshot = LsnText(open_->lsn);
  const bool has_w = !starts_.empty() && streamed_ > starts_[0];
  if (!has_w) narrow_stamps_.insert(stamp);
  std::vector<BronzeRow> rows;
  for (const std::size_t number : numbers) {
    Chunk& chunk = open_->chunks[number];
    for (const auto& [id, v] : source_) {
      if ((chunk.lo && id < *chunk.lo) || (chunk.hi && id >= *chunk.hi)) continue;
      rows.push_back({.instance = Instances()[starts_.size()],
                      .lsn = stamp,
                      .operation = 0,
                      .id = id,
                      .v = v,
                      .snapshot = open_->lsn,
                      .chunk = static_cast<std::int64_t>(number),
                      .has_w = has_w});
    }
    chunk.is_done = true;
    chunk.wave = open_->wave;
    chunk.read_at = static_cast<std::int64_t>(changes_.size() - 1);
    read_at_ = std::max(read_at_, chunk.read_at);
  }
  Put(rows);
  const auto detail = [&](std::size_t number, bool with_keys) {
    const Chunk& chunk = open_->chunks[number];
    std::string text = R"({"snapshot": ")" + snapshot + R"(", "wave": )" +
                       std::to_string(open_->wave) + R"(, "chunk": )" +
                       std::to_string(number);
    if (with_keys) {
      text += R"(, "lo": )" + Bound(chunk.lo) + R"(, "hi": )" + Bound(chunk.hi);
    }
    const bool is_last = number + 1 == open_->chunks.size();
    return text + R"(, "last": )" + (is_last ? "true}" : "false}");
  };
  for (const std::size_t number : numbers) {
    Plan(open_->lsn, "snapshot_chunk", detail(number, true));
  }
  for (const std::size_t number : numbers) {
    Fact(open_->app_id, "snapshot_chunk", stamp, stamp, 0, detail(number, false));
  }
  ++open_->wave;
  Count("wave");
}

void Life::Complete() {
  Fact(open_->app_id, open_->event, open_->lsn, open_->lsn, 0,
       R"({"snapshot": ")" + LsnText(open_->lsn) + R"(", "chunks": 1})");
  whole_at_ = std::max(whole_at_, open_->lsn);
  open_.reset();
  has_gap_ = false;
  Count("chunked snapshot complete");
}

void Life::Step() {
  if (dice_.Chance(1, 25)) return SwitchInstance();
  switch (dice_.Below(12)) {
    case 0:
      if (dice_.Chance(1, 2)) return WholeSnapshot();
      return OpenChunked();
    case 1:
    case 2:
      return Wave();
    case 3:
      if (dice_.Chance(1, 4) && !open_) return Gap();
      return Commit();
    case 4:
    case 5:
    case 6:
    case 7:
      return Commit();
    default:
      return Stream();
  }
}

void Life::Finish() {
  while (open_) Wave();
  if (has_gap_) WholeSnapshot();
  while (streamed_ != static_cast<std::int64_t>(changes_.size() - 1)) Stream();
}

void Life::CheckW(std::int64_t lsn, const std::string& v,
                  const std::optional<std::string>& w) const {
  if (w && *w != WOf(v)) throw Wrong{"w is " + *w + " beside v " + v};
  const bool must_lack = starts_.empty() || lsn < starts_[0];
  const bool must_have =
      !starts_.empty() && lsn > starts_[0] && !narrow_stamps_.contains(lsn);
  if (w ? must_lack : must_have) {
    throw Wrong{"the image of " + LsnText(lsn) + " has " + (w ? "w" : "no w")};
  }
}

bool Life::knows_all() const { return !has_gap_ && read_at_ <= streamed_; }

bool Life::Knows(std::int64_t id) const {
  if (knows_all()) return true;
  // Only with a single key are rows that a chunk does not have taken away.
  if (!open_ || config_.keys.size() != 1) return false;
  return std::any_of(
      open_->chunks.begin(), open_->chunks.end(), [&](const Chunk& chunk) {
        const bool covers =
            (!chunk.lo || id >= *chunk.lo) && (!chunk.hi || id < *chunk.hi);
        return covers && chunk.is_done && chunk.read_at <= streamed_;
      });
}

}  // namespace mssql_cdc::silver

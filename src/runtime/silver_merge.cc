#include "runtime/silver_merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cdc/cells.h"
#include "columns/take.h"
#include "pipeline/key_ranges.h"
#include "pipeline/row_key.h"
#include "pipeline/tables.h"

namespace mssql_cdc::runtime {
namespace {

constexpr std::size_t kRangeCountMax = 64;
constexpr std::uint64_t kPartFactor = 4;
constexpr std::uint64_t kPartCountMax = 1 << 16;

std::vector<columns::Field> FieldsOf(const std::vector<columns::Field>& captured,
                                     const std::vector<std::string>& names) {
  std::vector<columns::Field> fields;
  for (const std::string& name : names) {
    for (const columns::Field& field : captured) {
      if (field.name == name) fields.push_back(field);
    }
  }
  return fields;
}

pipeline::ChunkRanges RangesOfChunks(const pipeline::ApplyWindow& window,
                                     const std::vector<columns::Field>& keys) {
  return pipeline::ChunkRanges(window.open.value_or(pipeline::OpenSnapshot{}),
                               window.chunks, keys);
}

// Columns of bronze that order and identify its rows.
std::vector<std::string> MarkColumns(const columns::Schema& bronze) {
  return Present(bronze, {"_capture_instance", "_start_lsn", "_seqval", "_operation",
                          "_command_id", "_snapshot", "_chunk"});
}

// Row numbers by file, flushed into a change.
class Removals {
 public:
  void Add(std::int32_t file, std::int64_t row) { rows_[file].push_back(row); }
  Status Flush(lake::TableChange& change) {
    for (const auto& [file, rows] : rows_) TRY(change.Remove(file, rows));
    rows_.clear();
    return Unit{};
  }

 private:
  std::map<std::int32_t, std::vector<std::int64_t>> rows_;
};

}  // namespace

SilverMerge::SilverMerge(lake::Lake& lake, const SilverConfig& config,
                         const BronzeWindow& window,
                         const std::vector<columns::Field>& captured)
    : lake_(lake),
      config_(config),
      window_(window),
      captured_(captured),
      key_fields_(FieldsOf(captured, config.keys)),
      chunk_ranges_(RangesOfChunks(window.window, key_fields_)),
      filter_(config.instances) {}

Status SilverMerge::Look() {
  while (true) {
    TRY_ASSIGN(const bool fits, ReadPart(0));
    if (fits) return Unit{};
    part_count_ *= kPartFactor;
  }
}

Result<bool> SilverMerge::ReadPart(std::uint64_t part) {
  images_.Clear();
  window_row_count_ = 0;
  std::vector<std::string> columns = MarkColumns(window_.schema);
  columns.insert(columns.end(), config_.keys.begin(), config_.keys.end());
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
             window_.Read(lake_, columns));
  std::int64_t ordinal = 0;
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) break;
    TRY(TakeRows(*batch, part, ordinal));
    ordinal += batch->row_count;
    // Later parts are about as large as the first.
    const bool can_split = part == 0 && part_count_ < kPartCountMax;
    if (can_split && images_.SizeBytes() > config_.key_size_bytes_max) return false;
  }
  chosen_.resize(static_cast<std::size_t>(ordinal));
  return true;
}

Status SilverMerge::TakeRows(const columns::RecordBatch& batch, std::uint64_t part,
                             std::int64_t first_ordinal) {
  BronzeMarks marks(batch);
  TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(batch, config_.keys));
  for (std::int64_t i = 0; i < batch.row_count; ++i) {
    TRY_ASSIGN(const pipeline::RowMark mark, marks.Mark(i));
    const pipeline::RowRole role = pipeline::RoleOf(window_.window, mark);
    if (role == pipeline::RowRole::kNone) continue;
    const std::optional<std::string_view> instance = marks.Instance(i);
    if (!instance) continue;
    if (!filter_.IsOurs(*instance)) {
      return Error(ErrorId::kRowsOfAnotherInstance)
          .With("bronze", config_.bronze)
          .With("capture_instance", std::string(*instance));
    }
    if (role != pipeline::RowRole::kEcho) {
      ++window_row_count_;
      if (mark.is_change()) top_ = std::max(top_, std::optional(mark.lsn));
    }
    const std::string_view key = keys.At(i);
    const std::uint64_t hash = pipeline::HashOf(key);
    if (!IsInPart(hash, part)) continue;
    TRY_ASSIGN(const pipeline::ChangeOrder order, marks.Order(i, mark));
    images_.Offer(hash, key, order, first_ordinal + i,
                  role == pipeline::RowRole::kChunk);
  }
  return Unit{};
}

std::optional<lake::ValueRanges> SilverMerge::NearKeys() const {
  // A rebuild and a chunk concern rows whose keys are not in the window, too.
  if (window_.window.rebuild || !chunk_ranges_.empty()) return std::nullopt;
  std::optional<pipeline::KeyRanges> ranges =
      pipeline::RangesOf(images_, key_fields_.front().type, kRangeCountMax);
  if (!ranges) return std::nullopt;
  return lake::ValueRanges{key_fields_.front().name, std::move(ranges->numbers),
                           std::move(ranges->texts)};
}

Status SilverMerge::ProbePart(lake::TableChange& change, std::uint64_t part) {
  if (change.files().empty()) return Unit{};
  const bool needs_others = window_.window.rebuild || !chunk_ranges_.empty();
  if (images_.size() == 0 && !needs_others) return Unit{};
  lake::ProbeSpec spec;
  spec.columns = config_.keys;
  spec.columns.emplace_back("_start_lsn");
  spec.near = NearKeys();
  TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows, change.Probe(spec));
  while (true) {
    TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
    if (!batch) return Unit{};
    TRY(MeetRows(*batch, part, change));
  }
}

Status SilverMerge::MeetRows(const columns::RecordBatch& batch, std::uint64_t part,
                             lake::TableChange& change) {
  TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(batch, config_.keys));
  const columns::Column& lsns = *batch.columns[batch.columns.size() - 3];
  const columns::Column& files = *batch.columns[batch.columns.size() - 2];
  const columns::Column& numbers = *batch.columns[batch.columns.size() - 1];
  const bool has_ranges = !chunk_ranges_.empty();
  Removals removals;
  for (std::int64_t i = 0; i < batch.row_count; ++i) {
    const std::string_view key = keys.At(i);
    const std::uint64_t hash = pipeline::HashOf(key);
    if (!IsInPart(hash, part)) continue;
    pipeline::LatestImages::Image* image = images_.Find(hash, key);
    if (image == nullptr && !window_.window.rebuild && !has_ranges) continue;
    pipeline::SilverRow row;
    if (!columns::IsNull(lsns, i)) {
      TRY_ASSIGN(row.lsn, cdc::Lsn::Parse(columns::BytesValue(lsns, i)));
    }
    if (has_ranges) row.chunk_stamp = chunk_ranges_.StampOf(keys.Number(i));
    if (!pipeline::Goes(row, image, window_.window.rebuild)) continue;
    removals.Add(columns::FixedValue<std::int32_t>(files, i),
                 columns::FixedValue<std::int64_t>(numbers, i));
  }
  return removals.Flush(change);
}

void SilverMerge::Choose() {
  for (const pipeline::LatestImages::Image& image : images_.images()) {
    if (image.is_gone() || image.is_settled) continue;
    chosen_[static_cast<std::size_t>(image.ordinal)] = true;
  }
}

Status SilverMerge::AddChosen(lake::TableChange& change) {
  if (std::find(chosen_.begin(), chosen_.end(), true) == chosen_.end()) return Unit{};
  std::vector<std::string> columns;
  for (const columns::Field& field : captured_) columns.push_back(field.name);
  columns.emplace_back("_start_lsn");
  columns.emplace_back("_commit_ts");
  TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows, window_.Read(lake_, columns));
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(std::make_unique<ChosenRows>(std::move(rows), chosen_));
  return change.Add(std::move(sources));
}

Result<lake::ChangeResult> SilverMerge::Merge(
    const std::optional<std::int64_t>& version) {
  lake::ChangeSpec spec;
  spec.commits_nothing = true;
  spec.fields = pipeline::SilverTable(captured_).schema.fields;
  TRY_ASSIGN(const std::unique_ptr<lake::TableChange> change,
             lake_.Change(config_.target_location, spec));
  // A table made meanwhile has nothing in its first version.
  const bool is_same = version ? change->version() == *version
                               : change->version() == 0 && change->files().empty();
  if (!is_same) return Error(ErrorId::kLakeConflict).With("table", config_.target);
  for (std::uint64_t part = 0; part < part_count_; ++part) {
    if (part != 0) {
      TRY_ASSIGN(const bool fits, ReadPart(part));
      (void)fits;
    }
    TRY(ProbePart(*change, part));
    Choose();
  }
  images_.Clear();
  TRY(AddChosen(*change));
  return change->Commit(std::nullopt);
}

}  // namespace mssql_cdc::runtime

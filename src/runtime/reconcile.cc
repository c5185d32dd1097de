#include "runtime/reconcile.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "base/case_fold.h"
#include "cdc/cells.h"
#include "columns/take.h"
#include "pipeline/row_key.h"
#include "pipeline/tables.h"
#include "runtime/apply_facts.h"
#include "runtime/bronze_rows.h"
#include "runtime/control_table.h"
#include "runtime/ensure_table.h"
#include "runtime/row_comparison.h"
#include "runtime/source_rows.h"

namespace mssql_cdc::runtime {
namespace {

using columns::Kind;

// A random UUID of version 4.
std::string NewRunId(Dice& dice) {
  const std::uint64_t high = dice.Next();
  const std::uint64_t low = dice.Next();
  char text[40];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx",
                static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xFFFF),
                static_cast<unsigned>(high & 0xFFF),
                static_cast<unsigned>((low >> 48 & 0x3FFF) | 0x8000),
                static_cast<unsigned long long>(low & 0xFFFFFFFFFFFF));
  return text;
}

Status Refused(const char* option, std::string value) {
  return Error(ErrorId::kOptionInvalid)
      .With("option", option)
      .With("value", std::move(value));
}

// The keys that changed while the comparison was under way.
struct Moved {
  std::set<std::string> keys;
  std::set<std::int64_t> numbers;
};

class Run {
 public:
  Run(const StreamConfig& config, const SilverConfig& silver,
      const ReconcileOptions& options, const ReconcileParts& parts)
      : config_(config), silver_(silver), options_(options), parts_(parts) {}

  Result<ReconcileOutcome> Do() {
    const std::int64_t begin_ns = parts_.clock.MonotonicNs();
    run_at_us_ = parts_.clock.NowUtcUs();
    outcome_.run_id = NewRunId(parts_.dice);
    TRY_ASSIGN(rows_, SourceRows::Open(config_, parts_.sessions, parts_.clock));
    TRY(ChooseKeys());
    TRY(PinSilver());
    if (is_ranged_) {
      TRY(CountRanges());
    } else {
      TRY(CountWhole());
    }
    TRY(CompareChosen());
    TRY(CheckSnapshotChunks());
    TRY(Record());
    outcome_.elapsed_ms = (parts_.clock.MonotonicNs() - begin_ns) / 1'000'000;
    return std::move(outcome_);
  }

 private:
  Status ChooseKeys() {
    keys_ = silver_.keys;
    if (keys_.empty()) keys_ = rows_->source().instance.key_columns;
    if (keys_.empty()) {
      return Error(ErrorId::kSilverKeyInvalid)
          .With("bronze", silver_.bronze)
          .With("reason", "no keys are given, and the source has no unique index");
    }
    is_ranged_ = keys_.size() == 1 && rows_->source().range_key &&
                 EqualsIgnoringCase(*rows_->source().range_key, keys_[0]);
    return Unit{};
  }

  // The position first, then the version: silver is at least that recent.
  Status PinSilver() {
    ControlTable control(parts_.lake, parts_.clock, parts_.dice,
                         silver_.control_location);
    TRY_ASSIGN(const pipeline::ControlRow row, control.Read(silver_.target));
    TRY_ASSIGN(const pipeline::SilverPosition position, row.Position());
    applied_ = position.applied.value_or(cdc::Lsn{});
    outcome_.silver_lsn = row.applied_lsn;
    TRY_ASSIGN(const std::optional<lake::TableState> state,
               parts_.lake.State(silver_.target_location));
    if (!state) {
      return Error(ErrorId::kLakeUnreachable).With("table", silver_.target);
    }
    TRY_ASSIGN(pinned_, parts_.lake.Change(silver_.target_location,
                                           {lake::ChangeKind::kMerge, {}}));
    outcome_.silver_version = pinned_->version();
    for (const columns::Field& field : rows_->Compared()) {
      for (const columns::Field& other : state->schema.fields) {
        const bool is_same =
            EqualsIgnoringCase(other.name, field.name) && other.type == field.type;
        if (is_same) compared_.push_back(field.name);
      }
    }
    return Unit{};
  }

  Result<cdc::Lsn> Newest() {
    TRY_ASSIGN(const std::optional<cdc::Offset> newest, rows_->Newest());
    return newest ? newest->lsn : cdc::Lsn{};
  }

  // Keys of changes above `lower`, in bronze and, beyond it, in the change tables.
  Result<Moved> FindMoved(const cdc::Lsn& lower) {
    Moved moved;
    cdc::Lsn bronze_position = lower;
    TRY_ASSIGN(const std::optional<lake::TableState> bronze,
               parts_.lake.State(silver_.bronze_location));
    if (bronze) {
      lake::ReadSpec spec;
      spec.version = bronze->version;
      spec.columns =
          Present(bronze->schema, {"_operation", "_start_lsn", "_snapshot", "_chunk"});
      spec.columns.insert(spec.columns.end(), keys_.begin(), keys_.end());
      spec.conditions = {
          {"_start_lsn", lake::Condition::Operator::kAbove, lower.Text()}};
      TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
                 parts_.lake.Read(silver_.bronze_location, spec));
      while (true) {
        TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
        if (!batch) break;
        TRY(TakeMoved(*batch, moved, bronze_position));
      }
    }
    TRY(rows_->ChangedKeys(bronze_position, keys_, moved.keys, moved.numbers));
    return moved;
  }

  Status TakeMoved(const columns::RecordBatch& batch, Moved& moved,
                   cdc::Lsn& position) const {
    BronzeMarks marks(batch);
    TRY_ASSIGN(pipeline::RowKeys keys, pipeline::RowKeys::Of(batch, keys_));
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      TRY_ASSIGN(const pipeline::RowMark mark, marks.Mark(i));
      if (!mark.is_change()) {
        if (mark.chunk && mark.snapshot) position = std::max(position, *mark.snapshot);
        continue;
      }
      position = std::max(position, mark.lsn);
      moved.keys.insert(std::string(keys.At(i)));
      if (!is_ranged_) continue;
      if (const auto number = keys.Number(i)) moved.numbers.insert(*number);
    }
    return Unit{};
  }

  Status CountRanges() {
    TRY_ASSIGN(source_lsn_, Newest());
    TRY_ASSIGN(const std::optional<cdc::KeyExtent> source, rows_->Extent());
    std::optional<cdc::KeyExtent> extent = source;
    TRY(EachSilverKey([&](std::int64_t key) {
      if (!extent) extent = cdc::KeyExtent{key, key};
      extent->min = std::min(extent->min, key);
      extent->max = std::max(extent->max, key);
    }));
    if (!extent) return Unit{};
    const std::int64_t width = pipeline::SliceWidth(extent->min, extent->max);
    TRY_ASSIGN(const pipeline::Slices source_slices, rows_->Count(width));
    TRY_ASSIGN(const Moved moved, FindMoved(std::min(source_lsn_, applied_)));
    std::set<std::int64_t> moved_slices;
    for (const std::int64_t key : moved.numbers) {
      moved_slices.insert(pipeline::SliceOf(key, width));
    }
    pipeline::Slices silver_slices;
    TRY(EachSilverKey([&](std::int64_t key) {
      pipeline::SliceCount& slice = silver_slices[pipeline::SliceOf(key, width)];
      ++slice.rows;
      slice.key_sum += key;
    }));
    outcome_.buckets = pipeline::CutBuckets(width, source_slices, silver_slices,
                                            moved_slices, options_.bucket_rows);
    return Unit{};
  }

  template <typename Take>
  Status EachSilverKey(Take take) {
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               pinned_->Probe({keys_}));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) return Unit{};
      TRY_ASSIGN(const pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        if (const auto key = keys.Number(i)) take(*key);
      }
    }
  }

  Status CountWhole() {
    TRY_ASSIGN(source_lsn_, Newest());
    TRY_ASSIGN(const std::int64_t source_rows, rows_->CountRows());
    std::int64_t silver_rows = 0;
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               pinned_->Probe({keys_}));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
      silver_rows += batch->row_count;
    }
    TRY_ASSIGN(const Moved moved, FindMoved(std::min(source_lsn_, applied_)));
    outcome_.buckets = {
        pipeline::WholeBucket(source_rows, silver_rows, !moved.keys.empty())};
    return Unit{};
  }

  Result<std::unique_ptr<columns::BatchReader>> ProbeBucket(
      const pipeline::Bucket& bucket) {
    lake::ProbeSpec spec;
    spec.columns = keys_;
    for (const std::string& name : compared_) {
      const bool is_key = std::find(keys_.begin(), keys_.end(), name) != keys_.end();
      if (!is_key) spec.columns.push_back(name);
    }
    spec.columns.emplace_back("_start_lsn");
    if (bucket.lo && bucket.hi) {
      spec.near = lake::ValueRanges{keys_[0], {{*bucket.lo, *bucket.hi - 1}}, {}};
    }
    return pinned_->Probe(spec);
  }

  // A probe gives whole row groups: rows outside of the bucket are taken out.
  class Within final : public columns::BatchReader {
   public:
    Within(std::unique_ptr<columns::BatchReader> rows, const pipeline::Bucket& bucket,
           const std::vector<std::string>& keys, bool is_ranged)
        : rows_(std::move(rows)), bucket_(bucket), keys_(keys), is_ranged_(is_ranged) {}
    columns::SchemaPtr schema() const override { return rows_->schema(); }
    Result<std::optional<columns::RecordBatch>> Next() override {
      while (true) {
        TRY_ASSIGN(std::optional<columns::RecordBatch> batch, rows_->Next());
        if (!batch || !is_ranged_) return batch;
        TRY_ASSIGN(const pipeline::RowKeys keys, pipeline::RowKeys::Of(*batch, keys_));
        std::vector<std::int64_t> inside;
        for (std::int64_t i = 0; i < batch->row_count; ++i) {
          const auto key = keys.Number(i);
          const bool is_inside = key && (!bucket_.lo || *key >= *bucket_.lo) &&
                                 (!bucket_.hi || *key < *bucket_.hi);
          if (is_inside) inside.push_back(i);
        }
        if (inside.empty()) continue;
        columns::RecordBatch kept{
            batch->schema, static_cast<std::int64_t>(inside.size()), {}};
        for (const auto& column : batch->columns) {
          kept.columns.push_back(
              std::make_shared<const columns::Column>(columns::Take(*column, inside)));
        }
        return std::optional<columns::RecordBatch>(std::move(kept));
      }
    }

   private:
    std::unique_ptr<columns::BatchReader> rows_;
    pipeline::Bucket bucket_;
    const std::vector<std::string>& keys_;
    bool is_ranged_;
  };

  Status CompareChosen() {
    TRY_ASSIGN(row_source_lsn_, Newest());
    std::vector<std::pair<std::size_t, RowComparison>> compared;
    for (const std::size_t index :
         pipeline::ChooseBuckets(outcome_.buckets, options_.sample, parts_.dice)) {
      pipeline::Bucket& bucket = outcome_.buckets[index];
      RowComparison comparison(keys_, compared_);
      const auto silver = [&]() -> Result<std::unique_ptr<columns::BatchReader>> {
        TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows, ProbeBucket(bucket));
        return std::unique_ptr<columns::BatchReader>(
            std::make_unique<Within>(std::move(rows), bucket, keys_, is_ranged_));
      };
      TRY_ASSIGN(const auto first, silver());
      TRY(comparison.TakeSilver(*first));
      cdc::KeyRange range;
      if (is_ranged_ && bucket.lo) range.after = *bucket.lo - 1;
      if (is_ranged_ && bucket.hi) range.through = *bucket.hi - 1;
      Within source(rows_->Rows(range), bucket, keys_, is_ranged_);
      TRY(comparison.TakeSource(source));
      comparison.Finish();
      if (comparison.needs_names()) {
        TRY_ASSIGN(const auto again, silver());
        TRY(comparison.NameColumns(*again));
      }
      bucket.hashed = true;
      ++outcome_.hashed;
      compared.emplace_back(index, std::move(comparison));
    }
    if (compared.empty()) return Unit{};
    TRY_ASSIGN(const Moved moved, FindMoved(std::min(row_source_lsn_, applied_)));
    for (const auto& [index, comparison] : compared) {
      const pipeline::Bucket& bucket = outcome_.buckets[index];
      for (Difference& difference : comparison.Differences(moved.keys)) {
        if (bucket.lo) difference.finding.bucket_lo = std::to_string(*bucket.lo);
        if (bucket.hi) difference.finding.bucket_hi = std::to_string(*bucket.hi);
        key_findings_.push_back(std::move(difference.finding));
      }
    }
    return Unit{};
  }

  Status CheckSnapshotChunks() {
    TRY_ASSIGN(const std::optional<std::vector<pipeline::SnapshotFact>> facts,
               ReadSnapshotFacts(parts_.lake, silver_));
    if (!facts) return Unit{};
    const std::optional<cdc::Lsn> opened = pipeline::NewestChunkedOpen(*facts);
    if (!opened) return Unit{};
    TRY_ASSIGN(const pipeline::OpenSnapshot snapshot,
               ReadSnapshot(parts_.lake, silver_, *opened, *facts));
    const bool is_complete = std::any_of(
        facts->begin(), facts->end(), [&](const pipeline::SnapshotFact& fact) {
          const bool ends = fact.event == "bootstrap" || fact.event == "resnapshot";
          return ends && fact.max_lsn == opened;
        });
    std::map<std::int64_t, std::int64_t> rows;
    std::map<std::int64_t, cdc::Lsn> stamps;
    lake::ReadSpec spec;
    spec.columns = {"_operation", "_start_lsn", "_snapshot", "_chunk"};
    spec.conditions = {{"_snapshot", lake::Condition::Operator::kEqual, opened->Text()},
                       {"_chunk", lake::Condition::Operator::kIsNotNull, ""}};
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> held,
               parts_.lake.Read(silver_.bronze_location, spec));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, held->Next());
      if (!batch) break;
      BronzeMarks marks(*batch);
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        TRY_ASSIGN(const pipeline::RowMark mark, marks.Mark(i));
        ++rows[*mark.chunk];
        const auto [stamp, is_new] = stamps.emplace(*mark.chunk, mark.lsn);
        if (!is_new) stamp->second = std::min(stamp->second, mark.lsn);
      }
    }
    outcome_.findings = pipeline::CheckChunks(snapshot, is_complete, rows, stamps);
    return Unit{};
  }

  Status Record() {
    outcome_.source_lsn = source_lsn_.Text();
    for (const pipeline::Bucket& bucket : outcome_.buckets) {
      switch (bucket.status) {
        case pipeline::BucketStatus::kMatch:
          ++outcome_.match;
          break;
        case pipeline::BucketStatus::kInFlight:
          ++outcome_.in_flight;
          break;
        case pipeline::BucketStatus::kMismatch:
          ++outcome_.mismatch;
          break;
      }
    }
    const std::vector<pipeline::Finding> chunks = outcome_.findings;
    outcome_.findings.insert(outcome_.findings.end(), key_findings_.begin(),
                             key_findings_.end());
    for (const pipeline::Finding& finding : outcome_.findings) {
      ++outcome_.failures[finding.failure_type];
    }
    if (options_.report_location.empty()) return Unit{};
    TRY(EnsureTable(parts_.lake, options_.report_location, pipeline::TableKind::kReport,
                    pipeline::ReportTable()));
    pipeline::ReportRun run{outcome_.run_id,       run_at_us_,
                            silver_.target,        outcome_.silver_version,
                            outcome_.silver_lsn,   outcome_.source_lsn,
                            row_source_lsn_.Text()};
    std::vector<columns::RecordBatch> batches;
    batches.push_back(
        pipeline::ReportBatch(run, outcome_.buckets, chunks, key_findings_));
    if (batches[0].row_count == 0) return Unit{};
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    const columns::SchemaPtr schema = batches[0].schema;
    sources.push_back(columns::ReadBatches(schema, std::move(batches)));
    TRY(parts_.lake.Append(options_.report_location, std::move(sources), {}));
    return Unit{};
  }

  const StreamConfig& config_;
  const SilverConfig& silver_;
  const ReconcileOptions& options_;
  const ReconcileParts& parts_;
  std::unique_ptr<SourceRows> rows_;
  std::unique_ptr<lake::TableChange> pinned_;  // Only looked at.
  std::vector<std::string> keys_;
  std::vector<std::string> compared_;
  bool is_ranged_ = false;
  std::int64_t run_at_us_ = 0;
  cdc::Lsn applied_;
  cdc::Lsn source_lsn_;
  cdc::Lsn row_source_lsn_;
  std::vector<pipeline::Finding> key_findings_;
  ReconcileOutcome outcome_;
};

}  // namespace

Result<ReconcileOutcome> Reconcile(const StreamConfig& config,
                                   const SilverConfig& silver,
                                   const ReconcileOptions& options,
                                   const ReconcileParts& parts) {
  if (options.bucket_rows < 1) {
    TRY(Refused("bucket-rows", std::to_string(options.bucket_rows)));
  }
  if (!(options.sample >= 0 && options.sample <= 1)) {
    TRY(Refused("sample", std::to_string(options.sample)));
  }
  return Run(config, silver, options, parts).Do();
}

}  // namespace mssql_cdc::runtime

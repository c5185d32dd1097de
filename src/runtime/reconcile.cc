#include "runtime/reconcile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "pipeline/in_flight.h"
#include "pipeline/tables.h"
#include "runtime/apply_facts.h"
#include "runtime/bronze_rows.h"
#include "runtime/control_table.h"
#include "runtime/ensure_table.h"
#include "runtime/moved_keys.h"
#include "runtime/pinned_silver.h"
#include "runtime/row_comparison.h"
#include "runtime/source_rows.h"

namespace mssql_cdc::runtime {
namespace {

// A random UUID of version 4. Dice of one seed draw one sample; their runs are told
// apart by the time.
std::string NewRunId(Dice& dice, std::int64_t now_us) {
  Dice own(dice.Next() ^ static_cast<std::uint64_t>(now_us));
  const std::uint64_t high = own.Next();
  const std::uint64_t low = own.Next();
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

class Run {
 public:
  Run(const StreamConfig& config, const SilverConfig& silver,
      const ReconcileOptions& options, const ReconcileParts& parts)
      : config_(config), silver_(silver), options_(options), parts_(parts) {}

  Result<ReconcileOutcome> Do() {
    const std::int64_t begin_ns = parts_.clock.MonotonicNs();
    run_at_us_ = parts_.clock.NowUtcUs();
    outcome_.run_id = NewRunId(parts_.dice, run_at_us_);
    TRY_ASSIGN(rows_, SourceRows::Open(config_, parts_.sessions, parts_.clock));
    TRY(ChooseKeys());
    TRY(PinSilver());
    if (kind_) {
      TRY(CountRanges());
    } else {
      TRY(CountWhole());
    }
    TRY_ASSIGN(row_source_lsn_, Newest());
    TRY(kind_ ? CompareBuckets() : CompareSeekRanges());
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
    kind_ = rows_->OrdinalOf(keys_);
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
    outcome_.open_snapshot_lsn = row.open_snapshot_lsn;
    TRY(rows_->CheckNotGoneBack(applied_));
    TRY_ASSIGN(pinned_,
               PinnedSilver::Open(parts_.lake, silver_, keys_, rows_->Compared()));
    outcome_.silver_version = pinned_->version();
    outcome_.left_out = pinned_->left_out();
    return Unit{};
  }

  Result<cdc::Lsn> Newest() {
    TRY_ASSIGN(const std::optional<cdc::Offset> newest, rows_->Newest());
    return newest ? newest->lsn : cdc::Lsn{};
  }

  Status EachMoved(const cdc::Lsn& source_lsn, const SourceRows::TakeKey& take) {
    return EachMovedKey(parts_.lake, silver_, *rows_, keys_,
                        std::min(source_lsn, applied_), take);
  }

  Status CountRanges() {
    TRY_ASSIGN(source_lsn_, Newest());
    TRY_ASSIGN(std::optional<cdc::KeyExtent> extent, rows_->Extent(keys_[0], *kind_));
    if (extent) source_min_ = extent->min;
    TRY_ASSIGN(silver_null_count_, pinned_->EachNumber([&](std::int64_t key) {
      if (!extent) extent = cdc::KeyExtent{key, key};
      extent->min = std::min(extent->min, key);
      extent->max = std::max(extent->max, key);
    }));
    if (!extent) return Unit{};
    const std::int64_t width = pipeline::SliceWidth(extent->min, extent->max);
    TRY_ASSIGN(const pipeline::Slices source_slices,
               rows_->Count(keys_[0], *kind_, width));
    std::set<std::int64_t> moved;
    TRY(EachMoved(source_lsn_,
                  [&](std::string_view, const std::optional<std::int64_t>& number) {
                    if (number) moved.insert(pipeline::SliceOf(*number, width));
                  }));
    pipeline::Slices silver_slices;
    TRY_ASSIGN(silver_null_count_, pinned_->EachNumber([&](std::int64_t key) {
      pipeline::SliceCount& slice = silver_slices[pipeline::SliceOf(key, width)];
      ++slice.rows;
      slice.key_sum += key;
    }));
    outcome_.buckets = pipeline::CutBuckets(width, source_slices, silver_slices, moved,
                                            options_.bucket_rows);
    for (pipeline::Bucket& bucket : outcome_.buckets) bucket.kind = *kind_;
    return Unit{};
  }

  Status CountWhole() {
    TRY_ASSIGN(source_lsn_, Newest());
    TRY_ASSIGN(const std::int64_t source_rows, rows_->CountRows());
    TRY_ASSIGN(const std::int64_t silver_rows, pinned_->RowCount());
    bool has_moved = false;
    TRY(EachMoved(source_lsn_,
                  [&](std::string_view, const std::optional<std::int64_t>&) {
                    has_moved = true;
                  }));
    outcome_.buckets = {pipeline::WholeBucket(source_rows, silver_rows, has_moved)};
    return Unit{};
  }

  // Bucket by bucket, those that were chosen.
  Status CompareBuckets() {
    std::vector<RowComparison> compared;
    for (const std::size_t index :
         pipeline::ChooseBuckets(outcome_.buckets, options_.sample, parts_.dice)) {
      pipeline::Bucket& bucket = outcome_.buckets[index];
      const OrdinalRange range{bucket.lo, bucket.hi};
      RowComparison comparison(keys_, pinned_->compared(),
                               options_.held_size_bytes_max);
      const RowComparison::Bounds bounds{pipeline::BoundJson(bucket.kind, bucket.lo),
                                         pipeline::BoundJson(bucket.kind, bucket.hi)};
      const auto source =
          KeepWithin(rows_->Rows(keys_[0], *kind_, bucket.lo, bucket.hi), range, keys_);
      bool has_more = true;
      while (has_more) {
        TRY_ASSIGN(has_more, comparison.TakeSource(*source, bounds));
        TRY_ASSIGN(const auto silver, pinned_->Rows(range));
        TRY(comparison.MeetSilver(*silver, !has_more));
      }
      bucket.hashed = true;
      ++outcome_.hashed;
      outcome_.groups += comparison.group_count();
      compared.push_back(std::move(comparison));
    }
    TRY(CompareNulls(compared));
    return TakeDifferences(compared);
  }

  // Rows whose key is NULL are in no bucket. The source can have them only where the
  // column may be NULL, silver always.
  Status CompareNulls(std::vector<RowComparison>& compared) {
    const OrdinalRange nulls{std::nullopt, std::nullopt, true};
    const auto source = KeepWithin(
        rows_->Rows(keys_[0], *kind_, std::nullopt, source_min_), nulls, keys_);
    RowComparison comparison(keys_, pinned_->compared(), options_.held_size_bytes_max);
    bool has_more = true;
    while (has_more) {
      TRY_ASSIGN(has_more, comparison.TakeSource(*source, {}));
      if (comparison.is_empty() && silver_null_count_ == 0) return Unit{};
      TRY_ASSIGN(const auto silver, pinned_->Rows(nulls));
      TRY(comparison.MeetSilver(*silver, !has_more));
    }
    ++outcome_.hashed;
    outcome_.groups += comparison.group_count();
    compared.push_back(std::move(comparison));
    return Unit{};
  }

  // Keys without a distance: ranges as the server orders them. All of them if the
  // numbers of rows differ, else a sample; only all together show what silver has and
  // the source lacks.
  Status CompareSeekRanges() {
    TRY_ASSIGN(const std::vector<pipeline::KeyRange> ranges,
               rows_->PlanRanges(keys_, options_.bucket_rows));
    std::vector<pipeline::Bucket> as_buckets(ranges.size());
    for (pipeline::Bucket& bucket : as_buckets) {
      bucket.status = outcome_.buckets[0].status == pipeline::BucketStatus::kMismatch
                          ? pipeline::BucketStatus::kMismatch
                          : pipeline::BucketStatus::kMatch;
    }
    const std::vector<std::size_t> chosen =
        pipeline::ChooseBuckets(as_buckets, options_.sample, parts_.dice);
    if (chosen.empty()) return Unit{};
    std::vector<RowComparison> compared;
    compared.emplace_back(keys_, pinned_->compared(), options_.held_size_bytes_max);
    RowComparison& comparison = compared.front();
    const bool is_whole = chosen.size() == ranges.size();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const pipeline::KeyRange& range = ranges[chosen[i]];
      const RowComparison::Bounds bounds{JsonOf(range.lo), JsonOf(range.hi)};
      const auto source = rows_->Rows(range);
      bool has_more = true;
      while (has_more) {
        TRY_ASSIGN(has_more, comparison.TakeSource(*source, bounds));
        const bool is_last = !has_more && i + 1 == chosen.size();
        // A group may hold several ranges.
        if (!has_more && !is_last) break;
        TRY_ASSIGN(const auto silver, pinned_->Rows());
        TRY(comparison.MeetSilver(*silver, is_last && is_whole));
      }
      ++outcome_.hashed;
    }
    outcome_.groups += comparison.group_count();
    outcome_.buckets[0].hashed = true;
    return TakeDifferences(compared);
  }

  static std::optional<std::string> JsonOf(const std::optional<pipeline::Key>& key) {
    if (!key) return std::nullopt;
    return pipeline::KeyJson(key).dump(-1, ' ', false,
                                       nlohmann::json::error_handler_t::replace);
  }

  // Of the keys that changed meanwhile, only those that differ are held.
  Status TakeMoved(const std::vector<RowComparison>& compared,
                   std::set<std::string>& moved) {
    return EachMoved(
        row_source_lsn_, [&](std::string_view key, const std::optional<std::int64_t>&) {
          const bool differs = std::any_of(
              compared.begin(), compared.end(),
              [&](const RowComparison& one) { return one.IsDifferent(key); });
          if (differs) moved.insert(std::string(key));
        });
  }

  // A commit that capture has not read yet is in no change table: what it changed looks
  // wrong until capture has passed the moment at which the source was read.
  Status TakeDifferences(const std::vector<RowComparison>& compared) {
    if (compared.empty()) return Unit{};
    std::set<std::string> moved;
    TRY(TakeMoved(compared, moved));
    const bool has_wrong = std::any_of(
        compared.begin(), compared.end(),
        [&](const RowComparison& one) { return one.HasDifferenceBeside(moved); });
    if (has_wrong && options_.capture_wait_ms_max > 0 &&
        config_.backend != cdc::Backend::kFake) {
      TRY_ASSIGN(outcome_.capture_has_passed,
                 rows_->AwaitCapture(options_.capture_wait_ms_max));
      outcome_.scans_are_shown = rows_->shows_scans();
      TRY(TakeMoved(compared, moved));
    }
    for (const RowComparison& one : compared) {
      for (Difference& difference : one.Differences(moved)) {
        key_findings_.push_back(std::move(difference.finding));
      }
    }
    pipeline::ExplainBuckets(outcome_.buckets, key_findings_);
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
    const bool is_newer = opened > pipeline::NewestCompletion(*facts);
    if (!is_complete && is_newer) outcome_.open_snapshot_lsn = opened->Text();
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
    const pipeline::ReportRun run{outcome_.run_id,       run_at_us_,
                                  silver_.target,        outcome_.silver_version,
                                  outcome_.silver_lsn,   outcome_.source_lsn,
                                  row_source_lsn_.Text()};
    outcome_.report =
        pipeline::ReportBatch(run, outcome_.buckets, chunks, key_findings_);
    if (options_.report_location.empty()) return Unit{};
    TRY(EnsureTable(parts_.lake, options_.report_location, pipeline::TableKind::kReport,
                    pipeline::ReportTable()));
    if (outcome_.report.row_count == 0) return Unit{};
    std::vector<columns::RecordBatch> batches = {outcome_.report};
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
  std::optional<PinnedSilver> pinned_;
  std::vector<std::string> keys_;
  std::optional<pipeline::OrdinalKind> kind_;  // Of keys with a distance.
  std::optional<std::int64_t> source_min_;     // Of keys with a distance.
  std::int64_t silver_null_count_ = 0;
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

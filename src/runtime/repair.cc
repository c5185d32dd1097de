#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cdc/cells.h"
#include "cdc/output_columns.h"
#include "cdc/type_map.h"
#include "columns/take.h"
#include "pipeline/key_ranges.h"
#include "pipeline/reconcile.h"
#include "runtime/apply.h"
#include "runtime/checkpoint.h"
#include "runtime/control_table.h"
#include "runtime/pinned_silver.h"
#include "runtime/reconcile.h"
#include "runtime/source_rows.h"

namespace mssql_cdc::runtime {
namespace {

constexpr int kAttemptCount = 5;
constexpr std::int64_t kWaitMsMax = 10'000;
constexpr std::int64_t kPauseMs = 50;
constexpr std::size_t kRangeCountMax = 64;

using KeySet = std::set<std::string>;  // JSON of keys.

KeySet WantedOf(const ReconcileOutcome& found) {
  KeySet wanted;
  for (const pipeline::Finding& finding : found.findings) {
    if (finding.key && finding.failure_type != "IN_FLIGHT") wanted.insert(*finding.key);
  }
  return wanted;
}

struct Stamp {
  std::string instance;
  cdc::Offset at;
  int operation = 0;
};

// The rows chosen of a batch as rows of bronze.
columns::RecordBatch AsBronze(const columns::RecordBatch& batch,
                              const std::vector<std::int64_t>& rows,
                              const std::vector<columns::Field>& captured,
                              const Stamp& stamp) {
  auto schema = std::make_shared<columns::Schema>(cdc::OutputSchema(captured, false));
  columns::RecordBatch out{nullptr, static_cast<std::int64_t>(rows.size()), {}};
  for (const columns::Field& field : schema->fields) {
    columns::ColumnBuilder builder(field.type, out.row_count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (field.name == "_capture_instance") {
        builder.AppendBytes(stamp.instance);
      } else if (field.name == "_start_lsn") {
        builder.AppendBytes(stamp.at.lsn.Text());
      } else if (field.name == "_operation") {
        builder.AppendInt32(stamp.operation);
      } else if (field.name == "_commit_ts" && stamp.at.commit_us) {
        builder.AppendInt64(*stamp.at.commit_us);
      } else {
        builder.AppendNull();
      }
    }
    columns::Column column = builder.Finish();
    for (std::size_t i = 0; i < batch.columns.size(); ++i) {
      const bool is_captured = batch.schema->fields[i].name == field.name &&
                               !cdc::IsReservedName(field.name);
      if (is_captured) column = columns::Take(*batch.columns[i], rows);
    }
    out.columns.push_back(std::make_shared<const columns::Column>(std::move(column)));
  }
  out.schema = std::move(schema);
  return out;
}

class Repairing {
 public:
  Repairing(const StreamConfig& config, const SilverConfig& silver,
            const ReconcileOutcome& found, const ReconcileParts& parts)
      : config_(config), silver_(silver), found_(found), parts_(parts) {}

  Result<std::int64_t> Do() {
    KeySet wanted = WantedOf(found_);
    if (wanted.empty()) return std::int64_t{0};
    if (found_.open_snapshot_lsn) {
      return Error(ErrorId::kRepairNotYet)
          .With("snapshot", *found_.open_snapshot_lsn)
          .With("reason",
                "the snapshot is open: silver gets the rows that it lacks from its "
                "chunks, by mssql-cdc backfill and apply");
    }
    TRY_ASSIGN(source_, SourceRows::Open(config_, parts_.sessions, parts_.clock));
    keys_ =
        silver_.keys.empty() ? source_->source().instance.key_columns : silver_.keys;
    // While another process keeps silver up to date, it can pass the stamp before the
    // rows are in bronze; then it never applies them, and they get a later one.
    for (int attempt = 0; attempt < kAttemptCount; ++attempt) {
      TRY(TakeStamp());
      batches_.clear();
      KeySet gone = wanted;
      TRY(TakeSource(wanted, gone));
      TRY(TakeSilver(gone));
      if (batches_.empty()) return row_count_;
      TRY_ASSIGN(const cdc::Lsn applied, Applied());
      if (applied >= stamp_.at.lsn) continue;
      TRY(Append(attempt));
      const auto outcome = Apply(silver_, {parts_.lake, parts_.clock, parts_.dice});
      // Who was faster may have applied them.
      if (!outcome.ok() && outcome.error().id() != ErrorId::kLakeConflict) {
        return outcome.error();
      }
      TRY_ASSIGN(wanted, Outstanding(wanted, gone));
      if (wanted.empty()) return row_count_;
    }
    return NotYet();
  }

 private:
  Result<cdc::Lsn> Applied() {
    ControlTable control(parts_.lake, parts_.clock, parts_.dice,
                         silver_.control_location);
    TRY_ASSIGN(const pipeline::ControlRow row, control.Read(silver_.target));
    TRY_ASSIGN(const pipeline::SilverPosition position, row.Position());
    return position.applied.value_or(cdc::Lsn{});
  }

  // What the stream has read and silver has not applied: bronze has all changes up to
  // there, so nothing is passed over when silver moves there. It may be there only
  // between a commit of the stream and the next apply, which is waited for.
  Status TakeStamp() {
    const std::int64_t begin_ns = parts_.clock.MonotonicNs();
    while (true) {
      TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config_.checkpoint));
      TRY_ASSIGN(const cdc::Lsn applied, Applied());
      if (state.position() && state.position()->lsn > applied) {
        stamp_.at = *state.position();
        stamp_.instance = source_->source().instance.name;
        return Unit{};
      }
      TRY(source_->CheckCanGoOn());
      const std::int64_t waited_ms =
          (parts_.clock.MonotonicNs() - begin_ns) / 1'000'000;
      if (waited_ms >= kWaitMsMax) return NotYet();
      parts_.clock.SleepMs(kPauseMs);
    }
  }

  Error NotYet() {
    const Result<CheckpointState> state = ReadCheckpoint(config_.checkpoint);
    const Result<cdc::Lsn> applied = Applied();
    const bool has_read = state.ok() && state.value().position();
    return Error(ErrorId::kRepairNotYet)
        .With("read", has_read ? state.value().position()->lsn.Text() : "none")
        .With("applied", applied.ok() ? applied.value().Text() : "none");
  }

  // Where rows with these keys are: a few ranges of a whole-number key, or anywhere.
  std::vector<OrdinalRange> RangesOf(const KeySet& wanted) const {
    const std::vector<OrdinalRange> anywhere(1);
    if (source_->OrdinalOf(keys_) != pipeline::OrdinalKind::kNumber) return anywhere;
    std::vector<std::int64_t> numbers;
    for (const std::string& key : wanted) {
      const auto json = nlohmann::json::parse(key, nullptr, false);
      const auto value = json.is_object() ? json.find(keys_[0]) : json.end();
      if (value == json.end() || !value->is_number_integer()) return anywhere;
      numbers.push_back(value->get<std::int64_t>());
    }
    std::sort(numbers.begin(), numbers.end());
    std::vector<OrdinalRange> ranges;
    for (const auto& [first, last] : pipeline::RangesAround(numbers, kRangeCountMax)) {
      OrdinalRange range{first, std::nullopt};
      if (last < INT64_MAX) range.hi = last + 1;
      ranges.push_back(range);
    }
    return ranges;
  }

  // Takes the keys that the source has off `gone`. Also such as it had not, or had,
  // when it was compared.
  Status TakeSource(const KeySet& wanted, KeySet& gone) {
    stamp_.operation = static_cast<int>(cdc::Operation::kUpdateAfter);
    for (const OrdinalRange& range : RangesOf(wanted)) {
      const std::unique_ptr<columns::BatchReader> rows =
          range.lo ? source_->Rows(keys_[0], pipeline::OrdinalKind::kNumber, range.lo,
                                   range.hi)
                   : source_->AllRows();
      while (true) {
        TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
        if (!batch) break;
        std::vector<std::int64_t> chosen;
        for (std::int64_t i = 0; i < batch->row_count; ++i) {
          const std::string key = pipeline::KeyJson(*batch, i, keys_);
          if (!wanted.contains(key)) continue;
          chosen.push_back(i);
          gone.erase(key);
        }
        Keep(*batch, chosen, source_->source().target_fields());
      }
    }
    return Unit{};
  }

  // A delete needs the key alone; silver's row has it.
  Status TakeSilver(const KeySet& gone) {
    if (gone.empty()) return Unit{};
    stamp_.operation = static_cast<int>(cdc::Operation::kDelete);
    lake::ReadSpec spec;
    spec.columns = keys_;
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               parts_.lake.Read(silver_.target_location, spec));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) return Unit{};
      std::vector<std::int64_t> chosen;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        if (gone.contains(pipeline::KeyJson(*batch, i, keys_))) chosen.push_back(i);
      }
      Keep(*batch, chosen, batch->schema->fields);
    }
  }

  // Keys that silver has no image of since the stamp, though the source had the row, or
  // still has an older one.
  Result<KeySet> Outstanding(const KeySet& wanted, const KeySet& gone) {
    KeySet outstanding = wanted;
    for (const std::string& key : gone) outstanding.erase(key);
    KeySet older;
    lake::ReadSpec spec;
    spec.columns = keys_;
    spec.columns.emplace_back("_start_lsn");
    TRY_ASSIGN(const std::unique_ptr<columns::BatchReader> rows,
               parts_.lake.Read(silver_.target_location, spec));
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) break;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        const std::string key = pipeline::KeyJson(*batch, i, keys_);
        if (!wanted.contains(key)) continue;
        outstanding.erase(key);
        TRY_ASSIGN(const std::optional<std::string> text,
                   cdc::RowView(*batch, i).Text("_start_lsn"));
        TRY_ASSIGN(const cdc::Lsn lsn, cdc::Lsn::Parse(text.value_or("0x00")));
        if (lsn < stamp_.at.lsn) older.insert(key);
      }
    }
    outstanding.merge(older);
    return outstanding;
  }

  void Keep(const columns::RecordBatch& batch, const std::vector<std::int64_t>& chosen,
            const std::vector<columns::Field>& captured) {
    if (chosen.empty()) return;
    batches_.push_back(AsBronze(batch, chosen, captured, stamp_));
  }

  Status Append(int attempt) {
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    for (columns::RecordBatch& batch : batches_) {
      row_count_ += batch.row_count;
      const columns::SchemaPtr schema = batch.schema;
      std::vector<columns::RecordBatch> one;
      one.push_back(std::move(batch));
      sources.push_back(columns::ReadBatches(schema, std::move(one)));
    }
    lake::AppendSpec spec;
    spec.txn = lake::Txn{config_.app_id + "#repair." + found_.run_id, attempt};
    TRY(parts_.lake.Append(silver_.bronze_location, std::move(sources), spec));
    return Unit{};
  }

  const StreamConfig& config_;
  const SilverConfig& silver_;
  const ReconcileOutcome& found_;
  const ReconcileParts& parts_;
  std::unique_ptr<SourceRows> source_;
  std::vector<std::string> keys_;
  Stamp stamp_;
  std::vector<columns::RecordBatch> batches_;
  std::int64_t row_count_ = 0;
};

}  // namespace

Result<std::int64_t> Repair(const StreamConfig& config, const SilverConfig& silver,
                            const ReconcileOutcome& found,
                            const ReconcileParts& parts) {
  return Repairing(config, silver, found, parts).Do();
}

}  // namespace mssql_cdc::runtime

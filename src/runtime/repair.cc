#include <memory>
#include <set>
#include <utility>

#include "cdc/output_columns.h"
#include "cdc/type_map.h"
#include "columns/take.h"
#include "pipeline/reconcile.h"
#include "pipeline/row_key.h"
#include "runtime/checkpoint.h"
#include "runtime/control_table.h"
#include "runtime/reconcile.h"
#include "runtime/source_rows.h"

namespace mssql_cdc::runtime {
namespace {

using columns::Kind;

struct Wanted {
  std::set<std::string> in_source;  // JSON of keys whose row the source has.
  std::set<std::string> gone;       // Of those it has not.
};

Wanted WantedOf(const ReconcileOutcome& found) {
  Wanted wanted;
  for (const pipeline::Finding& finding : found.findings) {
    if (!finding.key) continue;
    if (finding.failure_type == "MISSING_SOURCE") wanted.gone.insert(*finding.key);
    if (finding.failure_type == "MISSING_TARGET" ||
        finding.failure_type == "RECORD_DIFF") {
      wanted.in_source.insert(*finding.key);
    }
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
    const Wanted wanted = WantedOf(found_);
    if (wanted.in_source.empty() && wanted.gone.empty()) return std::int64_t{0};
    TRY_ASSIGN(source_, SourceRows::Open(config_, parts_.sessions, parts_.clock));
    keys_ =
        silver_.keys.empty() ? source_->source().instance.key_columns : silver_.keys;
    TRY(TakeStamp());
    std::set<std::string> met;
    TRY(TakeSource(wanted, met));
    // Also what the source had when it was compared, and has no more.
    std::set<std::string> gone = wanted.gone;
    gone.insert(wanted.in_source.begin(), wanted.in_source.end());
    for (const std::string& key : met) gone.erase(key);
    TRY(TakeSilver(gone));
    if (batches_.empty()) return std::int64_t{0};
    return Append();
  }

 private:
  Status TakeStamp() {
    TRY_ASSIGN(const std::optional<cdc::Offset> newest, source_->Newest());
    TRY_ASSIGN(const CheckpointState state, ReadCheckpoint(config_.checkpoint));
    ControlTable control(parts_.lake, parts_.clock, parts_.dice,
                         silver_.control_location);
    TRY_ASSIGN(const pipeline::ControlRow row, control.Read(silver_.target));
    TRY_ASSIGN(const pipeline::SilverPosition position, row.Position());
    const std::optional<cdc::Offset> read = state.position();
    const cdc::Lsn applied = position.applied.value_or(cdc::Lsn{});
    if (!newest || !read || newest->lsn > read->lsn || newest->lsn <= applied) {
      return Error(ErrorId::kRepairNotYet)
          .With("newest", newest ? newest->lsn.Text() : "none")
          .With("read", read ? read->lsn.Text() : "none")
          .With("applied", applied.Text());
    }
    stamp_.at = *newest;
    stamp_.instance = source_->source().instance.name;
    return Unit{};
  }

  Status TakeSource(const Wanted& wanted, std::set<std::string>& met) {
    stamp_.operation = static_cast<int>(cdc::Operation::kUpdateAfter);
    const std::unique_ptr<columns::BatchReader> rows = source_->AllRows();
    while (true) {
      TRY_ASSIGN(const std::optional<columns::RecordBatch> batch, rows->Next());
      if (!batch) return Unit{};
      std::vector<std::int64_t> chosen;
      for (std::int64_t i = 0; i < batch->row_count; ++i) {
        std::string key = pipeline::KeyJson(*batch, i, keys_);
        const bool is_wanted =
            wanted.in_source.contains(key) || wanted.gone.contains(key);
        if (!is_wanted) continue;
        chosen.push_back(i);
        met.insert(std::move(key));
      }
      Keep(*batch, chosen, source_->source().target_fields());
    }
  }

  // A delete needs the key alone; silver's row has it.
  Status TakeSilver(const std::set<std::string>& gone) {
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

  void Keep(const columns::RecordBatch& batch, const std::vector<std::int64_t>& chosen,
            const std::vector<columns::Field>& captured) {
    if (chosen.empty()) return;
    row_count_ += static_cast<std::int64_t>(chosen.size());
    batches_.push_back(AsBronze(batch, chosen, captured, stamp_));
  }

  Result<std::int64_t> Append() {
    std::vector<std::unique_ptr<columns::BatchReader>> sources;
    for (columns::RecordBatch& batch : batches_) {
      const columns::SchemaPtr schema = batch.schema;
      std::vector<columns::RecordBatch> one;
      one.push_back(std::move(batch));
      sources.push_back(columns::ReadBatches(schema, std::move(one)));
    }
    lake::AppendSpec spec;
    spec.txn = lake::Txn{config_.app_id + "#repair." + found_.run_id, 0};
    TRY(parts_.lake.Append(silver_.bronze_location, std::move(sources), spec));
    return row_count_;
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

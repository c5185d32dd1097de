#include "runtime/apply.h"

#include <utility>

#include "pipeline/control.h"
#include "pipeline/tables.h"
#include "runtime/apply_facts.h"
#include "runtime/bronze_rows.h"
#include "runtime/control_table.h"
#include "runtime/ensure_table.h"
#include "runtime/silver_keys.h"
#include "runtime/silver_merge.h"

namespace mssql_cdc::runtime {
namespace {

constexpr int kAttemptCount = 5;

Status EnsureSilver(lake::Lake& lake, const SilverConfig& config,
                    const std::vector<columns::Field>& captured) {
  pipeline::TableDefinition definition = pipeline::SilverTable(captured);
  if (config.deletion_vectors) {
    definition.properties[lake::kDeletionVectorsProperty] = "true";
  }
  TRY(EnsureTable(lake, config.target_location, pipeline::TableKind::kSilver,
                  definition));
  std::vector<columns::Field> fields = captured;
  for (columns::Field& field : fields) field.comment.clear();
  // What is there already is left out.
  return lake.Alter(config.target_location, fields, {});
}

class Run {
 public:
  Run(const SilverConfig& config, const ApplyParts& parts)
      : config_(config),
        parts_(parts),
        control_(parts.lake, parts.clock, parts.dice, config.control_location,
                 parts.control) {}

  Result<ApplyOutcome> Do() {
    const std::int64_t begin_ns = parts_.clock.MonotonicNs();
    TRY(control_.Ensure());
    // Before all that is decided on: who applies more than is read here changes this
    // version, and it is decided anew.
    TRY_ASSIGN(const std::optional<lake::TableState> silver,
               parts_.lake.State(config_.target_location));
    if (silver) silver_version_ = silver->version;
    TRY_ASSIGN(bronze_row_, control_.Read(config_.bronze));
    TRY_ASSIGN(silver_row_, control_.Read(config_.target));
    TRY_ASSIGN(outcome_.position, silver_row_.Position());
    // What a table of before reached says nothing of one made anew.
    is_gone_ = !silver && pipeline::Forgotten(silver_row_);
    if (is_gone_) {
      outcome_.position = {};
      outcome_.warnings.push_back("the silver table " + config_.target +
                                  " is gone: it is made anew from bronze");
    }
    outcome_.finalized_until_us = silver_row_.finalized_until;
    TRY_ASSIGN(const std::optional<lake::TableState> there,
               parts_.lake.State(config_.bronze_location));
    if (!there) {
      outcome_.bronze_found = false;
      outcome_.warnings.push_back("there is no bronze table " + config_.bronze);
      return outcome_;
    }
    TRY_ASSIGN(pipeline::ApplyFacts facts,
               GatherFacts(parts_.lake, config_, outcome_.position, outcome_.warnings,
                           parts_.known));
    // Chosen after the facts and the verdict: it has all that they tell of.
    TRY_ASSIGN(const std::optional<lake::TableState> bronze,
               parts_.lake.State(config_.bronze_location));
    if (!bronze) return Error(ErrorId::kLakeUnreachable).With("table", config_.bronze);
    TRY(GatherBronze(parts_.lake, config_, *bronze, facts));
    TRY_ASSIGN(pipeline::ApplyWindow window, pipeline::PlanApply(facts));
    TRY(MergeWindow(*bronze, std::move(window)));
    outcome_.elapsed_ms = (parts_.clock.MonotonicNs() - begin_ns) / 1'000'000;
    return outcome_;
  }

 private:
  Status MergeWindow(const lake::TableState& bronze, pipeline::ApplyWindow window) {
    const std::vector<columns::Field> captured = pipeline::SilverColumns(bronze.schema);
    TRY(CheckSilverKeys(config_.bronze, config_.keys, captured));
    const BronzeWindow rows{config_.bronze_location, bronze.version, bronze.schema,
                            std::move(window)};
    SilverMerge merge(parts_.lake, config_, rows, captured);
    TRY(merge.Look());
    if (is_gone_) TRY(Forget());
    TRY(EnsureSilver(parts_.lake, config_, captured));
    if (merge.top() || rows.window.must_merge()) {
      TRY_ASSIGN(const lake::ChangeResult result, merge.Merge(silver_version_));
      outcome_.rebuilt = rows.window.rebuild;
      outcome_.added_count = result.added_count;
      outcome_.removed_count = result.removed_count;
      outcome_.rewritten_row_count = result.rewritten_row_count;
      outcome_.size_bytes = result.size_bytes;
    }
    outcome_.window_row_count = merge.window_row_count();
    outcome_.position =
        pipeline::PositionAfter(rows.window, outcome_.position, merge.top());
    // Nothing can be said of a bronze that is to be filled.
    const bool is_empty = rows.window.is_before_snapshot && !outcome_.position.applied;
    return Record(rows.window.open.has_value() || is_empty);
  }

  // Before there is an empty table that the row would call complete.
  Status Forget() {
    TRY_ASSIGN(silver_row_,
               control_.Update(config_.target, [this](const pipeline::ControlRow& row) {
                 // Another one's, who made it meanwhile.
                 if (!(row == silver_row_))
                   return std::optional<pipeline::ControlRow>();
                 return pipeline::Forgotten(row);
               }));
    outcome_.finalized_until_us = silver_row_.finalized_until;
    return Unit{};
  }

  // The position and, unless a snapshot is open, the verdict of bronze as it was read
  // before.
  Status Record(bool is_open) {
    const bool advances = !is_open && config_.facts_table;
    std::optional<cdc::Offset> end;
    if (bronze_row_.end_lsn) {
      TRY_ASSIGN(const cdc::Lsn lsn, cdc::Lsn::Parse(*bronze_row_.end_lsn));
      end = cdc::Offset{lsn, bronze_row_.end_commit_ts};
    }
    const std::int64_t now_us = parts_.clock.NowUtcUs();
    const auto change = [&](const pipeline::ControlRow& row) {
      std::optional<pipeline::ControlRow> moved =
          pipeline::Positioned(row, outcome_.position);
      if (!advances) return moved;
      const auto verdict =
          pipeline::Advanced(moved.value_or(row), end, config_.granularity, now_us);
      return verdict ? verdict : moved;
    };
    pipeline::ControlRow row = silver_row_;
    if (change(silver_row_)) {
      TRY_ASSIGN(row, control_.Update(config_.target, change));
    }
    outcome_.finalized_until_us = row.finalized_until;
    return Unit{};
  }

  const SilverConfig& config_;
  const ApplyParts& parts_;
  ControlTable control_;
  std::optional<std::int64_t> silver_version_;  // Absent: there was no table.
  pipeline::ControlRow bronze_row_;
  pipeline::ControlRow silver_row_;
  bool is_gone_ = false;  // The table that it tells of.
  ApplyOutcome outcome_;
};

}  // namespace

Result<ApplyOutcome> Apply(const SilverConfig& config, const ApplyParts& parts) {
  for (int attempt = 1;; ++attempt) {
    Result<ApplyOutcome> outcome = Run(config, parts).Do();
    const bool lost = !outcome.ok() && outcome.error().id() == ErrorId::kLakeConflict;
    if (!lost || attempt == kAttemptCount) return outcome;
    // What the other one wrote is read anew; it may have applied the same.
    parts.clock.SleepMs(static_cast<std::int64_t>(parts.dice.Below(500)));
  }
}

}  // namespace mssql_cdc::runtime

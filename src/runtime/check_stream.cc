#include <atomic>
#include <utility>
#include <variant>

#include "pipeline/bootstrap.h"
#include "pipeline/tables.h"
#include "runtime/batch_writer.h"
#include "runtime/bootstrap.h"
#include "runtime/check_tables.h"
#include "runtime/checkpoint.h"
#include "runtime/checkpoint_notes.h"
#include "runtime/files.h"
#include "runtime/recovery.h"
#include "runtime/run_context.h"
#include "runtime/run_guards.h"
#include "runtime/silver_source.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"
#include "runtime/source_history.h"
#include "runtime/stream.h"
#include "runtime/table_keys.h"

namespace mssql_cdc::runtime {
namespace {

StreamObserver& SilentObserver() {
  static StreamObserver observer;
  return observer;
}

void DescribeSource(const Source& source, bool command_id, CheckReport& report) {
  report.capture_instance = source.instance.name;
  report.source_table =
      source.instance.source_schema + "." + source.instance.source_table;
  report.key_columns = source.instance.key_columns;
  for (const columns::Field& field : source.target_fields()) {
    report.columns.emplace_back(field.name, columns::DeltaTypeName(field.type));
  }
  report.computed_columns = source.columns.computed;
  report.command_id = command_id;
  report.clock = source.clock.Text();
}

void DescribeServer(const sqlserver::ServerFacts& server, CheckReport& report) {
  report.server = server.product + " " + std::to_string(server.major_version) + "." +
                  std::to_string(server.minor_version) + "." +
                  std::to_string(server.build);
  report.database = server.database;
  report.encrypted = server.encrypted;
}

Status CheckPlaces(const StreamConfig& config, lake::Lake& lake, CheckReport& report) {
  TRY(CheckTable(lake, config.target_location, report.target_version));
  if (config.facts_table) {
    std::optional<std::int64_t> facts_version;
    TRY(CheckTable(lake, config.facts_location, facts_version));
  }
  TRY(CheckWritable(config.checkpoint));
  TRY(CheckWritable(config.checkpoint + "/offsets"));
  return CheckWritable(config.checkpoint + "/commits");
}

// Whether a table is there in this release's form, which is what a run reads.
Result<bool> IsCurrent(const std::optional<lake::TableState>& state,
                       pipeline::TableKind kind) {
  if (!state) return false;
  TRY_ASSIGN(const std::optional<pipeline::Migration> migration,
             pipeline::PlanMigration(kind, state->properties, state->schema));
  return !migration || migration->add.empty();
}

// Goes the way of a run up to where it would read its first batch, guard by guard, and
// writes nothing.
class LookAhead {
 public:
  LookAhead(const StreamConfig& config, const StreamParts& parts, CheckpointState state)
      : asked_(config),
        config_(config),
        state_(std::move(state)),
        pool_(*parts.sessions),
        context_{config_,
                 *parts.lake,
                 *parts.clock,
                 parts.observer != nullptr ? *parts.observer : SilentObserver(),
                 pool_,
                 stop_,
                 pipeline::SinkIdOf(config.app_id, state_.generation),
                 {}} {}

  Result<CheckReport> Do() {
    CheckReport report;
    TRY_ASSIGN(session_, pool_.Acquire());
    DescribeServer(session_->facts(), report);
    TRY_ASSIGN(memory_, CheckpointNotes(state_.directory).ReadMemory());
    TRY_ASSIGN(context_.source, AskSource(*session_, config_, memory_));
    DescribeSource(context_.source, config_.include_command_id, report);
    TRY(LookAtTables());
    TRY(Start());
    TRY(Poll(report));
    TRY(CheckPlaces(asked_, context_.lake, report));
    report.intention = intention_;
    CheckSilverToo(report);
    return report;
  }

 private:
  // What the facts tell is known only where they have this release's columns.
  Status LookAtTables() {
    lake::Lake& lake = context_.lake;
    TRY_ASSIGN(target_, lake.State(config_.target_location));
    if (!target_) TRY(CheckTargetWasEmpty(context_, state_));
    TRY_ASSIGN(target_is_current_, IsCurrent(target_, pipeline::TableKind::kBronze));
    if (!config_.facts_table) return Unit{};
    TRY_ASSIGN(const std::optional<lake::TableState> facts,
               lake.State(config_.facts_location));
    TRY_ASSIGN(const bool is_current, IsCurrent(facts, pipeline::TableKind::kFacts));
    if (!is_current) config_.facts_table.reset();
    return Unit{};
  }

  // Where the stream begins, and what it does before that.
  Status Start() {
    TRY(CheckSnapshotMode(context_));
    position_ = state_.position();
    const bool knows_target = !target_ || target_is_current_;
    if (config_.on_data_loss == OnDataLoss::kResnapshot && knows_target) {
      TRY_ASSIGN(const std::optional<pipeline::Recovery> recovery,
                 FindLoss(context_, *session_, state_));
      if (recovery) return StartAnew(*recovery);
    }
    if (state_.pending) {
      intention_ = "finish batch " + std::to_string(state_.next_batch_id()) +
                   ", which an earlier run began, then read on";
      return Unit{};
    }
    if (position_) {
      intention_ = "read the commits above " + position_->lsn.Text();
      return Unit{};
    }
    return config_.bootstrap ? StartWithSnapshot() : StartWithChanges();
  }

  Status StartAnew(const pipeline::Recovery& recovery) {
    has_snapshot_to_come_ = true;
    position_.reset();
    intention_ = "take a new snapshot, since changes above " +
                 recovery.from.lsn.Text() + " and below " +
                 recovery.first_readable.Text() +
                 " were removed before they were read, then read the commits above it";
    return Unit{};
  }

  Status StartWithSnapshot() {
    pipeline::BootstrapFactsGathered facts;
    facts.app_id = config_.app_id;
    facts.mode = config_.snapshot;
    if (target_is_current_) {
      TRY_ASSIGN(facts.in_target, FindWholeSnapshot(context_));
    }
    TRY_ASSIGN(facts.events, ReadSnapshotEvents(context_));
    const pipeline::BootstrapPlan plan = pipeline::PlanBootstrap(facts);
    if (const auto* found = std::get_if<pipeline::StartFromTarget>(&plan)) {
      position_ = found->stamp;
    } else if (const auto* known = std::get_if<pipeline::StartFromFacts>(&plan)) {
      position_ = known->stamp;
    }
    if (position_) {
      intention_ = "read the commits above the snapshot at " + position_->lsn.Text() +
                   ", which is there already";
      return Unit{};
    }
    has_snapshot_to_come_ = true;
    TRY(AskStamp(context_, *session_));
    if (std::holds_alternative<pipeline::TakeSnapshot>(plan)) {
      intention_ = "load the whole table, then read the commits above it";
      return Unit{};
    }
    TRY(AskTableKeys(context_, *session_));
    intention_ = "open a chunked snapshot, then read the commits above it";
    return Unit{};
  }

  Status StartWithChanges() {
    TRY_ASSIGN(position_, AskStart(*session_, context_.source, config_.starting_lsn));
    intention_ = "read the commits above " + config_.starting_lsn;
    if (config_.starting_lsn == "earliest") {
      intention_ = "read from the oldest change that the server still holds";
    }
    if (config_.starting_lsn == "latest") {
      intention_ = "read commits that come from now on";
    }
    return Unit{};
  }

  Status Poll(CheckReport& report) {
    Source& source = context_.source;
    const cdc::Offset position = position_.value_or(cdc::Offset{});
    TRY_ASSIGN(const PollAnswer answer,
               AskPoll(*session_, context_.clock, source, position.lsn, {}));
    if (source.oldest().start_lsn) report.min_lsn = source.oldest().start_lsn->Text();
    if (answer.server_max) report.max_lsn = answer.server_max->lsn.Text();
    if (state_.position()) report.position = state_.position()->lsn.Text();
    if (!position_) return Unit{};
    cdc::BatchFacts facts;
    facts.position = position;
    facts.server_max = answer.server_max;
    facts.server_oldest = answer.server_oldest;
    facts.position_commit_us = answer.position_commit_us;
    facts.newest_start = source.newest_start();
    const cdc::BatchPlan plan = state_.pending ? cdc::PlanReplay(facts, *state_.pending)
                                               : cdc::PlanBatch(facts);
    TRY(CheckHistory(plan, source.instance.name));
    const auto* read = std::get_if<cdc::ReadChanges>(&plan);
    if (read == nullptr) return Unit{};
    return CheckBatch(*read);
  }

  Status CheckBatch(const cdc::ReadChanges& read) {
    if (config_.facts_table == asked_.facts_table) {
      BatchWriter writer(context_, CheckpointNotes(state_.directory));
      const std::int64_t batch_id = state_.next_batch_id();
      if (!state_.pending) TRY(writer.CheckIsNew(batch_id));
      TRY_ASSIGN(const pipeline::SinkWork work,
                 writer.Look(batch_id, {read.window.through, read.commit_us}));
      if (work != pipeline::SinkWork::kEverything) return Unit{};
    }
    TRY_ASSIGN(const cdc::ReadPlan reads,
               PlanReadsOf(config_, context_.source, memory_, read.window,
                           position_->commit_us));
    for (const std::string& warning : reads.warnings) {
      context_.observer.OnWarning(warning);
    }
    return Unit{};
  }

  void CheckSilverToo(CheckReport& report) {
    if (!config_.control_table) return;
    const SilverConfig silver = DescribeSilver(asked_, context_.source, memory_);
    if (asked_.silver) report.silver_keys = silver.keys;
    const columns::Schema bronze =
        target_ ? target_->schema
                : pipeline::BronzeTable(context_.source.target_fields(),
                                        config_.include_command_id)
                      .schema;
    const Status status = CheckSilver(context_.lake, context_.clock, asked_, silver,
                                      bronze, has_snapshot_to_come_);
    if (!status.ok()) report.silver_problem = status.error();
  }

  const StreamConfig& asked_;
  StreamConfig config_;  // Without a facts table that cannot be read yet.
  const CheckpointState state_;
  const std::atomic<bool> stop_{false};
  SessionPool pool_;
  RunContext context_;
  SessionPool::Lease session_;
  std::optional<cdc::SourceMemory> memory_;
  std::optional<lake::TableState> target_;
  bool target_is_current_ = false;
  bool has_snapshot_to_come_ = false;
  std::optional<cdc::Offset> position_;  // Absent: not decided before the run.
  std::string intention_;
};

}  // namespace

Result<CheckReport> CheckStream(const StreamConfig& config, const StreamParts& parts) {
  TRY_ASSIGN(CheckpointState state, ReadCheckpoint(config.checkpoint));
  return LookAhead(config, parts, std::move(state)).Do();
}

}  // namespace mssql_cdc::runtime

#include "runtime/snapshot_calls.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "columns/cast.h"
#include "pipeline/seed.h"
#include "reader/cast_reader.h"
#include "reader/copy_reader.h"
#include "runtime/ask.h"
#include "runtime/ensure_table.h"
#include "runtime/prepare_tables.h"
#include "runtime/run_context.h"
#include "runtime/snapshot_tables.h"
#include "runtime/source.h"
#include "runtime/whole_snapshot.h"
#include "sqlserver/key_statements.h"

namespace mssql_cdc::runtime {
namespace {

StreamObserver& SilentObserver() {
  static StreamObserver observer;
  return observer;
}

class SnapshotCallImpl final : public SnapshotCall {
 public:
  SnapshotCallImpl(const StreamConfig& config, const StreamParts& parts)
      : config_(config),
        pool_(*parts.sessions),
        context_{config_,
                 *parts.lake,
                 *parts.clock,
                 parts.observer != nullptr ? *parts.observer : SilentObserver(),
                 pool_,
                 stop_,
                 config_.app_id,
                 {}} {}

  Result<SnapshotSummary> Take(bool resnapshot) override;
  Result<SnapshotSummary> Seed(const SeedOptions& options) override;
  void Stop() override {
    stop_ = true;
    pool_.Stop();
  }

 private:
  Status Connect(std::optional<pipeline::SnapshotMode> mode);
  Result<std::optional<cdc::Offset>> FindTaken();
  Status CheckNotAhead(const cdc::Lsn& lsn);
  Result<pipeline::SeedPlan> Plan(const SeedOptions& options);
  Result<lake::TableState> FindCopy(const SeedOptions& options);
  Result<std::unique_ptr<columns::BatchReader>> OpenCopy(const SeedOptions& options,
                                                         const cdc::Offset& stamp);
  Result<lake::AppendResult> AppendCopy(std::unique_ptr<columns::BatchReader> rows,
                                        const cdc::Offset& stamp);

  const StreamConfig config_;
  std::atomic<bool> stop_{false};
  SessionPool pool_;
  RunContext context_;
};

Status SnapshotCallImpl::Connect(std::optional<pipeline::SnapshotMode> mode) {
  {
    TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
    TRY_ASSIGN(context_.source, AskSource(*session, config_, std::nullopt));
  }
  // Tables of older releases lack columns that are asked for below.
  TRY_ASSIGN(const std::optional<lake::TableState> target,
             context_.lake.State(config_.target_location));
  if (target) TRY(PrepareTarget(context_, target));
  if (!config_.facts_table) return Unit{};
  TRY_ASSIGN(const std::optional<lake::TableState> facts,
             context_.lake.State(config_.facts_location));
  if (!facts) return Unit{};
  TRY(EnsureTable(context_.lake, config_.facts_location, pipeline::TableKind::kFacts,
                  pipeline::FactsTable()));
  TRY_ASSIGN(const std::vector<pipeline::SnapshotEvent> events,
             ReadSnapshotEvents(context_));
  return pipeline::CheckModeLock(events, config_.app_id, mode,
                                 IsLostIn(context_.source));
}

SnapshotSummary SummaryOf(const cdc::Offset& stamp,
                          const std::optional<std::int64_t>& row_count,
                          std::int64_t elapsed_ms) {
  return {stamp.lsn.Text(), cdc::CommitText(stamp.commit_us), row_count, elapsed_ms};
}

// A whole one if there is any, else a chunked one, open or complete.
Result<std::optional<cdc::Offset>> SnapshotCallImpl::FindTaken() {
  TRY_ASSIGN(const std::optional<cdc::Offset> whole, FindWholeSnapshot(context_));
  if (whole) return whole;
  TRY_ASSIGN(const SnapshotsInTarget found, FindSnapshots(context_));
  if (found.chunked.empty()) return std::optional<cdc::Offset>();
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  TRY_ASSIGN(
      const cdc::Offset stamp,
      AskOffset(*session, context_.source, *std::ranges::max_element(found.chunked)));
  return std::optional<cdc::Offset>(stamp);
}

// A stream would wait for the server to get there and leave out what comes before.
Status SnapshotCallImpl::CheckNotAhead(const cdc::Lsn& lsn) {
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  TRY_ASSIGN(const std::optional<cdc::Offset> newest,
             AskNewest(*session, context_.source));
  if (newest && lsn <= newest->lsn) return Unit{};
  return Error(ErrorId::kOptionInvalid)
      .With("option", "snapshotLsn")
      .With("value", lsn.Text())
      .With("allowed", "an LSN that the server has reached")
      .With("server_max", newest ? newest->lsn.Text() : "none");
}

Result<SnapshotSummary> SnapshotCallImpl::Take(bool resnapshot) {
  TRY(Connect(pipeline::SnapshotMode::kFull));
  const bool is_by_hand =
      !config_.snapshot_lsn.empty() || !config_.snapshot_chunks.empty();
  if (!resnapshot && !is_by_hand) {
    TRY_ASSIGN(const std::optional<cdc::Offset> taken, FindTaken());
    if (taken) return SummaryOf(*taken, std::nullopt, 0);
  }
  WholeRequest request;
  request.run.app_id = config_.app_id;
  request.writes_open_row = false;
  if (!config_.snapshot_lsn.empty()) {
    TRY_ASSIGN(request.stamp, cdc::Lsn::Parse(config_.snapshot_lsn));
    TRY(CheckNotAhead(*request.stamp));
  }
  if (!resnapshot && request.stamp && config_.snapshot_chunks.empty()) {
    TRY_ASSIGN(const SnapshotsInTarget found, FindSnapshots(context_));
    const auto same = std::ranges::find(found.whole, *request.stamp, &cdc::Offset::lsn);
    if (same != found.whole.end()) return SummaryOf(*same, std::nullopt, 0);
  }
  TRY(PrepareTables(context_));
  request.chunks = config_.snapshot_chunks;
  TRY_ASSIGN(const pipeline::SnapshotRun run,
             TakeWholeSnapshot(context_, std::move(request)));
  return SummaryOf(run.stamp, run.rows, run.duration_ms.value_or(0));
}

Result<pipeline::SeedPlan> SnapshotCallImpl::Plan(const SeedOptions& options) {
  pipeline::SeedFacts facts;
  facts.target = config_.target;
  facts.capture_instance = context_.source.instance.name;
  TRY_ASSIGN(facts.as_of, pipeline::ParseAsOf(options.as_of));
  facts.reseed = options.reseed;
  TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
  if (const auto* time_us = std::get_if<std::int64_t>(&facts.as_of)) {
    const cdc::CommitClock& clock = context_.source.clock;
    // The clock may have been set back or forth since: an LSN that is too low only
    // reads more changes again.
    constexpr std::int64_t kHourUs = 3'600'000'000;
    const std::int64_t asked_us =
        *time_us - (context_.source.clock_is_assumed ? kHourUs : 0);
    if (context_.source.clock_is_assumed) {
      context_.observer.OnWarning(
          "the server's time zone is not known, only its offset now: changes from an "
          "hour before as_of on are read again");
    }
    const sqlserver::TimeQuestion question{IsoMillis(asked_us).substr(0, 19),
                                           clock.offset_minutes, clock.ServerZone()};
    TRY_ASSIGN(const std::vector<ResultSet> sets,
               Ask(*session, sqlserver::MapTimeToLsn(question), 1));
    if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
      TRY_ASSIGN(facts.lsn, row->LsnOf("lsn"));
      TRY_ASSIGN(const std::optional<std::int64_t> is_ahead, row->Integer("is_ahead"));
      if (is_ahead == 1) {
        return Error(ErrorId::kOptionInvalid)
            .With("option", "as_of")
            .With("value", options.as_of)
            .With("allowed",
                  "a time that has passed on the server, in UTC or with an "
                  "offset");
      }
    }
  }
  TRY_ASSIGN(SnapshotsInTarget found, FindSnapshots(context_));
  facts.whole = std::move(found.whole);
  facts.chunked = std::move(found.chunked);
  TRY_ASSIGN(const std::optional<cdc::Offset> newest,
             AskNewest(*session, context_.source));
  if (newest) facts.server_max = newest->lsn;
  facts.instances = context_.source.family().instances;
  return pipeline::PlanSeed(facts);
}

Result<lake::TableState> SnapshotCallImpl::FindCopy(const SeedOptions& options) {
  TRY_ASSIGN(std::optional<lake::TableState> copy,
             context_.lake.State(options.copy_location));
  if (copy) return *std::move(copy);
  return Error(ErrorId::kOptionInvalid)
      .With("option", "from")
      .With("value", options.copy_location)
      .With("reason", "there is no Delta table");
}

// The copy in the target's columns and types.
Result<std::unique_ptr<columns::BatchReader>> SnapshotCallImpl::OpenCopy(
    const SeedOptions& options, const cdc::Offset& stamp) {
  TRY_ASSIGN(const lake::TableState copy, FindCopy(options));
  const std::vector<columns::Field> fields = context_.source.target_fields();
  std::string missing;
  std::string refused;
  const reader::CopyPlan places = reader::PlanCopy(copy.schema, fields);
  lake::ReadSpec spec;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string separator = ", ";
    if (!places.places[i]) {
      missing += (missing.empty() ? "" : separator) + fields[i].name;
      continue;
    }
    spec.columns.push_back(copy.schema.fields[*places.places[i]].name);
    const columns::CastFit fit =
        columns::CastFitOf(places.fields[i].type, fields[i].type);
    if (fit == columns::CastFit::kLossy || fit == columns::CastFit::kNever) {
      refused += (refused.empty() ? "" : separator) + fields[i].name + " " +
                 columns::DeltaTypeName(places.fields[i].type) + " as " +
                 columns::DeltaTypeName(fields[i].type);
    }
  }
  if ((!missing.empty() && !options.allow_missing_columns) || spec.columns.empty()) {
    return Error(ErrorId::kLakeSchemaMismatch)
        .With("location", options.copy_location)
        .With("missing", missing)
        .With("cure", "allow_missing_columns makes them NULL");
  }
  if (!refused.empty()) {
    return Error(ErrorId::kLakeSchemaMismatch)
        .With("location", options.copy_location)
        .With("columns", refused);
  }
  TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows,
             context_.lake.Read(options.copy_location, spec));
  reader::CopyPlan plan = reader::PlanCopy(*rows->schema(), fields);
  plan.capture_instance = config_.capture_instance;
  plan.stamp = stamp;
  plan.command_id = config_.include_command_id;
  auto shaped = std::make_unique<reader::CopyReader>(std::move(rows), std::move(plan));
  return std::unique_ptr<columns::BatchReader>(std::make_unique<reader::CastReader>(
      std::move(shaped), context_.source.instance.name, fields));
}

Result<lake::AppendResult> SnapshotCallImpl::AppendCopy(
    std::unique_ptr<columns::BatchReader> rows, const cdc::Offset& stamp) {
  lake::AppendSpec spec;
  spec.merge_schema = true;
  const std::string metadata = pipeline::SeedMetadata(config_.capture_instance, stamp);
  spec.user_metadata = [&metadata] { return std::optional<std::string>(metadata); };
  std::vector<std::unique_ptr<columns::BatchReader>> sources;
  sources.push_back(std::move(rows));
  return context_.lake.Append(config_.target_location, std::move(sources), spec);
}

Result<SnapshotSummary> SnapshotCallImpl::Seed(const SeedOptions& options) {
  TRY(Connect(std::nullopt));
  const Result<pipeline::SeedPlan> planned = Plan(options);
  // A seed that is there needs no copy any more.
  const bool is_there =
      planned.ok() && std::holds_alternative<pipeline::SeedIsThere>(planned.value());
  if (!is_there) TRY(FindCopy(options));
  TRY_ASSIGN(const pipeline::SeedPlan plan, planned);
  pipeline::SnapshotRun run;
  run.app_id = config_.app_id;
  run.target = config_.target;
  const std::int64_t begin_ns = context_.clock.MonotonicNs();
  if (const auto* there = std::get_if<pipeline::SeedIsThere>(&plan)) {
    run.stamp = there->stamp;
    TRY(PrepareTables(context_));
  } else {
    const cdc::Lsn& lsn = std::get<pipeline::AppendSeed>(plan).lsn;
    {
      TRY_ASSIGN(const SessionPool::Lease session, pool_.Acquire());
      TRY_ASSIGN(run.stamp, AskOffset(*session, context_.source, lsn));
    }
    run.started_at_us = context_.clock.NowUtcUs();
    TRY_ASSIGN(std::unique_ptr<columns::BatchReader> rows,
               OpenCopy(options, run.stamp));
    TRY(PrepareTables(context_));
    TRY_ASSIGN(const lake::AppendResult appended,
               AppendCopy(std::move(rows), run.stamp));
    run.rows = appended.row_count;
    run.duration_ms = (context_.clock.MonotonicNs() - begin_ns) / 1'000'000;
  }
  run.written_at_us = context_.clock.NowUtcUs();
  TRY(AppendFacts(context_, {pipeline::BootstrapFacts(run)},
                  lake::Txn{config_.app_id + "#events", 0}));
  return SummaryOf(run.stamp, run.rows, run.duration_ms.value_or(0));
}

}  // namespace

std::unique_ptr<SnapshotCall> SnapshotCall::Make(const StreamConfig& config,
                                                 const StreamParts& parts) {
  return std::make_unique<SnapshotCallImpl>(config, parts);
}

}  // namespace mssql_cdc::runtime

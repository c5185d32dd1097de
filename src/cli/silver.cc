#include "cli/silver.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/prepare.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/checkpoint.h"
#include "runtime/control_table.h"
#include "runtime/optimize.h"
#include "runtime/silver_source.h"

namespace mssql_cdc::cli {
namespace {

constexpr int kExitNotYet = 75;

Output::Field Number(std::string name, std::int64_t value) {
  return {std::move(name), std::to_string(value), false};
}

std::string VerdictText(const std::optional<std::int64_t>& finalized_until_us) {
  return finalized_until_us ? "complete until " + IsoMillis(*finalized_until_us)
                            : "no period complete yet";
}

std::string ApplyText(const std::string& silver, const runtime::ApplyOutcome& outcome) {
  if (!outcome.bronze_found) return fmt::format("{}: no bronze yet", silver);
  const auto& position = outcome.position;
  const std::string open =
      position.open_snapshot ? "snapshot " + position.open_snapshot->Text() : "";
  const bool has_rows = outcome.window_row_count != 0 || outcome.rebuilt;
  if (!position.applied && !has_rows) {
    return fmt::format("{}: nothing to apply yet: {}", silver,
                       open.empty() ? "bronze has no snapshot and no changes"
                                    : open + " is open and has no chunks yet");
  }
  const std::string through =
      position.applied ? " through " + position.applied->Text() : "";
  return fmt::format("{}: {} rows applied (+{} -{}){}{}{} in {}, {}", silver,
                     Grouped(outcome.window_row_count), Grouped(outcome.added_count),
                     Grouped(outcome.removed_count), outcome.rebuilt ? ", rebuilt" : "",
                     through, open.empty() ? "" : ", " + open + " open",
                     Duration(outcome.elapsed_ms),
                     VerdictText(outcome.finalized_until_us));
}

std::vector<Output::Field> ApplyFields(const std::string& silver,
                                       const runtime::ApplyOutcome& outcome) {
  const auto& position = outcome.position;
  const auto text = [](const std::optional<cdc::Lsn>& lsn) {
    return lsn ? lsn->Text() : std::string();
  };
  return {{"silver", silver},
          {"rebuilt", outcome.rebuilt ? "true" : "false", false},
          {"bronze_found", outcome.bronze_found ? "true" : "false", false},
          Number("window_rows", outcome.window_row_count),
          Number("added", outcome.added_count),
          Number("removed", outcome.removed_count),
          Number("rewritten_rows", outcome.rewritten_row_count),
          Number("bytes", outcome.size_bytes),
          {"applied_lsn", text(position.applied)},
          {"snapshot_lsn", text(position.rebuilt_from)},
          {"open_snapshot_lsn", text(position.open_snapshot)},
          {"finalized_until", outcome.finalized_until_us
                                  ? IsoMillis(*outcome.finalized_until_us)
                                  : std::string()},
          Number("elapsed_ms", outcome.elapsed_ms)};
}

// What the commands of this file work with.
struct Tools {
  SystemClock clock;
  Output output;
  lake::DeltaLake lake;
  Dice dice;

  explicit Tools(LogForm form)
      : output(form, clock), dice(static_cast<std::uint64_t>(clock.NowUtcUs())) {}
};

// Does `work` for every stream; the exit code is that of the first failure.
template <typename Work>
int ForEach(const PipelineArguments& arguments, Tools& tools, Work work) {
  auto prepared = Prepare(arguments, tools.output, tools.clock);
  if (!prepared.ok()) {
    tools.output.Failure("", prepared.error());
    return ExitCodeOf(prepared.error());
  }
  int exit_code = 0;
  for (const Prepared& stream : prepared.value()) {
    const Status done = work(stream);
    if (done.ok()) continue;
    tools.output.Failure(stream.config.app_id, done.error());
    if (exit_code == 0) exit_code = ExitCodeOf(done.error());
  }
  return exit_code;
}

Result<runtime::SilverConfig> ConfigOf(const Prepared& stream, bool offline,
                                       Tools& tools) {
  if (offline) return runtime::DescribeSilver(stream.config);
  net::TcpDialer dialer(tools.clock);
  const auto sessions = SessionsOf(stream, dialer, tools.clock);
  return runtime::AskSilver(stream.config, *sessions);
}

Status OptimizeTable(const std::string& name, const std::string& location,
                     const OptimizeArguments& arguments, Tools& tools) {
  if (arguments.enable_vectors) TRY(tools.lake.EnableDeletionVectors(location));
  pipeline::CompactionLimits limits;
  limits.small_size_bytes = arguments.small_size_mb * 1'000'000;
  const std::int64_t begin_ns = tools.clock.MonotonicNs();
  TRY_ASSIGN(const runtime::OptimizeOutcome outcome,
             runtime::Optimize(tools.lake, location, limits));
  const std::int64_t elapsed_ms = (tools.clock.MonotonicNs() - begin_ns) / 1'000'000;
  const std::string text =
      outcome.commit_count == 0
          ? fmt::format("{}: nothing to do ({} files)", name, outcome.file_count_before)
          : fmt::format("{}: {} files became {} ({} rows, {} written) in {}", name,
                        outcome.file_count_before, outcome.file_count_after,
                        Grouped(outcome.row_count), SizeText(outcome.size_bytes),
                        Duration(elapsed_ms));
  tools.output.Event("", "optimized", text,
                     {{"table", name},
                      Number("files_before", outcome.file_count_before),
                      Number("files_after", outcome.file_count_after),
                      Number("rows", outcome.row_count),
                      Number("bytes", outcome.size_bytes),
                      Number("elapsed_ms", elapsed_ms)});
  return Unit{};
}

struct ShownTable {
  std::string name;
  std::string location;
};

// One table's line; false if it is not complete by `until_us`.
Result<bool> ShowTable(runtime::ControlTable& control, const std::string& app_id,
                       const ShownTable& shown,
                       const std::optional<std::int64_t>& until_us, Tools& tools) {
  const std::string& table = shown.name;
  TRY_ASSIGN(const pipeline::ControlRow row, control.Read(table));
  TRY_ASSIGN(const runtime::Freshness fresh, control.AskFreshness(table));
  TRY_ASSIGN(const std::optional<lake::TableState> there,
             tools.lake.State(shown.location));
  const bool is_final = until_us && there && runtime::IsFinal(row, *until_us);
  std::string text =
      fmt::format("{}: {}", table, VerdictText(fresh.finalized_until_us));
  if (fresh.age_seconds) {
    text += fmt::format(" ({} ago, moved {} ago)",
                        Duration(static_cast<std::int64_t>(*fresh.age_seconds * 1000)),
                        Duration(static_cast<std::int64_t>(
                            fresh.seconds_since_update.value_or(0) * 1000)));
  }
  if (fresh.open_snapshot_lsn) {
    text += fmt::format(", held by snapshot {}", *fresh.open_snapshot_lsn);
  }
  if (!there) text += ", but the table is not there";
  if (until_us) text += is_final ? ", final" : ", not final";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.3f}", *value) : std::string("null");
  };
  tools.output.Event(
      app_id, "finalized", text,
      {{"table", table},
       {"finalized_until", fresh.finalized_until_us
                               ? IsoMillis(*fresh.finalized_until_us)
                               : std::string()},
       {"age_seconds", number(fresh.age_seconds), false},
       {"seconds_since_update", number(fresh.seconds_since_update), false},
       {"open_snapshot_lsn", fresh.open_snapshot_lsn.value_or("")},
       {"is_final", until_us ? (is_final ? "true" : "false") : "null", false}});
  return !until_us || is_final;
}

Error NoTable(const char* option) {
  return Error(ErrorId::kOptionMissing).With("option", option);
}

}  // namespace

void SilverProgress::OnApplyDone(const runtime::ApplyOutcome& outcome) {
  const std::string silver = config_.silver.value_or("");
  const bool is_news = outcome.window_row_count != 0 || outcome.rebuilt;
  const std::string verdict = VerdictText(outcome.finalized_until_us);
  if (!is_news && std::exchange(last_, verdict) == verdict) return;
  output_.Event(config_.app_id, "silver_done", ApplyText(silver, outcome),
                ApplyFields(silver, outcome));
}

void SilverProgress::OnSilverFailed(const Error& error) {
  output_.Failure(config_.app_id + " (silver)", error);
}

int ApplyPipeline(const ApplyArguments& arguments) {
  Tools tools(arguments.pipeline.log);
  bool any = false;
  const int code = ForEach(arguments.pipeline, tools, [&](const Prepared& stream) {
    if (!stream.config.silver) return Status(Unit{});
    any = true;
    auto config = ConfigOf(stream, arguments.offline, tools);
    if (!config.ok()) return Status(config.error());
    const auto outcome =
        runtime::Apply(config.value(), {tools.lake, tools.clock, tools.dice});
    if (!outcome.ok()) return Status(outcome.error());
    for (const std::string& warning : outcome.value().warnings) {
      tools.output.Warning(stream.config.app_id, warning);
    }
    tools.output.Event(stream.config.app_id, "silver_done",
                       ApplyText(*stream.config.silver, outcome.value()),
                       ApplyFields(*stream.config.silver, outcome.value()));
    return Status(Unit{});
  });
  if (code != 0 || any) return code;
  const Error error = NoTable("silver");
  tools.output.Failure("", error);
  return ExitCodeOf(error);
}

int OptimizePipeline(const OptimizeArguments& arguments) {
  Tools tools(arguments.pipeline.log);
  if (!arguments.table.empty()) {
    const Status done =
        OptimizeTable(arguments.table, arguments.table, arguments, tools);
    if (done.ok()) return 0;
    tools.output.Failure("", done.error());
    return ExitCodeOf(done.error());
  }
  bool any = false;
  const int code = ForEach(arguments.pipeline, tools, [&](const Prepared& stream) {
    if (!stream.config.silver) return Status(Unit{});
    any = true;
    return OptimizeTable(*stream.config.silver, stream.config.silver_location,
                         arguments, tools);
  });
  if (code != 0 || any) return code;
  const Error error = NoTable("silver");
  tools.output.Failure("", error);
  return ExitCodeOf(error);
}

int ShowFinalized(const FinalizedArguments& arguments) {
  Tools tools(arguments.pipeline.log);
  std::optional<std::int64_t> until_us;
  if (arguments.until) {
    until_us = ParseIsoUs(*arguments.until);
    if (!until_us) {
      const Error error =
          Error(ErrorId::kOptionInvalid)
              .With("option", "until")
              .With("value", *arguments.until)
              .With("allowed", "a UTC time such as 2026-11-29T10:00:00");
      tools.output.Failure("", error);
      return ExitCodeOf(error);
    }
  }
  bool all_final = true;
  const int code =
      ForEach(arguments.pipeline, tools, [&](const Prepared& stream) -> Status {
        const runtime::StreamConfig& config = stream.config;
        if (!config.control_table) return Status(NoTable("control_table"));
        runtime::ControlTable control(tools.lake, tools.clock, tools.dice,
                                      config.control_location);
        TRY_ASSIGN(const std::optional<lake::TableState> target,
                   tools.lake.State(config.target_location));
        if (arguments.advance && target) {
          TRY_ASSIGN(const runtime::CheckpointState state,
                     runtime::ReadCheckpoint(config.checkpoint));
          TRY(control.Advance(config.target, state.position(), config.granularity));
        }
        std::vector<ShownTable> tables = {{config.target, config.target_location}};
        if (config.silver) {
          tables.push_back({*config.silver, config.silver_location});
        }
        for (const ShownTable& table : tables) {
          TRY_ASSIGN(const bool is_final,
                     ShowTable(control, config.app_id, table, until_us, tools));
          all_final = all_final && is_final;
        }
        return Status(Unit{});
      });
  if (code != 0) return code;
  return all_final ? 0 : kExitNotYet;
}

}  // namespace mssql_cdc::cli

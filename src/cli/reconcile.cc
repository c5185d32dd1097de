#include "runtime/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/config.h"
#include "cli/prepare.h"
#include "cli/silver.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/apply.h"
#include "runtime/silver_source.h"

namespace mssql_cdc::cli {
namespace {

constexpr int kExitDiffers = 65;
constexpr int kExitCompareAgain = 75;
constexpr std::size_t kShownMax = 20;

Output::Field Number(std::string name, std::int64_t value) {
  return {std::move(name), std::to_string(value), false};
}

// A key is the source's data, which no log gets unasked.
bool IsHidden(const pipeline::Finding& finding, const ReconcileArguments& arguments) {
  return finding.key && !arguments.show_keys;
}

// What is wrong one by one: for people, and for machines a JSON array of the same.
struct Listed {
  std::string text;
  std::string json;
};

Listed List(const runtime::ReconcileOutcome& found,
            const ReconcileArguments& arguments) {
  Listed listed;
  nlohmann::json array = nlohmann::json::array();
  std::size_t more = 0;
  bool hides_keys = false;
  for (const pipeline::Finding& finding : found.findings) {
    if (IsHidden(finding, arguments)) {
      hides_keys = true;
    } else if (array.size() == kShownMax) {
      ++more;
    } else {
      listed.text += fmt::format("\n    {} {} {}", finding.failure_type,
                                 finding.key.value_or(""), finding.detail);
      nlohmann::json shown{{"failure_type", finding.failure_type},
                           {"detail", finding.detail}};
      if (finding.key) shown["key"] = *finding.key;
      array.push_back(std::move(shown));
    }
  }
  if (more > 0) listed.text += fmt::format("\n    and {} more", more);
  if (hides_keys && arguments.report.empty()) {
    listed.text += "\n    --show-keys prints the keys, --report keeps them in a table";
  } else if (hides_keys) {
    listed.text += "\n    the keys are in " + arguments.report;
  }
  listed.json = array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return listed;
}

std::string Again(const runtime::ReconcileOutcome& found) {
  if (!found.may_pass()) return "";
  if (found.open_snapshot_lsn) {
    return fmt::format(
        "; snapshot {} is open, so these may be rows of chunks that silver does not "
        "have yet: compare again when backfill says done and they are applied",
        *found.open_snapshot_lsn);
  }
  std::string text =
      "; capture has not read all that was committed by then, so these may be changes "
      "on their way: compare again";
  if (!found.scans_are_shown) {
    text +=
        ", with VIEW DATABASE STATE, which this login lacks, or with --capture-wait "
        "330: where nothing happens, capture shows every five minutes where it is";
  }
  return text;
}

void Show(const std::string& app_id, const std::string& silver,
          const runtime::ReconcileOutcome& found, const ReconcileArguments& arguments,
          Output& output) {
  if (!found.left_out.empty()) {
    output.Warning(app_id, fmt::format("not compared, since {} lacks them or has them "
                                       "as other types: {}",
                                       silver, fmt::join(found.left_out, ", ")));
  }
  std::string failures;
  for (const auto& [type, count] : found.failures) {
    failures += fmt::format(", {} {}", count, type);
  }
  const Listed listed = List(found, arguments);
  output.Event(
      app_id, "reconciled",
      fmt::format("{} version {}: {} ({} buckets agree, {} in flight, {} differ; {} "
                  "compared row by row{}) in {}{}",
                  silver, found.silver_version,
                  found.is_equal() ? "no difference" : "DIFFERENCES", found.match,
                  found.in_flight, found.mismatch, found.hashed, failures,
                  Duration(found.elapsed_ms), Again(found) + listed.text),
      {{"silver", silver},
       {"run_id", found.run_id},
       Number("silver_version", found.silver_version),
       {"silver_lsn", found.silver_lsn.value_or("")},
       {"source_lsn", found.source_lsn.value_or("")},
       {"equal", found.is_equal() ? "true" : "false", false},
       Number("match", found.match),
       Number("in_flight", found.in_flight),
       Number("mismatch", found.mismatch),
       Number("hashed", found.hashed),
       {"compare_again", found.may_pass() ? "true" : "false", false},
       {"open_snapshot_lsn", found.open_snapshot_lsn.value_or("")},
       Number("findings", static_cast<std::int64_t>(found.findings.size())),
       {"shown", listed.json, false},
       Number("elapsed_ms", found.elapsed_ms)});
}

int CodeOf(const runtime::ReconcileOutcome& found) {
  if (found.is_equal()) return 0;
  return found.may_pass() ? kExitCompareAgain : kExitDiffers;
}

// One stream; the exit code is that of its last comparison.
Result<int> ReconcileOne(const Prepared& stream, const ReconcileArguments& arguments,
                         Output& output, Clock& clock) {
  const runtime::StreamConfig& config = stream.config;
  lake::DeltaLake lake;
  Dice dice(static_cast<std::uint64_t>(clock.NowUtcUs()));
  net::TcpDialer dialer(clock);
  const auto sessions = SessionsOf(stream, dialer, clock);
  TRY_ASSIGN(const runtime::SilverConfig silver, runtime::AskSilver(config, *sessions));
  runtime::ReconcileOptions options;
  options.bucket_rows = arguments.bucket_rows;
  options.sample = arguments.sample;
  options.report_location = arguments.report;
  // A repair does no harm to a row whose change is on its way.
  const std::int64_t wait_ms = arguments.capture_wait_seconds * 1000;
  options.capture_wait_ms_max = arguments.repair ? 0 : wait_ms;
  const runtime::ReconcileParts parts{lake, *sessions, clock, dice};
  TRY_ASSIGN(const runtime::ReconcileOutcome found,
             runtime::Reconcile(config, silver, options, parts));
  Show(config.app_id, *config.silver, found, arguments, output);
  if (found.is_equal() || !arguments.repair) return CodeOf(found);
  TRY_ASSIGN(const std::int64_t row_count,
             runtime::Repair(config, silver, found, parts));
  output.Event(config.app_id, "repaired",
               fmt::format("{} rows of the source written into bronze and applied",
                           Grouped(row_count)),
               {Number("rows", row_count)});
  options.capture_wait_ms_max = wait_ms;
  TRY_ASSIGN(const runtime::ReconcileOutcome after,
             runtime::Reconcile(config, silver, options, parts));
  Show(config.app_id, *config.silver, after, arguments, output);
  return CodeOf(after);
}

}  // namespace

int ReconcilePipeline(const ReconcileArguments& arguments) {
  SystemClock clock;
  Output output(arguments.pipeline.log, clock);
  auto prepared = Prepare(arguments.pipeline, output, clock);
  if (!prepared.ok()) {
    output.Failure("", prepared.error());
    return ExitCodeOf(prepared.error());
  }
  int exit_code = 0;
  bool any = false;
  for (const Prepared& stream : prepared.value()) {
    if (!stream.config.silver) continue;
    any = true;
    const Result<int> done = ReconcileOne(stream, arguments, output, clock);
    if (!done.ok()) output.Failure(stream.config.app_id, done.error());
    const int code = done.ok() ? done.value() : ExitCodeOf(done.error());
    if (exit_code == 0) exit_code = code;
  }
  if (any) return exit_code;
  const Error error = Error(ErrorId::kOptionMissing).With("option", "silver");
  output.Failure("", error);
  return ExitCodeOf(error);
}

}  // namespace mssql_cdc::cli

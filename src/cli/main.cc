// The command line of mssql-cdc.

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "base/near_names.h"
#include "cli/demo.h"
#include "cli/pipeline.h"
#include "cli/silver.h"
#include "cli/simulate.h"
#include "cli/snapshots.h"
#include "cli/version.h"

namespace {

using mssql_cdc::NearNames;
using mssql_cdc::cli::LogForm;

constexpr char kFooter[] =
    "Exit codes: 0 done, 64 wrong usage, 65 take a new snapshot (the source lost "
    "changes), "
    "70 report it, 75 run it again, 78 change an option, permission or server "
    "setting.\n"
    "Secrets come from the pipeline file's { env = ... } or { file = ... }, never from "
    "the "
    "command line.";

void AddLog(CLI::App* command, LogForm* log) {
  command
      ->add_option_function<std::string>(
          "--log",
          [log](const std::string& form) {
            *log = form == "json" ? LogForm::kJson : LogForm::kText;
          },
          "how to tell what happens")
      ->check(CLI::IsMember({"text", "json"}));
}

using mssql_cdc::cli::ApplyArguments;
using mssql_cdc::cli::DemoArguments;
using mssql_cdc::cli::FinalizedArguments;
using mssql_cdc::cli::OptimizeArguments;
using mssql_cdc::cli::PipelineArguments;
using mssql_cdc::cli::ReconcileArguments;
using mssql_cdc::cli::SimulateArguments;
using mssql_cdc::cli::SnapshotArguments;

// A command about the streams of a pipeline file.
CLI::App* AddForFile(CLI::App* app, const char* name, const char* what,
                     PipelineArguments* arguments) {
  CLI::App* command = app->add_subcommand(name, what);
  command->add_option("pipeline", arguments->file, "the pipeline file (TOML)")
      ->required();
  AddLog(command, &arguments->log);
  return command;
}

// A command about one of them.
CLI::App* AddForStream(CLI::App* app, const char* name, const char* what,
                       SnapshotArguments* arguments) {
  CLI::App* command = AddForFile(app, name, what, &arguments->pipeline);
  command->add_option("--stream", arguments->app_id,
                      "the app_id of the stream, if the file has several");
  return command;
}

CLI::App* AddBackfill(CLI::App* app, SnapshotArguments* arguments,
                      mssql_cdc::runtime::BackfillOptions* options) {
  using mssql_cdc::runtime::IsolationLevel;
  CLI::App* command = AddForStream(
      app, "backfill",
      "read the chunked snapshot that run opened (snapshot = \"chunked\"), beside it; "
      "call it until it says done",
      arguments);
  command
      ->add_option("--chunk-rows", options->chunk_rows,
                   "the most rows of a chunk, when it is planned")
      ->check(CLI::PositiveNumber);
  command->add_option("--max-waves", options->max_waves, "stop after so many waves")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--max-seconds", options->max_seconds,
                   "begin no wave after so many seconds")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--target-wave-seconds", options->target_wave_seconds,
                   "how long a wave should take; 0: one chunk a connection")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--min-headroom-hours", options->min_headroom_hours,
                   "pause while the stream is closer to cleanup than this")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option_function<std::string>(
          "--isolation",
          [options](const std::string& level) {
            options->isolation = level == "snapshot" ? IsolationLevel::kSnapshot
                                                     : IsolationLevel::kReadCommitted;
          },
          "readCommitted or snapshot")
      ->transform(CLI::IsMember({"readcommitted", "snapshot"}, CLI::ignore_case));
  return command;
}

CLI::App* AddSnapshot(CLI::App* app, SnapshotArguments* arguments, bool* resnapshot) {
  CLI::App* command = AddForStream(
      app, "snapshot", "append the table's rows to the target, without its stream",
      arguments);
  command->add_flag("--resnapshot", *resnapshot,
                    "also where the target has a snapshot already");
  return command;
}

CLI::App* AddSeed(CLI::App* app, SnapshotArguments* arguments,
                  mssql_cdc::runtime::SeedOptions* options) {
  CLI::App* command = AddForStream(
      app, "seed", "put a copy of the table that you have in the place of a snapshot",
      arguments);
  command->add_option("--from", options->copy_location, "the copy: a Delta table")
      ->required();
  command
      ->add_option("--as-of", options->as_of,
                   "when the copy began to be read (UTC), or an LSN noted before that")
      ->required();
  command->add_flag("--allow-missing-columns", options->allow_missing_columns,
                    "captured columns that the copy lacks become NULL");
  command->add_flag("--reseed", options->reseed,
                    "also where the target has an older snapshot");
  return command;
}

CLI::App* AddSimulate(CLI::App* app, SimulateArguments* arguments) {
  CLI::App* command = app->add_subcommand(
      "simulate", "serve a simulated SQL Server with CDC, for tests and trials");
  command
      ->add_option("--state", arguments->host.state_dir, "where it keeps its databases")
      ->required();
  command->add_option("--bind", arguments->host.bind, "the address to listen on");
  command->add_option("--port", arguments->host.port,
                      "the TCP port; 0: any that is free");
  command->add_option("--seed", arguments->host.seed,
                      "reproduces LSNs and identifiers");
  command->add_option("--init", arguments->init_file,
                      "T-SQL to run first, in a new state");
  command->add_flag("--shop", arguments->shop, "make the sample shop, in a new state");
  command->add_option("--capture-interval", arguments->host.capture_interval_ms,
                      "milliseconds between runs of the capture job; 0: only "
                      "sys.sp_cdc_scan captures");
  command->add_option("--max-text-repl-size", arguments->host.max_text_repl_size_bytes,
                      "the longest LOB a tracked table takes, in bytes; -1: any");
  command
      ->add_option("--kept-rows", arguments->host.kept_rows_megabytes,
                   "how much memory rows of change tables that were sent may take, in "
                   "MB, to be sent again; 0: none are kept")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 20));
  command->add_option("--release", arguments->host.release,
                      "of SQL Server: 2016, 2017, 2019 or 2022");
  command->add_option("--time-zone", arguments->host.time_zone,
                      "the server's zone, such as 'W. Europe Standard Time'");
  command->add_option("--clock", arguments->clock,
                      "a time (UTC) at which the server's clock stands, until "
                      "sim.advance_clock moves it");
  command->add_flag("--azure", arguments->host.azure, "behave as Azure SQL Database");
  command->add_option("--import-fake", arguments->fake_directory,
                      "the folder of a history of mssql-cdc-pyspark's fake, to become "
                      "the database 'fake', in a new state");
  command->add_option("--fault-seed", arguments->host.fault_seed,
                      "faults of a network on every connection, drawn from this seed");
  return command;
}

CLI::App* AddDemo(CLI::App* app, DemoArguments* arguments) {
  CLI::App* command = app->add_subcommand(
      "demo",
      "snapshot and stream a sample shop from the built-in simulator, with a crash in "
      "the middle");
  command->add_option("--dir", arguments->dir,
                      "an empty or new folder for the lake and the state");
  command
      ->add_option("--transactions", arguments->transaction_count,
                   "how many transactions the shop's writer makes")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  command->add_flag("--hold", arguments->hold,
                    "at the end go on serving the shop until standard input ends");
  return command;
}

CLI::App* AddApply(CLI::App* app, ApplyArguments* arguments) {
  CLI::App* command = AddForFile(
      app, "apply", "bring the silver tables of a pipeline file up to date with bronze",
      &arguments->pipeline);
  command->add_flag("--offline", arguments->offline,
                    "ask no server: keys and captureInstance are those of the file");
  return command;
}

CLI::App* AddOptimize(CLI::App* app, OptimizeArguments* arguments) {
  CLI::App* command = app->add_subcommand(
      "optimize", "merge small files of silver tables, and those with rows gone");
  command->add_option("pipeline", arguments->pipeline.file, "the pipeline file (TOML)");
  AddLog(command, &arguments->pipeline.log);
  command->add_option("--table", arguments->table,
                      "a Delta table's location, instead of a pipeline file");
  command->add_flag("--enable-dv", arguments->enable_vectors,
                    "upgrade the tables to deletion vectors");
  command
      ->add_option("--small-mb", arguments->small_size_mb,
                   "files below so many megabytes are merged")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}));
  return command;
}

CLI::App* AddFinalized(CLI::App* app, FinalizedArguments* arguments) {
  CLI::App* command = AddForFile(
      app, "finalized", "show until when the tables of a pipeline file are complete",
      &arguments->pipeline);
  command->add_option(
      "--until", arguments->until,
      "end with 0 if all are complete by that time (UTC), else with 75");
  command->add_flag("--advance", arguments->advance,
                    "first move the verdict to the checkpoints' positions");
  return command;
}

CLI::App* AddReconcile(CLI::App* app, ReconcileArguments* arguments) {
  CLI::App* command =
      AddForFile(app, "reconcile",
                 "compare the silver tables of a pipeline file with their sources",
                 &arguments->pipeline);
  command
      ->add_option("--bucket-rows", arguments->bucket_rows,
                   "rows that are counted together")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command
      ->add_option("--sample", arguments->sample,
                   "of the buckets that agree, the share compared row by row")
      ->check(CLI::Range(0.0, 1.0));
  command->add_option("--report", arguments->report,
                      "a Delta table for what was found, made if it is missing");
  command
      ->add_option("--capture-wait", arguments->capture_wait_seconds,
                   "where something differs, seconds to wait until capture has read "
                   "what was committed by then; 0: do not ask")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{86'400}));
  command->add_flag("--show-keys", arguments->show_keys,
                    "print the keys of what differs, which are values of the source");
  command->add_flag("--repair", arguments->repair,
                    "write the source's rows of what differs into bronze, apply, and "
                    "compare again");
  return command;
}

// A descriptor 0, 1 or 2 that the parent closed would be given to the next file or
// socket, and progress would be written into it.
void HoldStandardStreams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    // The lowest free one is what open() gives.
    if (fcntl(descriptor, F_GETFD) == -1) (void)open("/dev/null", O_RDWR);
  }
}

// Tells of a command that there is not. False: what is wrong is something else.
bool TellNoSuchCommand(CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-' || !app.get_subcommands().empty()) return false;
  NearNames near(argv[1]);
  for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    near.Offer(command->get_name());
  }
  const std::string nearest = near.Nearest();
  const std::string more = nearest.empty() ? "mssql-cdc --help lists what there is"
                                           : "did you mean " + nearest + "?";
  std::fprintf(stderr, "there is no command %s: %s\n", argv[1], more.c_str());
  return true;
}

// Help that was asked for, or what is wrong with the command line.
int TellUsage(CLI::App& app, const CLI::ParseError& problem, int argc, char** argv) {
  if (TellNoSuchCommand(app, argc, argv)) return mssql_cdc::cli::kExitUsage;
  const int code = app.exit(problem);
  return code == 0 ? 0 : mssql_cdc::cli::kExitUsage;
}

int Main(int argc, char** argv) {
  HoldStandardStreams();
  CLI::App app(
      "Reads SQL Server Change Data Capture into Delta Lake tables, exactly once.",
      "mssql-cdc");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version",
                       std::string("mssql-cdc ") + mssql_cdc::cli::kVersion);

  PipelineArguments pipeline;
  CLI::App* run =
      AddForFile(&app, "run", "run the streams of a pipeline file", &pipeline);
  run->add_option(
      "--trigger", pipeline.trigger,
      "for every stream: once, availableNow, continuous, or an interval such "
      "as '10 seconds'");
  CLI::App* check =
      AddForFile(&app, "check",
                 "read a pipeline file, connect, and say what run would do", &pipeline);
  ApplyArguments apply;
  CLI::App* applying = AddApply(&app, &apply);
  OptimizeArguments optimize;
  CLI::App* optimizing = AddOptimize(&app, &optimize);
  FinalizedArguments finalized;
  CLI::App* asking = AddFinalized(&app, &finalized);
  ReconcileArguments reconcile;
  CLI::App* reconciling = AddReconcile(&app, &reconcile);
  SnapshotArguments snapshots;
  mssql_cdc::runtime::BackfillOptions backfill_options;
  CLI::App* backfill = AddBackfill(&app, &snapshots, &backfill_options);
  bool resnapshot = false;
  CLI::App* snapshot = AddSnapshot(&app, &snapshots, &resnapshot);
  mssql_cdc::runtime::SeedOptions seed_options;
  CLI::App* seed = AddSeed(&app, &snapshots, &seed_options);
  SimulateArguments simulate;
  CLI::App* simulating = AddSimulate(&app, &simulate);
  DemoArguments demo;
  AddDemo(&app, &demo);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return TellUsage(app, problem, argc, argv);
  }
  if (run->parsed()) return mssql_cdc::cli::RunPipeline(pipeline);
  if (check->parsed()) return mssql_cdc::cli::CheckPipeline(pipeline);
  if (applying->parsed()) return mssql_cdc::cli::ApplyPipeline(apply);
  if (optimizing->parsed()) return mssql_cdc::cli::OptimizePipeline(optimize);
  if (asking->parsed()) return mssql_cdc::cli::ShowFinalized(finalized);
  if (reconciling->parsed()) return mssql_cdc::cli::ReconcilePipeline(reconcile);
  if (backfill->parsed()) {
    return mssql_cdc::cli::RunBackfill(snapshots, backfill_options);
  }
  if (snapshot->parsed()) return mssql_cdc::cli::RunSnapshot(snapshots, resnapshot);
  if (seed->parsed()) return mssql_cdc::cli::RunSeed(snapshots, seed_options);
  if (simulating->parsed()) return mssql_cdc::cli::Simulate(simulate);
  return mssql_cdc::cli::Demo(demo, argv[0]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("error: MC9001 OutOfMemory: memory ran out\n", stderr);
    return 75;
  } catch (const std::exception&) {
    std::fputs("error: MC9002 InternalError: a bug in this program\n", stderr);
    return 70;
  }
}

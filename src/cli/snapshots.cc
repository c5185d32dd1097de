#include "cli/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/config.h"
#include "cli/prepare.h"
#include "cli/progress.h"
#include "cli/stop_signals.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/serialized_lake.h"
#include "runtime/session_pool.h"

namespace mssql_cdc::cli {
namespace {

constexpr int kExitAgain = 75;

using Field = Output::Field;

Field Number(std::string name, std::int64_t value) {
  return {std::move(name), std::to_string(value), false};
}

std::string Bar(std::int64_t done, std::int64_t total) {
  constexpr std::int64_t kWidth = 20;
  const std::int64_t full = total == 0 ? 0 : kWidth * done / total;
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(kWidth - full), '.') + "]";
}

// Tells how far a backfill is: chunks, pace, what is left.
class BackfillLines final : public runtime::BackfillObserver {
 public:
  BackfillLines(std::string name, Output& output, Clock& clock)
      : name_(std::move(name)), output_(output), clock_(clock) {}

  void OnPlanned(const std::string& lsn, std::int64_t chunk_count) override {
    output_.Event(name_, "backfill_planned",
                  fmt::format("backfill: {} chunks for the snapshot at {}",
                              Grouped(chunk_count), lsn),
                  {Field{"lsn", lsn}, Number("chunks", chunk_count)});
  }
  void OnProgress(const runtime::BackfillProgress& progress) override {
    {
      const std::lock_guard lock(mutex_);
      if (!first_done_) first_done_ = progress.chunks_done;
      const std::int64_t now = clock_.MonotonicNs();
      if (now - last_ns_ < 1'000'000'000) return;
      last_ns_ = now;
    }
    Tell("backfill_progress", progress);
  }
  void OnWaveDone(const runtime::BackfillProgress& progress) override {
    Tell("backfill_wave_done", progress);
  }
  void OnWarning(const std::string& text) override { output_.Warning(name_, text); }

 private:
  // By the chunks of this call, once there are some.
  std::string LeftText(const runtime::BackfillProgress& progress) {
    const std::lock_guard lock(mutex_);
    const std::int64_t done = progress.chunks_done - first_done_.value_or(0);
    const std::int64_t left = progress.chunks_total - progress.chunks_done;
    if (done <= 0 || left <= 0) return "";
    return fmt::format(", about {} left", Duration(progress.elapsed_ms * left / done));
  }

  void Tell(const char* event, const runtime::BackfillProgress& progress) {
    const double seconds =
        static_cast<double>(std::max<std::int64_t>(1, progress.elapsed_ms)) / 1000;
    const double mb_per_second =
        static_cast<double>(progress.size_bytes) / 1e6 / seconds;
    std::string text =
        fmt::format("backfill: {} {} of {} chunks, {} rows, {:.1f} MB/s{}",
                    Bar(progress.chunks_done, progress.chunks_total),
                    progress.chunks_done, progress.chunks_total,
                    Grouped(progress.row_count), mb_per_second, LeftText(progress));
    if (progress.headroom_hours) {
      text += fmt::format(", headroom {:.1f} h", *progress.headroom_hours);
    }
    output_.Event(
        name_, event, text,
        {Field{"lsn", progress.lsn}, Number("wave", progress.wave),
         Number("chunks_done", progress.chunks_done),
         Number("chunks_total", progress.chunks_total),
         Number("rows", progress.row_count), Number("bytes", progress.size_bytes),
         Number("elapsed_ms", progress.elapsed_ms),
         Field{"headroom_hours",
               progress.headroom_hours ? fmt::format("{}", *progress.headroom_hours)
                                       : "null",
               false}});
  }

  std::string name_;
  Output& output_;
  Clock& clock_;
  std::mutex mutex_;  // Guards what follows.
  std::int64_t last_ns_ = 0;
  std::optional<std::int64_t> first_done_;
};

// The stream that is meant, or every one that `suits`.
Result<std::vector<Prepared>> Choose(
    std::vector<Prepared> all, const std::optional<std::string>& app_id,
    const std::function<bool(const runtime::StreamConfig&)>& suits) {
  std::vector<Prepared> chosen;
  std::string known;
  for (Prepared& each : all) {
    known += (known.empty() ? "" : ", ") + each.config.app_id;
    const bool is_meant = app_id ? each.config.app_id == *app_id : suits(each.config);
    if (is_meant) chosen.push_back(std::move(each));
  }
  if (!chosen.empty()) return chosen;
  return Error(ErrorId::kOptionInvalid)
      .With("option", app_id ? "stream" : "snapshot")
      .With("value", app_id.value_or("full"))
      .With("reason", app_id ? "the file has no stream with this app_id"
                             : "no stream of the file has snapshot = \"chunked\"")
      .With("app_ids", known);
}

void TellStatus(const runtime::StreamConfig& config,
                const runtime::BackfillStatus& status, Output& output) {
  const std::string total =
      status.chunks_total ? Grouped(*status.chunks_total) : "unplanned";
  std::string text = fmt::format("backfill: {}, {} of {} chunks", NameOf(status.state),
                                 Grouped(status.chunks_done), total);
  if (!status.reason.empty()) text += ": " + status.reason;
  if (status.state == runtime::BackfillStatus::State::kRunning) {
    text += "; call again to go on";
  }
  output.Event(
      config.app_id, "backfill_status", text,
      {Field{"state", NameOf(status.state)},
       Field{"snapshot", status.snapshot ? status.snapshot->Text() : ""},
       Number("chunks_done", status.chunks_done),
       Field{"chunks_total",
             status.chunks_total ? std::to_string(*status.chunks_total) : "null",
             false},
       Field{"reason", status.reason}});
}

struct RunningBackfill {
  std::unique_ptr<runtime::SessionSource> sessions;
  std::unique_ptr<BackfillLines> lines;
  std::unique_ptr<runtime::Backfill> backfill;
  std::thread thread;
  int exit_code = 0;
};

int CodeOfStatus(const runtime::BackfillStatus& status) {
  return status.state == runtime::BackfillStatus::State::kDone ? 0 : kExitAgain;
}

// Runs `call` of the only stream that is meant, until it ends or a signal stops it.
int RunCall(
    const SnapshotArguments& arguments,
    const std::function<Result<runtime::SnapshotSummary>(runtime::SnapshotCall&)>&
        call) {
  SystemClock clock;
  Output output(arguments.pipeline.log, clock);
  const auto fail = [&](const std::string& name, const Error& error) {
    output.Failure(name, error);
    return ExitCodeOf(error);
  };
  auto prepared = Prepare(arguments.pipeline, output, clock, CallKind::kSnapshot);
  if (!prepared.ok()) return fail("", prepared.error());
  auto chosen = Choose(std::move(prepared).value(), arguments.app_id,
                       [](const runtime::StreamConfig&) { return true; });
  if (!chosen.ok()) return fail("", chosen.error());
  if (chosen.value().size() != 1) {
    return fail("", Error(ErrorId::kOptionMissing)
                        .With("option", "--stream")
                        .With("reason", "the file has several streams"));
  }
  const Prepared& stream = chosen.value()[0];
  StopSignals signals;
  net::TcpDialer dialer(clock);
  lake::DeltaLake delta;
  runtime::SerializedLake lake(delta);
  const auto sessions = SessionsOf(stream, dialer, clock);
  Progress progress(stream.config.app_id, output, clock);
  const auto running =
      runtime::SnapshotCall::Make(stream.config, {.sessions = sessions.get(),
                                                  .lake = &lake,
                                                  .clock = &clock,
                                                  .observer = &progress});
  signals.Watch([&running] { running->Stop(); });
  const Result<runtime::SnapshotSummary> summary = call(*running);
  if (!summary.ok()) return fail(stream.config.app_id, summary.error());
  progress.OnSnapshotDone(summary.value());
  return 0;
}

}  // namespace

int RunBackfill(const SnapshotArguments& arguments,
                const runtime::BackfillOptions& options) {
  SystemClock clock;
  Output output(arguments.pipeline.log, clock);
  const auto fail = [&](const Error& error) {
    output.Failure("", error);
    return ExitCodeOf(error);
  };
  auto prepared = Prepare(arguments.pipeline, output, clock);
  if (!prepared.ok()) return fail(prepared.error());
  const auto chosen =
      Choose(std::move(prepared).value(), arguments.app_id,
             [](const runtime::StreamConfig& config) {
               return config.snapshot == pipeline::SnapshotMode::kChunked;
             });
  if (!chosen.ok()) return fail(chosen.error());

  StopSignals signals;
  net::TcpDialer dialer(clock);
  lake::DeltaLake delta;
  runtime::SerializedLake lake(delta);
  std::vector<RunningBackfill> running(chosen.value().size());
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Prepared& from = chosen.value()[i];
    running[i].sessions = SessionsOf(from, dialer, clock);
    running[i].lines =
        std::make_unique<BackfillLines>(from.config.app_id, output, clock);
    running[i].backfill = runtime::Backfill::Make(
        from.config, options,
        {.sessions = running[i].sessions.get(), .lake = &lake, .clock = &clock},
        running[i].lines.get());
  }
  signals.Watch([&running] {
    for (RunningBackfill& each : running) each.backfill->Stop();
  });
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i].thread = std::thread([&, i] {
      const runtime::StreamConfig& config = chosen.value()[i].config;
      const Result<runtime::BackfillStatus> status = running[i].backfill->Run();
      if (!status.ok()) {
        output.Failure(config.app_id, status.error());
        running[i].exit_code = ExitCodeOf(status.error());
        return;
      }
      TellStatus(config, status.value(), output);
      running[i].exit_code = CodeOfStatus(status.value());
    });
  }
  int exit_code = 0;
  for (RunningBackfill& each : running) {
    each.thread.join();
    const bool is_worse = exit_code == 0 || exit_code == kExitAgain;
    if (is_worse && each.exit_code != 0) exit_code = each.exit_code;
  }
  return exit_code;
}

int RunSnapshot(const SnapshotArguments& arguments, bool resnapshot) {
  return RunCall(arguments,
                 [&](runtime::SnapshotCall& call) { return call.Take(resnapshot); });
}

int RunSeed(const SnapshotArguments& arguments, const runtime::SeedOptions& options) {
  return RunCall(arguments,
                 [&](runtime::SnapshotCall& call) { return call.Seed(options); });
}

}  // namespace mssql_cdc::cli

// From the row visible in the change table until it is committed in bronze.
//
// A simulator, a writer and a stream share this process; the stream speaks to the
// simulator over TCP on the loopback address. The writer commits 20 one-row
// transactions a second and runs the capture after each. A change counts from the
// moment before its capture began (so the figure includes the capture itself, which is
// too much rather than too little) until Lake::Append of bronze returned. Polling every
// 10 ms.
//
//   latency_bench [seconds]     default 30; the last line is `p99 ms: N`

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "cli/simulator_host.h"
#include "lake/delta_lake.h"
#include "net/tcp.h"
#include "runtime/session_pool.h"
#include "runtime/stream.h"

namespace mssql_cdc {
namespace {

constexpr int kChangesPerSecond = 20;

// Notes when each append to `target` returned.
class TimedLake final : public lake::Lake {
 public:
  TimedLake(lake::Lake& inner, Clock& clock, std::string target)
      : inner_(inner), clock_(clock), target_(std::move(target)) {}

  std::int64_t last_append_ns() const { return last_append_ns_; }

  Result<std::optional<lake::TableState>> State(const std::string& at) override {
    return inner_.State(at);
  }
  Result<std::optional<std::int64_t>> LastTxn(const std::string& at,
                                              const std::string& app_id) override {
    return inner_.LastTxn(at, app_id);
  }
  Status Create(const std::string& at, const lake::CreateSpec& spec) override {
    return inner_.Create(at, spec);
  }
  Status Alter(const std::string& at, const std::vector<columns::Field>& add,
               const std::map<std::string, std::string>& properties) override {
    return inner_.Alter(at, add, properties);
  }
  Result<lake::AppendResult> Append(
      const std::string& at, std::vector<std::unique_ptr<columns::BatchReader>> sources,
      const lake::AppendSpec& spec) override {
    auto result = inner_.Append(at, std::move(sources), spec);
    if (at == target_) last_append_ns_ = clock_.MonotonicNs();
    return result;
  }
  Result<std::vector<lake::CommitInfo>> History(const std::string& at,
                                                std::int64_t since) override {
    return inner_.History(at, since);
  }
  Result<std::unique_ptr<columns::BatchReader>> Read(
      const std::string& at, const lake::ReadSpec& spec) override {
    return inner_.Read(at, spec);
  }
  Result<std::int64_t> RowCount(const std::string& at) override {
    return inner_.RowCount(at);
  }
  Result<std::unique_ptr<lake::TableChange>> Change(
      const std::string& at, const lake::ChangeSpec& spec) override {
    return inner_.Change(at, spec);
  }
  Status EnableDeletionVectors(const std::string& at) override {
    return inner_.EnableDeletionVectors(at);
  }

 private:
  lake::Lake& inner_;
  Clock& clock_;
  std::string target_;
  std::atomic<std::int64_t> last_append_ns_{0};
};

// Pairs the n-th change with the n-th capture, since both are in commit order.
class Latencies final : public runtime::StreamObserver {
 public:
  explicit Latencies(TimedLake& lake) : lake_(lake) {}

  void OnSnapshotDone(const runtime::SnapshotSummary&) override { ready_ = true; }
  void OnIdle(const runtime::IdleSummary&) override { ready_ = true; }
  void OnBatchDone(const runtime::BatchSummary& batch) override {
    const std::lock_guard lock(mutex_);
    for (std::int64_t i = 0; i < batch.row_count && done_ < begun_ns_.size(); ++i) {
      latency_us_.push_back((lake_.last_append_ns() - begun_ns_[done_++]) / 1000);
    }
    ++batch_count_;
  }
  void OnRetry(const Error& error, std::int64_t, std::int64_t) override {
    std::fprintf(stderr, "retry: %s\n", error.Text().c_str());
  }

  void Begin(std::int64_t now_ns) {
    const std::lock_guard lock(mutex_);
    begun_ns_.push_back(now_ns);
  }
  bool ready() const { return ready_; }
  bool AllSeen() {
    const std::lock_guard lock(mutex_);
    return done_ == begun_ns_.size();
  }
  std::vector<std::int64_t> Sorted() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(latency_us_);
    return latency_us_;
  }
  std::int64_t batch_count() const { return batch_count_; }

 private:
  TimedLake& lake_;
  std::mutex mutex_;
  std::atomic<bool> ready_{false};
  std::vector<std::int64_t> begun_ns_;
  std::size_t done_ = 0;
  std::vector<std::int64_t> latency_us_;
  std::atomic<std::int64_t> batch_count_{0};
};

int Fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.Text().c_str());
  return 1;
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double AtMs(const std::vector<std::int64_t>& sorted_us, double share) {
  const auto index =
      static_cast<std::size_t>(share * static_cast<double>(sorted_us.size() - 1));
  return static_cast<double>(sorted_us[index]) / 1000;
}

Status MakeTable(cli::SimulatorShell& shell) {
  return shell.RunScript(
      "CREATE DATABASE latency\nGO\nUSE latency\nGO\nEXEC sys.sp_cdc_enable_db\nGO\n"
      "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, name nvarchar(40), amount "
      "decimal(18,4), at datetime2(3))\nGO\n"
      "INSERT dbo.t VALUES (0, N'first', 1.5, '2026-01-01')\nGO\n"
      "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL\nGO\n"
      "EXEC sys.sp_cdc_scan\nGO\n");
}

Status Write(cli::SimulatorShell& shell, Clock& clock, Latencies& latencies,
             int count) {
  const std::int64_t begun_ns = clock.MonotonicNs();
  for (int i = 1; i <= count; ++i) {
    const std::int64_t due_ns =
        begun_ns + std::int64_t{i} * 1'000'000'000 / kChangesPerSecond;
    if (const std::int64_t wait_ns = due_ns - clock.MonotonicNs(); wait_ns > 0) {
      clock.SleepMs(wait_ns / 1'000'000);
    }
    TRY(shell.Run("INSERT dbo.t VALUES (" + std::to_string(i) +
                  ", N'name', 12.3456, '2026-01-02 03:04:05.678')"));
    latencies.Begin(clock.MonotonicNs());
    TRY(shell.Run("EXEC sys.sp_cdc_scan"));
  }
  return Unit{};
}

runtime::StreamConfig ConfigIn(const std::filesystem::path& folder) {
  runtime::StreamConfig config;
  config.capture_instance = "dbo_t";
  config.target = config.target_location = folder / "bronze";
  config.facts_table = config.facts_location = folder / "facts";
  config.checkpoint = folder / "checkpoint";
  config.app_id = "latency-v1";
  config.bootstrap = true;
  config.poll_first_ms = config.poll_max_ms = 10;
  return config;
}

sqlserver::ConnectOptions LoginTo(std::uint16_t port) {
  sqlserver::ConnectOptions connect;
  connect.host = "127.0.0.1";
  connect.port = port;
  connect.database = "latency";
  connect.user = "sa";
  connect.password = Secret("Latency-1");
  connect.encrypt = sqlserver::Encrypt::kLoginOnly;
  connect.trust_server_certificate = true;
  return connect;
}

int Main(int seconds) {
  SystemClock clock;
  const auto folder = std::filesystem::temp_directory_path() /
                      ("mssql-cdc-latency-" + std::to_string(clock.NowUtcUs()));
  cli::HostOptions host_options;
  host_options.state_dir = folder / "server";
  host_options.password = Secret("Latency-1");
  auto host = cli::SimulatorHost::Start(host_options);
  if (!host.ok()) return Fail(host.error());
  if (const Status made = MakeTable(*host.value().shell); !made.ok()) {
    return Fail(made.error());
  }

  const runtime::StreamConfig config = ConfigIn(folder);
  net::TcpDialer dialer(clock);
  runtime::ServerSessions sessions(LoginTo(host.value().server->port()), dialer, clock);
  lake::DeltaLake delta;
  TimedLake lake(delta, clock, config.target_location);
  Latencies latencies(lake);
  auto stream = runtime::Stream::Open(
      config,
      {.sessions = &sessions, .lake = &lake, .clock = &clock, .observer = &latencies});
  if (!stream.ok()) return Fail(stream.error());
  std::thread running([&] {
    const Status ran = stream.value()->Run();
    if (!ran.ok()) std::fprintf(stderr, "%s\n", ran.error().Text().c_str());
  });
  while (!latencies.ready()) clock.SleepMs(10);
  clock.SleepMs(500);
  const double cpu_before = CpuSeconds();
  const Status wrote =
      Write(*host.value().shell, clock, latencies, seconds * kChangesPerSecond);
  for (int i = 0; i < 500 && !latencies.AllSeen(); ++i) clock.SleepMs(10);
  const double cpu = CpuSeconds() - cpu_before;
  stream.value()->Stop();
  running.join();
  host.value().server->Stop();
  std::filesystem::remove_all(folder);
  if (!wrote.ok()) return Fail(wrote.error());

  const auto sorted = latencies.Sorted();
  if (sorted.empty()) return 1;
  std::printf(
      "%zu changes in %d s, %lld batches, %.2f CPU s (simulator and writer too)\n",
      sorted.size(), seconds, static_cast<long long>(latencies.batch_count()), cpu);
  std::printf("p50 ms: %.1f\np90 ms: %.1f\nmax ms: %.1f\np99 ms: %.1f\n",
              AtMs(sorted, 0.5), AtMs(sorted, 0.9), AtMs(sorted, 1),
              AtMs(sorted, 0.99));
  return 0;
}

}  // namespace
}  // namespace mssql_cdc

int main(int argc, char** argv) {
  return mssql_cdc::Main(argc > 1 ? std::atoi(argv[1]) : 30);
}

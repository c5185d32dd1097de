// What planning a chunked snapshot costs over the wire: statements, answered bytes and
// seconds of the first backfill call, from its beginning until the plan is recorded.
//
// For each shape of key the simulator holds a captured table of so many rows with that
// key; the product opens a chunked snapshot of it and plans chunks of 1 % of the table
// over TDS. What the server reads is counted by nobody here: seconds are the
// simulator's.
//
//   planning_bench [rows [name...]]     default 10,000,000 and all; the last line is
//                                       `most statements: N`; a name: composite/sparse

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lake/memory_lake.h"
#include "net/faulty.h"
#include "net/pipe.h"
#include "runtime/backfill.h"
#include "runtime/session_pool.h"
#include "runtime/stream.h"
#include "sim/engine/engine.h"
#include "sim/wire/server.h"

namespace mssql_cdc {
namespace {

constexpr std::int64_t kBeginUtcUs = 1'795'161'600'000'000;
constexpr std::int64_t kRowsPerInsert = 1'000'000;

// Key number `row` of `count`, ascending.
using KeyOf = std::int64_t (*)(std::int64_t row, std::int64_t count);

struct Shape {
  const char* name;
  KeyOf key_of;
};

std::int64_t Uniform(std::int64_t row, std::int64_t) { return row; }
// All but 1 % lie side by side in the middle of a wide space.
std::int64_t Dense(std::int64_t row, std::int64_t count) {
  const std::int64_t lone = count / 200;
  constexpr std::int64_t kApart = 1'000'000'000;
  if (row < lone) return row * kApart;
  if (row < count - lone) return lone * kApart + row;
  return (row - count + 2 * lone + 1) * kApart + count;
}
std::int64_t Sentinel(std::int64_t row, std::int64_t count) {
  return row < count - 1 ? row : std::int64_t{1} << 62;
}
std::int64_t Sparse(std::int64_t row, std::int64_t count) {
  return row * ((std::int64_t{1} << 62) / count);
}

constexpr Shape kShapes[] = {
    {"uniform", Uniform}, {"dense", Dense}, {"sentinel", Sentinel}, {"sparse", Sparse}};

// Counts what the client receives.
class CountedTransport final : public net::Transport {
 public:
  CountedTransport(std::unique_ptr<net::Transport> inner,
                   std::atomic<std::int64_t>* size_bytes)
      : inner_(std::move(inner)), size_bytes_(*size_bytes) {}

  Result<std::size_t> Read(std::span<std::uint8_t> into) override {
    auto count = inner_->Read(into);
    if (count.ok()) size_bytes_ += static_cast<std::int64_t>(count.value());
    return count;
  }
  Status Write(std::span<const std::uint8_t> bytes) override {
    return inner_->Write(bytes);
  }
  void SetTimeLimitMs(std::int64_t limit_ms) override {
    inner_->SetTimeLimitMs(limit_ms);
  }
  void Close() override { inner_->Close(); }

 private:
  std::unique_ptr<net::Transport> inner_;
  std::atomic<std::int64_t>& size_bytes_;
};

// The simulator in this process, empty, in `directory`.
struct Simulator {
  std::shared_ptr<sim::SimEngine> engine;
  std::unique_ptr<sim::wire::Server> server;
};

Result<Simulator> StartSimulator(const std::string& directory) {
  sim::EngineOptions options;
  options.state_directory = directory;
  options.start_utc_us = kBeginUtcUs;
  options.logins = {{"sa", Secret("Plan-1"), true, ""}};
  Simulator simulator;
  TRY_ASSIGN(simulator.engine, sim::SimEngine::Open(options));
  sim::wire::ServerOptions wire;
  wire.listen = false;
  wire.tls_mode = sim::wire::TlsMode::kNotSupported;
  TRY_ASSIGN(simulator.server, sim::wire::Server::Start(wire, simulator.engine));
  return simulator;
}

Status Fill(sim::SimEngine& engine, bool is_composite, const Shape& shape,
            std::int64_t row_count) {
  TRY(engine.Run("master", "CREATE DATABASE bench"));
  TRY(engine.Run("bench", "EXEC sys.sp_cdc_enable_db"));
  TRY(engine.Run(
      "bench", is_composite ? "CREATE TABLE dbo.t (area int NOT NULL, code bigint NOT "
                              "NULL, PRIMARY KEY (area, code))"
                            : "CREATE TABLE dbo.t (code bigint NOT NULL PRIMARY KEY)"));
  TRY(engine.Run("bench",
                 "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL"));
  TRY(engine.CaptureNow("bench"));
  for (std::int64_t from = 0; from < row_count; from += kRowsPerInsert) {
    const std::int64_t count = std::min(kRowsPerInsert, row_count - from);
    TRY(engine.BulkInsert("bench", "dbo.t", count, {.source = true, .changes = false},
                          [&](std::int64_t row, std::size_t column) {
                            sim::Value value;
                            const std::int64_t number = from + row;
                            value.held = is_composite && column == 0
                                             ? 1 + number * 7 / row_count
                                             : shape.key_of(number, row_count);
                            return value;
                          }));
  }
  engine.AdvanceClock(60'000);
  TRY(engine.CaptureNow("bench"));
  return Unit{};
}

struct Cost {
  std::int64_t chunk_count = 0;
  std::uint64_t statement_count = 0;
  std::int64_t size_bytes = 0;
  double seconds = 0;
  double fill_seconds = 0;
};

// Ends the call once there is a plan.
class AtPlan final : public runtime::BackfillObserver {
 public:
  std::int64_t chunk_count = 0;
  runtime::Backfill* backfill = nullptr;
  void OnPlanned(const std::string&, std::int64_t count) override {
    chunk_count = count;
    backfill->Stop();
  }
};

Result<Cost> Plan(Simulator& simulator, std::int64_t row_count,
                  const std::string& checkpoint) {
  std::atomic<std::int64_t> size_bytes = 0;
  net::InMemoryDialer dialer([&](const std::string&, std::uint16_t) {
    auto [client, server] = net::MakePipe();
    simulator.server->Serve(std::move(server));
    return Result<std::unique_ptr<net::Transport>>(
        std::make_unique<CountedTransport>(std::move(client), &size_bytes));
  });
  SystemClock clock;
  sqlserver::ConnectOptions connect;
  connect.host = "simulator";
  connect.database = "bench";
  connect.user = "sa";
  connect.password = Secret("Plan-1");
  connect.encrypt = sqlserver::Encrypt::kLoginOnly;
  runtime::ServerSessions sessions(connect, dialer, clock);
  lake::MemoryLake lake;
  const runtime::StreamParts parts{&sessions, &lake, &clock, nullptr, 1};

  runtime::StreamConfig config;
  config.capture_instance = "dbo_t";
  config.target = config.target_location = "bronze";
  config.facts_table = config.facts_location = "facts";
  config.app_id = "bench";
  config.checkpoint = checkpoint;
  config.trigger.kind = runtime::Trigger::Kind::kAvailableNow;
  config.bootstrap = true;
  config.snapshot = pipeline::SnapshotMode::kChunked;
  TRY_ASSIGN(const auto stream, runtime::Stream::Open(config, parts));
  TRY(stream->Run());

  runtime::BackfillOptions options;
  options.chunk_rows = row_count / 100;
  AtPlan at_plan;
  const std::uint64_t requests = simulator.server->counters().requests;
  const std::int64_t before_bytes = size_bytes;
  const std::int64_t begin_ns = clock.MonotonicNs();
  const auto backfill = runtime::Backfill::Make(config, options, parts, &at_plan);
  at_plan.backfill = backfill.get();
  TRY(backfill->Run());
  Cost cost;
  cost.chunk_count = at_plan.chunk_count;
  cost.statement_count = simulator.server->counters().requests - requests;
  cost.size_bytes = size_bytes - before_bytes;
  cost.seconds = static_cast<double>(clock.MonotonicNs() - begin_ns) / 1e9;
  return cost;
}

Result<Cost> Measure(bool is_composite, const Shape& shape, std::int64_t row_count,
                     const std::string& directory) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  TRY_ASSIGN(Simulator simulator, StartSimulator(directory + "/server"));
  SystemClock clock;
  const std::int64_t begin_ns = clock.MonotonicNs();
  TRY(Fill(*simulator.engine, is_composite, shape, row_count));
  const std::int64_t filled_ns = clock.MonotonicNs();
  auto cost = Plan(simulator, row_count, directory + "/checkpoint");
  if (cost.ok()) {
    cost.value().fill_seconds = static_cast<double>(filled_ns - begin_ns) / 1e9;
  }
  simulator.server->Stop();
  std::filesystem::remove_all(directory);
  return cost;
}

int Main(std::int64_t row_count, const std::vector<std::string>& names) {
  const std::string directory = std::filesystem::temp_directory_path() /
                                ("mssql-cdc-planning-" + std::to_string(::getpid()));
  std::uint64_t most = 0;
  std::printf("%-22s %12s %7s %11s %10s %9s %9s\n", "key", "rows", "chunks",
              "statements", "KB in", "seconds", "filled in");
  std::fflush(stdout);
  for (const bool is_composite : {false, true}) {
    for (const Shape& shape : kShapes) {
      const std::string name =
          std::string(is_composite ? "composite/" : "integer/") + shape.name;
      if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
      const auto cost = Measure(is_composite, shape, row_count, directory);
      if (!cost.ok()) {
        std::fprintf(stderr, "%s\n", cost.error().Text().c_str());
        return 1;
      }
      most = std::max(most, cost.value().statement_count);
      std::printf("%-22s %12lld %7lld %11llu %10.1f %9.2f %9.2f\n", name.c_str(),
                  static_cast<long long>(row_count),
                  static_cast<long long>(cost.value().chunk_count),
                  static_cast<unsigned long long>(cost.value().statement_count),
                  static_cast<double>(cost.value().size_bytes) / 1024,
                  cost.value().seconds, cost.value().fill_seconds);
      std::fflush(stdout);
    }
  }
  std::printf("most statements: %llu\n", static_cast<unsigned long long>(most));
  return 0;
}

}  // namespace
}  // namespace mssql_cdc

int main(int argc, char** argv) {
  const long long rows = argc > 1 ? std::atoll(argv[1]) : 10'000'000;
  if (rows < 1000) {
    std::fprintf(stderr, "planning_bench [rows, at least 1000 [name...]]\n");
    return 2;
  }
  return mssql_cdc::Main(rows, {argv + std::min(argc, 2), argv + argc});
}

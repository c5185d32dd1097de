#include "cli/demo.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/child.h"
#include "cli/output.h"
#include "cli/simulator_host.h"
#include "cli/table_text.h"
#include "lake/delta_lake.h"
#include "sim/engine/shop.h"

namespace mssql_cdc::cli {
namespace {

constexpr std::int64_t kBatchesBeforeTheKill = 6;
constexpr std::int64_t kWriterPauseMs = 20;

// "dbo.orders" is captured as dbo_orders and goes to bronze/orders.
struct DemoTable {
  std::string name;  // orders
  std::string capture_instance;
};

std::vector<DemoTable> DemoTables() {
  std::vector<DemoTable> tables;
  for (const std::string& name : sim::ShopTableNames()) {
    tables.push_back({name, "dbo_" + name});
  }
  return tables;
}

std::string PipelineText(std::uint16_t port, const std::string& authority) {
  std::string text = fmt::format(
      "[source]\n"
      "connectionString = \"Server=localhost,{};Database=shop;CAFile={}\"\n"
      "user = \"cdc_reader\"\n"
      "password = {{ env = \"SHOP_PASSWORD\" }}\n\n[catalog]\n",
      port, authority);
  for (const DemoTable& table : DemoTables()) {
    text += fmt::format(
        "\"bronze.{0}\" = \"lake/bronze/{0}\"\n\"silver.{0}\" = \"lake/silver/{0}\"\n",
        table.name);
  }
  text += "\"ops.facts\" = \"lake/facts\"\n\"ops.control\" = \"lake/control\"\n";
  for (const DemoTable& table : DemoTables()) {
    text += fmt::format(
        "\n[[stream]]\ncaptureInstance = \"{0}\"\ntarget = \"bronze.{1}\"\n"
        "app_id = \"{1}-v1\"\ncheckpoint = \"lake/checkpoints/{1}\"\n"
        "facts_table = \"ops.facts\"\nbootstrap = true\nmaxCommitsPerBatch = 500\n"
        "silver = \"silver.{1}\"\ncontrol_table = \"ops.control\"\n",
        table.capture_instance, table.name);
  }
  return text;
}

class Show {
 public:
  Show(const DemoArguments& arguments, const std::string& program)
      : arguments_(arguments), program_(program), output_(LogForm::kText, clock_) {}

  int Run() {
    const Status done = Steps();
    if (done.ok()) return 0;
    output_.Failure("", done.error());
    return ExitCodeOf(done.error());
  }

 private:
  Status Steps() {
    const std::int64_t begun = clock_.MonotonicNs();
    TRY(Prepare());
    TRY(StreamWithACrash());
    TRY(DrainTheRest());
    TRY(Tell((clock_.MonotonicNs() - begun) / 1'000'000));
    if (arguments_.hold) {
      std::printf("serving the shop on 127.0.0.1:%u until standard input ends\n",
                  static_cast<unsigned>(host_.server->port()));
      std::fflush(stdout);
      std::string line;
      while (std::getline(std::cin, line)) {
      }
    }
    host_.server->Stop();
    return Unit{};
  }

  Status Prepare() {
    std::error_code failed;
    std::filesystem::create_directories(arguments_.dir, failed);
    if (failed || !std::filesystem::is_empty(arguments_.dir, failed)) {
      return Error(ErrorId::kOptionInvalid)
          .With("option", "--dir")
          .With("value", arguments_.dir)
          .With("allowed", "a folder that is empty or not there yet");
    }
    dir_ = std::filesystem::absolute(arguments_.dir).string();
    Say("1. A simulated SQL Server with a sample shop, CDC on, a writer at work");
    std::random_device random;
    HostOptions options;
    options.state_dir = dir_ + "/server";
    options.capture_interval_ms = 100;
    const auto admin = RealPassword("MSSQL_CDC_SIM_PASSWORD");
    options.password =
        Secret(admin.empty() ? fmt::format("Sa-{:08x}", random()) : admin);
    reader_password_ = Secret(fmt::format("Reader-{:08x}", random()));
    TRY_ASSIGN(host_, SimulatorHost::Start(options));
    TRY(host_.shell->RunScript(sim::ShopScript(reader_password_.Reveal())));
    std::ofstream(dir_ + "/pipeline.toml")
        << PipelineText(host_.server->port(), dir_ + "/server/certificates/ca.pem");
    Say(fmt::format("   listening on 127.0.0.1:{}, pipeline file {}/pipeline.toml",
                    host_.server->port(), dir_));
    return Unit{};
  }

  static std::string RealPassword(const char* variable) {
    const char* value = std::getenv(variable);
    return value == nullptr ? "" : value;
  }

  Result<std::unique_ptr<Child>> StartRun(std::vector<std::string> more) {
    std::vector<std::string> arguments{Self(), "run", dir_ + "/pipeline.toml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Child::Start(arguments, {{"SHOP_PASSWORD", reader_password_.Reveal()}},
                        [this](const std::string& line) {
                          Count(line);
                          Say("   | " + line);
                        });
  }

  // What a line of `mssql-cdc run` tells (progress.cc writes them).
  void Count(const std::string& line) {
    const auto has = [&](std::string_view part) {
      return line.find(part) != std::string::npos;
    };
    if (has(": batch ")) ++batch_count_;
    if (has(": error: ")) ++error_count_;
    if (has(": snapshot: ") && has(" rows at ")) ++snapshot_count_;
  }

  std::string Self() const {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    return failed ? program_ : self.string();
  }

  Status StreamWithACrash() {
    Say("\n2. mssql-cdc run: a snapshot of every table, then the changes as they come");
    TRY_ASSIGN(auto first, StartRun({}));
    TRY(WaitFor([this] { return SnapshotsDone(); }));
    std::atomic<bool> failed{false};
    std::thread writer([this, &failed] { failed = !Write().ok(); });
    const std::int64_t before = batch_count_;
    const Status streaming =
        WaitFor([&] { return batch_count_ >= before + kBatchesBeforeTheKill; });
    if (streaming.ok()) {
      Say("\n3. kill -9 in the middle, while the shop goes on writing");
      first->Signal(SIGKILL);
      first->Wait();
    }
    Result<std::unique_ptr<Child>> second =
        streaming.ok() ? StartRun({})
                       : Result<std::unique_ptr<Child>>(streaming.error());
    writer.join();
    if (!second.ok()) return second.error();
    if (failed)
      return Error(ErrorId::kSimulatorFailed).With("step", "the shop's writer");
    second.value()->Signal(SIGTERM);
    const int code = second.value()->Wait();
    if (code != 0) return RunFailed(code);
    return Unit{};
  }

  bool SnapshotsDone() const {
    return snapshot_count_ >= static_cast<std::int64_t>(DemoTables().size());
  }

  Status Write() {
    sim::ShopWriter writer(1);
    for (std::int64_t i = 0; i < arguments_.transaction_count; ++i) {
      TRY(host_.shell->Run(writer.Next()));
      clock_.SleepMs(kWriterPauseMs);
    }
    return Unit{};
  }

  template <typename Condition>
  Status WaitFor(Condition condition) {
    constexpr std::int64_t kLimitMs = 60'000;
    for (std::int64_t waited_ms = 0; waited_ms < kLimitMs; waited_ms += 20) {
      if (condition()) return Unit{};
      if (error_count_ > 0) break;
      clock_.SleepMs(20);
    }
    return Error(ErrorId::kTimedOut).With("step", "waiting for the streams");
  }

  static Error RunFailed(int code) {
    return Error(ErrorId::kInternalError)
        .With("step", "mssql-cdc run")
        .With("exit_code", std::to_string(code));
  }

  Status DrainTheRest() {
    Say("\n4. The writer is done; one more run until everything is in (availableNow)");
    TRY(host_.shell->Run("USE shop; EXEC sys.sp_cdc_scan;"));
    TRY_ASSIGN(auto last, StartRun({"--trigger", "availableNow"}));
    const int code = last->Wait();
    if (code != 0) return RunFailed(code);
    return Unit{};
  }

  Status Tell(std::int64_t elapsed_ms) {
    Say(fmt::format("\n5. What is in the lake, after {}\n", Duration(elapsed_ms)));
    TRY(TellCounts());
    TRY(TellRows());
    TRY(TellHistory());
    TRY(TellLag());
    TellHowToOpen();
    return Unit{};
  }

  Status TellCounts() {
    std::vector<std::vector<std::string>> rows;
    for (const DemoTable& table : DemoTables()) {
      const std::string location = Location(table.name);
      TRY_ASSIGN(const auto state, lake_.State(location));
      if (!state) {
        rows.push_back({"bronze." + table.name, "no table", "", "", ""});
        continue;
      }
      TRY_ASSIGN(const std::int64_t count, lake_.RowCount(location));
      const std::string silver = dir_ + "/lake/silver/" + table.name;
      TRY_ASSIGN(const auto current, lake_.State(silver));
      std::string current_count = "no table";
      if (current) {
        TRY_ASSIGN(const std::int64_t silver_count, lake_.RowCount(silver));
        current_count = Grouped(silver_count);
      }
      rows.push_back({"bronze." + table.name, Grouped(count),
                      std::to_string(state->version), table.capture_instance,
                      current_count});
    }
    Say(TableText({"table", "rows", "version", "from", "rows of silver"}, rows, 40));
    return Unit{};
  }

  Status TellRows() {
    const std::vector<std::string> wanted{"_start_lsn", "_operation", "_commit_ts",
                                          "order_id",   "status",     "total",
                                          "_batch_id"};
    TRY_ASSIGN(const auto rows, LastRows(Location("orders"), wanted, 6));
    Say("The last changes of bronze.orders (1 delete, 2 insert, 3 before, 4 after):\n" +
        TableText(wanted, rows, 24));
    return Unit{};
  }

  // The last `count` rows of the table in LSN order, as text.
  Result<std::vector<std::vector<std::string>>> LastRows(
      const std::string& location, const std::vector<std::string>& wanted,
      std::size_t count) {
    TRY_ASSIGN(auto reader,
               lake_.Read(location, {.columns = wanted, .conditions = {}}));
    std::vector<std::vector<std::string>> rows;
    for (;;) {
      TRY_ASSIGN(const auto batch, reader->Next());
      if (!batch) break;
      for (std::int64_t row = 0; row < batch->row_count; ++row) {
        std::vector<std::string> cells;
        for (const auto& column : batch->columns)
          cells.push_back(CellText(*column, row));
        rows.push_back(std::move(cells));
      }
    }
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return row[0]; });
    if (rows.size() > count) {
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(count));
    }
    return rows;
  }

  Status TellHistory() {
    TRY_ASSIGN(const auto commits, lake_.History(Location("orders"), 0));
    std::vector<std::vector<std::string>> rows;
    const std::size_t first = commits.size() > 5 ? commits.size() - 5 : 0;
    for (std::size_t i = first; i < commits.size(); ++i) {
      rows.push_back({std::to_string(commits[i].version), commits[i].operation,
                      IsoMillis(commits[i].timestamp_ms * 1000),
                      commits[i].user_metadata.value_or("")});
    }
    Say("Its newest versions:\n" +
        TableText({"version", "operation", "at", "userMetadata"}, rows, 100));
    return Unit{};
  }

  Status TellLag() {
    const std::vector<std::string> wanted{
        "written_at", "app_id", "rows", "capture_lag_seconds", "ingestion_lag_seconds",
        "duration_ms"};
    TRY_ASSIGN(const auto rows, LastRows(dir_ + "/lake/facts", wanted, 5));
    Say("The newest facts (lag in seconds):\n" + TableText(wanted, rows, 26));
    return Unit{};
  }

  void TellHowToOpen() {
    const std::string orders = Location("orders");
    Say(
        fmt::format("Open it with\n"
                    "  Spark    spark.read.format(\"delta\").load(\"{0}\")\n"
                    "  Polars   polars.read_delta(\"{0}\")\n"
                    "  pandas   deltalake.DeltaTable(\"{0}\").to_pandas()\n"
                    "  DuckDB   t = deltalake.DeltaTable(\"{0}\").to_pyarrow_table(); "
                    "duckdb.sql(\"SELECT * FROM t\")\n",
                    orders));
  }

  std::string Location(const std::string& table) const {
    return dir_ + "/lake/bronze/" + table;
  }

  void Say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }

  const DemoArguments& arguments_;
  const std::string& program_;
  SystemClock clock_;
  Output output_;
  std::mutex mutex_;
  std::string dir_;
  Secret reader_password_;
  SimulatorHost host_;
  lake::DeltaLake lake_;
  std::atomic<std::int64_t> batch_count_{0};
  std::atomic<std::int64_t> error_count_{0};
  std::atomic<std::int64_t> snapshot_count_{0};
};

}  // namespace

int Demo(const DemoArguments& arguments, const std::string& program) {
  return Show(arguments, program).Run();
}

}  // namespace mssql_cdc::cli

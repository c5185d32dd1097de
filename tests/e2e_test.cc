// The product against the simulator in this process: TDS over a pipe, Delta on disk.
//
// Goal: what bronze says about every key equals the source after a snapshot, changes of
// every kind, restarts and a loss. Method: the simulator's steps (capture, cleanup) are
// called, never waited for; bronze is read through the Delta lake.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "cdc/cells.h"
#include "lake/delta_lake.h"
#include "net/pipe.h"
#include "runtime/stream.h"
#include "sim/engine/engine.h"
#include "sim/wire/server.h"

namespace mssql_cdc {
namespace {

class EndToEnd : public testing::Test {
 protected:
  EndToEnd()
      : directory_(testing::TempDir() + "mssql_cdc_e2e_" + std::to_string(::getpid())),
        clock_(1'795'161'600'000'000) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~EndToEnd() override { std::filesystem::remove_all(directory_); }

  void SetUp() override {
    sim::EngineOptions options;
    options.state_directory = directory_ + "/server";
    options.start_utc_us = 1'795'161'600'000'000;
    options.logins = {{"sa", Secret("Secret-1"), true, ""}};
    auto engine = sim::SimEngine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().Text();
    engine_ = std::move(engine).value();
    sim::wire::ServerOptions wire;
    wire.listen = false;
    wire.tls_mode = sim::wire::TlsMode::kNotSupported;
    auto server = sim::wire::Server::Start(wire, engine_);
    ASSERT_TRUE(server.ok()) << server.error().Text();
    server_ = std::move(server).value();
    ASSERT_NO_FATAL_FAILURE(Sql("CREATE DATABASE shop", "master"));
    ASSERT_NO_FATAL_FAILURE(Sql("EXEC sys.sp_cdc_enable_db"));
    ASSERT_NO_FATAL_FAILURE(
        Sql("CREATE TABLE dbo.orders (id int NOT NULL PRIMARY KEY, note nvarchar(50) "
            "NULL, total decimal(18, 2) NULL)"));
    ASSERT_NO_FATAL_FAILURE(Sql(
        "INSERT INTO dbo.orders VALUES (1, N'one', 1.50), (2, N'zwei', 2), (9, NULL, "
        "NULL)"));
    ASSERT_NO_FATAL_FAILURE(
        Sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = "
            "N'orders', @role_name = NULL"));
    Capture();

    config_.capture_instance = "dbo_orders";
    config_.target = config_.target_location = directory_ + "/bronze";
    config_.facts_table = config_.facts_location = directory_ + "/facts";
    config_.app_id = "orders-v1";
    config_.checkpoint = directory_ + "/checkpoint";
    config_.bootstrap = true;
    config_.trigger = {runtime::Trigger::Kind::kAvailableNow, 0};
    config_.max_commits_per_batch = 2;
    config_.num_partitions = 2;
    config_.retry_count_max = 0;
  }

  void Sql(const std::string& text, const std::string& database = "shop") {
    const Status status = engine_->Run(database, text);
    ASSERT_TRUE(status.ok()) << text << ": " << status.error().Text();
  }
  void Capture() {
    engine_->AdvanceClock(1000);
    const auto captured = engine_->CaptureNow("shop");
    ASSERT_TRUE(captured.ok()) << captured.error().Text();
  }

  Status Run() {
    net::InMemoryDialer dialer([this](const std::string&, std::uint16_t) {
      auto [client, server] = net::MakePipe();
      server_->Serve(std::move(server));
      return Result<std::unique_ptr<net::Transport>>(std::move(client));
    });
    sqlserver::ConnectOptions connect;
    connect.host = "simulator";
    connect.database = "shop";
    connect.user = "sa";
    connect.password = Secret("Secret-1");
    connect.encrypt = sqlserver::Encrypt::kLoginOnly;
    runtime::ServerSessions sessions(connect, dialer, clock_);
    lake::DeltaLake lake;
    auto stream =
        runtime::Stream::Open(config_, {&sessions, &lake, &clock_, nullptr, 1});
    if (!stream.ok()) return std::move(stream).error();
    return stream.value()->Run();
  }

  // The newest image of every key, as "note"; rows come in append order.
  std::map<std::int64_t, std::string> Folded() {
    std::map<std::int64_t, std::string> keys;
    row_count_ = 0;
    lake::DeltaLake lake;
    auto reader = lake.Read(config_.target_location, {});
    EXPECT_TRUE(reader.ok());
    std::map<std::int64_t, std::string> newest;
    while (reader.ok()) {
      auto batch = reader.value()->Next();
      EXPECT_TRUE(batch.ok());
      if (!batch.ok() || !batch.value()) break;
      for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
        const cdc::RowView row(*batch.value(), i);
        ++row_count_;
        const std::int64_t id = *row.Integer("id").value();
        const std::int64_t operation = *row.Integer("_operation").value();
        const std::string order =
            *row.Text("_start_lsn").value() +
            std::to_string(row.Integer("_command_id").value().value_or(0)) +
            std::to_string(operation);
        if (newest[id] > order) continue;
        newest[id] = order;
        keys[id] = row.Text("note").value().value_or("NULL");
        if (operation == 1 || operation == 3) keys.erase(id);
      }
    }
    return keys;
  }

  const std::string directory_;
  ManualClock clock_;
  std::shared_ptr<sim::SimEngine> engine_;
  std::unique_ptr<sim::wire::Server> server_;
  runtime::StreamConfig config_;
  std::int64_t row_count_ = 0;
};

using Keys = std::map<std::int64_t, std::string>;

TEST_F(EndToEnd, BronzeFollowsTheSourceFromTheSnapshotOn) {
  Status status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_EQ(Folded(), (Keys{{1, "one"}, {2, "zwei"}, {9, "NULL"}}));
  EXPECT_EQ(row_count_, 3);

  Sql("INSERT INTO dbo.orders VALUES (10, N'日本語', 3)");
  Sql("UPDATE dbo.orders SET note = N'deux' WHERE id = 2");
  Sql("DELETE FROM dbo.orders WHERE id = 1");
  Sql("INSERT INTO dbo.orders VALUES (11, N'x', 3), (12, N'y', 3)");
  Capture();
  status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_EQ(Folded(),
            (Keys{{2, "deux"}, {9, "NULL"}, {10, "日本語"}, {11, "x"}, {12, "y"}}));
  EXPECT_EQ(row_count_, 3 + 1 + 2 + 1 + 2);

  // Nothing is written twice.
  status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  Folded();
  EXPECT_EQ(row_count_, 9);
}

TEST_F(EndToEnd, ASmallBatchCostsTwoRequests) {
  ASSERT_TRUE(Run().ok());
  config_.max_commits_per_batch = 1;
  const auto requests = [this] { return server_->counters().requests.load(); };
  std::uint64_t before = requests();
  ASSERT_TRUE(Run().ok());
  const std::uint64_t idle_run = requests() - before;
  for (int i = 0; i < 5; ++i) {
    Sql("UPDATE dbo.orders SET total = " + std::to_string(i) + " WHERE id = 2");
  }
  Capture();
  before = requests();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(requests() - before, idle_run + 2 * 5);
}

// Option columns: some of the columns, in another order, in other types and spellings,
// on the way of the snapshot and on that of the changes.
TEST_F(EndToEnd, OptionColumnsDecidesWhatIsWritten) {
  config_.columns = "TOTAL STRING, id BIGINT";
  ASSERT_TRUE(Run().ok());
  Sql("INSERT INTO dbo.orders VALUES (10, N'left out', 12.5)");
  Capture();
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  lake::DeltaLake lake;
  const auto table = lake.State(config_.target_location);
  ASSERT_TRUE(table.ok() && table.value());
  const std::vector<columns::Field>& fields = table.value()->schema.fields;
  ASSERT_EQ(fields.size(), 6u + 2u + 3u);
  EXPECT_EQ(fields[6].name, "TOTAL");
  EXPECT_EQ(fields[6].type.kind, columns::Kind::kUtf8);
  EXPECT_EQ(fields[7].name, "id");
  EXPECT_EQ(fields[7].type.kind, columns::Kind::kInt64);
  std::map<std::int64_t, std::string> totals;
  auto reader = lake.Read(config_.target_location, {});
  ASSERT_TRUE(reader.ok());
  while (true) {
    auto batch = reader.value()->Next();
    ASSERT_TRUE(batch.ok());
    if (!batch.value()) break;
    for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
      const cdc::RowView row(*batch.value(), i);
      totals[*row.Integer("id").value()] = row.Text("TOTAL").value().value_or("NULL");
    }
  }
  const std::map<std::int64_t, std::string> expected = {
      {1, "1.50"}, {2, "2.00"}, {9, "NULL"}, {10, "12.50"}};
  EXPECT_EQ(totals, expected);
}

TEST_F(EndToEnd, OptionColumnsIsCheckedBeforeAnythingIsRead) {
  const struct {
    const char* columns;
    ErrorId error;
    const char* fact;
    const char* value;
  } kRows[] = {
      {"id INT, nota STRING", ErrorId::kOptionInvalid, "nearest", "note"},
      {"id BOOLEAN", ErrorId::kOptionInvalid, "reason",
       "values could be altered without notice"},
      {"total BINARY", ErrorId::kOptionInvalid, "reason",
       "there is no such conversion"},
      {"id INT, ID INT", ErrorId::kOptionInvalid, "near", "ID"},
      {"id INT, _chunk INT", ErrorId::kOptionInvalid, "near", "_chunk"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.columns);
    config_.columns = row.columns;
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), row.error) << status.error().Text();
    EXPECT_EQ(status.error().Fact(row.fact), row.value) << status.error().Text();
    EXPECT_FALSE(std::filesystem::exists(config_.target_location));
  }
}

// note 'one' is no number. Nothing of the batch is written, and the error names the
// place, not the value.
TEST_F(EndToEnd, AValueThatDoesNotFitStopsTheStreamAtItsPlace) {
  config_.columns = "id INT, note INT";
  Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kValueNotConvertible);
  EXPECT_EQ(status.error().Fact("column"), "note");
  EXPECT_TRUE(status.error().Fact("start_lsn")->starts_with("0x"));
  EXPECT_EQ(status.error().Text().find("one"), status.error().Text().npos);
  Folded();
  EXPECT_EQ(row_count_, 0);

  config_.bootstrap = false;
  config_.target = config_.target_location = directory_ + "/changes";
  config_.checkpoint = directory_ + "/changes_checkpoint";
  Sql("INSERT INTO dbo.orders VALUES (20, N'7', 0), (21, N'canary', 0)");
  Capture();
  status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kValueNotConvertible);
  EXPECT_EQ(status.error().Text().find("canary"), status.error().Text().npos);
  Folded();
  EXPECT_EQ(row_count_, 0);
}

// A type without a counterpart is an error that shows the columns to set; with them the
// stream runs. A computed column may be named, and is NULL.
TEST_F(EndToEnd, AnErrorShowsTheColumnsThatCanBeRead) {
  Sql("CREATE TABLE dbo.odd (id int NOT NULL PRIMARY KEY, v sql_variant NULL, "
      "price money NULL, twice AS (id * 2), [a b] varchar(9) NULL)");
  Sql("INSERT INTO dbo.odd (id, v, price, [a b]) VALUES (1, 5, 2.5, 'x')");
  Sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'odd', "
      "@role_name = NULL");
  Capture();
  config_.capture_instance = "dbo_odd";
  Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kColumnNotReadable);
  EXPECT_EQ(status.error().Fact("type"), "sql_variant");
  const std::string cure(*status.error().Fact("set_columns"));
  EXPECT_EQ(cure, "`id` INT, `price` DECIMAL(19,4), `a b` STRING");
  config_.columns = cure + ", twice INT";
  Sql("INSERT INTO dbo.odd (id, v, price, [a b]) VALUES (2, N'z', 3, 'y')");
  Capture();
  status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  lake::DeltaLake lake;
  auto reader = lake.Read(config_.target_location, {});
  ASSERT_TRUE(reader.ok());
  std::int64_t row_count = 0;
  while (true) {
    auto batch = reader.value()->Next();
    ASSERT_TRUE(batch.ok());
    if (!batch.value()) break;
    for (std::int64_t i = 0; i < batch.value()->row_count; ++i, ++row_count) {
      const cdc::RowView row(*batch.value(), i);
      EXPECT_EQ(row.Integer("twice").value(), std::nullopt);
      EXPECT_TRUE(row.Text("a b").value().has_value());
    }
  }
  EXPECT_EQ(row_count, 2);
}

// The commit times of inserted rows in bronze, by key.
std::map<std::int64_t, std::string> CommitTimes(const std::string& location) {
  std::map<std::int64_t, std::string> times;
  lake::DeltaLake lake;
  auto reader = lake.Read(location, {});
  EXPECT_TRUE(reader.ok());
  while (reader.ok()) {
    auto batch = reader.value()->Next();
    EXPECT_TRUE(batch.ok());
    if (!batch.ok() || !batch.value()) break;
    for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
      const cdc::RowView row(*batch.value(), i);
      if (*row.Integer("_operation").value() != 2) continue;
      times[*row.Integer("id").value()] = IsoMillis(*row.Integer("_commit_ts").value());
    }
  }
  return times;
}

// The server's clock is set to what a clock in Paris shows. Each commit is read in a
// batch of its own or with all others; the times are the same.
TEST_F(EndToEnd, TheHourThatIsThereTwiceFollowsTheOrderOfTheCommits) {
  const std::pair<const char*, const char*> kCommits[] = {
      {"2026-10-24T12:00:00", "2026-10-24T10:00:00.000"},
      {"2026-10-25T01:30:00", "2026-10-24T23:30:00.000"},
      {"2026-10-25T02:10:00", "2026-10-25T00:10:00.000"},
      {"2026-10-25T02:50:00", "2026-10-25T00:50:00.000"},
      {"2026-10-25T02:05:00", "2026-10-25T01:05:00.000"},  // It went back at 03:00.
      {"2026-10-25T02:50:30", "2026-10-25T01:50:30.000"},
      {"2026-10-25T03:05:00", "2026-10-25T02:05:00.000"},
      {"2026-10-25T12:00:00", "2026-10-25T11:00:00.000"},
      {"2027-03-28T01:59:00", "2027-03-28T00:59:00.000"},
      {"2027-03-28T03:01:00", "2027-03-28T01:01:00.000"},  // It went forward at 02:00.
  };
  std::map<std::int64_t, std::string> expected;
  for (const auto& [local, utc] : kCommits) {
    engine_->SetClock(*ParseIsoUs(local));
    const auto id = static_cast<std::int64_t>(100 + expected.size());
    Sql("INSERT INTO dbo.orders VALUES (" + std::to_string(id) + ", N'x', 0)");
    Capture();
    expected[id] = utc;
  }
  config_.bootstrap = false;
  config_.source_time_zone = "Romance Standard Time";
  for (const std::int64_t commit_count : {1, 100}) {
    SCOPED_TRACE(commit_count);
    const std::string suffix = std::to_string(commit_count);
    config_.max_commits_per_batch = commit_count;
    config_.target = config_.target_location = directory_ + "/zone" + suffix;
    config_.checkpoint = directory_ + "/zone_checkpoint" + suffix;
    config_.app_id = "zone" + suffix;
    const Status status = Run();
    ASSERT_TRUE(status.ok()) << status.error().Text();
    EXPECT_EQ(CommitTimes(config_.target_location), expected);
  }
}

TEST_F(EndToEnd, ChangesThatCleanupRemovedUnreadStopTheStream) {
  ASSERT_TRUE(Run().ok());
  Sql("DELETE FROM dbo.orders WHERE id = 1");
  Capture();
  engine_->AdvanceClock(10 * 60'000);
  Sql("DELETE FROM dbo.orders WHERE id = 2");
  Capture();
  ASSERT_TRUE(engine_->MoveLowWaterMark("shop", 1).ok());
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kDataLoss) << status.error().Text();
  Folded();
  EXPECT_EQ(row_count_, 3);
}

}  // namespace
}  // namespace mssql_cdc

// The product's client against the simulator over a network with faults.
//
// Goal: whatever happens on the way, the client gives the rows it would have given, or
// an error of the catalogue; never other rows, never a hang. Method: a table of faults,
// each at every place it can be at; expectations are the rows read without any.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <span>

#include "base/text.h"
#include "net/faulty.h"
#include "net/pipe.h"
#include "sim/engine/engine.h"
#include "sim/wire/fault_transport.h"
#include "sim/wire/server.h"
#include "sqlserver/session.h"

namespace mssql_cdc {
namespace {

constexpr std::int64_t kStartUs = 1'795'161'600'000'000;
constexpr char kQuery[] =
    "SELECT id, note, total, raw FROM dbo.t ORDER BY id; SELECT COUNT(*) AS n FROM "
    "dbo.t";
constexpr int kRowCount = 40;

// What a reply said: its rows as text, or the error it ended with.
struct Outcome {
  std::vector<std::string> rows;
  std::optional<Error> error;
};

// A cell's bytes as they lie in its column.
std::string CellText(const columns::Column& column, std::int64_t row) {
  const auto index = static_cast<std::size_t>(row);
  if (column.null_count > 0 &&
      (column.validity.data()[index / 8] >> (index % 8) & 1) == 0) {
    return "NULL";
  }
  std::size_t begin = 0;
  std::size_t size = 0;
  switch (column.type.kind) {
    case columns::Kind::kUtf8:
    case columns::Kind::kBinary: {
      std::int32_t bounds[2];
      std::memcpy(bounds, column.offsets.data() + index * 4, sizeof(bounds));
      begin = static_cast<std::size_t>(bounds[0]);
      size = static_cast<std::size_t>(bounds[1] - bounds[0]);
      break;
    }
    case columns::Kind::kDecimal128:
      size = 16;
      begin = index * size;
      break;
    default:
      size = 4;
      begin = index * size;
      break;
  }
  return HexUpper(std::span(column.values.data() + begin, size));
}

class FaultyWire : public testing::Test {
 protected:
  FaultyWire()
      : directory_(testing::TempDir() + "mssql_cdc_faulty_" +
                   std::to_string(::getpid())),
        clock_(kStartUs) {
    std::filesystem::remove_all(directory_);
  }
  ~FaultyWire() override {
    server_ = nullptr;
    engine_ = nullptr;
    std::filesystem::remove_all(directory_);
  }

  void SetUp() override {
    sim::EngineOptions options;
    options.state_directory = directory_;
    options.start_utc_us = kStartUs;
    options.default_database = "shop";
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
    Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(60) NULL, "
        "total "
        "decimal(18, 2) NULL, raw varbinary(max) NULL)");
    for (int i = 0; i < kRowCount; ++i) {
      const std::string id = std::to_string(i);
      Sql("INSERT INTO dbo.t VALUES (" + id + ", " +
          (i % 5 == 0 ? "NULL" : "N'note " + id + "'") + ", " + id + ".25, " +
          (i % 7 == 0 ? "NULL"
                      : "0x" + std::string(static_cast<std::size_t>(2 * i), 'A')) +
          ")");
    }
    healthy_ = Read({});
    ASSERT_FALSE(healthy_.error) << healthy_.error->Text();
    ASSERT_EQ(healthy_.rows.size(), kRowCount + 1u);
  }

  void Sql(const std::string& text) {
    const Status status = engine_->Run("shop", text);
    ASSERT_TRUE(status.ok()) << text << ": " << status.error().Text();
  }

  using Wrap =
      std::function<std::unique_ptr<net::Transport>(std::unique_ptr<net::Transport>)>;
  struct Ends {
    Wrap client;  // Absent: as it is.
    Wrap server;
    std::size_t packet_size_bytes = 4096;
  };

  Result<std::unique_ptr<sqlserver::Session>> Open(const Ends& ends) {
    dialer_ = std::make_unique<net::InMemoryDialer>(
        [this, ends](const std::string&, std::uint16_t) {
          auto [client, server] = net::MakePipe();
          if (ends.server) server = ends.server(std::move(server));
          if (ends.client) client = ends.client(std::move(client));
          server_->Serve(std::move(server));
          return Result<std::unique_ptr<net::Transport>>(std::move(client));
        });
    sqlserver::ConnectOptions connect;
    connect.host = "simulator";
    connect.database = "shop";
    connect.user = "sa";
    connect.password = Secret("Secret-1");
    connect.encrypt = sqlserver::Encrypt::kLoginOnly;
    connect.packet_size_bytes = static_cast<std::uint16_t>(ends.packet_size_bytes);
    return sqlserver::Session::Open(connect, *dialer_, clock_);
  }

  // Reads `sql` to its end; `between` runs before each batch is asked for.
  Outcome ReadOn(sqlserver::Session& session, const std::string& sql,
                 const std::function<void(std::size_t)>& between = nullptr) {
    Outcome outcome;
    sqlserver::BatchLimits limits;
    limits.row_count_max = 3;
    auto reply = session.Execute({sql, {}}, limits);
    if (!reply.ok()) {
      outcome.error = std::move(reply).error();
      return outcome;
    }
    std::size_t step = 0;
    for (;;) {
      auto result = reply.value()->NextResult();
      if (!result.ok()) outcome.error = std::move(result).error();
      if (outcome.error || !result.value()) break;
      for (;;) {
        if (between) between(step++);
        auto batch = reply.value()->NextBatch();
        if (!batch.ok()) outcome.error = std::move(batch).error();
        if (outcome.error || !batch.value()) break;
        Append(*batch.value(), outcome.rows);
      }
      if (outcome.error) break;
    }
    const Status finished = reply.value()->Finish();
    if (!finished.ok() && !outcome.error) outcome.error = finished.error();
    return outcome;
  }
  static void Append(const columns::RecordBatch& batch,
                     std::vector<std::string>& rows) {
    for (std::int64_t row = 0; row < batch.row_count; ++row) {
      std::string line;
      for (std::size_t i = 0; i < batch.columns.size(); ++i) {
        line += CellText(*batch.columns[i], row) + "|";
      }
      rows.push_back(std::move(line));
    }
  }

  Outcome Read(const Ends& ends, const std::string& sql = kQuery) {
    auto session = Open(ends);
    Outcome outcome;
    if (!session.ok()) {
      outcome.error = std::move(session).error();
      return outcome;
    }
    return ReadOn(*session.value(), sql);
  }

  // The same rows, or an error after a beginning of them.
  void ExpectSameOrError(const Outcome& outcome, const std::string& replay) {
    if (!outcome.error) {
      EXPECT_EQ(outcome.rows, healthy_.rows) << replay;
      return;
    }
    EXPECT_FALSE(outcome.error->Text().empty()) << replay;
    ASSERT_LE(outcome.rows.size(), healthy_.rows.size()) << replay;
    for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
      EXPECT_EQ(outcome.rows[i], healthy_.rows[i]) << replay;
    }
  }

  std::string directory_;
  ManualClock clock_;
  ManualClock server_clock_{kStartUs};  // Of the server's faults.
  std::shared_ptr<sim::SimEngine> engine_;
  std::unique_ptr<sim::wire::Server> server_;
  std::unique_ptr<net::InMemoryDialer> dialer_;
  Outcome healthy_;
};

// A connection that ends after every number of bytes, orderly or not, on either side.
TEST_F(FaultyWire, ACutAnywhereIsAnErrorOrTheSameRows) {
  std::int64_t errors = 0;
  for (std::uint64_t at = 0; at < 6000; at += 13) {
    for (int kind = 0; kind < 3; ++kind) {
      net::TransportFaults faults;
      if (kind == 0) faults.lost_after_read_bytes = at;
      if (kind == 1) faults.ended_after_read_bytes = at;
      if (kind == 2) faults.lost_after_written_bytes = at;
      Ends ends;
      ends.client = [&](std::unique_ptr<net::Transport> lower) {
        return net::MakeFaulty(std::move(lower), faults);
      };
      const Outcome outcome = Read(ends);
      ExpectSameOrError(outcome,
                        "cut " + std::to_string(kind) + " at " + std::to_string(at));
      if (outcome.error) {
        ++errors;
        EXPECT_TRUE(outcome.error->id() == ErrorId::kConnectionLost ||
                    outcome.error->id() == ErrorId::kTdsMalformed ||
                    outcome.error->id() == ErrorId::kEncryptionRefused)
            << outcome.error->Text();
      }
    }
  }
  EXPECT_GT(errors, 100);
}

// Reads of one byte, and every size of a read near the sizes of packets.
TEST_F(FaultyWire, PiecesOfAnySizeChangeNothing) {
  for (const std::size_t size : {1, 2, 3, 7, 8, 9, 511, 512, 513}) {
    Ends ends;
    ends.client = [&](std::unique_ptr<net::Transport> lower) {
      net::TransportFaults faults;
      faults.read_size_bytes_max = size;
      return net::MakeFaulty(std::move(lower), faults);
    };
    const Outcome outcome = Read(ends);
    ASSERT_FALSE(outcome.error) << outcome.error->Text();
    EXPECT_EQ(outcome.rows, healthy_.rows) << size;
  }
}

// A packet's border at every byte of the rows: with packets of 512 bytes, text of every
// length in front shifts the rows through the packet, byte by byte.
TEST_F(FaultyWire, PacketBordersAtEveryByteChangeNothing) {
  Ends ends;
  ends.packet_size_bytes = 512;
  auto session = Open(ends);
  ASSERT_TRUE(session.ok()) << session.error().Text();
  for (int shift = 0; shift <= 512; ++shift) {
    const Outcome outcome =
        ReadOn(*session.value(), "SELECT CAST('" +
                                     std::string(static_cast<std::size_t>(shift), 'x') +
                                     "' AS varchar(600)) AS pad; " + kQuery);
    ASSERT_FALSE(outcome.error) << outcome.error->Text();
    ASSERT_EQ(outcome.rows.size(), healthy_.rows.size() + 1);
    EXPECT_TRUE(std::equal(healthy_.rows.begin(), healthy_.rows.end(),
                           outcome.rows.begin() + 1))
        << shift;
  }
}

// The server's plan of faults, by seed: what `mssql-cdc simulate --fault-seed` does.
TEST_F(FaultyWire, ASeededPlanGivesErrorsOrTheSameRows) {
  std::int64_t errors = 0;
  std::int64_t whole = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Ends ends;
    ends.server = [&](std::unique_ptr<net::Transport> lower) {
      Dice dice(seed);
      sim::wire::FaultPlan plan = sim::wire::DrawFaults(dice);
      // What the login and one reply take, so that cuts and drops meet them.
      if (plan.cut_after_bytes) *plan.cut_after_bytes %= 4000;
      if (plan.drop_after_bytes) *plan.drop_after_bytes %= 4000;
      return sim::wire::WithFaults(std::move(lower), plan, server_clock_);
    };
    const Outcome outcome = Read(ends);
    ExpectSameOrError(outcome, "seed " + std::to_string(seed));
    ++(outcome.error ? errors : whole);
  }
  EXPECT_GT(errors, 50);
  EXPECT_GT(whole, 100);
}

// An error after any number of rows reaches the reader as that error.
TEST_F(FaultyWire, ErrorsAfterRowsAreErrors) {
  for (int rows = 0; rows <= kRowCount; ++rows) {
    for (const int number : {1205, 1222}) {
      Sql("EXEC sim.fail_reads " + std::to_string(number) + ", 1, " +
          std::to_string(rows) + ", 'dbo.t'");
      const Outcome outcome = Read({}, "SELECT id, note, total, raw FROM dbo.t");
      ASSERT_TRUE(outcome.error) << rows;
      EXPECT_EQ(outcome.error->Fact("number"), std::to_string(number)) << rows;
    }
  }
}

// Numbers that mean "come again" at login: an error that says so.
TEST_F(FaultyWire, TransientNumbersAtLoginAreToldAsSuch) {
  for (const int number : {40613, 40197, 40501, 49918, 49919, 49920, 10928, 10929, 4221,
                           42108, 42109, 40143, 40540}) {
    Sql("EXEC sim.fail_logins " + std::to_string(number));
    const Outcome outcome = Read({});
    ASSERT_TRUE(outcome.error) << number;
    EXPECT_TRUE(outcome.error->id() == ErrorId::kDatabaseUnavailable ||
                outcome.error->id() == ErrorId::kServerBusy)
        << number << ": " << outcome.error->Text();
    EXPECT_FALSE(Read({}).error) << number;
  }
}

// An attention at any moment: stopped or whole, and the session goes on or is closed.
TEST_F(FaultyWire, AnAttentionAtAnyMomentStopsOrComesTooLate) {
  auto session = Open({});
  ASSERT_TRUE(session.ok());
  // Far more rows than fit between the two ends: an attention is never too late.
  const std::string endless =
      "SELECT a.id FROM dbo.t a CROSS JOIN dbo.t b CROSS JOIN dbo.t c CROSS JOIN dbo.t "
      "d";
  for (std::size_t at = 0; at < 20; ++at) {
    for (const bool is_endless : {false, true}) {
      if (!session.value()->clean()) {
        session = Open({});
        ASSERT_TRUE(session.ok());
      }
      const Outcome outcome = ReadOn(*session.value(), is_endless ? endless : kQuery,
                                     [&](std::size_t step) {
                                       if (step == at) session.value()->Cancel();
                                     });
      if (!is_endless) {
        ExpectSameOrError(outcome, "attention at " + std::to_string(at));
        continue;
      }
      ASSERT_TRUE(outcome.error) << at;
      EXPECT_EQ(outcome.error->id(), ErrorId::kStopped) << outcome.error->Text();
    }
  }
  // The session that was asked to stop still answers.
  if (!session.value()->clean()) session = Open({});
  const Outcome after = ReadOn(*session.value(), kQuery);
  EXPECT_EQ(after.rows, healthy_.rows);
}

}  // namespace
}  // namespace mssql_cdc

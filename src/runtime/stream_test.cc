#include "runtime/stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "cdc/cells.h"
#include "lake/memory_lake.h"
#include "runtime/faulty_lake_test.h"
#include "runtime/files.h"
#include "runtime/scripted_server_test.h"

namespace mssql_cdc::runtime {
namespace {

constexpr char kTarget[] = "lake/orders";
constexpr char kFacts[] = "lake/facts";

class StreamTest : public testing::Test {
 protected:
  StreamTest() {
    directory_ = testing::TempDir() + "mssql_cdc_stream_" + std::to_string(::getpid());
    Fresh();
  }
  ~StreamTest() override { std::filesystem::remove_all(directory_); }

  void Fresh() {
    std::filesystem::remove_all(directory_);
    config_ = {};
    config_.capture_instance = "dbo_orders";
    config_.target = kTarget;
    config_.target_location = kTarget;
    config_.app_id = "orders-v1";
    config_.checkpoint = directory_;
    config_.facts_table = kFacts;
    config_.facts_location = kFacts;
    config_.bootstrap = true;
    config_.trigger = {Trigger::Kind::kAvailableNow, 0};
    config_.max_commits_per_batch = 2;
    config_.num_partitions = 3;
    config_.retry_count_max = 0;
    server_ = {};
    memory_ = std::make_unique<lake::MemoryLake>();
    server_.Commit(10, {{2, 1, "a"}, {2, 2, "b"}, {2, 5, "e"}});
  }

  Status RunOn(lake::Lake& lake) {
    ScriptedSessions sessions(server_);
    ManualClock clock(ScriptedTimeUs(200));
    Result<std::unique_ptr<Stream>> stream =
        Stream::Open(config_, {&sessions, &lake, &clock, nullptr, 1});
    if (!stream.ok()) return std::move(stream).error();
    return stream.value()->Run();
  }
  Status Run() { return RunOn(*memory_); }

  // Rows as "lsn operation id note batch snapshot", with the LSN's last byte.
  std::vector<std::string> Bronze() {
    std::vector<std::string> lines;
    for (const columns::RecordBatch& batch : ReadTable(kTarget)) {
      for (std::int64_t i = 0; i < batch.row_count; ++i) {
        const cdc::RowView row(batch, i);
        const auto number = [&](const char* name) {
          const auto value = row.Integer(name).value();
          return value ? std::to_string(*value) : "-";
        };
        const cdc::Lsn lsn = cdc::Lsn::Parse(*row.Text("_start_lsn").value()).value();
        lines.push_back(std::to_string(lsn.bytes[9]) + " " + number("_operation") +
                        " " + number("id") + " " + *row.Text("note").value() + " " +
                        number("_batch_id") + " " +
                        (row.Text("_snapshot").value() ? "snapshot" : "change"));
      }
    }
    return lines;
  }
  // Rows as "event batch rows end".
  std::vector<std::string> Facts() {
    std::vector<std::string> lines;
    for (const columns::RecordBatch& batch : ReadTable(kFacts)) {
      for (std::int64_t i = 0; i < batch.row_count; ++i) {
        const cdc::RowView row(batch, i);
        const auto number = [&](const char* name) {
          const auto value = row.Integer(name).value();
          return value ? std::to_string(*value) : "-";
        };
        const auto end = row.Text("end_lsn").value();
        const cdc::Lsn lsn = end ? cdc::Lsn::Parse(*end).value() : cdc::Lsn{};
        lines.push_back(row.Text("event").value().value_or("batch") + " " +
                        number("batch_id") + " " + number("rows") + " " +
                        std::to_string(lsn.bytes[9]));
      }
    }
    return lines;
  }
  std::vector<columns::RecordBatch> ReadTable(const char* location) {
    std::vector<columns::RecordBatch> batches;
    auto reader = memory_->Read(location, {});
    if (!reader.ok()) return batches;
    while (true) {
      auto batch = reader.value()->Next();
      EXPECT_TRUE(batch.ok());
      if (!batch.ok() || !batch.value()) return batches;
      batches.push_back(*std::move(batch).value());
    }
  }

  std::string directory_;
  StreamConfig config_;
  ScriptedServer server_;
  std::unique_ptr<lake::MemoryLake> memory_;
};

const std::vector<std::string> kSnapshotRows = {
    "10 0 1 a - snapshot", "10 0 2 b - snapshot", "10 0 5 e - snapshot"};

std::vector<std::string> SortedFirst(std::vector<std::string> lines,
                                     std::size_t count) {
  std::sort(lines.begin(),
            lines.begin() + static_cast<std::ptrdiff_t>(std::min(count, lines.size())));
  return lines;
}

std::vector<std::string> Plus(std::vector<std::string> a, std::vector<std::string> b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST_F(StreamTest, ASnapshotThenChangesInBatchesThatEndAtCommits) {
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(SortedFirst(Bronze(), 3), kSnapshotRows);
  server_.Commit(11, {{2, 7, "g"}});
  server_.Commit(12, {{3, 7, "g"}, {4, 7, "G"}, {1, 1, "a"}});
  server_.Commit(13, {});
  server_.Commit(14, {{2, 9, "i"}});
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_EQ(SortedFirst(Bronze(), 3),
            Plus(kSnapshotRows,
                 {"11 2 7 g 0 change", "12 3 7 g 0 change", "12 4 7 G 0 change",
                  "12 1 1 a 0 change", "14 2 9 i 1 change"}));
  EXPECT_EQ(Facts(),
            (std::vector<std::string>{"snapshot_open - 0 10", "bootstrap - 3 10",
                                      "batch 0 4 12", "batch 1 1 14"}));
  // Again, with nothing new.
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Bronze().size(), 8u);
  EXPECT_EQ(Facts().size(), 4u);
}

TEST_F(StreamTest, ASmallBatchTakesTwoRoundTripsAndNoLogin) {
  ASSERT_TRUE(Run().ok());
  for (std::uint8_t lsn = 11; lsn <= 20; ++lsn) server_.Commit(lsn, {{2, lsn, "x"}});
  const std::int64_t login_count = server_.login_count;
  config_.max_commits_per_batch = 1;
  const std::int64_t before = server_.request_count;
  ASSERT_TRUE(Run().ok());
  const std::int64_t ten_batches = server_.request_count - before;
  EXPECT_EQ(server_.login_count, login_count + 1);
  // The run's own questions do not depend on the number of batches.
  const std::int64_t again = server_.request_count;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(ten_batches - (server_.request_count - again), 20);
}

TEST_F(StreamTest, AnEmptyTablesSnapshotIsFoundAgainByItsFactsRow) {
  server_.table.clear();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Bronze(), std::vector<std::string>{});
  EXPECT_EQ(Facts().back(), "bootstrap - 0 10");
  std::filesystem::remove_all(directory_);
  server_.Commit(11, {{2, 7, "g"}});
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Bronze(), std::vector<std::string>{"11 2 7 g 0 change"});
}

// Goal: a run that dies on either side of any call of the lake, and of any run after
// it, leaves what an undisturbed one leaves. Method: fail call n, run again until a run
// gets through, compare; for every n of a whole scenario.
TEST_F(StreamTest, KilledAtAnyCallOfTheLakeItEndsTheSame) {
  const std::vector<std::string> bronze =
      Plus(kSnapshotRows, {"11 2 7 g 0 change", "12 3 7 g 0 change",
                           "12 4 7 G 0 change", "14 2 9 i 1 change"});
  std::int64_t kill_count = 0;
  for (const bool after : {false, true}) {
    for (std::int64_t n = 0;; ++n) {
      SCOPED_TRACE((after ? "after call " : "before call ") + std::to_string(n));
      Fresh();
      FaultyLake lake(*memory_);
      (after ? lake.fail_after : lake.fail_before) = n;
      bool killed = false;
      const auto run_through = [&] {
        Status status = RunOn(lake);
        for (int i = 0; !status.ok() && i < 2; ++i) {
          ASSERT_EQ(status.error().id(), ErrorId::kLakeFailed) << status.error().Text();
          killed = true;
          status = RunOn(lake);
        }
        ASSERT_TRUE(status.ok()) << status.error().Text();
      };
      run_through();
      server_.Commit(11, {{2, 7, "g"}});
      server_.Commit(12, {{3, 7, "g"}, {4, 7, "G"}});
      server_.Commit(13, {});
      server_.Commit(14, {{2, 9, "i"}});
      run_through();
      EXPECT_EQ(SortedFirst(Bronze(), 3), bronze);
      std::vector<std::string> facts = Facts();
      // A snapshot may have been opened more than once; the rest is there once.
      std::erase(facts, "snapshot_open - 0 10");
      ASSERT_EQ(facts.size(), 3u);
      EXPECT_TRUE(facts[0] == "bootstrap - 3 10" || facts[0] == "bootstrap - - 10");
      EXPECT_EQ(facts[1], "batch 0 3 12");
      EXPECT_EQ(facts[2], "batch 1 1 14");
      if (!killed) break;
      ++kill_count;
    }
  }
  EXPECT_GT(kill_count, 20);
}

TEST_F(StreamTest, ALostReplyIsTriedAgainWithoutDoubling) {
  config_.retry_count_max = 3;
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {{2, 7, "g"}});
  memory_->LoseNextReply();
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.error().Text();
  EXPECT_EQ(SortedFirst(Bronze(), 3), Plus(kSnapshotRows, {"11 2 7 g 0 change"}));
  EXPECT_EQ(Facts().back(), "batch 0 1 11");
}

TEST_F(StreamTest, APendingBatchIsReplayedToItsEndWhateverTheLimitSays) {
  ASSERT_TRUE(Run().ok());
  for (std::uint8_t lsn = 11; lsn <= 14; ++lsn) server_.Commit(lsn, {{2, lsn, "x"}});
  FaultyLake lake(*memory_);
  // Batch 0 plans to 12; its first look-up of a txn fails after offsets/0 was written.
  Status status = Unit{};
  for (std::int64_t n = 0; n < 12 && status.ok(); ++n) {
    lake.call_count = 0;
    lake.fail_before = n;
    if (std::filesystem::exists(directory_ + "/offsets/0")) break;
    (void)RunOn(lake);
  }
  ASSERT_TRUE(std::filesystem::exists(directory_ + "/offsets/0"));
  config_.max_commits_per_batch = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Facts()[2], "batch 0 2 12");
  EXPECT_EQ(Facts()[3], "batch 1 1 13");
}

TEST_F(StreamTest, WhatStopsAStreamIsNamed) {
  const struct {
    const char* when;
    std::function<void(ScriptedServer&)> change;
    ErrorId error;
  } kRows[] = {
      {"cleanup passed the position",
       [](ScriptedServer& server) { server.first_lsn = 13; }, ErrorId::kDataLoss},
      {"cleanup came while it was read",
       [](ScriptedServer& server) {
         server.before_after_read = [&server] { server.first_lsn = 13; };
       },
       ErrorId::kDataLoss},
      {"the instance is gone", [](ScriptedServer& server) { server.first_lsn = 0; },
       ErrorId::kCaptureInstanceNotFound},
      {"CDC was disabled", [](ScriptedServer& server) { server.cdc_enabled = false; },
       ErrorId::kCdcNotEnabled},
      {"the server was restored",
       [](ScriptedServer& server) { server.commits.resize(1); },
       ErrorId::kPositionAheadOfServer},
      {"the server was restored and has gone on past the position",
       [](ScriptedServer& server) {
         server.commits.resize(1);
         server.Commit(13, {{2, 9, "fork"}});
       },
       ErrorId::kSourceForked},
      {"a column cannot be read",
       [](ScriptedServer& server) { server.column_type = "geography"; },
       ErrorId::kColumnNotReadable},
      {"a column got a type that the target's cannot hold",
       [](ScriptedServer& server) { server.column_type = "varbinary"; },
       ErrorId::kLakeSchemaMismatch},
      {"the change table has no command ids",
       [](ScriptedServer& server) { server.command_id = false; },
       ErrorId::kColumnNotReadable},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    Fresh();
    config_.max_commits_per_batch = 1;
    ASSERT_TRUE(Run().ok());
    server_.Commit(11, {{2, 7, "g"}});
    ASSERT_TRUE(Run().ok());
    server_.Commit(12, {{2, 8, "h"}});
    if (row.error == ErrorId::kPositionAheadOfServer ||
        row.error == ErrorId::kSourceForked) {
      ASSERT_TRUE(Run().ok());
    }
    const std::vector<std::string> before = Bronze();
    row.change(server_);
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), row.error) << status.error().Text();
    EXPECT_EQ(Bronze(), before);
  }
}

// A batch whose loss cannot be written down is not committed; one that is leaves no
// note behind.
TEST_F(StreamTest, AChangeThatMayBeLostIsNotedBeforeItsBatchIsCommitted) {
  const std::string note = directory_ + "/_mssql_cdc_batch.json";
  ASSERT_TRUE(Run().ok());
  server_.Commit(20, {{2, 7, "g"}});
  server_.before_after_read = [&] { server_.first_lsn = 15; };
  config_.fail_on_data_loss = false;
  const std::vector<std::string> bronze = Bronze();
  std::filesystem::create_directories(note + "/x");
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().Fact("path"), note) << status.error().Text();
  EXPECT_EQ(Bronze(), bronze);

  std::filesystem::remove_all(note);
  server_.first_lsn = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Facts().back(), "data_skipped 0 0 15");
  EXPECT_FALSE(std::filesystem::exists(note));
}

// Stopped between the batch's commit and its facts, the facts have what reading showed
// from metricsPath, or not at all.
TEST_F(StreamTest, MetricsOutliveAStopBeforeTheFacts) {
  for (const bool keeps : {false, true}) {
    SCOPED_TRACE(keeps);
    Fresh();
    const std::string folder = directory_ + "/metrics";
    if (keeps) config_.metrics_path = "file://" + folder;
    ASSERT_TRUE(Run().ok());
    server_.Commit(20, {{2, 7, "g"}});
    const std::size_t facts_before = Facts().size();
    FaultyLake lake(*memory_);
    for (lake.fail_before = 0; Bronze().size() == 3; ++lake.fail_before) {
      lake.call_count = 0;
      ASSERT_FALSE(RunOn(lake).ok());
    }
    ASSERT_EQ(Facts().size(), facts_before);
    EXPECT_EQ(std::filesystem::exists(folder), keeps);
    ASSERT_TRUE(Run().ok());
    std::optional<std::int64_t> watermark;
    for (const columns::RecordBatch& batch : ReadTable(kFacts)) {
      for (std::int64_t i = 0; i < batch.row_count; ++i) {
        const cdc::RowView row(batch, i);
        if (row.Text("event").value()) continue;
        watermark = row.Integer("source_max_commit_ts").value();
      }
    }
    EXPECT_EQ(watermark.has_value(), keeps);
    if (keeps) {
      EXPECT_TRUE(std::filesystem::is_empty(folder + "/orders-v1"));
    }
  }
}

TEST_F(StreamTest, ADeletedCheckpointIsNoticed) {
  config_.max_commits_per_batch = 1;
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {{2, 7, "g"}});
  server_.Commit(12, {{2, 8, "h"}});
  ASSERT_TRUE(Run().ok());
  std::filesystem::remove_all(directory_);
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kCheckpointRewound);
}

TEST_F(StreamTest, ACheckpointDeletedAfterItsFirstBatchIsNoReplay) {
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {{2, 7, "g"}});
  ASSERT_TRUE(Run().ok());
  std::filesystem::remove_all(directory_);
  server_.Commit(12, {{2, 8, "h"}});
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kCheckpointRewound);
}

TEST_F(StreamTest, WithoutFactsADeletedCheckpointIsNoticedEveryTime) {
  config_.facts_table.reset();
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {{2, 7, "g"}});
  ASSERT_TRUE(Run().ok());
  std::filesystem::remove_all(directory_);
  server_.Commit(12, {{2, 8, "h"}});
  for (int run = 0; run < 2; ++run) {
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kCheckpointRewound);
  }
}

TEST_F(StreamTest, ADeletedTargetIsNotBegunAnew) {
  for (const bool after_a_batch : {false, true}) {
    SCOPED_TRACE(after_a_batch);
    Fresh();
    ASSERT_TRUE(Run().ok());
    if (after_a_batch) {
      server_.Commit(11, {{2, 7, "g"}});
      ASSERT_TRUE(Run().ok());
    }
    config_.target_location = "lake/elsewhere";
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kTargetLost);
    EXPECT_FALSE(memory_->State("lake/elsewhere").value().has_value());
  }
}

// The existing package makes the table with its first rows; batches may come before.
TEST_F(StreamTest, ATargetThatNeverHadRowsIsMade) {
  config_.bootstrap = false;
  config_.starting_lsn = "latest";
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {});
  ASSERT_TRUE(Run().ok());
  EXPECT_FALSE(Facts().empty());
  config_.target_location = "lake/made";
  server_.Commit(12, {{2, 7, "g"}});
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(memory_->RowCount("lake/made").value(), 1);
  config_.target_location = "lake/elsewhere";
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kTargetLost);
}

TEST_F(StreamTest, AnotherTargetsStreamWithTheSameAppIdLosesNothingUnseen) {
  ASSERT_TRUE(Run().ok());
  const StreamConfig first = config_;
  config_.target = config_.target_location = "lake/copy";
  config_.checkpoint = directory_ + "/copy";
  ASSERT_TRUE(Run().ok());
  server_.Commit(11, {{2, 7, "g"}});
  ASSERT_TRUE(Run().ok());
  config_ = first;
  for (int run = 0; run < 2; ++run) {
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kOptionsClash);
    EXPECT_EQ(status.error().Fact("with"), "the stream into lake/copy");
  }
}

TEST_F(StreamTest, ASecondOwnerOfACheckpointIsRefusedWithThePid) {
  ScriptedSessions sessions(server_);
  ManualClock clock(0);
  const StreamParts parts{&sessions, memory_.get(), &clock, nullptr, 1};
  Result<std::unique_ptr<Stream>> first = Stream::Open(config_, parts);
  ASSERT_TRUE(first.ok());
  const Result<std::unique_ptr<Stream>> second = Stream::Open(config_, parts);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().id(), ErrorId::kCheckpointInUse);
  EXPECT_EQ(second.error().Fact("pid"), std::to_string(::getpid()));
  first = Error(ErrorId::kStopped);
  EXPECT_TRUE(Stream::Open(config_, parts).ok());
}

TEST_F(StreamTest, StartsWhereItIsToldWithoutABootstrap) {
  const struct {
    const char* start;
    std::vector<std::string> rows;
  } kRows[] = {
      {"earliest",
       {"10 2 1 a 0 change", "10 2 2 b 0 change", "10 2 5 e 0 change",
        "11 2 7 g 0 change"}},
      {"latest", {}},
      {"0x0000002A00000100000A", {"11 2 7 g 0 change"}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.start);
    Fresh();
    config_.bootstrap = false;
    config_.starting_lsn = row.start;
    server_.Commit(11, {{2, 7, "g"}});
    ASSERT_TRUE(Run().ok());
    EXPECT_EQ(Bronze(), row.rows);
  }
}

TEST_F(StreamTest, CheckSaysWhatARunWouldDoAndWritesNothing) {
  ScriptedSessions sessions(server_);
  ManualClock clock(0);
  const StreamParts parts{&sessions, memory_.get(), &clock, nullptr, 1};
  const Result<CheckReport> report = CheckStream(config_, parts);
  ASSERT_TRUE(report.ok()) << report.error().Text();
  EXPECT_EQ(report.value().source_table, "dbo.orders");
  EXPECT_EQ(report.value().key_columns, std::vector<std::string>{"id"});
  EXPECT_EQ(report.value().clock, "UTC");
  EXPECT_EQ(report.value().position, std::nullopt);
  EXPECT_EQ(report.value().target_version, std::nullopt);
  EXPECT_NE(report.value().intention.find("whole table"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_));
  EXPECT_FALSE(memory_->State(kTarget).value().has_value());
}

}  // namespace
}  // namespace mssql_cdc::runtime

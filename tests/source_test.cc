// What went wrong in other readers of change data, and what the reference promises of
// the source, as the product does it: against the simulator, over TDS in this process.
//
// A test that begins with B and a number is that row of the published reports that
// docs/other_readers.md lists.

#include "tests/source_fixture.h"

namespace mssql_cdc {
namespace {

// Positions, transactions and restarts.

TEST_F(SourceTest, B1B2B3B25ATransactionIsWholeForEveryPageSizeAndStop) {
  const Lines whole = {"2 2 b", "2 3 c", "1 1 a", "2 9 a", "1 3 c", "3 2 b", "4 2 B"};
  for (const std::int64_t page : {1, 2, 3}) {
    for (const bool after : {false, true}) {
      for (std::int64_t call = 0; call < 30; call += 3) {
        Fresh();
        config_.arrow_batch_size = page;
        Commit(
            "INSERT dbo.t VALUES (2, N'b'), (3, N'c'); UPDATE dbo.t SET id = 9 WHERE "
            "id = 1; DELETE dbo.t WHERE id = 3; UPDATE dbo.t SET note = N'B' WHERE "
            "id = 2");
        runtime::FaultyLake lake(*lake_);
        (after ? lake.fail_after : lake.fail_before) = call;
        const Status status = source_->RunOn(config_, lake);
        if (!status.ok()) {
          ASSERT_EQ(status.error().id(), ErrorId::kLakeFailed);
          RunWell();
        }
        ASSERT_EQ(Rows(), whole) << "page " << page << ", call " << call;
      }
    }
  }
}

TEST_F(SourceTest, B5WhatWasCommittedWhileNobodyReadIsRead) {
  config_.starting_lsn = "latest";
  RunWell();
  Commit("INSERT dbo.t VALUES (2, N'b')");
  Commit("INSERT dbo.t VALUES (3, N'c')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b", "2 3 c"}));
}

TEST_F(SourceTest, B23ManyChangesOfOneRowKeepTheirOrder) {
  RunWell();
  std::string updates = "UPDATE dbo.t SET note = N'0' WHERE id = 1";
  for (int i = 1; i < 5; ++i) {
    updates += "; UPDATE dbo.t SET note = N'" + std::to_string(i) + "' WHERE id = 1";
  }
  Commit(updates);
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"3 1 a", "4 1 0", "3 1 0", "4 1 1", "3 1 1", "4 1 2",
                           "3 1 2", "4 1 3", "3 1 3", "4 1 4"}));
}

TEST_F(SourceTest, B30EqualRowsOfATableWithoutKeyStayTwo) {
  Sql("CREATE TABLE dbo.n (id int NULL, note nvarchar(40) NULL)");
  Enable("n", "dbo_n");
  config_.capture_instance = "dbo_n";
  Commit("INSERT dbo.n VALUES (1, N'x'), (1, N'x')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 1 x", "2 1 x"}));
}

TEST_F(SourceTest, StartingLsnDecidesWhereANewCheckpointStarts) {
  const struct {
    std::string start;
    Lines rows;
    Lines later;  // After one more commit and run.
  } kRows[] = {
      {"earliest", {"2 2 b", "2 3 c"}, {"2 2 b", "2 3 c", "2 4 d"}},
      {"latest", {}, {"2 4 d"}},
      {"the first commit", {"2 3 c"}, {"2 3 c", "2 4 d"}},
      {"0x00FF", {}, {}},  // Below what is held: the gap is reported.
      {"0x7FFF0000000000000000", {}, {}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.start);
    Fresh();
    Commit("INSERT dbo.t VALUES (2, N'b')");
    const std::string first = source_->engine().MaxLsn("life").value()->Hex();
    Commit("INSERT dbo.t VALUES (3, N'c')");
    config_.starting_lsn = row.start == "the first commit" ? first : row.start;
    const bool is_lost = row.start == "0x00FF";
    if (is_lost) RunInto(ErrorId::kDataLoss);
    if (!is_lost) RunWell();
    EXPECT_EQ(Rows(), row.rows);
    Commit("INSERT dbo.t VALUES (4, N'd')");
    EXPECT_EQ(Run().ok(), !is_lost);
    EXPECT_EQ(Rows(), row.later);
  }
}

TEST_F(SourceTest, B37AFreshInstanceOnAQuietDatabaseIsNoLoss) {
  // Nothing was ever captured: NULL newest LSN.
  source_.reset();
  std::filesystem::remove_all(directory_);
  source_ = std::make_unique<model::Source>(directory_);
  Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)");
  Sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N't', "
      "@role_name = NULL");
  for (const char* start : {"earliest", "latest"}) {
    config_.starting_lsn = start;
    RunInto(ErrorId::kCaptureHasNotRun);
  }
  source_->CaptureAll();
  RunWell();
  Commit("INSERT dbo.t VALUES (1, N'a')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 1 a"}));
}

TEST_F(SourceTest, B34B35IdleEntriesAndOtherTablesMoveThePosition) {
  Sql("CREATE TABLE dbo.o (id int NOT NULL PRIMARY KEY)");
  Enable("o", "dbo_o");
  RunWell();
  Commit("INSERT dbo.o VALUES (1)");
  for (int i = 0; i < 30; ++i) Pass(6);
  RunWell();
  const Lines facts = Facts();
  RunWell();
  EXPECT_EQ(Facts(), facts);  // Nothing is left to pass.
  EXPECT_EQ(facts.back(), "batch: 0");
  std::string end;
  Each("facts", [&](const cdc::RowView& row) { end = *row.Text("end_lsn").value(); });
  EXPECT_EQ(end, source_->engine().MaxLsn("life").value()->Hex());
}

TEST_F(SourceTest, B31CleanupOfAQuietTableIsNoLoss) {
  RunWell();
  for (int day = 0; day < 5; ++day) {
    for (int i = 0; i < 8; ++i) Pass(180);
    RunWell();
    Clean(60);
  }
  Commit("INSERT dbo.t VALUES (2, N'b')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
}

// Gaps, and what made them.

TEST_F(SourceTest, B18B42CleanupPastThePositionStopsAndIsNeverJumpedOver) {
  RunWell();
  Commit("INSERT dbo.t VALUES (2, N'b')");
  Pass(20);
  Pass(20);
  Commit("INSERT dbo.t VALUES (3, N'c')");
  Clean(10);
  for (int run = 0; run < 2; ++run) {
    RunInto(ErrorId::kDataLoss, "cause", "purged by CDC cleanup");
  }
}

TEST_F(SourceTest, FailOnDataLossFalseSkipsAndSaysSo) {
  RunWell();
  Commit("INSERT dbo.t VALUES (2, N'b')");
  Pass(20);
  Pass(20);
  Commit("INSERT dbo.t VALUES (3, N'c')");
  Clean(10);
  config_.fail_on_data_loss = false;
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 3 c"}));
  const Lines facts = Facts();
  ASSERT_GE(facts.size(), 2u);
  EXPECT_TRUE(facts.back().starts_with("data_skipped: {\"from\": \"0x"))
      << facts.back();
  EXPECT_TRUE(facts.back().ends_with("\"certain\": true}")) << facts.back();
  EXPECT_TRUE(Warned("are skipped: purged by CDC cleanup"));
}

TEST_F(SourceTest, B15B53AnInstanceMadeAnewIsNotTakenForTheOldOne) {
  const struct {
    const char* when;
    std::function<void()> change;
    const char* cause;
  } kRows[] = {
      {"disabled and enabled under the reader",
       [&] {
         Disable("dbo_t");
         Enable("t", "dbo_t");
       },
       "capture instance dbo_t was dropped and created again"},
      {"the table dropped and created",
       [&] {
         Disable("dbo_t");
         Sql("DROP TABLE dbo.t");
         Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(40) "
             "NULL)");
         Enable("t", "dbo_t");
       },
       "capture instance dbo_t was dropped and created again"},
      {"under another name",
       [&] {
         Disable("dbo_t");
         Enable("t", "t_v2");
       },
       "held only by capture instance dbo_t, which was disabled before they were read"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    Fresh();
    RunWell();
    Commit("INSERT dbo.t VALUES (2, N'b')");
    RunWell();
    source_->engine().AdvanceClock(1000);
    row.change();
    Commit("INSERT dbo.t VALUES (3, N'c')");
    for (int run = 0; run < 2; ++run) RunInto(ErrorId::kDataLoss, "cause", row.cause);
  }
}

TEST_F(SourceTest, B19B33WhatIsNotThereIsAnErrorNotAQuietTable) {
  const struct {
    const char* when;
    std::function<void()> change;
    ErrorId error;
  } kRows[] = {
      {"the instance is dropped", [&] { Disable("dbo_t"); },
       ErrorId::kCaptureInstanceNotFound},
      {"CDC is disabled", [&] { Sql("EXEC sys.sp_cdc_disable_db"); },
       ErrorId::kCdcNotEnabled},
      {"a name that never was", [&] { config_.capture_instance = "nobody"; },
       ErrorId::kCaptureInstanceNotFound},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    Fresh();
    config_.starting_lsn = "latest";
    if (row.error != ErrorId::kCaptureInstanceNotFound) RunWell();
    row.change();
    RunInto(row.error);
  }
}

TEST_F(SourceTest, B22ARestoredDatabaseStopsTheStream) {
  for (const bool goes_past : {false, true}) {
    SCOPED_TRACE(goes_past);
    Fresh();
    RunWell();
    source_->Backup(directory_ + "/backup");
    for (int i = 2; i < 5; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'lost')");
    }
    RunWell();
    source_->engine().AdvanceClock(77'123);
    source_->Restore(directory_ + "/backup");
    for (int i = 2; i < (goes_past ? 9 : 3); ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'other')");
    }
    for (int run = 0; run < 2; ++run) {
      RunInto(goes_past ? ErrorId::kSourceForked : ErrorId::kPositionAheadOfServer);
    }
  }
}

TEST_F(SourceTest, AStartAboveTheServersNewestCommitIsSaid) {
  config_.starting_lsn = "0x0FFFFFFFFFFFFFFFFFFF";
  RunWell();
  EXPECT_TRUE(Warned("the stream begins at 0x0FFFFFFFFFFFFFFFFFFF (startingLsn)"));
  Commit("INSERT dbo.t VALUES (2, N'b')");
  warnings_ = {};
  RunWell();
  EXPECT_TRUE(Warned("(startingLsn), and the server has captured no further than 0x"));
  EXPECT_TRUE(Rows().empty());
}

// A quiet database just after sys.sp_cdc_enable_table.
TEST_F(SourceTest, AnInstanceThatCaptureHasNotReachedIsNoStartAhead) {
  Sql("CREATE TABLE dbo.later (id int NOT NULL PRIMARY KEY)");
  Sql("EXEC sys.sp_cdc_enable_table N'dbo', N'later', @role_name = NULL");
  config_.capture_instance = "dbo_later";
  config_.starting_lsn = "latest";
  warnings_ = {};
  RunWell();
  EXPECT_TRUE(warnings_.texts.empty()) << warnings_.texts[0];
}

TEST_F(SourceTest, B29AnotherDatabaseIsAnotherSource) {
  RunWell();
  source_->Sql("CREATE DATABASE other", "master");
  source_->Sql("EXEC sys.sp_cdc_enable_db", "other");
  source_->Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(40))",
               "other");
  source_->Sql("EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL", "other");
  source_->Sql("EXEC sys.sp_cdc_scan", "other");
  Commit("INSERT dbo.t VALUES (2, N'b')");
  RunWell();
  const Status status = source_->RunOn(config_, *lake_, {}, "other");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kOptionsClash);
  EXPECT_EQ(status.error().Fact("option"), "Database");
}

TEST_F(SourceTest, B21ACaptureThatStoppedIsNotTakenForIdleness) {
  const struct {
    const char* when;
    std::function<void()> change;
    const char* said;  // Null: nothing.
  } kRows[] = {
      {"it runs", [&] { Pass(1); }, nullptr},
      {"it stands still", [] {}, "see that SQL Server Agent runs"},
      {"it fails",
       [&] {
         Sql("EXEC sim.break_capture 22859");
         (void)source_->engine().CaptureNow("life");
       },
       "its last error is 22859"},
      {"there is no job, as after a failover",
       [&] { Sql("EXEC sys.sp_cdc_drop_job @job_type = N'capture'"); },
       "this server has no capture job"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    Fresh();
    RunWell();
    source_->engine().AdvanceClock(20 * 60'000);
    row.change();
    warnings_ = {};
    RunWell();
    EXPECT_EQ(Warned("the capture job has written nothing"), row.said != nullptr);
    if (row.said != nullptr) {
      EXPECT_TRUE(Warned(row.said)) << warnings_.texts[0];
    }
  }
}

TEST_F(SourceTest, ACaptureThatWritesAgainIsSaid) {
  RunWell();
  class Observer final : public runtime::StreamObserver {
   public:
    std::function<void(int)> at_idle;
    int count = 0;
    Lines texts;
    void OnIdle(const runtime::IdleSummary&) override { at_idle(++count); }
    void OnWarning(const std::string& text) override { texts.push_back(text); }
  } observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  observer.at_idle = [&](int count) {
    if (count == 1) source_->engine().AdvanceClock(20 * 60'000);
    if (count == 2) Commit("INSERT dbo.t VALUES (2, N'b')");
    if (count == 3) Sql("EXEC sys.sp_cdc_disable_db");  // Ends the run.
  };
  EXPECT_EQ(Run().error().id(), ErrorId::kCdcNotEnabled);
  ASSERT_EQ(observer.texts.size(), 2u);
  EXPECT_TRUE(observer.texts[0].starts_with("the capture job has written nothing"));
  EXPECT_EQ(observer.texts[1], "the capture job writes again");
  EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
}

// Round trips, retries, settings.

TEST_F(SourceTest, B63B66AnIdlePollIsOneRequestAndASmallBatchTwo) {
  RunWell();
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  config_.poll_first_ms = config_.poll_max_ms = 1;
  std::vector<std::uint64_t> requests;
  std::vector<std::uint64_t> logins;
  observer.at_idle = [&](int count) {
    requests.push_back(source_->counters().messages.load());
    logins.push_back(source_->counters().logins.load());
    if (count >= 4 && count < 9) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(100 + count) + ", N'x')");
    }
    // Ends the run: an error that no retry cures.
    if (count == 9) Sql("EXEC sys.sp_cdc_disable_db");
  };
  const Status status = Run();
  EXPECT_EQ(status.error().id(), ErrorId::kCdcNotEnabled);
  ASSERT_EQ(requests.size(), 9u);
  EXPECT_EQ(requests[3] - requests[0], 3u);       // Three polls.
  EXPECT_EQ(requests[8] - requests[3], 5u * 3u);  // Five times batch and poll.
  EXPECT_EQ(logins[8], logins[0]);
}

TEST_F(SourceTest, AnotherTableUnderACheckpointIsSeenBeforeItsFirstBatch) {
  Sql("CREATE TABLE dbo.other (id int NOT NULL PRIMARY KEY)");
  Enable("other", "dbo_other");
  config_.bootstrap = true;
  RunWell();
  config_.capture_instance = "dbo_other";
  const Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kOptionsClash) << status.error().Text();
}

TEST_F(SourceTest, CommitsOfOtherTablesDoNotFillTheLake) {
  Sql("CREATE TABLE dbo.busy (id int NOT NULL PRIMARY KEY)");
  Enable("busy", "dbo_busy");
  RunWell();
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  config_.poll_first_ms = config_.poll_max_ms = 1;
  const auto count_batches = [&] {
    return lake_->State(config_.facts_location).value()->version;
  };
  std::int64_t at_first = 0;
  observer.at_idle = [&](int count) {
    if (count == 2) at_first = count_batches();
    if (count < 20) Commit("INSERT dbo.busy VALUES (" + std::to_string(count) + ")");
    if (count == 20) {
      // Nothing but the first moved the position, and what the table has comes at once.
      EXPECT_EQ(count_batches(), at_first);
      Commit("INSERT dbo.t VALUES (2, N'b')");
    }
    if (count == 21) {
      EXPECT_EQ(count_batches(), at_first + 1);
      Sql("EXEC sys.sp_cdc_disable_db");
    }
  };
  EXPECT_EQ(Run().error().id(), ErrorId::kCdcNotEnabled);
  EXPECT_EQ(Rows().back(), "2 2 b");
}

TEST_F(SourceTest, ErrorsAreRetriedByNumber) {
  const struct {
    int number;
    bool is_transient;
  } kRows[] = {{1205, true}, {1222, true},  {40197, true}, {40501, true},
               {701, true},  {10928, true}, {229, false},  {245, false}};
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.number);
    Fresh();
    RunWell();
    Commit("INSERT dbo.t VALUES (2, N'b')");
    config_.retry_count_max = 3;
    Sql("EXEC sim.fail_reads " + std::to_string(row.number) + ", 1");
    const Status status = Run();
    EXPECT_EQ(status.ok(), row.is_transient);
    EXPECT_EQ(warnings_.retry_count, row.is_transient ? 1 : 0);
    if (row.is_transient) {
      EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
    }
  }
}

TEST_F(SourceTest, ABacklogIsReadInTilesOnSeveralConnections) {
  for (const std::int64_t partitions : {1, 4}) {
    SCOPED_TRACE(partitions);
    Fresh();
    for (int i = 0; i < 2; ++i) {
      const Status filled = source_->engine().BulkInsert(
          "life", "dbo.t", 60'000, {.source = false, .changes = true}, {});
      ASSERT_TRUE(filled.ok()) << filled.error().Text();
    }
    config_.num_partitions = partitions;
    const std::uint64_t before = source_->counters().logins.load();
    RunWell();
    EXPECT_EQ(source_->counters().logins.load() - before, partitions == 1 ? 1u : 2u);
    EXPECT_EQ(Facts().back(), "batch: 120000");
    EXPECT_EQ(lake_->RowCount("bronze").value(), 120'000);
  }
}

}  // namespace
}  // namespace mssql_cdc

// What went wrong in other readers of change data, and what the reference promises of
// the source, as the product does it: against the simulator, over TDS in this process.
//
// A test that begins with B and a number is that row of the published reports that
// docs/other_readers.md lists.

#include "tests/model/source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cdc/cells.h"
#include "runtime/faulty_lake_test.h"

namespace mssql_cdc {
namespace {

using Lines = std::vector<std::string>;

class Warnings final : public runtime::StreamObserver {
 public:
  Lines texts;
  std::int64_t retry_count = 0;
  void OnWarning(const std::string& text) override { texts.push_back(text); }
  void OnRetry(const Error&, std::int64_t, std::int64_t) override { ++retry_count; }
};

// Does something each time a continuous run has nothing to do.
class IdleHook final : public runtime::StreamObserver {
 public:
  std::function<void(int)> at_idle;
  int count = 0;
  void OnIdle(const runtime::IdleSummary&) override { at_idle(++count); }
};

class SourceTest : public testing::Test {
 protected:
  SourceTest()
      : directory_(testing::TempDir() + "mssql_cdc_source_" +
                   std::to_string(::getpid())) {
    Fresh();
  }
  ~SourceTest() override { std::filesystem::remove_all(directory_); }

  // A table t (id, note) with one row, captured as `instance`.
  void Fresh(const std::string& instance = "dbo_t") {
    source_.reset();
    std::filesystem::remove_all(directory_);
    source_ = std::make_unique<model::Source>(directory_);
    source_->observer = &warnings_;
    warnings_ = {};
    lake_ = std::make_unique<lake::MemoryLake>();
    Sql("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)");
    Sql("INSERT dbo.t VALUES (1, N'a')");
    Enable("t", instance);
    config_ = {};
    config_.capture_instance = instance;
    config_.target = config_.target_location = "bronze";
    config_.facts_table = config_.facts_location = "facts";
    config_.app_id = "app";
    config_.checkpoint = directory_ + "/checkpoint";
    config_.trigger.kind = runtime::Trigger::Kind::kAvailableNow;
    config_.num_partitions = 1;
    config_.retry_count_max = 0;
  }
  void Sql(const std::string& text) { source_->Sql(text); }
  void Enable(const std::string& table, const std::string& instance) {
    Sql("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'" +
        table + "', @role_name = NULL, @capture_instance = N'" + instance + "'");
    source_->CaptureAll();
  }
  void Disable(const std::string& instance) {
    Sql("EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N't', "
        "@capture_instance = N'" +
        instance + "'");
  }
  // One transaction, captured.
  void Commit(const std::string& statements) {
    Sql("BEGIN TRAN; " + statements + "; COMMIT TRAN");
    source_->engine().AdvanceClock(1000);
    source_->CaptureAll();
  }
  void Pass(std::int64_t minutes) {
    source_->engine().AdvanceClock(minutes * 60'000);
    source_->CaptureAll();
  }
  void Clean(std::int64_t retention_minutes) {
    ASSERT_TRUE(source_->engine().MoveLowWaterMark("life", retention_minutes).ok());
    ASSERT_TRUE(source_->engine().DeleteBelowLowWaterMark("life", {}).ok());
  }

  Status Run() { return source_->RunOn(config_, *lake_); }
  void RunWell() {
    const Status status = Run();
    ASSERT_TRUE(status.ok()) << status.error().Text();
  }
  void RunInto(ErrorId id, const char* fact = nullptr, const char* value = nullptr) {
    const Lines before = Rows();
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), id) << status.error().Text();
    if (fact != nullptr) {
      EXPECT_EQ(status.error().Fact(fact), value) << status.error().Text();
    }
    if (config_.trigger.kind == runtime::Trigger::Kind::kContinuous) return;
    EXPECT_EQ(Rows(), before);
  }

  // "operation id note", in the order that bronze's columns give.
  Lines Rows(const std::function<std::string(const cdc::RowView&)>& more = {}) {
    std::vector<std::pair<std::string, std::string>> keyed;
    Each("bronze", [&](const cdc::RowView& row) {
      const auto number = [&](const char* name) {
        const auto value = row.Integer(name).value();
        return value ? std::to_string(*value) : std::string("-");
      };
      std::string order = row.Text("_start_lsn").value().value_or("");
      order += std::string(9 - number("_command_id").size(), ' ') +
               number("_command_id") + row.Text("_seqval").value().value_or("") +
               number("_operation");
      keyed.emplace_back(order, number("_operation") + " " + number("id") + " " +
                                    row.Text("note").value().value_or("NULL") +
                                    (more ? " " + more(row) : ""));
    });
    std::ranges::stable_sort(keyed, {}, [](const auto& pair) { return pair.first; });
    Lines lines;
    for (auto& [key, line] : keyed) lines.push_back(std::move(line));
    return lines;
  }
  // Facts as "event: detail", batches as "batch: rows".
  Lines Facts() {
    Lines lines;
    Each("facts", [&](const cdc::RowView& row) {
      const auto event = row.Text("event").value();
      const auto rows = row.Integer("rows").value();
      lines.push_back(event ? *event + ": " + row.Text("detail").value().value_or("")
                            : "batch: " + std::to_string(rows.value_or(-1)));
    });
    return lines;
  }
  void Each(const char* table, const std::function<void(const cdc::RowView&)>& use) {
    auto reader = lake_->Read(table, {});
    while (reader.ok()) {
      auto batch = reader.value()->Next();
      ASSERT_TRUE(batch.ok());
      if (!batch.value()) return;
      for (std::int64_t i = 0; i < batch.value()->row_count; ++i) {
        use(cdc::RowView(*batch.value(), i));
      }
    }
  }
  bool Warned(const std::string& part) const {
    return std::ranges::any_of(warnings_.texts, [&](const std::string& text) {
      return text.find(part) != std::string::npos;
    });
  }

  std::string directory_;
  std::unique_ptr<model::Source> source_;
  std::unique_ptr<lake::MemoryLake> lake_;
  runtime::StreamConfig config_;
  Warnings warnings_;
};

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
  Commit("INSERT dbo.t VALUES (2, N'b')");
  const std::string first = source_->engine().MaxLsn("life").value()->Hex();
  Commit("INSERT dbo.t VALUES (3, N'c')");
  const struct {
    std::string start;
    Lines rows;
    Lines later;
  } kRows[] = {
      {"earliest", {"2 2 b", "2 3 c"}, {"2 2 b", "2 3 c"}},
      {"latest", {}, {}},
      {first, {"2 3 c"}, {"2 3 c"}},
      {"0x00FF", {}, {}},  // Below what is held: the gap is reported, see below.
      {"0x7FFF0000000000000000", {}, {}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.start);
    lake_ = std::make_unique<lake::MemoryLake>();
    std::filesystem::remove_all(config_.checkpoint);
    config_.starting_lsn = row.start;
    const Status status = Run();
    EXPECT_EQ(status.ok(), row.start != "0x00FF");
    EXPECT_EQ(Rows(), row.rows);
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

// Capture instances and the schema.

TEST_F(SourceTest, B26B27TheInstanceIsChosenByRangeAndTiesByCreation) {
  for (const bool tie : {false, true}) {
    SCOPED_TRACE(tie);
    Fresh();
    config_.max_commits_per_batch = 1;
    Commit("INSERT dbo.t VALUES (2, N'b')");
    Enable("t", "t_v2");
    Commit("INSERT dbo.t VALUES (3, N'c')");
    const auto instance = [](const cdc::RowView& row) {
      return *row.Text("_capture_instance").value();
    };
    if (tie) {
      RunWell();
      Pass(30);
      Clean(10);
      Commit("INSERT dbo.t VALUES (4, N'd')");
    }
    RunWell();
    Lines rows = {"2 2 b dbo_t", "2 3 c t_v2"};
    if (tie) rows.emplace_back("2 4 d t_v2");
    EXPECT_EQ(Rows(instance), rows);
    EXPECT_EQ(std::ranges::count(Facts(), "capture_instance_switched: dbo_t -> t_v2"),
              1);
  }
}

TEST_F(SourceTest, B50B87B90AnyNameThatSqlServerAllowsIsFound) {
  for (const char* name : {"X1", "dbo_Café", "a'b \"c\" $d", "表 ключ"}) {
    SCOPED_TRACE(name);
    Fresh();
    const std::string quoted =
        std::string(name) == "a'b \"c\" $d" ? "a''b \"c\" $d" : name;
    Fresh(quoted);
    config_.capture_instance = name;
    Commit("INSERT dbo.t VALUES (2, N'b')");
    RunWell();
    EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
  }
}

TEST_F(SourceTest, ADisabledInstanceIsFollowedToItsSuccessor) {
  RunWell();
  Enable("t", "odd name");
  Commit("INSERT dbo.t VALUES (2, N'b')");
  RunWell();
  Disable("dbo_t");
  Commit("INSERT dbo.t VALUES (3, N'c')");
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b", "2 3 c"}));
}

TEST_F(SourceTest, B17B54DdlIsMetInsideTheBatchThatPassesIt) {
  RunWell();
  Commit("INSERT dbo.t VALUES (2, N'b')");
  Sql("ALTER TABLE dbo.t ADD extra int NULL");
  Commit("INSERT dbo.t (id, note) VALUES (3, N'c')");
  config_.schema_change_policy = cdc::SchemaChangePolicy::kFail;
  RunInto(ErrorId::kSchemaChanged, "ddl", "ALTER TABLE dbo.t ADD extra int NULL");
  config_.schema_change_policy = cdc::SchemaChangePolicy::kClassify;
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b", "2 3 c"}));
  EXPECT_EQ(Facts().back(), "schema_change: ALTER TABLE dbo.t ADD extra int NULL");
}

TEST_F(SourceTest, WhatEachDdlDoes) {
  const struct {
    const char* ddl;
    const char* insert;
    bool goes_on;
    Lines rows;
  } kRows[] = {
      {"ALTER TABLE dbo.t ADD extra int NULL",
       "(id, note) VALUES (3, N'c')",
       true,
       {"2 2 b", "2 3 c"}},
      {"ALTER TABLE dbo.t ALTER COLUMN note nvarchar(400) NULL",
       "VALUES (3, N'c')",
       true,
       {"2 2 b", "2 3 c"}},
      {"ALTER TABLE dbo.t DROP COLUMN note", "VALUES (3)", true, {"2 2 b", "2 3 NULL"}},
      {"ALTER TABLE dbo.t ALTER COLUMN note int NULL", "VALUES (3, 7)", false, {}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.ddl);
    Fresh();
    RunWell();
    Sql("UPDATE dbo.t SET note = NULL");
    source_->CaptureAll();
    RunWell();
    const Lines before = Rows();
    Commit("INSERT dbo.t VALUES (2, " + std::string(row.goes_on ? "N'b'" : "NULL") +
           ")");
    Sql(row.ddl);
    Commit(std::string("INSERT dbo.t ") + row.insert);
    if (!row.goes_on) {
      // Of a run that was there before it is SchemaChanged, as cdc's tests have it.
      RunInto(ErrorId::kLakeSchemaMismatch, "column", "note");
      continue;
    }
    RunWell();
    Lines all = before;
    all.insert(all.end(), row.rows.begin(), row.rows.end());
    EXPECT_EQ(Rows(), all);
  }
}

// The same in one run, which asked for instances and columns when it began.
TEST_F(SourceTest, ARunMovesToANewerInstanceAndStopsAtATypeThatDoesNotFit) {
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  observer.at_idle = [&](int count) {
    if (count == 1) Commit("UPDATE dbo.t SET note = NULL");
    if (count == 2) {
      Enable("t", "other");
      Commit("INSERT dbo.t VALUES (2, NULL)");
    }
    if (count == 3) {
      Disable("dbo_t");
      Sql("ALTER TABLE dbo.t ALTER COLUMN note nvarchar(99) NULL");
      Commit("INSERT dbo.t VALUES (3, NULL)");
    }
    if (count == 4) {
      Sql("ALTER TABLE dbo.t ALTER COLUMN note int NULL");
      Commit("INSERT dbo.t VALUES (4, 4)");
    }
  };
  RunInto(ErrorId::kSchemaChanged, "changes", "note integer (read as string)");
  EXPECT_EQ(observer.count, 4);
  const auto instance = [](const cdc::RowView& row) {
    return *row.Text("_capture_instance").value();
  };
  EXPECT_EQ(Rows(instance), (Lines{"3 1 a dbo_t", "4 1 NULL dbo_t", "2 2 NULL other",
                                   "2 3 NULL other"}));
  EXPECT_EQ(std::ranges::count(Facts(), "capture_instance_switched: dbo_t -> other"),
            1);
}

// And with a column that the run does not know.
TEST_F(SourceTest, ARunStopsBeforeANewerInstancesNewColumn) {
  IdleHook observer;
  source_->observer = &observer;
  config_.trigger.kind = runtime::Trigger::Kind::kContinuous;
  observer.at_idle = [&](int count) {
    if (count != 1) return;
    Sql("ALTER TABLE dbo.t ADD extra nvarchar(9) NULL");
    Enable("t", "other");
    Commit("INSERT dbo.t VALUES (2, N'b', N'x')");
  };
  RunInto(ErrorId::kSchemaChanged, "changes", "extra nvarchar (new)");
  config_.trigger.kind = runtime::Trigger::Kind::kAvailableNow;
  RunWell();
  EXPECT_EQ(Rows(), (Lines{"2 2 b"}));
}

TEST_F(SourceTest, ANewerInstancesNewColumnTakesARestart) {
  RunWell();
  Sql("ALTER TABLE dbo.t ADD extra nvarchar(9) NULL");
  Commit("INSERT dbo.t VALUES (2, N'b', N'early')");
  RunWell();
  Enable("t", "t_v2");
  Commit("INSERT dbo.t VALUES (3, N'c', N'x')");
  RunWell();  // A new run infers the columns of both.
  const auto extra = [](const cdc::RowView& row) {
    return row.Text("extra").value().value_or("NULL");
  };
  EXPECT_EQ(Rows(extra), (Lines{"2 2 b NULL", "2 3 c x"}));
}

TEST_F(SourceTest, B47ComputedColumnsAreLeftOutAndSaid) {
  Sql("CREATE TABLE dbo.c (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL, twice "
      "AS "
      "(id * 2))");
  Enable("c", "dbo_c");
  config_.capture_instance = "dbo_c";
  config_.bootstrap = true;
  Commit("INSERT dbo.c VALUES (2, N'b')");
  RunWell();
  EXPECT_TRUE(Warned("column twice is computed and left out"));
  const auto state = lake_->State("bronze").value();
  EXPECT_FALSE(std::ranges::any_of(
      state->schema.fields, [](const auto& field) { return field.name == "twice"; }));
}

TEST_F(SourceTest, B57ARenamedTableIsFollowed) {
  RunWell();
  Sql("EXEC sp_rename N'dbo.t', N't2'");
  Commit("INSERT dbo.t2 VALUES (2, N'b')");
  RunWell();
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

// `mssql-cdc check` tells what `mssql-cdc run` would stop at, and writes nothing.
//
// Method: for each thing that stops a run, both are asked; their errors must be one.

#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CheckRunTest : public RepairTest {
 protected:
  Result<runtime::CheckReport> Check() {
    const Lines before = State();
    std::optional<runtime::CheckReport> report;
    const Status status = source_->With(
        *lake_, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          TRY_ASSIGN(report, runtime::CheckStream(config_, parts));
          return Unit{};
        });
    EXPECT_EQ(State(), before);
    if (!status.ok()) return status.error();
    return *report;
  }
  // What a check could have written: versions of tables, files of the checkpoint.
  Lines State() {
    Lines lines;
    for (const char* table : {"bronze", "facts", "silver", "control"}) {
      const auto state = lake_->State(table).value();
      lines.push_back(std::string(table) + " " +
                      (state ? std::to_string(state->version) : "none"));
    }
    if (!std::filesystem::exists(config_.checkpoint)) return lines;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(config_.checkpoint)) {
      lines.push_back(entry.path().string());
    }
    std::ranges::sort(lines);
    return lines;
  }
  void ExpectAsRun(ErrorId id) {
    const auto report = Check();
    ASSERT_FALSE(report.ok()) << report.value().intention;
    EXPECT_EQ(report.error().id(), id) << report.error().Text();
    const Status status = Run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().Text(), report.error().Text());
  }
  void ExpectFine(const std::string& intention) {
    const auto report = Check();
    ASSERT_TRUE(report.ok()) << report.error().Text();
    EXPECT_THAT(report.value().intention, HasSubstr(intention));
    EXPECT_FALSE(report.value().silver_problem.has_value())
        << report.value().silver_problem->Text();
    RunWell();
    ApplyWell();
  }
  void ExpectSilverProblem(ErrorId id) {
    const auto report = Check();
    ASSERT_TRUE(report.ok()) << report.error().Text();
    ASSERT_TRUE(report.value().silver_problem.has_value());
    EXPECT_EQ(report.value().silver_problem->id(), id)
        << report.value().silver_problem->Text();
    const Status status = TryApply();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().Text(), report.value().silver_problem->Text());
  }
  void LoseChanges() {
    Commit("UPDATE dbo.t SET note = N'lost' WHERE id = 1");
    Pass(20);
    Pass(20);
    Commit("UPDATE dbo.t SET note = N'kept' WHERE id = 1");
    Clean(10);
  }
  void NewStream(const char* name) {
    config_.app_id = name;
    config_.checkpoint = directory_ + "/" + name;
  }
};

TEST_F(CheckRunTest, ARunThatGoesWell) {
  ExpectFine("read the commits above");
  EXPECT_THAT(Check().value().silver_keys, ElementsAre("id"));
  NewStream("again");
  ExpectFine("which is there already");
  NewStream("latest");
  config_.bootstrap = false;
  config_.starting_lsn = "latest";
  ExpectFine("from now on");
  Fresh();
  config_.bootstrap = true;
  config_.silver = config_.silver_location = "silver";
  config_.control_table = config_.control_location = "control";
  ExpectFine("load the whole table");
}

TEST_F(CheckRunTest, ALoss) {
  LoseChanges();
  ExpectAsRun(ErrorId::kDataLoss);
  // Also where the snapshot that is there is what a new stream would begin with.
  NewStream("half");
  ExpectAsRun(ErrorId::kDataLoss);
  config_.bootstrap = false;
  config_.starting_lsn = "0x01";
  NewStream("told");
  ExpectAsRun(ErrorId::kDataLoss);
}

TEST_F(CheckRunTest, ALossThatTheRunMakesGood) {
  LoseChanges();
  config_.fail_on_data_loss = false;
  const auto report = Check();
  ASSERT_TRUE(report.ok()) << report.error().Text();
  EXPECT_TRUE(Warned("are skipped"));
  config_.fail_on_data_loss = true;
  config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
  ExpectFine("take a new snapshot");
  LoseChanges();
  ExpectAsRun(ErrorId::kDataLoss);  // Within resnapshot_interval_days.
}

TEST_F(CheckRunTest, ATableThatIsGoneAndACheckpointThatIs) {
  Commit("INSERT dbo.t VALUES (6, N'f')");
  RunWell();
  std::filesystem::rename(config_.checkpoint, directory_ + "/kept");
  Commit("INSERT dbo.t VALUES (7, N'g')");
  ExpectAsRun(ErrorId::kCheckpointRewound);
  std::filesystem::remove_all(config_.checkpoint);
  std::filesystem::rename(directory_ + "/kept", config_.checkpoint);
  lake_->Drop("bronze");
  ExpectAsRun(ErrorId::kTargetLost);
}

TEST_F(CheckRunTest, ACaptureJobThatNeverRan) {
  source_->Sql("CREATE DATABASE quiet", "master");
  for (const char* text :
       {"EXEC sys.sp_cdc_enable_db", "CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY)",
        "EXEC sys.sp_cdc_enable_table N'dbo', N't', @role_name = NULL"}) {
    source_->Sql(text, "quiet");
  }
  config_.target = config_.target_location = "bronze_quiet";
  NewStream("quiet");
  for (const char* start : {"", "earliest", "latest"}) {
    config_.bootstrap = *start == '\0';
    if (!config_.bootstrap) config_.starting_lsn = start;
    const Status checked = source_->With(
        *lake_, {}, "quiet", [&](const runtime::StreamParts& parts) -> Status {
          TRY(runtime::CheckStream(config_, parts));
          return Unit{};
        });
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().id(), ErrorId::kCaptureHasNotRun);
    const Status ran = source_->RunOn(config_, *lake_, {}, "quiet");
    ASSERT_FALSE(ran.ok());
    EXPECT_EQ(ran.error().Text(), checked.error().Text());
  }
}

TEST_F(CheckRunTest, ASourceThatWentBack) {
  source_->Backup(directory_ + "/backup");
  for (int i = 6; i < 9; ++i) {
    Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'lost')");
  }
  RunWell();
  source_->Restore(directory_ + "/backup");
  ExpectAsRun(ErrorId::kPositionAheadOfServer);
}

TEST_F(CheckRunTest, ASnapshotOfTheOtherMode) {
  NewStream("other");
  config_.target = config_.target_location = "bronze_other";
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  RunWell();
  config_.snapshot = pipeline::SnapshotMode::kFull;
  ExpectAsRun(ErrorId::kSnapshotModeLocked);
}

TEST_F(CheckRunTest, SilverWithoutAKey) {
  config_.silver_keys = {"nope"};
  ExpectSilverProblem(ErrorId::kSilverKeyInvalid);
  Fresh();
  Sql("CREATE TABLE dbo.h (id int NULL)");
  Enable("h", "dbo_h");
  config_.capture_instance = "dbo_h";
  config_.silver = config_.silver_location = "silver";
  config_.control_table = config_.control_location = "control";
  config_.bootstrap = true;
  const auto report = Check();
  ASSERT_TRUE(report.ok()) << report.error().Text();
  ASSERT_TRUE(report.value().silver_problem.has_value());
  EXPECT_EQ(report.value().silver_problem->id(), ErrorId::kSilverKeyInvalid);
  RunWell();
  ExpectSilverProblem(ErrorId::kSilverKeyInvalid);
}

TEST_F(CheckRunTest, AControlTableThatIsNone) {
  config_.control_location = "facts";
  ExpectSilverProblem(ErrorId::kLakeSchemaMismatch);
}

}  // namespace
}  // namespace mssql_cdc

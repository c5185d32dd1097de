// What a snapshot must not take for its own, or go on without: another stream's plan,
// a target that is gone, a column that became narrower, bounds that are no keys.

#include "runtime/watched_lake_test.h"
#include "tests/snapshot_fixture.h"

namespace mssql_cdc {
namespace {

using State = runtime::BackfillStatus::State;

class SnapshotGuards : public SnapshotTest {
 protected:
  // id -> rows in the target that are of this instance.
  std::map<std::int64_t, int> IdsOf(const std::string& instance) {
    std::map<std::int64_t, int> ids;
    Each("bronze", [&](const cdc::RowView& row) {
      if (row.Text("_capture_instance").value() != instance) return;
      ++ids[row.Integer("id").value().value_or(-1)];
    });
    return ids;
  }
};

// max_lsn is the database's, so two streams that begin together have the same S.
TEST_F(SnapshotGuards, TwoTablesInOneTargetOpenedAtOneLsnAreReadWhole) {
  Sql("CREATE TABLE dbo.u (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)");
  std::string values;
  for (int i = 0; i < 10; ++i) {
    values += (values.empty() ? "(" : ", (") + std::to_string(i) + ", N'u')";
  }
  Sql("INSERT dbo.u VALUES " + values);
  Enable("u", "dbo_u");
  Pass(1);
  const runtime::StreamConfig first = config_;
  runtime::StreamConfig second = config_;
  second.capture_instance = "dbo_u";
  second.app_id = "other";
  second.checkpoint += "_u";
  RunWell();
  config_ = second;
  RunWell();
  for (const runtime::StreamConfig& config : {first, second}) {
    config_ = config;
    BackfillToTheEnd();
  }
  EXPECT_EQ(IdsOf("dbo_t").size(), 50u);
  EXPECT_EQ(IdsOf("dbo_u").size(), 10u);
  EXPECT_EQ(IdsOf("dbo_u").rbegin()->first, 9);
  EXPECT_EQ(IdsOf("dbo_t").rbegin()->first, 49);

  // A third table's snapshot is not found among theirs.
  Sql("CREATE TABLE dbo.v (id int NOT NULL PRIMARY KEY, note nvarchar(40) NULL)");
  Sql("INSERT dbo.v VALUES (7, N'v')");
  Enable("v", "dbo_v");
  Pass(1);
  config_.capture_instance = "dbo_v";
  config_.app_id = "third";
  config_.checkpoint += "_v";
  config_.snapshot = pipeline::SnapshotMode::kFull;
  ASSERT_TRUE(Take().ok());
  EXPECT_EQ(IdsOf("dbo_v"), (std::map<std::int64_t, int>{{7, 1}}));
}

TEST_F(SnapshotGuards, AColumnThatBecameNarrowerIsReadInTheTargetsType) {
  Fresh();
  Sql("CREATE TABLE dbo.w (id int NOT NULL PRIMARY KEY, note bigint NULL)");
  Sql("INSERT dbo.w VALUES (1, 10), (2, 20), (3, 30), (4, 40)");
  Enable("w", "dbo_w");
  Pass(1);
  config_.capture_instance = "dbo_w";
  config_.bootstrap = true;
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  options_ = {};
  options_.chunk_rows = 2;
  options_.max_waves = 1;
  config_.num_partitions = 1;
  RunWell();
  EXPECT_EQ(BackfillWell().state, State::kRunning);
  Sql("ALTER TABLE dbo.w ALTER COLUMN note int NULL");
  Pass(1);
  RunWell();
  options_.max_waves.reset();
  BackfillToTheEnd();
  config_.snapshot = pipeline::SnapshotMode::kFull;
  ASSERT_TRUE(Take(true).ok());
  std::multiset<std::int64_t> notes;
  Each("bronze", [&](const cdc::RowView& row) {
    notes.insert(row.Integer("note").value().value_or(-1));
  });
  EXPECT_EQ(notes, (std::multiset<std::int64_t>{10, 10, 20, 20, 30, 30, 40, 40}));
}

TEST_F(SnapshotGuards, ATargetThatIsGoneIsNotMadeAnewWithoutItsWaves) {
  RunWell();
  options_.max_waves = 1;
  BackfillWell();
  lake_->Drop("bronze");
  const auto backfill = Backfill(*lake_);
  ASSERT_FALSE(backfill.ok());
  EXPECT_EQ(backfill.error().id(), ErrorId::kTargetLost) << backfill.error().Text();
  const Status run = Run();
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().id(), ErrorId::kTargetLost) << run.error().Text();
  EXPECT_FALSE(lake_->State("bronze").value().has_value());
}

TEST_F(SnapshotGuards, BoundsOfAWholeNumberKeyAreWholeNumbers) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  for (const char* bound : {R"("2024-01-01")", R"("1; DELETE dbo.t")", "true", "2.5",
                            "9223372036854775809", R"("5")"}) {
    config_.snapshot_chunks = std::string("[[0, ") + bound + ", null]]";
    const auto taken = Take();
    ASSERT_FALSE(taken.ok()) << bound;
    EXPECT_EQ(taken.error().id(), ErrorId::kOptionInvalid) << bound;
    EXPECT_EQ(taken.error().Fact("option"), "snapshotChunks");
  }
  EXPECT_EQ(SnapshotRows().size(), 0u);
  config_.snapshot_chunks = "[[0, 45, 9223372036854775808]]";
  EXPECT_TRUE(Take().ok());
  EXPECT_EQ(SnapshotRows().size(), 5u);
}

// So many readers at a time, and each of them has a connection.
TEST_F(SnapshotGuards, ChunksByHandAreReadByNoMoreConnectionsThanThereMayBe) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  config_.snapshot_chunks = "[[0,null,10],[1,10,20],[2,20,30],[3,30,40],[4,40,null]]";
  config_.num_partitions = 2;
  runtime::WatchedLake watched(*lake_);
  ASSERT_TRUE(Call([](auto& call) { return call.Take(false); }, watched).ok());
  EXPECT_EQ(watched.source_counts["bronze"], 2u);
  std::map<std::string, int> rows;
  for (const std::string& row : SnapshotRows()) ++rows[row.substr(0, row.find(':'))];
  EXPECT_EQ(rows, (std::map<std::string, int>{
                      {"0", 10}, {"1", 10}, {"2", 10}, {"3", 10}, {"4", 10}}));
}

TEST_F(SnapshotGuards, AFinishedSnapshotNeedsNoPlansTable) {
  RunWell();
  BackfillToTheEnd();
  lake_->Drop("bronze_snapshot_plans");
  const runtime::BackfillStatus status = BackfillWell();
  EXPECT_EQ(status.state, State::kDone);
  EXPECT_EQ(status.chunks_done, 7);
  EXPECT_EQ(status.chunks_total, 7);
}

// Stopped between the plan and its row in the facts, and planned again with other
// sizes: the facts tell of the plan that is read.
TEST_F(SnapshotGuards, TheFactsTellOfThePlanThatIsThere) {
  RunWell();
  options_.max_waves = 1;
  for (std::int64_t n = 0;; ++n) {
    ASSERT_LT(n, 100);
    runtime::FaultyLake lake(*lake_);
    lake.fail_before = n;
    if (Backfill(lake).ok() || CountOf("snapshot_plan") > 0) FAIL() << "never between";
    const Lines plans = Plans();
    if (plans.size() == 2) break;  // The opening and the plan.
  }
  options_.chunk_rows = 3;
  BackfillWell();
  bool is_seen = false;
  for (const std::string& event : Events()) {
    if (event.find(" snapshot_plan ") == std::string::npos) continue;
    is_seen = true;
    EXPECT_NE(event.find(R"("chunk_rows": 8, "chunk_count": 7)"), std::string::npos)
        << event;
  }
  EXPECT_TRUE(is_seen);
}

TEST_F(SnapshotGuards, ASnapshotStampedByHandIsFoundByItsLsn) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  const auto first = Take();
  ASSERT_TRUE(first.ok());
  Put(1, "x");
  Pass(1);
  config_.snapshot_lsn = source_->engine().MaxLsn("life").value()->Hex();
  ASSERT_TRUE(Take().ok());
  EXPECT_EQ(SnapshotRows().size(), 100u);
  const auto again = Take();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().lsn, config_.snapshot_lsn);
  EXPECT_EQ(SnapshotRows().size(), 100u);
  EXPECT_TRUE(Take(true).ok());
  EXPECT_EQ(SnapshotRows().size(), 150u);
  config_.snapshot_lsn = "0xFFFF0000000000000000";
  const auto ahead = Take();
  ASSERT_FALSE(ahead.ok());
  EXPECT_EQ(ahead.error().id(), ErrorId::kOptionInvalid);
  EXPECT_EQ(SnapshotRows().size(), 150u);
}

}  // namespace
}  // namespace mssql_cdc

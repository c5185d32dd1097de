// Chunked snapshots, seeds, recoveries and switches against the simulator, with writers
// at work, in one process.

#include "base/text.h"
#include "tests/snapshot_fixture.h"

namespace mssql_cdc {
namespace {

using State = runtime::BackfillStatus::State;

TEST_F(SnapshotTest, TheStreamRunsFromSWhileTheTableIsReadInWaves) {
  options_.max_waves = 1;
  RunWell();
  EXPECT_EQ(SnapshotRows().size(), 0u);
  ASSERT_EQ(Events().size(), 1u);
  int wave_count = 0;
  std::string last_stamp;
  while (true) {
    ASSERT_LT(wave_count, 20);
    const runtime::BackfillStatus status = BackfillWell();
    ++wave_count;
    // The writer: above the largest key, below it, in what is read and in what is not.
    Commit("INSERT dbo.t VALUES (" + std::to_string(100 + wave_count) + ", N'new')");
    rows_[100 + wave_count] = "new";
    Put(wave_count, "changed" + std::to_string(wave_count));
    Put(45 - wave_count, "later" + std::to_string(wave_count));
    Remove(10 + wave_count);
    Remove(30 - wave_count);
    Move(19 + wave_count, 200 + wave_count);
    Move(49 - wave_count, 20'000 + wave_count);
    Pass(1);
    RunWell();
    if (status.state == State::kDone) break;
    ASSERT_EQ(status.state, State::kRunning);
    ASSERT_TRUE(status.chunks_total.has_value());
    // Never older than the table at any position: what is there of the source's keys is
    // its newest image once the stream has caught up.
    for (const auto& [id, note] : Latest()) {
      const auto row = rows_.find(id);
      ASSERT_NE(row, rows_.end()) << id;
      EXPECT_EQ(row->second, note) << id;
    }
  }
  EXPECT_EQ(Latest(), rows_);
  EXPECT_EQ(wave_count, 4);  // 7 chunks in waves of 2; the last call only completes.
  EXPECT_EQ(CountOf("snapshot_chunk"), 7);
  EXPECT_EQ(CountOf("bootstrap"), 1);
  // Nothing above the largest key of the opening was read.
  for (const std::string& row : SnapshotRows()) {
    EXPECT_EQ(row.find(" 10"), row.find(" 10 "));
  }
  const runtime::BackfillStatus again = BackfillWell();
  EXPECT_EQ(again.state, State::kDone);
  EXPECT_EQ(again.chunks_done, 7);
  EXPECT_EQ(again.chunks_total, 7);
  const auto rows = SnapshotRows();
  RunWell();
  EXPECT_EQ(SnapshotRows(), rows);
}

// What other consumers rebuild from: the snapshot's rows and every change above S.
TEST_F(SnapshotTest, TheTableIsRebuiltFromSAlone) {
  RunWell();
  options_.max_waves = 2;
  BackfillWell();
  Move(3, 70);
  Remove(44);
  Put(48, "x");
  Pass(1);
  options_.max_waves.reset();
  BackfillToTheEnd();
  RunWell();
  std::string snapshot;
  Each("facts", [&](const cdc::RowView& row) {
    if (row.Text("event").value() == "bootstrap") {
      snapshot = *row.Text("end_lsn").value();
    }
  });
  EXPECT_EQ(Latest(snapshot), rows_);
}

TEST_F(SnapshotTest, ADenseClusterIsSplitAndASentinelCostsNothing) {
  Chunked(40, 1);
  Put(2'000'000'000, "sentinel");
  Pass(1);
  RunWell();
  BackfillToTheEnd();
  RunWell();
  EXPECT_EQ(Latest(), rows_);
  EXPECT_EQ(CountOf("snapshot_chunk"), 6);
  std::map<std::string, int> sizes;
  for (const std::string& row : SnapshotRows()) ++sizes[row.substr(0, row.find(':'))];
  for (const auto& [chunk, size] : sizes) EXPECT_LE(size, 8) << chunk;
}

TEST_F(SnapshotTest, AnEmptyTableIsOneChunkWithoutRows) {
  Chunked(0);
  RunWell();
  BackfillToTheEnd();
  EXPECT_EQ(SnapshotRows().size(), 0u);
  EXPECT_EQ(CountOf("snapshot_chunk"), 1);
  EXPECT_EQ(CountOf("bootstrap"), 1);
  Put(7, "later");
  Pass(1);
  RunWell();
  EXPECT_EQ(Latest(), rows_);
}

TEST_F(SnapshotTest, ThePlanStaysAsItWasMade) {
  RunWell();
  options_.max_waves = 1;
  BackfillWell();
  options_.chunk_rows = 3;
  options_.max_waves.reset();
  config_.num_partitions = 3;
  BackfillToTheEnd();
  EXPECT_EQ(CountOf("snapshot_chunk"), 7);
  ASSERT_EQ(backfill_warnings_.texts.size(), 1u);
  EXPECT_NE(backfill_warnings_.texts[0].find("chunk_rows"), std::string::npos);
  RunWell();
  EXPECT_EQ(Latest(), rows_);
}

TEST_F(SnapshotTest, OtherKeysThanThoseOfTheOpeningAreRefused) {
  RunWell();
  config_.snapshot_keys = {"note"};
  const auto refused = Backfill(*lake_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kOptionsClash);
  EXPECT_EQ(refused.error().Fact("columns"), "id");
}

TEST_F(SnapshotTest, WithoutAnOpenSnapshotABackfillSaysSo) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  RunWell();
  const runtime::BackfillStatus status = BackfillWell();
  EXPECT_EQ(status.state, State::kNoSnapshot);
  EXPECT_FALSE(status.snapshot.has_value());
  EXPECT_NE(status.reason.find("mssql-cdc run"), std::string::npos) << status.reason;
}

TEST_F(SnapshotTest, APauseForHeadroom) {
  RunWell();
  options_.min_headroom_hours = 1;
  // The stream has a batch without anything read, which tells nothing.
  EXPECT_EQ(BackfillWell().state, State::kWaitingMetrics);
  Put(1, "x");
  Pass(30);
  RunWell();
  EXPECT_EQ(BackfillWell().state, State::kWaitingHeadroom);
  Pass(120);
  Put(1, "y");
  Pass(1);
  RunWell();
  EXPECT_EQ(BackfillWell().state, State::kDone);
}

TEST_F(SnapshotTest, AHeldLockEndsAWaveAndNothingIsHalfWritten) {
  RunWell();
  options_.max_waves = 1;
  BackfillWell();
  const auto rows = SnapshotRows();
  const Lines events = Events();
  Sql("EXEC sim.hold_lock @table = N'dbo.t'");
  config_.lock_timeout_ms = 0;
  const auto held = Backfill(*lake_);
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().Fact("number"), "1222") << held.error().Text();
  EXPECT_EQ(SnapshotRows(), rows);
  EXPECT_EQ(Events(), events);
  // Versions do not wait.
  Sql("ALTER DATABASE life SET ALLOW_SNAPSHOT_ISOLATION ON");
  options_.isolation = runtime::IsolationLevel::kSnapshot;
  options_.max_waves.reset();
  BackfillToTheEnd();
  Sql("EXEC sim.release_lock @table = N'dbo.t'");
  RunWell();
  EXPECT_EQ(Latest(), rows_);
}

TEST_F(SnapshotTest, OneModeAtATime) {
  RunWell();
  config_.snapshot = pipeline::SnapshotMode::kFull;
  RunInto(ErrorId::kSnapshotModeLocked, "mode", "chunked");
  EXPECT_EQ(Take().error().id(), ErrorId::kSnapshotModeLocked);
  const auto seed = Call(
      [](auto& call) { return call.Seed({"copy", "0x10", false, false}); }, *lake_);
  EXPECT_EQ(seed.error().id(), ErrorId::kSnapshotModeLocked);
  BackfillToTheEnd();
  RunWell();
  EXPECT_EQ(CountOf("snapshot_open"), 1);
}

// A full snapshot that a killed run left open holds its mode until cleanup passes it.
TEST_F(SnapshotTest, AFullSnapshotLeftOpenGivesWayToCleanup) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  runtime::FaultyLake lake(*lake_);
  for (std::int64_t n = 0; CountOf("snapshot_open") == 0; ++n) {
    lake.call_count = 0;
    lake.fail_after = n;
    (void)source_->RunOn(config_, lake);
    ASSERT_LT(n, 30);
    if (!lake_->State("facts").value()) continue;
    if (CountOf("bootstrap") > 0) FAIL() << "it was read at once";
  }
  config_.snapshot = pipeline::SnapshotMode::kChunked;
  RunInto(ErrorId::kSnapshotModeLocked, "mode", "full");
  EXPECT_EQ(Backfill(*lake_).error().id(), ErrorId::kSnapshotModeLocked);
  Put(1, "x");
  Pass(100);
  Clean(10);
  RunWell();
  BackfillToTheEnd();
  RunWell();
  EXPECT_EQ(Latest(), rows_);
}

TEST_F(SnapshotTest, ASnapshotByHand) {
  const auto first = Take();
  ASSERT_TRUE(first.ok()) << first.error().Text();
  EXPECT_EQ(first.value().row_count, 50);
  const auto found = Take();
  EXPECT_EQ(found.value().lsn, first.value().lsn);
  EXPECT_EQ(found.value().row_count, std::nullopt);
  Put(1, "x");
  Pass(1);
  const auto again = Take(true);
  EXPECT_GT(again.value().lsn, first.value().lsn);
  EXPECT_EQ(SnapshotRows().size(), 100u);

  config_.target = config_.target_location = "by_hand";
  config_.snapshot_lsn = "0x0000000000000000002A";
  config_.snapshot_chunks = "[[3, null, 10], [4, 10, 20]]";
  const auto by_hand = Take();
  ASSERT_TRUE(by_hand.ok()) << by_hand.error().Text();
  EXPECT_EQ(by_hand.value().row_count, 20);
  std::map<std::int64_t, int> chunks;
  Each("by_hand", [&](const cdc::RowView& row) {
    ++chunks[row.Integer("_chunk").value().value_or(-1)];
    EXPECT_EQ(row.Text("_start_lsn").value(), config_.snapshot_lsn);
  });
  EXPECT_EQ(chunks, (std::map<std::int64_t, int>{{3, 10}, {4, 10}}));
}

class SeedTest : public SnapshotTest {
 protected:
  Result<runtime::SnapshotSummary> Seed(const std::string& as_of, bool reseed = false,
                                        const char* from = "copy") {
    return Call([&](auto& call) { return call.Seed({from, as_of, false, reseed}); },
                *lake_);
  }
};

TEST_F(SeedTest, StandsInForTheSnapshot) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  Put(3, "in the copy");
  Pass(1);
  const std::string as_of = NowText();
  Copy("copy");
  Pass(5);
  Put(4, "after the copy");
  Remove(5);
  Pass(1);
  const auto seeded = Seed(as_of);
  ASSERT_TRUE(seeded.ok()) << seeded.error().Text();
  EXPECT_EQ(seeded.value().row_count, 50);
  RunWell();
  EXPECT_EQ(Latest(), rows_);
  EXPECT_EQ(CountOf("bootstrap"), 1);
  EXPECT_EQ(SnapshotRows().size(), 50u);
  // A rerun finds it, by the time and by its LSN, and once cleanup has passed it.
  EXPECT_EQ(Seed(as_of).value().row_count, std::nullopt);
  EXPECT_EQ(Seed(seeded.value().lsn).value().lsn, seeded.value().lsn);
  Put(6, "x");
  Pass(300);
  Put(6, "y");
  Pass(1);
  Clean(10);
  EXPECT_EQ(Seed(as_of).value().lsn, seeded.value().lsn);
  EXPECT_EQ(SnapshotRows().size(), 50u);
}

TEST_F(SeedTest, EveryRefusalWritesNothing) {
  config_.snapshot = pipeline::SnapshotMode::kFull;
  Copy("copy");
  Pass(1);
  const std::string now = NowText();
  EXPECT_EQ(Seed("yesterday").error().id(), ErrorId::kOptionInvalid);
  EXPECT_EQ(Seed("2099-01-01T00:00:00").error().id(), ErrorId::kOptionInvalid);
  EXPECT_EQ(Seed("0xFFFFFFFFFFFFFFFFFFFF").error().id(), ErrorId::kOptionInvalid);
  EXPECT_EQ(Seed("2020-01-01T00:00:00").error().id(), ErrorId::kDataLoss);
  EXPECT_EQ(Seed("0x01").error().id(), ErrorId::kDataLoss);
  EXPECT_EQ(Seed(now, false, "nowhere").error().id(), ErrorId::kOptionInvalid);
  for (const char* when : {"yesterday", "2099-01-01T00:00:00", "0x01"}) {
    EXPECT_EQ(Seed(when, false, "nowhere").error().Fact("option"), "from") << when;
  }
  EXPECT_FALSE(lake_->State("bronze").value().has_value());

  // A captured column that the copy lacks.
  columns::Schema short_schema;
  short_schema.fields = {{"id", {columns::Kind::kInt32}}};
  ASSERT_TRUE(lake_->Create("short", {short_schema, "", {}}).ok());
  const auto lacking = Seed(now, false, "short");
  EXPECT_EQ(lacking.error().id(), ErrorId::kLakeSchemaMismatch);
  EXPECT_EQ(lacking.error().Fact("missing"), "note");
  const auto allowed =
      Call([&](auto& call) { return call.Seed({"short", now, true, false}); }, *lake_);
  ASSERT_TRUE(allowed.ok()) << allowed.error().Text();

  ASSERT_TRUE(Seed(now).ok());
  Put(1, "x");
  Pass(1);
  const auto other = Seed(NowText());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().id(), ErrorId::kSnapshotExists);
  EXPECT_TRUE(Seed(NowText(), true).ok());
}

TEST_F(SnapshotTest, AfterALossTheNextGenerationGoesOnFromANewSnapshot) {
  for (const auto mode :
       {pipeline::SnapshotMode::kFull, pipeline::SnapshotMode::kChunked}) {
    SCOPED_TRACE(pipeline::NameOf(mode));
    Chunked(20);
    config_.snapshot = mode;
    config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
    RunWell();
    if (mode == pipeline::SnapshotMode::kChunked) BackfillToTheEnd();
    Put(1, "lost");
    Remove(2);
    Pass(100);
    Put(3, "kept");
    Pass(1);
    Clean(10);
    RunWell();
    if (mode == pipeline::SnapshotMode::kChunked) BackfillToTheEnd();
    EXPECT_EQ(CountOf("resnapshot"), 1);
    std::string snapshot;
    Each("facts", [&](const cdc::RowView& row) {
      if (row.Text("event").value() != "resnapshot") return;
      snapshot = *row.Text("end_lsn").value();
      EXPECT_EQ(row.Text("app_id").value(), "app.g1");
      EXPECT_TRUE(row.Integer("lost_to_ts").value().has_value());
    });
    Put(4, "on");
    Pass(1);
    RunWell();
    EXPECT_EQ(Latest(snapshot), rows_);
    EXPECT_TRUE(
        std::filesystem::exists(config_.checkpoint + "/_generations/1/commits/0"));
    // A second loss, too soon.
    Put(5, "lost");
    Pass(100);
    Put(6, "kept");
    Pass(1);
    Clean(10);
    RunInto(ErrorId::kDataLoss);
    config_.resnapshot_interval_days = 0;
    RunWell();
    if (mode == pipeline::SnapshotMode::kChunked) BackfillToTheEnd();
    EXPECT_EQ(CountOf("resnapshot"), 2);
    EXPECT_TRUE(std::filesystem::exists(config_.checkpoint + "/_generations/2"));
  }
}

// A chunked snapshot that is lost while it is open is left behind for a newer one.
TEST_F(SnapshotTest, ALossUnderAnOpenChunkedSnapshotOpensANewerOne) {
  config_.on_data_loss = runtime::OnDataLoss::kResnapshot;
  RunWell();
  options_.max_waves = 1;
  BackfillWell();
  Put(1, "lost");
  Pass(100);
  Put(3, "kept");
  Pass(1);
  Clean(10);
  RunWell();
  options_.max_waves.reset();
  BackfillToTheEnd();
  EXPECT_EQ(CountOf("snapshot_open"), 2);
  EXPECT_EQ(CountOf("bootstrap"), 0);
  EXPECT_EQ(CountOf("resnapshot"), 1);
  RunWell();
  std::string snapshot;
  Each("facts", [&](const cdc::RowView& row) {
    if (row.Text("event").value() == "resnapshot") {
      snapshot = *row.Text("end_lsn").value();
    }
  });
  EXPECT_EQ(Latest(snapshot), rows_);
}

class SwitchTest : public SnapshotTest {
 protected:
  // Values that only the newer instance captures.
  std::map<int, std::string> More() {
    std::map<int, std::pair<std::string, std::string>> newest;
    Each("bronze", [&](const cdc::RowView& row) {
      const std::string lsn = row.Text("_start_lsn").value().value_or("");
      auto& [order, value] =
          newest[static_cast<int>(row.Integer("id").value().value_or(-1))];
      if (order > lsn) return;
      order = lsn;
      value = row.Text("more").value().value_or("NULL");
    });
    std::map<int, std::string> values;
    for (const auto& [id, pair] : newest) values[id] = pair.second;
    return values;
  }
  void AddInstance() {
    Sql("ALTER TABLE dbo.t ADD more nvarchar(20) NULL");
    Sql("UPDATE dbo.t SET more = N'm' + CAST(id AS nvarchar(10))");
    Enable("t", "dbo_t_v2");
    Pass(1);
    Sql("UPDATE dbo.t SET more = N'new' WHERE id = 3");
    Pass(1);
  }
};

TEST_F(SwitchTest, RowsThatDidNotChangeSinceGetTheNewColumns) {
  for (const auto mode :
       {pipeline::SnapshotMode::kFull, pipeline::SnapshotMode::kChunked}) {
    SCOPED_TRACE(pipeline::NameOf(mode));
    Chunked(20);
    config_.snapshot = mode;
    config_.snapshot_on_switch = true;
    RunWell();
    if (mode == pipeline::SnapshotMode::kChunked) BackfillToTheEnd();
    AddInstance();
    RunWell();
    if (mode == pipeline::SnapshotMode::kChunked) BackfillToTheEnd();
    RunWell();
    std::map<int, std::string> expected;
    for (const auto& [id, note] : rows_) expected[id] = "m" + std::to_string(id);
    expected[3] = "new";
    EXPECT_EQ(More(), expected);
    EXPECT_EQ(CountOf("capture_instance_switched"), 1);
    if (mode == pipeline::SnapshotMode::kChunked) {
      EXPECT_EQ(CountOf("bootstrap"), 2);
      EXPECT_NE(Events().back().find("bootstrap"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace mssql_cdc

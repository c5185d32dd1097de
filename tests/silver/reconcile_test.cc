// What a comparison of silver with its source must not take for a difference, and what
// it must not overlook.

#include "runtime/snapshot_calls.h"
#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using testing::IsEmpty;

using ReconcileTest = RepairTest;

TEST_F(ReconcileTest, ASourceThatWasRestoredIsNoSourceOfThisSilver) {
  for (const bool goes_past : {false, true}) {
    SCOPED_TRACE(goes_past);
    Fresh();
    Made();
    source_->Backup(directory_ + "/backup");
    for (int i = 6; i < 9; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'lost')");
    }
    RunWell();
    ApplyWell();
    EXPECT_TRUE(Compare().is_equal());
    source_->engine().AdvanceClock(77'123);
    source_->Restore(directory_ + "/backup");
    for (int i = 6; goes_past && i < 13; ++i) {
      Commit("INSERT dbo.t VALUES (" + std::to_string(i) + ", N'other')");
    }
    Status status = TryCompare();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(),
              goes_past ? ErrorId::kSourceForked : ErrorId::kPositionAheadOfServer);
    if (goes_past) continue;
    // Where another program has the checkpoint, silver itself tells.
    config_.checkpoint = directory_ + "/another";
    status = TryCompare();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().id(), ErrorId::kPositionAheadOfServer);
  }
}

// No bucket holds it, and a source whose key is NOT NULL never has it.
TEST_F(ReconcileTest, ARowWithoutAKeyIsFoundAndTakenOut) {
  const columns::Schema schema = lake_->State("silver").value()->schema;
  std::vector<std::unique_ptr<columns::BatchReader>> rows;
  rows.push_back(lake::ReadRows(
      schema, 1, [&](std::int64_t, std::size_t column, columns::ColumnBuilder& out) {
        if (schema.fields[column].name == "_start_lsn") {
          out.AppendBytes("0x00000000000000000001");
        } else {
          out.AppendNull();
        }
      }));
  ASSERT_TRUE(lake_->Append("silver", std::move(rows), {}).ok());
  EXPECT_EQ(KindsOf(Compare()), (Found{{R"({"id":null})", "MISSING_SOURCE"}}));
  Commit("INSERT dbo.t VALUES (6, N'f')");
  RunWell();
  RepairWell(*lake_);
  EXPECT_THAT(Compare().findings, IsEmpty());
}

// As it may be where the key that CDC takes is a unique index over such a column.
TEST_F(ReconcileTest, ANullKeyThatTheSourceHasIsARowLikeAnother) {
  Fresh();
  Sql("CREATE TABLE dbo.n (id int NULL, note nvarchar(40) NULL)");
  Sql("CREATE UNIQUE INDEX n_id ON dbo.n (id)");
  Sql("INSERT dbo.n VALUES (NULL, N'none'), (1, N'a'), (2, N'b')");
  Enable("n", "dbo_n");
  Pass(1);
  config_.capture_instance = "dbo_n";
  config_.silver_keys = {"id"};
  WithSilver();
  EXPECT_THAT(Compare().findings, IsEmpty());
  Plant({"0"}, {});  // As KeyOf has it.
  EXPECT_EQ(KindsOf(Compare()), (Found{{R"({"id":null})", "MISSING_TARGET"}}));
  Commit("INSERT dbo.n VALUES (6, N'f')");
  RunWell();
  RepairWell(*lake_);
  EXPECT_THAT(Compare().findings, IsEmpty());
}

TEST_F(ReconcileTest, ChunksByHandGiveWayToAWholeSnapshot) {
  Fresh();
  Sql("INSERT dbo.t VALUES (2, N'b'), (3, N'c')");
  Pass(1);
  config_.silver = config_.silver_location = "silver";
  config_.control_table = config_.control_location = "control";
  const auto take = [&] {
    const Status status = source_->With(
        *lake_, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          TRY(runtime::SnapshotCall::Make(config_, parts)->Take(true));
          return Unit{};
        });
    ASSERT_TRUE(status.ok()) << status.error().Text();
  };
  config_.snapshot_chunks = "[[0, null, 2]]";
  take();
  config_.snapshot_chunks = "";
  const Status refused = TryApply();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id(), ErrorId::kSnapshotUnexplained);
  take();
  ApplyWell();
  EXPECT_THAT(Compare().findings, IsEmpty());
  EXPECT_EQ(lake_->RowCount("silver").value(), 3);
}

// Something happens whenever the product waits.
class WaitHook final : public Clock {
 public:
  std::function<void()> at_wait = [] {};
  std::int64_t NowUtcUs() override { return clock_.NowUtcUs(); }
  std::int64_t MonotonicNs() override { return clock_.MonotonicNs(); }
  void SleepMs(std::int64_t duration_ms) override {
    clock_.SleepMs(duration_ms);
    at_wait();
  }

 private:
  ManualClock clock_{0};
};

// Of a login that is not shown the capture job's scans.
class BlindSession final : public sqlserver::Session {
 public:
  explicit BlindSession(std::unique_ptr<sqlserver::Session> inner)
      : inner_(std::move(inner)) {}
  Result<std::unique_ptr<sqlserver::Reply>> Execute(
      const sqlserver::Request& request,
      const sqlserver::BatchLimits& limits) override {
    if (request.sql.find("dm_cdc_log_scan_sessions") != std::string::npos) {
      return Error(ErrorId::kPermissionDenied).With("number", "297");
    }
    return inner_->Execute(request, limits);
  }
  void Cancel() override { inner_->Cancel(); }
  bool clean() const override { return inner_->clean(); }
  const sqlserver::ServerFacts& facts() const override { return inner_->facts(); }
  std::int64_t request_count() const override { return inner_->request_count(); }
  void Close() override { inner_->Close(); }

 private:
  std::unique_ptr<sqlserver::Session> inner_;
};
class BlindSessions final : public runtime::SessionSource {
 public:
  explicit BlindSessions(runtime::SessionSource& inner) : inner_(inner) {}
  Result<std::unique_ptr<sqlserver::Session>> Open() override {
    TRY_ASSIGN(std::unique_ptr<sqlserver::Session> session, inner_.Open());
    return std::unique_ptr<sqlserver::Session>(
        std::make_unique<BlindSession>(std::move(session)));
  }

 private:
  runtime::SessionSource& inner_;
};

class CaptureWaitTest : public ReconcileTest {
 protected:
  runtime::ReconcileOutcome CompareWaiting(bool is_blind = false,
                                           std::int64_t wait_ms = 5'000) {
    runtime::ReconcileOutcome found;
    const Status status = With(
        *lake_,
        [&](const runtime::SilverConfig& silver,
            const runtime::ReconcileParts& parts) -> Status {
          runtime::ReconcileOptions options;
          options.sample = 1;
          options.capture_wait_ms_max = wait_ms;
          BlindSessions blind(parts.sessions);
          runtime::SessionSource& sessions = is_blind ? blind : parts.sessions;
          TRY_ASSIGN(found, runtime::Reconcile(config_, silver, options,
                                               {parts.lake, sessions, clock_, dice_}));
          return Unit{};
        });
    EXPECT_TRUE(status.ok()) << status.error().Text();
    return found;
  }

  WaitHook clock_;
};

// Nothing happens there, so only the entry of every five minutes tells.
TEST_F(CaptureWaitTest, WithoutASightOfScansAnIdleSourceTellsByItsNextEntry) {
  Plant({"2"}, {});
  clock_.at_wait = [&] {
    source_->engine().AdvanceClock(500);
    source_->CaptureAll();
  };
  runtime::ReconcileOutcome found = CompareWaiting();
  EXPECT_TRUE(found.capture_has_passed);
  EXPECT_TRUE(found.scans_are_shown);
  EXPECT_FALSE(found.may_pass());

  found = CompareWaiting(true);
  EXPECT_FALSE(found.capture_has_passed);
  EXPECT_FALSE(found.scans_are_shown);
  EXPECT_TRUE(found.may_pass());

  found = CompareWaiting(true, 330'000);
  EXPECT_TRUE(found.capture_has_passed);
  EXPECT_FALSE(found.may_pass());
}

TEST_F(CaptureWaitTest, ACommitThatCaptureHasNotReadIsNotTakenForADifference) {
  WaitHook& clock = clock_;
  const auto compare = [&] { return CompareWaiting(); };
  Sql("UPDATE dbo.t SET note = N'C' WHERE id = 3");
  Sql("INSERT dbo.t VALUES (6, N'f')");
  Plant({"2"}, {});
  const Found all = {{R"({"id":2})", "MISSING_TARGET"},
                     {R"({"id":3})", "RECORD_DIFF"},
                     {R"({"id":6})", "MISSING_TARGET"}};
  runtime::ReconcileOutcome found = compare();
  EXPECT_EQ(KindsOf(found), all);
  EXPECT_FALSE(found.capture_has_passed);

  clock.at_wait = [&] {
    source_->engine().AdvanceClock(1000);
    source_->CaptureAll();
  };
  found = compare();
  EXPECT_EQ(KindsOf(found), (Found{{R"({"id":2})", "MISSING_TARGET"},
                                   {R"({"id":3})", "IN_FLIGHT"},
                                   {R"({"id":6})", "IN_FLIGHT"}}));
  EXPECT_TRUE(found.capture_has_passed);
  EXPECT_FALSE(found.is_equal());

  RunWell();
  RepairWell(*lake_);
  Sql("DELETE dbo.t WHERE id = 6");
  found = compare();
  EXPECT_EQ(KindsOf(found), (Found{{R"({"id":6})", "IN_FLIGHT"}}));
  EXPECT_EQ(found.mismatch, 0);
  EXPECT_TRUE(found.is_equal());
}

}  // namespace
}  // namespace mssql_cdc

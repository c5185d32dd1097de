// Silver that is kept fresh beside a stream, where the stream's own beginning decides
// whether silver can be made.

#include <atomic>
#include <thread>

#include "runtime/serialized_lake.h"
#include "runtime/silver_keeper.h"
#include "runtime/snapshot_calls.h"
#include "runtime/watched_lake_test.h"
#include "tests/silver/silver_fixture.h"

namespace mssql_cdc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class Told final : public runtime::SilverObserver {
 public:
  Lines failures;  // Names.
  void OnSilverFailed(const Error& error) override {
    failures.emplace_back(RuleOf(error.id()).name);
  }
};

// The stream takes its snapshot, or ends, once silver has been tried.
class AfterSilver final : public runtime::StreamObserver {
 public:
  std::atomic<bool> was_tried{false};
  void OnSnapshotStart(std::int64_t) override { Await(); }
  void Await() {
    while (!was_tried) std::this_thread::yield();
  }
};

class KeeperTest : public RepairTest {
 protected:
  // Rows 1 to 3; bronze has those of a chunk read by hand.
  void ChunksByHand() {
    Fresh();
    Sql("INSERT dbo.t VALUES (2, N'b'), (3, N'c')");
    Pass(1);
    config_.silver = config_.silver_location = "silver";
    config_.control_table = config_.control_location = "control";
    config_.snapshot_chunks = "[[0, null, 2]]";
    const Status status = source_->With(
        *lake_, {}, "life", [&](const runtime::StreamParts& parts) -> Status {
          TRY(runtime::SnapshotCall::Make(config_, parts)->Take(true));
          return Unit{};
        });
    ASSERT_TRUE(status.ok()) << status.error().Text();
    config_.snapshot_chunks = "";
  }

  // A run with its silver. Both begin with bronze as it is.
  Status RunKept() {
    runtime::SerializedLake lake(*lake_);
    runtime::WatchedLake of_stream(lake);
    of_stream.before = at_stream_;
    runtime::WatchedLake of_silver(lake);
    AfterSilver inner;
    int read_count = 0;
    // Snapshot rows are looked for, then rows of chunks.
    of_silver.before = [&](std::string_view call, const std::string& location) {
      if (call == "Read" && location == "bronze" && ++read_count == 2) {
        inner.was_tried = true;
      }
      return Status(Unit{});
    };
    return source_->With(
        of_stream, {}, "life", [&](runtime::StreamParts parts) -> Status {
          runtime::SilverKeeper keeper(config_, {.lake = of_silver,
                                                 .sessions = *parts.sessions,
                                                 .clock = *parts.clock,
                                                 .inner = inner,
                                                 .told = told_});
          parts.observer = &keeper;
          TRY_ASSIGN(const auto stream, runtime::Stream::Open(config_, parts));
          keeper.Start();
          const Status ran = stream->Run();
          inner.Await();
          TRY(keeper.Finish());
          return ran;
        });
  }

  runtime::WatchedLake::Ask at_stream_ =
      [](std::string_view, const std::string&) -> Status { return Unit{}; };
  Told told_;
};

TEST_F(KeeperTest, ChunksByHandGiveWayToTheSnapshotOfTheRunItself) {
  ChunksByHand();
  config_.bootstrap = true;
  const Status status = RunKept();
  EXPECT_TRUE(status.ok()) << status.error().Text();
  EXPECT_THAT(told_.failures, IsEmpty());
  EXPECT_THAT(Silver(), UnorderedElementsAre("1|a", "2|b", "3|c"));
}

TEST_F(KeeperTest, ChunksByHandStopSilverWhereNoSnapshotComes) {
  ChunksByHand();
  config_.starting_lsn = "latest";
  const Status status = RunKept();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().id(), ErrorId::kSnapshotUnexplained);
  EXPECT_THAT(told_.failures, ElementsAre("SnapshotUnexplained"));
}

TEST_F(KeeperTest, ChunksByHandStopSilverWhereTheSnapshotDoesNotCome) {
  ChunksByHand();
  config_.bootstrap = true;
  at_stream_ = [](std::string_view call, const std::string& location) -> Status {
    if (call != "Append" || location != "bronze") return Unit{};
    return Error(ErrorId::kLakeFailed);
  };
  const Status status = RunKept();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(told_.failures, ElementsAre("SnapshotUnexplained"));
}

}  // namespace
}  // namespace mssql_cdc

#include "cdc/batch_plan.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

constexpr Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }
// A commit, whose time is derived from its number.
Offset C(std::uint8_t last) { return Offset{L(last), last * 1'000'000}; }
// A position that is no commit.
Offset P(std::uint8_t last) { return Offset{L(last), std::nullopt}; }

TEST(PlanBatch, Table) {
  const std::optional<Offset> none;
  const std::optional<Lsn> gone;
  const struct {
    const char* when;
    BatchFacts facts;  // position, server_max, instance_min, limited_end, frozen_end
    BatchPlan plan;
  } kRows[] = {
      {"changes are waiting",
       {C(5), C(9), L(1), none, none},
       ReadChanges{{L(5), L(9)}, 9'000'000}},
      {"nothing new", {C(5), C(5), L(1), none, none}, Wait{Wait::Reason::kCaughtUp}},
      {"nothing new, and the instance is gone",
       {C(5), C(5), gone, none, none},
       Wait{Wait::Reason::kCaughtUp}},
      {"capture never ran",
       {P(0), none, L(1), none, none},
       Wait{Wait::Reason::kCaptureHasNotRun}},
      {"instance was dropped", {C(5), C(9), gone, none, none}, ReportMissingInstance{}},
      {"server behind a commit that was read",
       {C(5), C(4), L(1), none, none},
       ReportFork{L(5), L(4)}},
      {"the same, in a run that froze its end below it",
       {C(5), C(4), L(1), none, C(4)},
       ReportFork{L(5), L(4)}},
      {"fresh instance above the newest commit",
       {P(5), C(4), L(6), none, none},
       Wait{Wait::Reason::kCaughtUp}},
      {"cleanup stopped just short",
       {C(5), C(9), L(6), none, none},
       ReadChanges{{L(5), L(9)}, 9'000'000}},
      {"cleanup went one too far",
       {C(5), C(9), L(7), none, none},
       ReportGap{L(5), L(7)}},
      {"the commit limit cuts",
       {C(5), C(9), L(1), C(7), none},
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"the limit's entry came after the newest was asked for",
       {C(5), C(6), L(1), C(7), none},
       ReadChanges{{L(5), L(6)}, 6'000'000}},
      {"the frozen end caps",
       {C(5), C(9), L(1), none, C(8)},
       ReadChanges{{L(5), L(8)}, 8'000'000}},
      {"the smaller of limit and frozen end",
       {C(5), C(9), L(1), C(7), C(8)},
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"the frozen end is reached",
       {C(8), C(9), L(1), C(9), C(8)},
       Wait{Wait::Reason::kFrozenEndReached}},
      {"a run that was frozen before capture ran",
       {P(0), C(9), L(1), none, P(0)},
       Wait{Wait::Reason::kFrozenEndReached}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanBatch(row.facts), row.plan);
  }
}

// The space is small enough to walk whole, so it is walked whole.
TEST(PlanBatch, NeverReadsWhatWasReadNorSkipsWhatWasNotNorPassesABound) {
  int read_count = 0;
  for (std::uint8_t position = 0; position < 6; ++position) {
    for (std::uint8_t max = 0; max < 6; ++max) {
      for (std::uint8_t min = 0; min < 6; ++min) {
        for (std::uint8_t limit = 0; limit < 6; ++limit) {
          for (std::uint8_t frozen = 0; frozen < 6; ++frozen) {
            BatchFacts facts{C(position), C(max), L(min), C(limit), C(frozen)};
            if (limit == 0) facts.limited_end.reset();
            if (frozen == 0) facts.frozen_end.reset();
            const BatchPlan plan = PlanBatch(facts);
            const auto* read = std::get_if<ReadChanges>(&plan);
            if (read == nullptr) continue;
            ++read_count;
            EXPECT_EQ(read->window.after, L(position));
            EXPECT_LT(read->window.after, read->window.through);
            EXPECT_LE(read->window.through, L(max));
            if (frozen != 0) {
              EXPECT_LE(read->window.through, L(frozen));
            }
            EXPECT_LE(min, position + 1);
          }
        }
      }
    }
  }
  EXPECT_GT(read_count, 100);
}

TEST(PlanReplay, EndsExactlyWhereTheCheckpointSaysOrNotAtAll) {
  const std::optional<Lsn> gone;
  const struct {
    const char* when;
    BatchFacts facts;
    Offset end;
    BatchPlan plan;
  } kRows[] = {
      {"as planned",
       {C(5), C(9), L(1), {}, {}},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"limits do not move the end",
       {C(5), C(9), L(1), C(6), C(6)},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"Spark's first batch after a bootstrap",
       {C(5), C(9), L(1), {}, {}},
       C(5),
       ReadNothing{}},
      {"purged meanwhile", {C(5), C(9), L(8), {}, {}}, C(7), ReportGap{L(5), L(8)}},
      {"server lost the end", {C(5), C(6), L(1), {}, {}}, C(7), ReportFork{L(7), L(6)}},
      {"instance dropped", {C(5), C(9), gone, {}, {}}, C(7), ReportMissingInstance{}},
      {"cleanup emptied the mapping",
       {C(5), {}, L(1), {}, {}},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanReplay(row.facts, row.end), row.plan);
  }
}

TEST(CleanupReached, IsAskedOfTheFirstUnreadLsn) {
  EXPECT_FALSE(CleanupReached({L(5), L(9)}, L(6)));
  EXPECT_TRUE(CleanupReached({L(5), L(9)}, L(7)));
  EXPECT_TRUE(CleanupReached({L(5), L(9)}, std::nullopt));
}

}  // namespace
}  // namespace mssql_cdc::cdc

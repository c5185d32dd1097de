#include "cdc/batch_plan.h"

#include <gtest/gtest.h>

namespace mssql_cdc::cdc {
namespace {

constexpr Lsn L(std::uint8_t last) { return Lsn{{0, 0, 0, 1, 0, 0, 0, 2, 0, last}}; }
// A commit, whose time is derived from its number.
Offset C(std::uint8_t last) { return Offset{L(last), last * 1'000'000}; }
// A position that is no commit.
Offset P(std::uint8_t last) { return Offset{L(last), std::nullopt}; }
using Time = std::optional<std::int64_t>;
constexpr std::int64_t kQuarterUs = 900'000'000;

const std::optional<Offset> kNone;
struct PlanCase {
  const char* when;
  // position, server_max, server_oldest, position_commit_us, limited_end, frozen_end,
  // newest_start
  BatchFacts facts;
  BatchPlan plan;
};
const PlanCase kPlanCases[] = {
    {"changes are waiting",
     {C(5), C(9), L(1), 5'000'000, kNone, kNone},
     ReadChanges{{L(5), L(9)}, 9'000'000}},
    {"nothing new",
     {C(5), C(5), L(1), 5'000'000, kNone, kNone},
     Wait{Wait::Reason::kCaughtUp}},
    {"capture never ran",
     {P(0), kNone, {}, {}, kNone, kNone},
     Wait{Wait::Reason::kCaptureHasNotRun}},
    {"cleanup emptied the mapping of an idle database",
     {C(5), kNone, {}, {}, kNone, kNone},
     Wait{Wait::Reason::kCaptureHasNotRun}},
    {"server behind a commit that was read",
     {C(5), C(4), L(1), {}, kNone, kNone},
     ReportBehind{L(5), L(4)}},
    {"the same, in a run that froze its end below it",
     {C(5), C(4), L(1), {}, kNone, C(4)},
     ReportBehind{L(5), L(4)}},
    {"the server went on without the commit that was read last",
     {C(5), C(9), L(1), {}, kNone, kNone},
     ReportFork{L(5), 5'000'000, {}}},
    {"another commit under its LSN",
     {C(5), C(9), L(1), 5'000'001, kNone, kNone},
     ReportFork{L(5), 5'000'000, 5'000'001}},
    {"the same commit, its time converted with another offset",
     {C(5), C(9), L(1), 5'000'000 - 8 * kQuarterUs, kNone, kNone},
     ReadChanges{{L(5), L(9)}, 9'000'000}},
    {"cleanup took the mapping's entry of the position",
     {C(5), C(9), L(6), {}, kNone, kNone},
     ReadChanges{{L(5), L(9)}, 9'000'000}},
    {"the position was never a commit",
     {P(5), C(9), L(1), {}, kNone, kNone},
     ReadChanges{{L(5), L(9)}, 9'000'000}},
    {"fresh instance above the newest commit",
     {P(5), C(4), L(1), {}, kNone, kNone, L(6)},
     Wait{Wait::Reason::kCaughtUp}},
    {"the same, in a run that froze its end",
     {P(5), C(4), L(1), {}, kNone, C(4), L(6)},
     Wait{Wait::Reason::kFrozenEndReached}},
    {"a start that no instance has and the server has not reached",
     {P(5), C(4), L(1), {}, kNone, kNone, L(5)},
     Wait{Wait::Reason::kPositionUnreached}},
    {"the same, in a run that froze its end, of an instance that capture knows not yet",
     {P(5), C(4), L(1), {}, kNone, C(4)},
     Wait{Wait::Reason::kPositionUnreached}},
    {"the server is there",
     {P(5), C(5), L(1), {}, kNone, kNone, L(1)},
     Wait{Wait::Reason::kCaughtUp}},
    {"the commit limit cuts",
     {C(5), C(9), L(1), 5'000'000, C(7), kNone},
     ReadChanges{{L(5), L(7)}, 7'000'000}},
    {"the limit's entry came after the newest was asked for",
     {C(5), C(6), L(1), 5'000'000, C(7), kNone},
     ReadChanges{{L(5), L(6)}, 6'000'000}},
    {"the frozen end caps",
     {C(5), C(9), L(1), 5'000'000, kNone, C(8)},
     ReadChanges{{L(5), L(8)}, 8'000'000}},
    {"the smaller of limit and frozen end",
     {C(5), C(9), L(1), 5'000'000, C(7), C(8)},
     ReadChanges{{L(5), L(7)}, 7'000'000}},
    {"the frozen end is reached",
     {C(8), C(9), L(1), 8'000'000, C(9), C(8)},
     Wait{Wait::Reason::kFrozenEndReached}},
    {"a run that was frozen before capture ran",
     {P(0), C(9), L(1), {}, kNone, P(0)},
     Wait{Wait::Reason::kFrozenEndReached}},
};

TEST(PlanBatch, Table) {
  for (const PlanCase& row : kPlanCases) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanBatch(row.facts), row.plan);
  }
}

// The space is small enough to walk whole, so it is walked whole.
TEST(PlanBatch, NeverReadsWhatWasReadNorSkipsWhatWasNotNorPassesABound) {
  int read_count = 0;
  for (std::uint8_t position = 0; position < 6; ++position) {
    for (std::uint8_t max = 0; max < 6; ++max) {
      for (std::uint8_t oldest = 0; oldest < 6; ++oldest) {
        for (std::uint8_t limit = 0; limit < 6; ++limit) {
          for (std::uint8_t frozen = 0; frozen < 6; ++frozen) {
            BatchFacts facts{C(position),          C(max),   L(oldest),
                             position * 1'000'000, C(limit), C(frozen)};
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
          }
        }
      }
    }
  }
  EXPECT_GT(read_count, 100);
}

TEST(PlanReplay, EndsExactlyWhereTheCheckpointSaysOrNotAtAll) {
  const struct {
    const char* when;
    BatchFacts facts;
    Offset end;
    BatchPlan plan;
  } kRows[] = {
      {"as planned",
       {C(5), C(9), L(1), 5'000'000, {}, {}},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"limits do not move the end",
       {C(5), C(9), L(1), 5'000'000, C(6), C(6)},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
      {"Spark's first batch after a bootstrap",
       {C(5), C(9), L(1), 5'000'000, {}, {}},
       C(5),
       ReadNothing{}},
      {"server lost the end",
       {C(5), C(6), L(1), 5'000'000, {}, {}},
       C(7),
       ReportBehind{L(7), L(6)}},
      {"server lost the beginning",
       {C(5), C(9), L(1), {}, {}, {}},
       C(7),
       ReportFork{L(5), 5'000'000, {}}},
      {"cleanup emptied the mapping",
       {C(5), {}, {}, {}, {}, {}},
       C(7),
       ReadChanges{{L(5), L(7)}, 7'000'000}},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.when);
    EXPECT_EQ(PlanReplay(row.facts, row.end), row.plan);
  }
}

}  // namespace
}  // namespace mssql_cdc::cdc

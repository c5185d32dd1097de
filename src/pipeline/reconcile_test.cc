#include "pipeline/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mssql_cdc::pipeline {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Reconcile, SlicesRoundDown) {
  const std::pair<std::int64_t, std::int64_t> cases[] = {
      {0, 0},
      {9, 0},
      {10, 1},
      {-1, -1},
      {-10, -1},
      {-11, -2},
      {INT64_MIN, -922337203685477581}};
  for (const auto& [key, slice] : cases) EXPECT_EQ(SliceOf(key, 10), slice) << key;
  EXPECT_EQ(SliceWidth(5, 5), 1);
  EXPECT_EQ(SliceWidth(0, 989'999), 10);
  EXPECT_GT(SliceWidth(INT64_MIN, INT64_MAX), 0);
}

TEST(Reconcile, BucketsHoldTheRowsAndSayWhatTheyFind) {
  const Slices source = {{0, {3, 30}}, {1, {3, 60}}, {2, {2, 50}}, {5, {4, 1}}};
  const Slices silver = {{0, {3, 30}}, {1, {3, 61}}, {2, {2, 50}}, {7, {1, 9}}};
  const std::vector<Bucket> buckets = CutBuckets(10, source, silver, {6}, 4);
  ASSERT_THAT(buckets, SizeIs(3));
  // Slices 0 and 1: equal numbers of rows, another sum.
  EXPECT_EQ(buckets[0].lo, 0);
  EXPECT_EQ(buckets[0].hi, 20);
  EXPECT_EQ(buckets[0].source_rows, 6);
  EXPECT_EQ(buckets[0].status, BucketStatus::kMismatch);
  // Slice 2 with 5; 6 has a key in flight and no row.
  EXPECT_EQ(buckets[1].hi, 70);
  EXPECT_EQ(buckets[1].status, BucketStatus::kInFlight);
  EXPECT_EQ(buckets[2].lo, 70);
  EXPECT_EQ(buckets[2].hi, 80);
  EXPECT_EQ(buckets[2].source_rows, 0);
  EXPECT_THAT(CutBuckets(10, {}, {}, {}, 4), IsEmpty());
  // What agrees is a match, also with keys in flight.
  EXPECT_EQ(CutBuckets(10, source, source, {0, 1, 2, 5}, 100)[0].status,
            BucketStatus::kMatch);
  EXPECT_EQ(WholeBucket(3, 4, false).status, BucketStatus::kMismatch);
  EXPECT_EQ(WholeBucket(3, 4, true).status, BucketStatus::kInFlight);
  EXPECT_EQ(WholeBucket(3, 3, true).status, BucketStatus::kMatch);
}

TEST(Reconcile, BoundsAreJsonOfTheKey) {
  using enum OrdinalKind;
  const struct {
    OrdinalKind kind;
    std::optional<std::int64_t> bound;
    std::optional<std::string> json;
  } cases[] = {{kNumber, -7, "-7"},
               {kNumber, std::nullopt, std::nullopt},
               {kDate, 0, "\"1970-01-01\""},
               {kDate, 20'484, "\"2026-01-31\""},
               {kDate, -800'000, "\"0001-01-01\""},
               {kDate, 2'932'896, "\"9999-12-31\""},
               {kDate, 2'932'897, std::nullopt}};
  for (const auto& one : cases) {
    EXPECT_EQ(BoundJson(one.kind, one.bound), one.json) << one.bound.value_or(0);
  }
}

TEST(Reconcile, AllThatDiffersAndAShareOfTheRestIsRead) {
  std::vector<Bucket> buckets(10);
  buckets[3].status = BucketStatus::kMismatch;
  buckets[4].status = BucketStatus::kInFlight;
  Dice dice(7);
  EXPECT_THAT(ChooseBuckets(buckets, 0, dice), ElementsAre(3));
  EXPECT_THAT(ChooseBuckets(buckets, 0.01, dice), SizeIs(2));
  EXPECT_THAT(ChooseBuckets(buckets, 1, dice),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  // What is in flight is in the share: a row may be wrong beside it.
  buckets.resize(5);
  buckets.erase(buckets.begin(), buckets.begin() + 4);
  EXPECT_THAT(ChooseBuckets(buckets, 0, dice), IsEmpty());
  EXPECT_THAT(ChooseBuckets(buckets, 0.01, dice), ElementsAre(0));
}

TEST(Reconcile, BucketsAreOpenWhereBoundsWouldNotFit) {
  const struct {
    std::int64_t width;
    std::int64_t key;
    std::optional<std::int64_t> lo;
    std::optional<std::int64_t> hi;
  } cases[] = {
      {1, INT64_MAX, INT64_MAX, std::nullopt},
      {1, INT64_MIN, INT64_MIN, INT64_MIN + 1},
      {10, INT64_MAX, INT64_MAX - 7, std::nullopt},
      {10, INT64_MIN, std::nullopt, INT64_MIN + 8},
      {SliceWidth(INT64_MIN, INT64_MAX), 5, 0, SliceWidth(INT64_MIN, INT64_MAX)}};
  for (const auto& one : cases) {
    const std::int64_t slice = SliceOf(one.key, one.width);
    const std::vector<Bucket> buckets =
        CutBuckets(one.width, {{slice, {1, one.key}}}, {}, {slice}, 1);
    ASSERT_THAT(buckets, SizeIs(1));
    EXPECT_EQ(buckets[0].lo, one.lo) << one.key << " by " << one.width;
    EXPECT_EQ(buckets[0].hi, one.hi) << one.key << " by " << one.width;
    EXPECT_EQ(buckets[0].status, BucketStatus::kInFlight);
  }
}

SnapshotChunk Chunk(std::int64_t number, std::optional<std::string> lo,
                    std::optional<std::string> hi, bool is_last = false) {
  SnapshotChunk chunk;
  chunk.number = number;
  chunk.lo = std::move(lo);
  chunk.hi = std::move(hi);
  chunk.is_last = is_last;
  chunk.rows = 5;
  chunk.stamp.bytes[9] = 9;
  return chunk;
}

std::string Say(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.failure_type + " ";
    const auto at = finding.detail.find("\"chunk\": ");
    text += finding.detail.substr(at + 9, 1) + "; ";
  }
  return text;
}

TEST(Reconcile, ChunksMustTileAndHoldWhatTheFactsTell) {
  OpenSnapshot snapshot;
  snapshot.lsn.bytes[9] = 7;
  snapshot.chunks = {Chunk(0, std::nullopt, "8"), Chunk(1, "8", std::nullopt, true)};
  const std::map<std::int64_t, std::int64_t> rows = {{0, 5}, {1, 5}};
  EXPECT_EQ(Say(CheckChunks(snapshot, true, rows, {})), "");
  EXPECT_EQ(Say(CheckChunks(snapshot, true, {{0, 5}, {1, 4}}, {})), "CHUNK_ROWS 1; ");
  EXPECT_EQ(Say(CheckChunks(snapshot, true, {{0, 5}, {1, 5}, {2, 1}}, {})),
            "CHUNK_ROWS 2; ");
  EXPECT_EQ(Say(CheckChunks(snapshot, true, rows, {{1, cdc::Lsn{}}})),
            "CHUNK_STAMP 1; ");
  OpenSnapshot apart = snapshot;
  apart.chunks[1].lo = "9";
  EXPECT_EQ(Say(CheckChunks(apart, true, rows, {})), "CHUNK_TILING 1; ");
  apart.chunks[1] = Chunk(2, "8", std::nullopt, true);
  EXPECT_EQ(Say(CheckChunks(apart, false, {{0, 5}, {2, 5}}, {})), "CHUNK_TILING 1; ");
  apart.chunks = {Chunk(0, "1", "8")};
  EXPECT_EQ(Say(CheckChunks(apart, true, {{0, 5}}, {})),
            "CHUNK_TILING 0; CHUNK_TILING 0; ");
  EXPECT_EQ(Say(CheckChunks(apart, false, {{0, 5}}, {})), "CHUNK_TILING 0; ");
}

TEST(Reconcile, DetailsSayWhatDiffers) {
  EXPECT_EQ(DetailOf({}, {}), "{}");
  EXPECT_EQ(DetailOf("0x01", std::vector<std::string>{"a", "b"}),
            R"({"silver_start_lsn":"0x01","columns":"a, b"})");
  EXPECT_EQ(NameOf(BucketStatus::kInFlight), "IN_FLIGHT");
}

TEST(Reconcile, TheReportHasBucketsThenChunksThenKeys) {
  ReportRun run;
  run.run_id = "r";
  run.row_source_lsn = "0x02";
  Finding key;
  key.key = R"({"id":1})";
  key.failure_type = "RECORD_DIFF";
  const columns::RecordBatch report =
      ReportBatch(run, std::vector<Bucket>(2), {Finding{}}, {key});
  EXPECT_EQ(report.row_count, 4);
  ASSERT_THAT(report.columns, SizeIs(17));
  for (const auto& column : report.columns) EXPECT_EQ(column->row_count, 4);
  EXPECT_EQ(report.columns[14]->null_count, 3);  // key
  EXPECT_EQ(report.columns[12]->null_count, 2);  // status
}

}  // namespace
}  // namespace mssql_cdc::pipeline

#include "pipeline/in_flight.h"

#include <gtest/gtest.h>

#include <string>

namespace mssql_cdc::pipeline {
namespace {

Bucket Of(std::int64_t lo, BucketStatus status, bool hashed = true) {
  Bucket bucket;
  bucket.lo = lo;
  bucket.hi = lo + 10;
  bucket.status = status;
  bucket.hashed = hashed;
  return bucket;
}

Finding In(std::int64_t lo, const char* type) {
  Finding finding;
  finding.bucket_lo = std::to_string(lo);
  finding.bucket_hi = std::to_string(lo + 10);
  finding.failure_type = type;
  return finding;
}

TEST(ExplainBuckets, ABucketIsInFlightIfAllThatDiffersInItIs) {
  std::vector<Bucket> buckets = {
      Of(0, BucketStatus::kMismatch), Of(10, BucketStatus::kMismatch),
      Of(20, BucketStatus::kMismatch), Of(30, BucketStatus::kMismatch, false),
      Of(40, BucketStatus::kMatch)};
  ExplainBuckets(buckets,
                 {In(0, "IN_FLIGHT"), In(10, "IN_FLIGHT"), In(10, "RECORD_DIFF"),
                  In(30, "IN_FLIGHT"), In(40, "IN_FLIGHT")});
  EXPECT_EQ(buckets[0].status, BucketStatus::kInFlight);
  EXPECT_EQ(buckets[1].status, BucketStatus::kMismatch);
  EXPECT_EQ(buckets[2].status, BucketStatus::kMismatch);  // Counts alone differ.
  EXPECT_EQ(buckets[3].status, BucketStatus::kMismatch);
  EXPECT_EQ(buckets[4].status, BucketStatus::kMatch);
}

TEST(ExplainBuckets, TheOnlyBucketHoldsEveryFinding) {
  std::vector<Bucket> whole = {WholeBucket(1, 2, false)};
  whole[0].hashed = true;
  ExplainBuckets(whole, {In(0, "IN_FLIGHT")});
  EXPECT_EQ(whole[0].status, BucketStatus::kInFlight);
}

}  // namespace
}  // namespace mssql_cdc::pipeline

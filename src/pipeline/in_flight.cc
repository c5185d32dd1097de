#include "pipeline/in_flight.h"

namespace mssql_cdc::pipeline {
namespace {

bool IsIn(const Finding& finding, const Bucket& bucket, bool is_only) {
  // The only bucket of a key without a distance holds findings of several ranges.
  if (is_only) return true;
  return finding.bucket_lo == BoundJson(bucket.kind, bucket.lo) &&
         finding.bucket_hi == BoundJson(bucket.kind, bucket.hi);
}

}  // namespace

void ExplainBuckets(std::vector<Bucket>& buckets,
                    const std::vector<Finding>& findings) {
  for (Bucket& bucket : buckets) {
    if (bucket.status != BucketStatus::kMismatch || !bucket.hashed) continue;
    bool is_in_flight = false;
    bool is_wrong = false;
    for (const Finding& finding : findings) {
      if (!IsIn(finding, bucket, buckets.size() == 1)) continue;
      (finding.failure_type == "IN_FLIGHT" ? is_in_flight : is_wrong) = true;
    }
    if (is_in_flight && !is_wrong) bucket.status = BucketStatus::kInFlight;
  }
}

}  // namespace mssql_cdc::pipeline

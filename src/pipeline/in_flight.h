// Decides which buckets differ by nothing but rows on their way.

#pragma once

#include <vector>

#include "pipeline/reconcile.h"

namespace mssql_cdc::pipeline {

// A bucket whose counts differ and of which every row that differs is in flight is in
// flight itself. `findings`: of keys, of the buckets that were compared row by row.
void ExplainBuckets(std::vector<Bucket>& buckets, const std::vector<Finding>& findings);

}  // namespace mssql_cdc::pipeline

// Where in a table keys can be: a few ranges of the first key column that hold all of
// them, so that files elsewhere are not read.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "columns/schema.h"
#include "pipeline/latest_images.h"

namespace mssql_cdc::pipeline {

// Both ends are in the range. One of the lists is empty.
struct KeyRanges {
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers;
  std::vector<std::pair<std::string, std::string>> texts;

  bool operator==(const KeyRanges&) const = default;
};

// At most `count_max` ranges that hold the values, apart where they are farthest from
// each other. Requires sorted values, one at least, and 1 <= count_max.
std::vector<std::pair<std::int64_t, std::int64_t>> RangesAround(
    const std::vector<std::int64_t>& values, std::size_t count_max);

// At most `count_max` ranges around the keys of `images`, whose first column is of
// `type`. nullopt if they say nothing: a type without an order that files keep, a NULL
// among the keys, or no key at all.
std::optional<KeyRanges> RangesOf(const LatestImages& images, const columns::Type& type,
                                  std::size_t count_max);

}  // namespace mssql_cdc::pipeline

#include "pipeline/key_ranges.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace mssql_cdc::pipeline {
namespace {

using columns::Kind;

template <typename T>
T Raw(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// The first column's number in a key of row_key.h, behind the byte that says whether it
// is NULL.
std::int64_t NumberIn(std::string_view bytes, Kind kind) {
  if (kind == Kind::kInt16) return Raw<std::int16_t>(bytes);
  if (kind == Kind::kInt32 || kind == Kind::kDate32) return Raw<std::int32_t>(bytes);
  return Raw<std::int64_t>(bytes);
}

std::string TextIn(std::string_view bytes) {
  const auto size = Raw<std::uint32_t>(bytes);
  return std::string(bytes.substr(sizeof(std::uint32_t), size));
}

// Texts have no distance: ranges of as many of them.
std::vector<std::pair<std::string, std::string>> InParts(
    const std::vector<std::string>& values, std::size_t count_max) {
  std::vector<std::pair<std::string, std::string>> ranges;
  const std::size_t count = std::min(count_max, values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * values.size() / count;
    const std::size_t end = (i + 1) * values.size() / count;
    ranges.emplace_back(values[begin], values[end - 1]);
  }
  return ranges;
}

}  // namespace

std::vector<std::pair<std::int64_t, std::int64_t>> RangesAround(
    const std::vector<std::int64_t>& values, std::size_t count_max) {
  std::vector<std::pair<std::uint64_t, std::size_t>> gaps;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const std::uint64_t gap = static_cast<std::uint64_t>(values[i]) -
                              static_cast<std::uint64_t>(values[i - 1]);
    if (gap > 1) gaps.emplace_back(gap, i);
  }
  const std::size_t kept = std::min(gaps.size(), count_max - 1);
  std::partial_sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(kept),
                    gaps.end(), std::greater<>());
  gaps.resize(kept);
  std::vector<std::size_t> begins = {0};
  for (const auto& [gap, begin] : gaps) begins.push_back(begin);
  std::sort(begins.begin(), begins.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::size_t end = i + 1 < begins.size() ? begins[i + 1] : values.size();
    ranges.emplace_back(values[begins[i]], values[end - 1]);
  }
  return ranges;
}

std::optional<KeyRanges> RangesOf(const LatestImages& images, const columns::Type& type,
                                  std::size_t count_max) {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> texts;
  for (const LatestImages::Image& image : images.images()) {
    const std::string_view key = images.KeyOf(image);
    if (key.empty() || key[0] == '\0') return std::nullopt;
    switch (type.kind) {
      case Kind::kInt16:
      case Kind::kInt32:
      case Kind::kInt64:
      case Kind::kDate32:
      case Kind::kTimestampNtz:
        numbers.push_back(NumberIn(key.substr(1), type.kind));
        break;
      case Kind::kUtf8:
        texts.push_back(TextIn(key.substr(1)));
        break;
      default:
        return std::nullopt;
    }
  }
  KeyRanges ranges;
  if (!numbers.empty()) {
    std::sort(numbers.begin(), numbers.end());
    ranges.numbers = RangesAround(numbers, count_max);
  } else if (!texts.empty()) {
    std::sort(texts.begin(), texts.end());
    ranges.texts = InParts(texts, count_max);
  } else {
    return std::nullopt;
  }
  return ranges;
}

}  // namespace mssql_cdc::pipeline

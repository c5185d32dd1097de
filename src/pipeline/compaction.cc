#include "pipeline/compaction.h"

namespace mssql_cdc::pipeline {
namespace {

bool HasManyGone(const FileFacts& file, const CompactionLimits& limits) {
  if (file.removed_count == 0 || !file.row_count) return file.removed_count != 0;
  return static_cast<double>(file.removed_count) >
         limits.removed_share_max * static_cast<double>(*file.row_count);
}

}  // namespace

std::vector<std::vector<std::int32_t>> PlanCompaction(
    const std::vector<FileFacts>& files, const CompactionLimits& limits) {
  std::vector<std::vector<std::int32_t>> groups;
  std::vector<std::int32_t> group;
  std::int64_t group_size_bytes = 0;
  bool has_gone = false;
  const auto close = [&] {
    if (group.size() > 1 || has_gone) groups.push_back(group);
    group.clear();
    group_size_bytes = 0;
    has_gone = false;
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    const FileFacts& file = files[i];
    const bool many_gone = HasManyGone(file, limits);
    if (file.size_bytes >= limits.small_size_bytes && !many_gone) continue;
    group.push_back(static_cast<std::int32_t>(i));
    group_size_bytes += file.size_bytes;
    has_gone = has_gone || many_gone;
    if (group_size_bytes >= limits.target_size_bytes) close();
  }
  close();
  return groups;
}

}  // namespace mssql_cdc::pipeline

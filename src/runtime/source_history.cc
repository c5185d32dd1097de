#include "runtime/source_history.h"

#include <variant>

namespace mssql_cdc::runtime {
namespace {

std::string TimeText(const std::optional<std::int64_t>& commit_us) {
  return commit_us ? cdc::CommitText(commit_us) : "none";
}

Error Behind(const std::string& capture_instance, const cdc::Lsn& position,
             const cdc::Lsn& server_max) {
  return Error(ErrorId::kPositionAheadOfServer)
      .With("capture_instance", capture_instance)
      .With("position", position.Text())
      .With("server_max", server_max.Text());
}

}  // namespace

Status CheckHistory(const cdc::BatchPlan& plan, const std::string& capture_instance) {
  if (const auto* behind = std::get_if<cdc::ReportBehind>(&plan)) {
    return Behind(capture_instance, behind->position, behind->server_max);
  }
  if (const auto* fork = std::get_if<cdc::ReportFork>(&plan)) {
    return Error(ErrorId::kSourceForked)
        .With("capture_instance", capture_instance)
        .With("position", fork->position.Text())
        .With("commit_ts", TimeText(fork->commit_us))
        .With("server_commit_ts", TimeText(fork->server_commit_us))
        .With("cause", "the database was restored, or failed over to another copy");
  }
  return Unit{};
}

Status CheckWasReached(const cdc::Lsn& applied,
                       const std::optional<cdc::Offset>& server_max,
                       const std::optional<cdc::Lsn>& newest_start,
                       const std::string& capture_instance) {
  cdc::BatchFacts facts;
  facts.position = {applied, std::nullopt};
  facts.server_max = server_max;
  facts.newest_start = newest_start;
  const cdc::BatchPlan plan = cdc::PlanBatch(facts);
  const auto* wait = std::get_if<cdc::Wait>(&plan);
  const bool is_ahead =
      wait != nullptr && wait->reason == cdc::Wait::Reason::kPositionUnreached;
  if (!is_ahead) return Unit{};
  return Behind(capture_instance, applied, server_max->lsn);
}

}  // namespace mssql_cdc::runtime

#include "pipeline/recovery.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "pipeline/json_text.h"

namespace mssql_cdc::pipeline {
namespace {

using Json = nlohmann::ordered_json;

// "2026-11-29T18:25:07+00:00"
std::string SecondsText(std::int64_t us) {
  return IsoMillis(us).substr(0, 19) + "+00:00";
}

std::optional<std::int64_t> ParseSeconds(const Json& json, const char* key) {
  const std::optional<std::string> text = TextMember(json, key);
  if (!text || text->size() < 19) return std::nullopt;
  return ParseIsoUs(text->substr(0, 19));
}

Result<std::optional<cdc::Offset>> ParseOffset(const Json& json, const char* lsn,
                                               const char* commit_ts) {
  if (!json.is_object() || !json.contains(lsn)) return std::optional<cdc::Offset>();
  Json offset;
  offset["lsn"] = json.value(lsn, Json());
  offset["commit_ts"] = json.value(commit_ts, Json());
  TRY_ASSIGN(const cdc::Offset parsed, cdc::Offset::Parse(offset.dump()));
  return std::optional<cdc::Offset>(parsed);
}

std::optional<cdc::Offset> StartOf(const RecoveryFacts& facts) {
  if (facts.state.recovering) return facts.state.recovering;
  if (facts.position) return facts.position;
  if (facts.state.generation > 0) return facts.state.start;
  if (!facts.bootstrap) return std::nullopt;
  if (facts.in_target) return facts.in_target;
  const std::optional<OpenedSnapshot> opened = OpenedBy(facts.events, facts.app_id);
  if (opened && opened->detail.mode == SnapshotMode::kChunked) return opened->stamp;
  return std::nullopt;
}

// What was opened by a sink and can be gone on with.
std::optional<cdc::Offset> Reusable(const RecoveryFacts& facts,
                                    std::int64_t generation) {
  const std::optional<OpenedSnapshot> opened =
      OpenedBy(facts.events, SinkIdOf(facts.app_id, generation));
  if (!opened) return std::nullopt;
  const bool is_done_in_chunked_run =
      facts.mode == SnapshotMode::kChunked && opened->is_complete;
  if (opened->detail.mode == SnapshotMode::kChunked || is_done_in_chunked_run) {
    return opened->stamp;
  }
  return std::nullopt;
}

Status CheckInterval(const RecoveryFacts& facts, const Recovery& recovery) {
  std::optional<std::int64_t> last = facts.state.failed_at_us;
  if (!last && facts.state.generation > 0) last = facts.state.at_us;
  if (!last) return Unit{};
  const double days = static_cast<double>(facts.now_us - *last) / 86'400e6;
  if (days >= facts.interval_days) return Unit{};
  return Error(ErrorId::kDataLoss)
      .With("capture_instance", facts.capture_instance)
      .With("position", recovery.from.lsn.Text())
      .With("first_readable", recovery.first_readable.Text())
      .With("last_resnapshot", SecondsText(*last))
      .With("cause",
            "again within resnapshot_interval_days: the stream does not keep up with "
            "the retention");
}

}  // namespace

std::string GenerationState::Json() const {
  pipeline::Json json;
  json["generation"] = generation;
  if (start) {
    json["snapshot_lsn"] = start->lsn.Text();
    json["commit_ts"] = cdc::CommitText(start->commit_us);
  }
  if (at_us) json["at"] = SecondsText(*at_us);
  if (recovering) {
    json["recovering"]["lsn"] = recovering->lsn.Text();
    json["recovering"]["commit_ts"] = cdc::CommitText(recovering->commit_us);
  }
  if (failed_at_us) json["failed_at"] = SecondsText(*failed_at_us);
  return JsonText(json);
}

Result<GenerationState> GenerationState::Parse(std::string_view text) {
  const auto unreadable = [](const char* reason) {
    return Error(ErrorId::kCheckpointUnreadable).With("reason", reason);
  };
  const std::optional<pipeline::Json> json = ParseObject(text);
  if (!json) return unreadable("it is no JSON object");
  const std::optional<std::int64_t> number = IntegerMember(*json, "generation");
  if (!number || *number < 0) return unreadable("it names no generation");
  GenerationState state;
  state.generation = *number;
  if (state.generation > 0) {
    TRY_ASSIGN(state.start, ParseOffset(*json, "snapshot_lsn", "commit_ts"));
    if (!state.start) return unreadable("its snapshot_lsn cannot be read");
  }
  state.at_us = ParseSeconds(*json, "at");
  TRY_ASSIGN(state.recovering, ParseOffset(json->value("recovering", pipeline::Json()),
                                           "lsn", "commit_ts"));
  state.failed_at_us = ParseSeconds(*json, "failed_at");
  return state;
}

bool NeedsTarget(const RecoveryFacts& facts) {
  const bool knows_start =
      facts.state.recovering || facts.position || facts.state.generation > 0;
  if (!knows_start) return facts.bootstrap;
  const std::optional<cdc::Offset> start = StartOf(facts);
  return facts.mode == SnapshotMode::kFull && start &&
         cdc::LostUpTo(facts.instances, start->lsn).has_value();
}

Result<std::optional<Recovery>> PlanRecovery(const RecoveryFacts& facts) {
  const std::optional<cdc::Offset> start = StartOf(facts);
  if (!start || !facts.server_max || *facts.server_max <= start->lsn) {
    return std::optional<Recovery>();
  }
  const auto is_lost = [&](const cdc::Lsn& lsn) {
    return cdc::LostUpTo(facts.instances, lsn);
  };
  const std::optional<cdc::Lsn> first_readable = is_lost(start->lsn);
  if (!first_readable) return std::optional<Recovery>();
  Recovery recovery{*start, *first_readable, facts.state.generation + 1, std::nullopt};
  recovery.reuse = Reusable(facts, recovery.generation);
  while (recovery.reuse && is_lost(recovery.reuse->lsn)) {
    ++recovery.generation;
    recovery.reuse = Reusable(facts, recovery.generation);
  }
  const bool is_in_target = facts.mode == SnapshotMode::kFull && facts.in_target &&
                            facts.in_target->lsn > start->lsn &&
                            !is_lost(facts.in_target->lsn);
  if (!recovery.reuse && is_in_target) recovery.reuse = facts.in_target;
  if (!recovery.reuse) TRY(CheckInterval(facts, recovery));
  return std::optional<Recovery>(recovery);
}

}  // namespace mssql_cdc::pipeline

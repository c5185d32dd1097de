#include "pipeline/seed.h"

#include <algorithm>

#include "base/text.h"
#include "columns/value_text.h"

namespace mssql_cdc::pipeline {
namespace {

Error TooOld(const SeedFacts& facts, const std::optional<cdc::Lsn>& position,
             const std::optional<cdc::Lsn>& first_readable) {
  Error error(ErrorId::kDataLoss);
  error.Add("capture_instance", facts.capture_instance);
  if (position) error.Add("position", position->Text());
  if (first_readable) error.Add("first_readable", first_readable->Text());
  error.Add("cause", "the copy is older than what CDC still holds: seed a newer copy");
  return error;
}

// A copy whose time cleanup has passed since it was put there.
std::optional<cdc::Offset> NewestUpTo(const SeedFacts& facts, std::int64_t time_us) {
  std::optional<cdc::Offset> newest;
  for (const cdc::Offset& stamp : facts.whole) {
    if (!stamp.commit_us || *stamp.commit_us > time_us) continue;
    if (!newest || newest->lsn < stamp.lsn) newest = stamp;
  }
  return newest;
}

std::optional<cdc::Lsn> NewestOf(const SeedFacts& facts) {
  std::optional<cdc::Lsn> newest;
  for (const cdc::Offset& stamp : facts.whole) {
    newest = std::max(newest, std::optional(stamp.lsn));
  }
  for (const cdc::Lsn& lsn : facts.chunked)
    newest = std::max(newest, std::optional(lsn));
  return newest;
}

}  // namespace

Result<AsOf> ParseAsOf(std::string_view text) {
  const std::string_view value = Trim(text);
  const auto refuse = [&] {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "as_of")
        .With("value", std::string(value))
        .With("allowed",
              "an LSN (0x...) or a time such as 2026-09-30T02:00:00, in UTC or with "
              "its offset");
  };
  if (value.starts_with("0x") || value.starts_with("0X")) {
    const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(value);
    if (!lsn.ok() || value.size() == 2) return refuse();
    return AsOf(lsn.value());
  }
  std::optional<std::int64_t> us =
      columns::ParseTimestampText(value, columns::ZoneOffset::kRequired);
  if (!us) us = columns::ParseTimestampText(value, columns::ZoneOffset::kForbidden);
  if (!us) return refuse();
  return AsOf(*us);
}

Result<SeedPlan> PlanSeed(const SeedFacts& facts) {
  std::optional<cdc::Lsn> lsn = facts.lsn;
  if (const auto* given = std::get_if<cdc::Lsn>(&facts.as_of)) lsn = *given;
  if (!lsn) {
    const std::int64_t time_us = std::get<std::int64_t>(facts.as_of);
    const std::optional<cdc::Offset> there =
        facts.reseed ? std::nullopt : NewestUpTo(facts, time_us);
    if (there) return SeedPlan(SeedIsThere{*there});
    return TooOld(facts, std::nullopt, std::nullopt);
  }
  for (const cdc::Offset& stamp : facts.whole) {
    if (stamp.lsn == *lsn) return SeedPlan(SeedIsThere{stamp});
  }
  const std::optional<cdc::Lsn> newest = NewestOf(facts);
  if (newest && !(facts.reseed && *lsn > *newest)) {
    return Error(ErrorId::kSnapshotExists)
        .With("target", facts.target)
        .With("lsn", lsn->Text())
        .With("snapshot", newest->Text());
  }
  if (!facts.server_max || *lsn > *facts.server_max) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", "as_of")
        .With("value", lsn->Text())
        .With("server_max", facts.server_max ? facts.server_max->Text() : "none")
        .With("reason", "the server has no commit so new");
  }
  if (const auto first_readable = cdc::LostUpTo(facts.instances, *lsn)) {
    return TooOld(facts, lsn, first_readable);
  }
  return SeedPlan(AppendSeed{*lsn});
}

}  // namespace mssql_cdc::pipeline

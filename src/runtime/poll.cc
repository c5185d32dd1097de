// What source.h asks while a stream runs: the poll, and what a batch needs beyond it.

#include <algorithm>
#include <utility>

#include "cdc/cells.h"
#include "runtime/ask.h"
#include "runtime/source.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::runtime {
namespace {

using sqlserver::Session;

// How many sets come before those that are there only with new commits.
constexpr std::size_t kIdleSetCount = 2;

// The instances of the table as the poll lists them. False if they are not those that
// are known: one more, one less, another under the same name.
Result<bool> TakeInstances(const ResultSet& set, Source& source) {
  std::vector<cdc::CaptureInstance> listed;
  for (const columns::RecordBatch& batch : set.batches) {
    TRY_ASSIGN(std::vector<cdc::CaptureInstance> some, cdc::ReadInstances(batch));
    std::ranges::move(some, std::back_inserter(listed));
  }
  if (listed.size() != source.instances.size()) return false;
  for (cdc::InstanceFacts& known : source.instances) {
    cdc::CaptureInstance& instance = known.columns.instance;
    const auto found = std::ranges::find_if(listed, [&](const auto& each) {
      return each.name == instance.name && each.created_us == instance.created_us;
    });
    if (found == listed.end()) return false;
    instance.start_lsn = found->start_lsn;
  }
  return true;
}

Status TakeDdl(const ResultSet& set, cdc::InstanceFacts& facts) {
  facts.ddl.clear();
  for (const columns::RecordBatch& batch : set.batches) {
    TRY_ASSIGN(std::vector<cdc::DdlEntry> some, cdc::ReadDdlHistory(batch));
    std::ranges::move(some, std::back_inserter(facts.ddl));
  }
  return Unit{};
}

sqlserver::PollQuestion QuestionOf(const Source& source, const cdc::Lsn& after,
                                   const PollLimits& limits) {
  sqlserver::PollQuestion question;
  question.source_schema = source.instance.source_schema;
  question.source_table = source.instance.source_table;
  for (const cdc::InstanceFacts& each : source.instances) {
    const cdc::CaptureInstance& instance = each.columns.instance;
    question.capture_instances.push_back(instance.name);
    // The one that holds what comes next.
    const bool holds_next = instance.start_lsn && *instance.start_lsn <= after;
    if (question.counted_instance.empty() || holds_next) {
      question.counted_instance = instance.name;
    }
  }
  question.after = after.bytes;
  question.commit_count_max = limits.commit_count_max;
  if (limits.through_max) question.through_max = limits.through_max->bytes;
  if (limits.counts_rows) question.row_count_max = kManyRowCount;
  question.zone = source.clock.ServerZone();
  return question;
}

Status TakeMore(const std::vector<ResultSet>& sets, const PollLimits& limits,
                Source& source, PollAnswer& answer) {
  const std::size_t set_count = kIdleSetCount + 1 + source.instances.size() +
                                (limits.counts_rows ? 1 : 0) +
                                (limits.commit_count_max ? 1 : 0);
  if (sets.size() < set_count) {
    return Error(ErrorId::kTdsMalformed)
        .With("reason", "a poll's answer is incomplete");
  }
  answer.has_more = true;
  std::size_t next = kIdleSetCount;
  TRY_ASSIGN(answer.instances_are_known, TakeInstances(sets[next++], source));
  for (cdc::InstanceFacts& each : source.instances) TRY(TakeDdl(sets[next++], each));
  if (limits.counts_rows) {
    if (const std::optional<cdc::RowView> row = sets[next++].FirstRow()) {
      TRY_ASSIGN(const std::optional<std::int64_t> count, row->Integer("row_count"));
      answer.row_count = count.value_or(0);
    }
  }
  if (limits.commit_count_max) {
    TRY_ASSIGN(answer.limited_end, ReadOffset(sets[next++], source.clock));
  }
  return Unit{};
}

}  // namespace

Result<PollAnswer> AskPoll(Session& session, Clock& clock, Source& source,
                           const cdc::Lsn& after, const PollLimits& limits) {
  const std::int64_t begin_ns = clock.MonotonicNs();
  TRY_ASSIGN(
      const std::vector<ResultSet> sets,
      Ask(session, sqlserver::Poll(QuestionOf(source, after, limits)), kIdleSetCount));
  PollAnswer answer;
  answer.rtt_ms = static_cast<double>(clock.MonotonicNs() - begin_ns) / 1e6;
  const std::optional<cdc::RowView> row = sets[1].FirstRow();
  if (!row) return Error(ErrorId::kTdsMalformed).With("reason", "a poll has no answer");
  TRY_ASSIGN(answer.server_oldest, row->LsnOf("oldest_lsn"));
  TRY_ASSIGN(const std::optional<std::int64_t> offset, row->Integer("offset_minutes"));
  if (source.clock.kind == cdc::CommitClock::Kind::kFixedOffset && offset) {
    source.clock.offset_minutes = *offset;
  }
  TRY_ASSIGN(answer.position_commit_us, row->Integer("position_time"));
  if (answer.position_commit_us) {
    answer.position_commit_us =
        cdc::CommitUtcUs(source.clock, *answer.position_commit_us);
  }
  TRY_ASSIGN(answer.server_max, ReadOffset(sets[0], source.clock));
  if (const std::optional<cdc::RowView> newest = sets[0].FirstRow()) {
    TRY_ASSIGN(answer.age_seconds, newest->Integer("age_seconds"));
  }
  if (sets.size() > kIdleSetCount) TRY(TakeMore(sets, limits, source, answer));
  return answer;
}

Result<std::vector<cdc::Tile>> AskTiles(Session& session,
                                        const std::string& capture_instance,
                                        const cdc::LsnWindow& window,
                                        std::int64_t tile_count) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session,
                 sqlserver::AskTiles({capture_instance, window.after.bytes,
                                      window.through.bytes, tile_count}),
                 1));
  std::vector<cdc::Tile> tiles;
  for (const columns::RecordBatch& batch : sets[0].batches) {
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      const cdc::RowView row(batch, i);
      TRY_ASSIGN(const std::optional<cdc::Lsn> last, row.LsnOf("last_lsn"));
      TRY_ASSIGN(const std::optional<std::int64_t> count, row.Integer("row_count"));
      if (last && count) tiles.push_back({*last, *count});
    }
  }
  return tiles;
}

Result<cdc::CaptureHealth> AskCaptureHealth(
    Session& session, const std::optional<std::int64_t>& age_seconds) {
  cdc::CaptureHealth health;
  health.age_seconds = age_seconds;
  // A login that reads changes need not have rights to these: then they are not told.
  const Result<std::vector<ResultSet>> jobs =
      Ask(session, sqlserver::AskCaptureJobs(), 1);
  if (jobs.ok()) {
    health.has_capture_job = false;
    for (const columns::RecordBatch& batch : jobs.value()[0].batches) {
      for (std::int64_t i = 0; i < batch.row_count; ++i) {
        TRY_ASSIGN(const std::optional<std::string> type,
                   cdc::RowView(batch, i).Text("job_type"));
        if (type == "capture") health.has_capture_job = true;
      }
    }
  }
  if (!session.clean()) return health;
  const Result<std::vector<ResultSet>> errors =
      Ask(session, sqlserver::AskCaptureErrors(), 1);
  if (!errors.ok()) return health;
  if (const std::optional<cdc::RowView> row = errors.value()[0].FirstRow()) {
    TRY_ASSIGN(health.error_number, row->Integer("error_number"));
    TRY_ASSIGN(health.error_age_seconds, row->Integer("age_seconds"));
  }
  return health;
}

Status AskEventTimes(Session& session, const Source& source,
                     std::vector<cdc::SourceEvent>& events) {
  for (cdc::SourceEvent& event : events) {
    const std::optional<std::string> zone = source.clock.ServerZone();
    const sqlserver::LsnBytes& lsn = event.at.lsn.bytes;
    const bool is_ddl = event.kind == cdc::SourceEvent::Kind::kSchemaChange;
    TRY_ASSIGN(const std::vector<ResultSet> sets,
               Ask(session,
                   is_ddl ? sqlserver::AskCommitTimeAtOrBelow(lsn, zone)
                          : sqlserver::AskCommitTime(lsn, zone),
                   1));
    if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
      TRY_ASSIGN(const std::optional<std::int64_t> time, row->Integer("commit_time"));
      if (time) event.at.commit_us = cdc::CommitUtcUs(source.clock, *time);
    }
    if (event.kind == cdc::SourceEvent::Kind::kDataSkipped) {
      event.lost_to_us = event.at.commit_us;
    }
  }
  return Unit{};
}

}  // namespace mssql_cdc::runtime

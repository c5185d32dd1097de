#include "runtime/source.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cdc/cells.h"
#include "cdc/snapshot_plan.h"
#include "runtime/ask.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::runtime {
namespace {

using sqlserver::Session;

// Concatenates what `read` makes of each batch.
template <typename T>
Result<std::vector<T>> ReadAll(
    const ResultSet& set, Result<std::vector<T>> (*read)(const columns::RecordBatch&)) {
  std::vector<T> all;
  for (const columns::RecordBatch& batch : set.batches) {
    TRY_ASSIGN(std::vector<T> some, read(batch));
    for (T& item : some) all.push_back(std::move(item));
  }
  return all;
}

Result<std::vector<cdc::CaptureInstance>> AskInstances(Session& session) {
  Result<std::vector<ResultSet>> sets = Ask(session, sqlserver::ListInstances(), 1);
  if (!sets.ok()) {
    // "The database '%.*ls' is not enabled for Change Data Capture": 22901; the
    // procedure itself is unknown to editions without it: 2812.
    const std::optional<std::string_view> number = sets.error().Fact("number");
    if (number == "22901" || number == "2812") {
      return Error(ErrorId::kCdcNotEnabled)
          .With("database", session.facts().database)
          .With("number", std::string(*number));
    }
    return std::move(sets).error();
  }
  return ReadAll(sets.value()[0], cdc::ReadInstances);
}

Result<cdc::CommitClock> AskClock(Session& session, const std::string& option) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session, sqlserver::AskServerClock(), 1));
  cdc::ClockFacts facts;
  std::int64_t major_version = session.facts().major_version;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> major, row->Integer("major_version"));
    TRY_ASSIGN(const std::optional<std::int64_t> edition,
               row->Integer("engine_edition"));
    TRY_ASSIGN(const std::optional<std::int64_t> offset,
               row->Integer("offset_minutes"));
    major_version = major.value_or(major_version);
    facts.engine_edition = edition.value_or(0);
    facts.offset_minutes = offset.value_or(0);
  }
  facts.major_version =
      static_cast<std::uint8_t>(std::clamp<std::int64_t>(major_version, 0, 255));
  if (EqualsIgnoringAsciiCase(option, "auto") &&
      cdc::ServerNamesItsZone(facts.major_version, facts.engine_edition)) {
    TRY_ASSIGN(const std::vector<ResultSet> zone,
               Ask(session, sqlserver::AskServerZone(), 1));
    if (const std::optional<cdc::RowView> row = zone[0].FirstRow()) {
      TRY_ASSIGN(facts.zone, row->Text("zone"));
    }
  }
  return cdc::ChooseClock(option, facts);
}

std::optional<std::string> RangeKey(const cdc::CaptureInstance& instance,
                                    const cdc::ColumnPlan& plan) {
  if (instance.key_columns.size() != 1) return std::nullopt;
  for (const cdc::ReadColumn& column : plan.columns) {
    if (!EqualsIgnoringAsciiCase(column.field.name, instance.key_columns[0])) continue;
    const columns::Kind kind = column.field.type.kind;
    const bool is_integer = kind == columns::Kind::kInt16 ||
                            kind == columns::Kind::kInt32 ||
                            kind == columns::Kind::kInt64;
    if (is_integer && column.in_source) return column.field.name;
  }
  return std::nullopt;
}

// What the change table itself has; the login must be able to see it.
Result<std::vector<std::string>> ReadNames(const ResultSet& set) {
  std::vector<std::string> names;
  for (const columns::RecordBatch& batch : set.batches) {
    for (std::int64_t i = 0; i < batch.row_count; ++i) {
      TRY_ASSIGN(const std::optional<std::string> name,
                 cdc::RowView(batch, i).Text("name"));
      if (name) names.push_back(*name);
    }
  }
  return names;
}

Status CheckChangeTable(const Source& source, bool include_command_id) {
  const std::vector<std::string>& names = source.change_table_columns;
  const auto has = [&](std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& candidate) {
      return EqualsIgnoringAsciiCase(candidate, name);
    });
  };
  if (names.empty()) {
    return Error(ErrorId::kPermissionDenied)
        .With("object", sqlserver::ChangeTableName(source.instance.name))
        .With("permission", "SELECT");
  }
  if (include_command_id && !has("__$command_id")) {
    return Error(ErrorId::kColumnNotReadable)
        .With("capture_instance", source.instance.name)
        .With("column", "__$command_id")
        .With("reason", "the change table lacks it; set includeCommandId = false");
  }
  return Unit{};
}

// A row of lsn and commit_time.
Result<std::optional<cdc::Offset>> ReadOffset(const ResultSet& set,
                                              const cdc::CommitClock& clock) {
  const std::optional<cdc::RowView> row = set.FirstRow();
  if (!row) return std::optional<cdc::Offset>();
  TRY_ASSIGN(const std::optional<cdc::Lsn> lsn, row->LsnOf("lsn"));
  if (!lsn) return std::optional<cdc::Offset>();
  cdc::Offset offset{*lsn, std::nullopt};
  TRY_ASSIGN(const std::optional<std::int64_t> time, row->Integer("commit_time"));
  if (time) offset.commit_us = cdc::CommitUtcUs(clock, *time);
  return std::optional<cdc::Offset>(offset);
}

Error CaptureHasNotRun(const Source& source) {
  return Error(ErrorId::kCaptureHasNotRun)
      .With("capture_instance", source.instance.name);
}

}  // namespace

std::vector<columns::Field> Source::fields() const {
  std::vector<columns::Field> fields;
  for (const cdc::ReadColumn& column : columns.columns) fields.push_back(column.field);
  return fields;
}

Result<Source> AskSource(Session& session, const StreamConfig& config) {
  TRY_ASSIGN(const std::vector<cdc::CaptureInstance> instances, AskInstances(session));
  Source source;
  TRY_ASSIGN(source.instance, cdc::ResolveInstance(instances, config.capture_instance));
  source.family.push_back(LowerAscii(config.capture_instance));
  for (const cdc::CaptureInstance& instance : instances) {
    if (instance.source_schema == source.instance.source_schema &&
        instance.source_table == source.instance.source_table) {
      source.family.push_back(LowerAscii(instance.name));
    }
  }

  TRY_ASSIGN(
      const std::vector<ResultSet> sets,
      Ask(session,
          sqlserver::ListColumns(source.instance.name, source.instance.source_schema,
                                 source.instance.source_table),
          3));
  TRY_ASSIGN(const std::vector<cdc::CapturedColumn> captured,
             ReadAll(sets[0], cdc::ReadCapturedColumns));
  TRY_ASSIGN(const std::vector<cdc::SourceColumn> live,
             ReadAll(sets[1], cdc::ReadSourceColumns));
  TRY_ASSIGN(source.columns, cdc::PlanColumns(source.instance, captured, live));
  TRY_ASSIGN(source.change_table_columns, ReadNames(sets[2]));
  TRY(CheckChangeTable(source, config.include_command_id));
  source.range_key = RangeKey(source.instance, source.columns);

  TRY_ASSIGN(source.clock, AskClock(session, config.source_time_zone));
  source.clock_is_assumed = source.clock.kind == cdc::CommitClock::Kind::kFixedOffset;
  return source;
}

Result<PollAnswer> AskPoll(Session& session, Clock& clock, Source& source,
                           const cdc::Lsn& after,
                           const std::optional<std::int64_t>& commit_count_max,
                           const std::optional<cdc::Lsn>& through_max) {
  sqlserver::PollQuestion question;
  question.capture_instance = source.instance.name;
  question.after = after.bytes;
  question.commit_count_max = commit_count_max;
  if (through_max) question.through_max = through_max->bytes;
  question.zone = source.clock.ServerZone();

  const std::int64_t begin_ns = clock.MonotonicNs();
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session, sqlserver::Poll(question), commit_count_max ? 3 : 2));
  PollAnswer answer;
  answer.rtt_ms = static_cast<double>(clock.MonotonicNs() - begin_ns) / 1e6;
  const std::optional<cdc::RowView> row = sets[1].FirstRow();
  if (!row) return Error(ErrorId::kTdsMalformed).With("reason", "a poll has no answer");
  TRY_ASSIGN(answer.instance_min, row->LsnOf("min_lsn"));
  TRY_ASSIGN(const std::optional<std::int64_t> offset, row->Integer("offset_minutes"));
  if (source.clock.kind == cdc::CommitClock::Kind::kFixedOffset && offset) {
    source.clock.offset_minutes = *offset;
  }
  TRY_ASSIGN(answer.server_max, ReadOffset(sets[0], source.clock));
  if (commit_count_max) {
    TRY_ASSIGN(answer.limited_end, ReadOffset(sets[2], source.clock));
  }
  return answer;
}

Result<cdc::Offset> AskOffset(Session& session, const Source& source,
                              const cdc::Lsn& lsn) {
  TRY_ASSIGN(
      const std::vector<ResultSet> sets,
      Ask(session, sqlserver::AskCommitTime(lsn.bytes, source.clock.ServerZone()), 1));
  cdc::Offset offset{lsn, std::nullopt};
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> time, row->Integer("commit_time"));
    if (time) offset.commit_us = cdc::CommitUtcUs(source.clock, *time);
  }
  return offset;
}

Result<std::optional<cdc::Offset>> AskNewest(Session& session, const Source& source) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session, sqlserver::AskNewestCommit(source.clock.ServerZone()), 1));
  return ReadOffset(sets[0], source.clock);
}

Result<cdc::Offset> AskStart(Session& session, const Source& source,
                             const std::string& starting_lsn) {
  std::optional<cdc::Lsn> lsn;
  if (starting_lsn == "earliest") {
    TRY_ASSIGN(const std::vector<ResultSet> sets,
               Ask(session, sqlserver::AskMinLsn(source.instance.name), 1));
    if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
      TRY_ASSIGN(const std::optional<cdc::Lsn> min, row->LsnOf("min_lsn"));
      if (min) lsn = min->Previous();
    }
  } else if (starting_lsn == "latest") {
    TRY_ASSIGN(const std::optional<cdc::Offset> newest, AskNewest(session, source));
    lsn = cdc::SnapshotLsn(newest ? std::optional(newest->lsn) : std::nullopt,
                           source.instance.start_lsn);
  } else {
    TRY_ASSIGN(lsn, cdc::Lsn::Parse(starting_lsn));
  }
  if (!lsn) return CaptureHasNotRun(source);
  return AskOffset(session, source, *lsn);
}

Result<std::optional<std::int64_t>> AskNetworkWaitMs(Session& session,
                                                     const Source& source) {
  if (!source.network_wait) return std::optional<std::int64_t>();
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session, sqlserver::AskNetworkWait(), 1));
  const std::optional<cdc::RowView> row = sets[0].FirstRow();
  if (!row) return std::optional<std::int64_t>(0);
  return row->Integer("wait_ms");
}

}  // namespace mssql_cdc::runtime

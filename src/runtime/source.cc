#include "runtime/source.h"

#include <algorithm>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/cells.h"
#include "cdc/declared_columns.h"
#include "cdc/find_name.h"
#include "cdc/snapshot_plan.h"
#include "cdc/spark_ddl.h"
#include "runtime/ask.h"
#include "runtime/instances.h"
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
  const auto found =
      cdc::FindName(plan.columns, instance.key_columns[0],
                    [](const cdc::ReadColumn& column) -> const std::string& {
                      return column.field.name;
                    });
  if (found == plan.columns.end() || !found->in_source) return std::nullopt;
  switch (found->field.type.kind) {
    case columns::Kind::kInt16:
    case columns::Kind::kInt32:
    case columns::Kind::kInt64:
      return found->field.name;
    default:
      return std::nullopt;
  }
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

Status CheckChangeTable(const std::string& capture_instance,
                        const std::vector<std::string>& names,
                        bool include_command_id) {
  const auto has = [&](std::string_view name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& candidate) {
      return EqualsIgnoringAsciiCase(candidate, name);
    });
  };
  if (names.empty()) {
    return Error(ErrorId::kPermissionDenied)
        .With("object", sqlserver::ChangeTableName(capture_instance))
        .With("permission", "SELECT");
  }
  if (include_command_id && !has("__$command_id")) {
    return Error(ErrorId::kColumnNotReadable)
        .With("capture_instance", capture_instance)
        .With("column", "__$command_id")
        .With("reason", "the change table lacks it; set includeCommandId = false");
  }
  return Unit{};
}

struct AnsweredColumns {
  cdc::InstanceColumns columns;
  std::vector<cdc::SourceColumn> live;
};

Result<AnsweredColumns> AskColumns(Session& session,
                                   const cdc::CaptureInstance& instance,
                                   bool include_command_id) {
  TRY_ASSIGN(const std::vector<ResultSet> sets,
             Ask(session,
                 sqlserver::ListColumns(instance.name, instance.source_schema,
                                        instance.source_table),
                 3));
  AnsweredColumns answered;
  TRY_ASSIGN(std::vector<cdc::CapturedColumn> captured,
             ReadAll(sets[0], cdc::ReadCapturedColumns));
  TRY_ASSIGN(answered.live, ReadAll(sets[1], cdc::ReadSourceColumns));
  TRY_ASSIGN(const std::vector<std::string> names, ReadNames(sets[2]));
  TRY(CheckChangeTable(instance.name, names, include_command_id));
  TRY(cdc::CheckCapturedNames(instance, captured));
  answered.columns = cdc::PartComputed(instance, std::move(captured), answered.live);
  return answered;
}

void NoteNames(const StreamConfig& config, Source& source) {
  source.names = {LowerCase(config.capture_instance)};
  for (const cdc::InstanceFacts& each : source.instances) {
    source.names.push_back(LowerCase(each.columns.instance.name));
  }
}

// Columns that reading makes, which no table has.
void AddMadeColumns(const StreamConfig& config, Source& source) {
  std::vector<std::string_view> names;
  if (config.changed_columns) names.push_back(cdc::kChangedColumns);
  if (config.unchanged_lob == cdc::UnchangedLob::kListed) {
    names.push_back(cdc::kUnknownColumns);
  }
  for (const std::string_view name : names) {
    const columns::Field field{std::string(name), {columns::Kind::kUtf8}};
    if (!source.declared.empty()) source.declared.push_back(field);
    source.columns.columns.push_back({field, false});
  }
}

Error CaptureHasNotRun(const Source& source) {
  return Error(ErrorId::kCaptureHasNotRun)
      .With("capture_instance", source.instance.name);
}

}  // namespace

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

std::vector<columns::Field> Source::fields() const {
  std::vector<columns::Field> fields;
  for (const cdc::ReadColumn& column : columns.columns) fields.push_back(column.field);
  return fields;
}

std::optional<cdc::Lsn> Source::newest_start() const {
  std::optional<cdc::Lsn> newest;
  for (const cdc::InstanceFacts& each : instances) {
    newest = std::max(newest, each.columns.instance.start_lsn);
  }
  return newest;
}

cdc::InstanceFamily Source::family() const {
  cdc::InstanceFamily all;
  for (const cdc::InstanceFacts& each : instances) {
    all.instances.push_back(each.columns.instance);
  }
  return all;
}

Result<Source> AskSource(Session& session, const StreamConfig& config,
                         const std::optional<cdc::SourceMemory>& memory) {
  TRY_ASSIGN(const std::vector<cdc::CaptureInstance> listed, AskInstances(session));
  TRY_ASSIGN(const cdc::InstanceFamily family,
             cdc::ResolveFamily(listed, config.capture_instance,
                                memory ? memory->Names() : std::vector<std::string>()));
  Source source;
  source.database = session.facts().database;
  source.instance = family.Meant(config.capture_instance);
  if (memory) {
    TRY(cdc::CheckSameSource(*memory, cdc::Remember(source.database, family)));
  }
  std::vector<cdc::InstanceColumns> columns;
  std::vector<cdc::SourceColumn> live;
  for (const cdc::CaptureInstance& instance : family.instances) {
    TRY_ASSIGN(AnsweredColumns answered,
               AskColumns(session, instance, config.include_command_id));
    columns.push_back(answered.columns);
    live = std::move(answered.live);
    source.instances.push_back({std::move(answered.columns), {}, true});
  }
  NoteNames(config, source);
  if (config.columns.empty()) {
    TRY_ASSIGN(source.columns, cdc::UniteColumns(columns, live));
  } else {
    TRY_ASSIGN(const std::vector<columns::Field> declared,
               cdc::ParseColumnsOption(config.columns));
    TRY_ASSIGN(cdc::DeclaredPlan plan, cdc::PlanDeclared(declared, columns, live));
    source.columns = std::move(plan.plan);
    source.declared = std::move(plan.written);
  }
  source.range_key = RangeKey(source.instance, source.columns);
  AddMadeColumns(config, source);

  TRY_ASSIGN(source.clock, AskClock(session, config.source_time_zone));
  source.clock_is_assumed = source.clock.kind == cdc::CommitClock::Kind::kFixedOffset;
  return source;
}

Status AskInstancesAgain(Session& session, const StreamConfig& config,
                         const std::optional<cdc::SourceMemory>& memory,
                         Source& source) {
  TRY_ASSIGN(const std::vector<cdc::CaptureInstance> listed, AskInstances(session));
  std::vector<std::string> known;
  for (auto each = source.instances.rbegin(); each != source.instances.rend(); ++each) {
    known.push_back(each->columns.instance.name);
  }
  if (memory) {
    for (std::string& name : memory->Names()) known.push_back(std::move(name));
  }
  TRY_ASSIGN(const cdc::InstanceFamily family,
             cdc::ResolveFamily(listed, config.capture_instance, known));
  TRY(cdc::CheckSameSource(source.memory(), cdc::Remember(source.database, family)));
  std::vector<cdc::InstanceFacts> instances;
  for (const cdc::CaptureInstance& instance : family.instances) {
    const auto old =
        std::ranges::find_if(source.instances, [&](const cdc::InstanceFacts& each) {
          return each.columns.instance.name == instance.name &&
                 each.columns.instance.created_us == instance.created_us;
        });
    if (old != source.instances.end()) {
      instances.push_back(*old);
      instances.back().columns.instance = instance;
      continue;
    }
    TRY_ASSIGN(AnsweredColumns answered,
               AskColumns(session, instance, config.include_command_id));
    instances.push_back({std::move(answered.columns), {}, false});
  }
  source.instance = family.Meant(config.capture_instance);
  source.instances = std::move(instances);
  NoteNames(config, source);
  return Unit{};
}

Status AskColumnsAgain(Session& session, const StreamConfig& config, std::size_t index,
                       Source& source) {
  cdc::InstanceFacts& facts = source.instances[index];
  TRY_ASSIGN(AnsweredColumns answered,
             AskColumns(session, facts.columns.instance, config.include_command_id));
  facts.columns = std::move(answered.columns);
  return Unit{};
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
               Ask(session, sqlserver::AskMinLsn(source.oldest().name), 1));
    if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
      TRY_ASSIGN(const std::optional<cdc::Lsn> min, row->LsnOf("min_lsn"));
      if (min) lsn = min->Previous();
    }
  } else if (starting_lsn == "latest") {
    TRY_ASSIGN(const std::optional<cdc::Offset> newest, AskNewest(session, source));
    lsn = cdc::SnapshotLsn(newest ? std::optional(newest->lsn) : std::nullopt,
                           source.oldest().start_lsn);
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

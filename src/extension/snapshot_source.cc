#include "extension/snapshot_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "cdc/snapshot_plan.h"
#include "cdc/spark_ddl.h"
#include "runtime/ask.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::extension {
namespace {

using OrderedJson = nlohmann::ordered_json;
using runtime::Source;

Status CheckCarriedOut(const runtime::StreamConfig& config) {
  const std::pair<const char*, bool> options[] = {
      {"snapshotChunks", !config.snapshot_chunks.empty()},
      {"snapshotKeys", !config.snapshot_keys.empty()}};
  for (const auto& [name, given] : options) {
    if (!given) continue;
    return Error(ErrorId::kOptionInvalid)
        .With("option", name)
        .With("reason", "not there yet on Spark");
  }
  return Unit{};
}

Result<cdc::Offset> ChooseStamp(SourceContext& context, sqlserver::Session& session) {
  const Source& source = context.run().source;
  if (!context.config().snapshot_lsn.empty()) {
    TRY_ASSIGN(const cdc::Lsn given, cdc::Lsn::Parse(context.config().snapshot_lsn));
    return runtime::AskOffset(session, source, given);
  }
  // What a stream that begins "latest" has behind it.
  return runtime::AskStart(session, source, "latest");
}

Result<std::vector<cdc::KeyRange>> PlanRanges(
    SourceContext& context, sqlserver::Session& session,
    const sqlserver::SourceSettings& settings) {
  const Source& source = context.run().source;
  const std::int64_t cpu_count =
      std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t range_count_max =
      context.config().num_partitions.value_or(cpu_count);
  if (range_count_max == 1 || !source.range_key) {
    return cdc::PlanKeyRanges(std::nullopt, 1);
  }
  sqlserver::SourceSettings probe = settings;
  probe.snapshot_isolation = false;
  TRY_ASSIGN(const std::vector<runtime::ResultSet> sets,
             runtime::Ask(session,
                          sqlserver::AskKeyExtent(source.instance.source_schema,
                                                  source.instance.source_table,
                                                  *source.range_key, probe),
                          1));
  std::optional<cdc::KeyExtent> extent;
  if (const std::optional<cdc::RowView> row = sets[0].FirstRow()) {
    TRY_ASSIGN(const std::optional<std::int64_t> min, row->Integer("min_key"));
    TRY_ASSIGN(const std::optional<std::int64_t> max, row->Integer("max_key"));
    if (min && max) extent = cdc::KeyExtent{*min, *max};
  }
  return cdc::PlanKeyRanges(extent, range_count_max);
}

Result<PlannedSnapshot> PlanOver(SourceContext& context, sqlserver::Session& session) {
  TRY(context.KnowSource(session, std::nullopt));
  const runtime::StreamConfig& config = context.config();
  const Source& source = context.run().source;
  const sqlserver::SourceSettings settings{
      config.lock_timeout_ms, config.isolation_level == cdc::IsolationLevel::kSnapshot};
  PlannedSnapshot planned;
  TRY_ASSIGN(planned.stamp, ChooseStamp(context, session));
  TRY_ASSIGN(const std::vector<cdc::KeyRange> ranges,
             PlanRanges(context, session, settings));
  for (const cdc::KeyRange& range : ranges) {
    const SnapshotTask task{{config.capture_instance,
                             source.instance.source_schema,
                             source.instance.source_table,
                             source.columns.columns,
                             config.include_command_id,
                             source.range_key.value_or(""),
                             range,
                             planned.stamp,
                             settings,
                             {}},
                            source.declared};
    planned.tasks.push_back(task.Json());
  }
  return planned;
}

template <typename T>
OrderedJson Maybe(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}
std::optional<std::int64_t> GetNumber(const OrderedJson& json, const char* name) {
  const OrderedJson& value = json.at(name);
  if (value.is_null()) return std::nullopt;
  return value.get<std::int64_t>();
}

Result<SnapshotTask> ParseTask(const OrderedJson& json) {
  SnapshotTask task;
  reader::SnapshotPlan& plan = task.plan;
  plan.capture_instance = json.at("capture_instance").get<std::string>();
  plan.source_schema = json.at("schema").get<std::string>();
  plan.source_table = json.at("table").get<std::string>();
  TRY_ASSIGN(const std::vector<columns::Field> fields,
             cdc::ParseColumnsOption(json.at("columns").get<std::string>()));
  const auto in_source = json.at("in_source").get<std::vector<bool>>();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    plan.columns.push_back({fields[i], i >= in_source.size() || in_source[i]});
  }
  if (const auto declared = json.at("declared").get<std::string>(); !declared.empty()) {
    TRY_ASSIGN(task.declared, cdc::ParseColumnsOption(declared));
  }
  plan.command_id = json.at("command_id").get<bool>();
  plan.key = json.at("key").get<std::string>();
  plan.range = {GetNumber(json, "after"), GetNumber(json, "through")};
  TRY_ASSIGN(plan.stamp, cdc::Offset::Parse(json.at("stamp").dump()));
  plan.settings.lock_timeout_ms = GetNumber(json, "lock_timeout_ms");
  plan.settings.snapshot_isolation = json.at("snapshot_isolation").get<bool>();
  return task;
}

}  // namespace

std::string SnapshotTask::Json() const {
  std::vector<columns::Field> fields;
  std::vector<bool> in_source;
  for (const cdc::ReadColumn& column : plan.columns) {
    fields.push_back(column.field);
    in_source.push_back(column.in_source);
  }
  OrderedJson json;
  json["capture_instance"] = plan.capture_instance;
  json["schema"] = plan.source_schema;
  json["table"] = plan.source_table;
  json["columns"] = cdc::ColumnsDdl(fields);
  json["in_source"] = in_source;
  json["declared"] = declared.empty() ? "" : cdc::ColumnsDdl(declared);
  json["command_id"] = plan.command_id;
  json["key"] = plan.key;
  json["after"] = Maybe(plan.range.after);
  json["through"] = Maybe(plan.range.through);
  json["stamp"] = OrderedJson::parse(plan.stamp.Json());
  json["lock_timeout_ms"] = Maybe(plan.settings.lock_timeout_ms);
  json["snapshot_isolation"] = plan.settings.snapshot_isolation;
  return json.dump();
}

Result<SnapshotTask> SnapshotTask::Parse(std::string_view text) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, false);
  const Error not_ours = Error(ErrorId::kInternalError)
                             .With("reason", "a task is not of this release's form");
  if (!json.is_object()) return not_ours;
  try {
    return ParseTask(json);
  } catch (const OrderedJson::exception&) {
    return not_ours;
  }
}

Result<PlannedSnapshot> PlanSnapshot(const Options& options,
                                     const TokenCall& token_call) {
  TRY_ASSIGN(const std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, token_call, nullptr));
  TRY(CheckCarriedOut(context->config()));
  return context->WithRetries<PlannedSnapshot>([&]() -> Result<PlannedSnapshot> {
    TRY_ASSIGN(const runtime::SessionPool::Lease session, context->pool().Acquire());
    return PlanOver(*context, *session);
  });
}

}  // namespace mssql_cdc::extension

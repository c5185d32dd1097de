#include "extension/snapshot_source.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cdc/spark_ddl.h"
#include "runtime/whole_snapshot.h"

namespace mssql_cdc::extension {
namespace {

using OrderedJson = nlohmann::ordered_json;
using runtime::Source;

Result<cdc::Offset> ChooseStamp(SourceContext& context, sqlserver::Session& session) {
  const Source& source = context.run().source;
  if (!context.config().snapshot_lsn.empty()) {
    TRY_ASSIGN(const cdc::Lsn given, cdc::Lsn::Parse(context.config().snapshot_lsn));
    return runtime::AskOffset(session, source, given);
  }
  // What a stream that begins "latest" has behind it.
  return runtime::AskStart(session, source, "latest");
}

Result<PlannedSnapshot> PlanOver(SourceContext& context, sqlserver::Session& session) {
  TRY(context.KnowSource(session, std::nullopt));
  PlannedSnapshot planned;
  TRY_ASSIGN(planned.stamp, ChooseStamp(context, session));
  TRY_ASSIGN(std::vector<reader::SnapshotPlan> plans,
             runtime::PlanTableReads(context.run(), session, planned.stamp,
                                     context.config().snapshot_chunks));
  for (reader::SnapshotPlan& plan : plans) {
    planned.tasks.push_back(
        SnapshotTask{std::move(plan), context.run().source.declared}.Json());
  }
  return planned;
}

// A span of keys: each bound a list of texts, null where it is open.
OrderedJson JsonOf(const reader::KeyedSpan& keyed) {
  OrderedJson json;
  json["columns"] = OrderedJson::array();
  for (const sqlserver::KeyColumn& key : keyed.keys) {
    json["columns"].push_back({{"name", key.name},
                               {"sql_type", key.sql_type},
                               {"collation", key.collation},
                               {"is_binary", key.is_binary}});
  }
  const auto bound = [](const std::optional<sqlserver::KeyBound>& values) {
    if (!values) return OrderedJson();
    OrderedJson list = OrderedJson::array();
    for (const auto& value : *values) {
      list.push_back(value ? OrderedJson(*value) : OrderedJson());
    }
    return list;
  };
  json["lo"] = bound(keyed.span.lo);
  json["hi"] = bound(keyed.span.hi);
  return json;
}

reader::KeyedSpan KeyedOf(const OrderedJson& json) {
  reader::KeyedSpan keyed;
  for (const OrderedJson& key : json.at("columns")) {
    keyed.keys.push_back(
        {key.at("name").get<std::string>(), key.at("sql_type").get<std::string>(),
         key.at("collation").get<std::string>(), key.at("is_binary").get<bool>()});
  }
  const auto bound = [](const OrderedJson& list) -> std::optional<sqlserver::KeyBound> {
    if (list.is_null()) return std::nullopt;
    sqlserver::KeyBound values;
    for (const OrderedJson& value : list) {
      if (value.is_null()) {
        values.push_back(std::nullopt);
      } else {
        values.push_back(value.get<std::string>());
      }
    }
    return values;
  };
  keyed.span = {bound(json.at("lo")), bound(json.at("hi"))};
  return keyed;
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
  const auto is_widened = json.at("is_widened").get<std::vector<bool>>();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    plan.columns.push_back({fields[i], i >= in_source.size() || in_source[i],
                            i < is_widened.size() && is_widened[i]});
  }
  if (const auto declared = json.at("declared").get<std::string>(); !declared.empty()) {
    TRY_ASSIGN(task.declared, cdc::ParseColumnsOption(declared));
  }
  plan.command_id = json.at("command_id").get<bool>();
  plan.key = json.at("key").get<std::string>();
  plan.range = {GetNumber(json, "after"), GetNumber(json, "through")};
  TRY_ASSIGN(plan.stamp, cdc::Offset::Parse(json.at("stamp").dump()));
  if (!json.at("keyed").is_null()) plan.keyed = KeyedOf(json.at("keyed"));
  if (const auto chunk = GetNumber(json, "chunk")) {
    plan.chunk = reader::ChunkMark{static_cast<std::int32_t>(*chunk), plan.stamp.lsn};
  }
  plan.settings.lock_timeout_ms = GetNumber(json, "lock_timeout_ms");
  plan.settings.snapshot_isolation = json.at("snapshot_isolation").get<bool>();
  return task;
}

}  // namespace

std::string SnapshotTask::Json() const {
  std::vector<columns::Field> fields;
  std::vector<bool> in_source;
  std::vector<bool> is_widened;
  for (const cdc::ReadColumn& column : plan.columns) {
    fields.push_back(column.field);
    in_source.push_back(column.in_source);
    is_widened.push_back(column.is_widened);
  }
  OrderedJson json;
  json["capture_instance"] = plan.capture_instance;
  json["schema"] = plan.source_schema;
  json["table"] = plan.source_table;
  json["columns"] = cdc::ColumnsDdl(fields);
  json["in_source"] = in_source;
  json["is_widened"] = is_widened;
  json["declared"] = declared.empty() ? "" : cdc::ColumnsDdl(declared);
  json["command_id"] = plan.command_id;
  json["key"] = plan.key;
  json["after"] = Maybe(plan.range.after);
  json["through"] = Maybe(plan.range.through);
  json["stamp"] = OrderedJson::parse(plan.stamp.Json());
  json["keyed"] = plan.keyed ? JsonOf(*plan.keyed) : OrderedJson();
  json["chunk"] = plan.chunk ? OrderedJson(plan.chunk->number) : OrderedJson();
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

Result<PlannedSnapshot> PlanSnapshot(const Options& options, const Access& access) {
  TRY_ASSIGN(const std::unique_ptr<SourceContext> context,
             SourceContext::Open(options, access, nullptr));
  return context->WithRetries<PlannedSnapshot>([&]() -> Result<PlannedSnapshot> {
    TRY_ASSIGN(const runtime::SessionPool::Lease session, context->pool().Acquire());
    return PlanOver(*context, *session);
  });
}

}  // namespace mssql_cdc::extension

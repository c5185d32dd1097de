#include "cdc/source_memory.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/case_fold.h"

namespace mssql_cdc::cdc {
namespace {

using OrderedJson = nlohmann::ordered_json;

Error Clash(const char* option, const std::string& now, const std::string& then) {
  return Error(ErrorId::kOptionsClash)
      .With("option", option)
      .With("value", now)
      .With("with", "this checkpoint, which belongs to " + then);
}

}  // namespace

std::string SourceMemory::Json() const {
  OrderedJson json;
  json["database"] = database;
  json["schema"] = schema;
  json["table"] = table;
  json["instances"] = OrderedJson::array();
  for (const KnownInstance& instance : instances) {
    json["instances"].push_back(
        {{"name", instance.name}, {"created_us", instance.created_us}});
  }
  return json.dump();
}

Result<SourceMemory> SourceMemory::Parse(std::string_view json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  const auto text = [&](const char* key) {
    const auto found = parsed.find(key);
    return found != parsed.end() && found->is_string() ? found->get<std::string>()
                                                       : std::string();
  };
  if (!parsed.is_object() || !parsed.contains("instances") ||
      !parsed["instances"].is_array()) {
    return Error(ErrorId::kCheckpointUnreadable)
        .With("reason", "what it remembers of its source is malformed");
  }
  SourceMemory memory{text("database"), text("schema"), text("table"), {}};
  for (const auto& item : parsed["instances"]) {
    if (!item.is_object() || !item.contains("name") || !item["name"].is_string()) {
      continue;
    }
    KnownInstance known{item["name"].get<std::string>(), 0};
    if (item.contains("created_us") && item["created_us"].is_number_integer()) {
      known.created_us = item["created_us"].get<std::int64_t>();
    }
    memory.instances.push_back(std::move(known));
  }
  return memory;
}

std::vector<std::string> SourceMemory::Names() const {
  std::vector<std::string> names;
  for (auto known = instances.rbegin(); known != instances.rend(); ++known) {
    names.push_back(known->name);
  }
  return names;
}

SourceMemory Remember(std::string_view database, const InstanceFamily& family) {
  SourceMemory memory{std::string(database),
                      family.newest().source_schema,
                      family.newest().source_table,
                      {}};
  for (const CaptureInstance& instance : family.instances) {
    memory.instances.push_back({instance.name, instance.created_us});
  }
  return memory;
}

Status CheckSameSource(const SourceMemory& then, const SourceMemory& now) {
  if (!EqualsIgnoringCase(then.database, now.database)) {
    return Clash("Database", now.database, "database " + then.database);
  }
  if (then.schema == now.schema && then.table == now.table) return Unit{};
  const bool shares_an_instance =
      std::ranges::any_of(then.instances, [&](const KnownInstance& known) {
        return std::ranges::find(now.instances, known) != now.instances.end();
      });
  if (shares_an_instance) return Unit{};
  return Clash("captureInstance", now.schema + "." + now.table,
               "table " + then.schema + "." + then.table);
}

}  // namespace mssql_cdc::cdc

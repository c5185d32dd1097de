#include "fake/fake_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/spark_ddl.h"

namespace mssql_cdc::fake {
namespace {

using Json = nlohmann::json;

// The text at `key`, or "".
std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<cdc::Lsn> LsnAt(const Json& object, const char* key) {
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(TextAt(object, key));
  if (!lsn.ok()) return std::nullopt;
  return lsn.value();
}

// A text or a list of them.
std::vector<std::string> NamesAt(const Json& object, const std::string& key) {
  std::vector<std::string> names;
  const auto found = object.find(key);
  if (found == object.end()) return names;
  if (found->is_string()) names.push_back(found->get<std::string>());
  if (!found->is_array()) return names;
  for (const Json& name : *found) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

// The type of a column's Spark DDL. Like SQL Server's, a TINYINT is read as SMALLINT.
std::optional<columns::Type> TypeOf(const std::string& ddl) {
  if (EqualsIgnoringAsciiCase(Trim(ddl), "tinyint")) {
    return columns::Type{columns::Kind::kInt16};
  }
  const auto parsed = cdc::ParseColumnsOption("c " + ddl);
  if (!parsed.ok() || parsed.value().size() != 1) return std::nullopt;
  return parsed.value()[0].type;
}

std::optional<std::vector<columns::Field>> ColumnsOf(const Json& list) {
  std::vector<columns::Field> fields;
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() ||
        !item[1].is_string()) {
      return std::nullopt;
    }
    const std::optional<columns::Type> type = TypeOf(item[1].get<std::string>());
    if (!type) return std::nullopt;
    fields.push_back({item[0].get<std::string>(), *type, true, ""});
  }
  return fields;
}

// Written before columns were kept: what its rows have, as text.
std::vector<columns::Field> ColumnsOf(const std::vector<Change>& changes) {
  std::vector<columns::Field> fields;
  for (const Change& change : changes) {
    for (const auto& [name, value] : change.row.items()) {
      if (std::ranges::find(fields, name, &columns::Field::name) == fields.end()) {
        fields.push_back({name, {columns::Kind::kUtf8}, true, ""});
      }
    }
  }
  return fields;
}

}  // namespace

Error Files::Refused(const std::string& name, std::string reason) const {
  return Error(ErrorId::kFileRefused)
      .With("path", directory_ + "/" + name)
      .With("reason", std::move(reason));
}

Result<Json> Files::Object(const std::string& name) const {
  std::ifstream file(directory_ + "/" + name, std::ios::binary);
  if (!file) return Json(Json::object());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Json parsed = Json::parse(text, nullptr, false);
  if (!parsed.is_object()) return Refused(name, "it holds no JSON object");
  return parsed;
}

Result<std::vector<Json>> Files::Lines(const std::string& name) const {
  std::vector<Json> lines;
  std::ifstream file(directory_ + "/" + name, std::ios::binary);
  std::string line;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // Its writer is not done with it.
    if (Trim(line).empty()) continue;
    Json parsed = Json::parse(line, nullptr, false);
    if (!parsed.is_object()) {
      return Refused(name,
                     "line " + std::to_string(lines.size() + 1) + " is no JSON object");
    }
    lines.push_back(std::move(parsed));
  }
  return lines;
}

Result<std::vector<Commit>> Files::Mapping() const {
  constexpr const char* kName = "lsn_time_mapping.jsonl";
  TRY_ASSIGN(const std::vector<Json> lines, Lines(kName));
  std::vector<Commit> commits;
  for (const Json& line : lines) {
    const std::optional<cdc::Lsn> lsn = LsnAt(line, "start_lsn");
    const std::optional<std::int64_t> time = ParseIsoUs(TextAt(line, "tran_end_time"));
    if (!lsn || !time) return Refused(kName, "an entry has no LSN or no time");
    commits.push_back({*lsn, *time});
  }
  std::ranges::stable_sort(commits, {}, &Commit::lsn);
  return commits;
}

Result<std::vector<Instance>> Files::Instances() const {
  TRY_ASSIGN(const Json mins, Object("min_lsn.json"));
  TRY_ASSIGN(const Json known, Object("instances.json"));
  if (mins.empty()) {
    return Refused("min_lsn.json", "it is not there: fakePath is no fake's directory");
  }
  std::vector<Instance> instances;
  for (const auto& [name, min] : mins.items()) {
    Instance instance;
    instance.name = name;
    instance.table = name;
    const std::optional<cdc::Lsn> lsn = LsnAt(mins, name.c_str());
    if (!lsn) return Refused("min_lsn.json", "it has no LSN for " + name);
    instance.min_lsn = *lsn;
    std::optional<std::vector<columns::Field>> fields;
    if (const auto meta = known.find(name); meta != known.end() && meta->is_object()) {
      const std::string table = TextAt(*meta, "table");
      if (!table.empty()) instance.table = table;
      instance.created_us = ParseIsoUs(TextAt(*meta, "created")).value_or(0);
      if (const auto list = meta->find("columns");
          list != meta->end() && list->is_array()) {
        fields = ColumnsOf(*list);
        if (!fields) return Refused("instances.json", "the columns of " + name);
      }
    }
    if (!fields) {
      TRY_ASSIGN(const std::vector<Change> changes, Changes(name));
      fields = ColumnsOf(changes);
    }
    instance.columns = std::move(*fields);
    instances.push_back(std::move(instance));
  }
  std::ranges::stable_sort(instances, {}, [](const Instance& instance) {
    return std::tuple(instance.created_us, instance.min_lsn);
  });
  return instances;
}

Result<Table> Files::TableOf(const std::string& table) const {
  TRY_ASSIGN(const Json keys, Object("keys.json"));
  TRY_ASSIGN(const Json dropped, Object("dropped.json"));
  TRY_ASSIGN(const Json computed, Object("computed.json"));
  Table result;
  result.keys = NamesAt(keys, table);
  for (const std::string& name : NamesAt(dropped, table)) {
    result.dropped.insert(LowerCase(name));
  }
  for (const std::string& name : NamesAt(computed, table)) {
    result.computed.insert(LowerCase(name));
  }
  return result;
}

Result<std::vector<Change>> Files::Changes(const std::string& instance) const {
  const std::string file = "changes/" + instance + ".jsonl";
  TRY_ASSIGN(const std::vector<Json> lines, Lines(file));
  std::vector<Change> changes;
  for (const Json& line : lines) {
    const std::optional<cdc::Lsn> lsn = LsnAt(line, "start_lsn");
    const std::optional<cdc::Lsn> seqval = LsnAt(line, "seqval");
    const auto number = [&](const char* key) {
      const auto found = line.find(key);
      return found != line.end() && found->is_number_integer()
                 ? found->get<std::int32_t>()
                 : 0;
    };
    const auto row = line.find("row");
    if (!lsn || !seqval || row == line.end() || !row->is_object()) {
      return Refused(file, "a change has no LSN, no seqval or no row");
    }
    changes.push_back({*lsn, *seqval, number("command_id"), number("operation"), *row});
  }
  std::ranges::stable_sort(changes, {}, [](const Change& change) {
    return std::tuple(change.lsn, change.command_id, change.seqval, change.operation);
  });
  return changes;
}

Result<std::vector<Ddl>> Files::DdlOf(const std::string& instance) const {
  const std::string file = "ddl/" + instance + ".jsonl";
  TRY_ASSIGN(const std::vector<Json> lines, Lines(file));
  std::vector<Ddl> ddl;
  for (const Json& line : lines) {
    const std::optional<cdc::Lsn> lsn = LsnAt(line, "lsn");
    if (!lsn) return Refused(file, "an entry has no LSN");
    ddl.push_back({*lsn, TextAt(line, "command")});
  }
  return ddl;
}

Result<std::vector<Json>> Files::Rows(const std::string& table) const {
  TRY_ASSIGN(const Json rows, Object("tables/" + table + ".json"));
  std::vector<Json> result;
  for (const auto& [key, row] : rows.items()) result.push_back(row);
  return result;
}

}  // namespace mssql_cdc::fake

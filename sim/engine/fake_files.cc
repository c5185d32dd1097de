#include "sim/engine/fake_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace mssql_cdc::sim {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  explicit Reader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // An absent file is an empty object, as the fake has it.
  Json Object(const std::string& name) {
    const std::optional<std::string> text = Text(name);
    return text ? Json::parse(*text) : Json::object();
  }
  std::vector<Json> Lines(const std::string& name) {
    std::vector<Json> lines;
    const std::optional<std::string> text = Text(name);
    if (!text) return lines;
    std::istringstream stream(*text);
    std::string line;
    while (std::getline(stream, line)) {
      if (!line.empty()) lines.push_back(Json::parse(line));
    }
    return lines;
  }
  const std::string& current() const { return current_; }

 private:
  std::optional<std::string> Text(const std::string& name) {
    current_ = name;
    std::ifstream file(folder_ / name, std::ios::binary);
    if (!file) return std::nullopt;
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
  std::string current_;
};

std::vector<std::string> Names(const Json& json, const std::string& key) {
  if (!json.contains(key) || json.at(key).is_null()) return {};
  const Json& value = json.at(key);
  if (value.is_string()) return {value.get<std::string>()};
  return value.get<std::vector<std::string>>();
}

FakeInstance InstanceOf(Reader& reader, const std::string& name, const Json& meta,
                        const Json& min_lsn) {
  FakeInstance instance;
  instance.name = name;
  instance.table = meta.value("table", name);
  if (meta.contains("created") && meta.at("created").is_string()) {
    instance.created = meta.at("created").get<std::string>();
  }
  instance.min_lsn = min_lsn.at(name).get<std::string>();
  if (meta.contains("columns") && meta.at("columns").is_array()) {
    for (const Json& column : meta.at("columns")) {
      instance.columns.push_back(
          {column.at(0).get<std::string>(), column.at(1).get<std::string>()});
    }
  }
  for (const Json& line : reader.Lines("changes/" + name + ".jsonl")) {
    // Throws what at() throws of a file that is none of a fake.
    (void)line.at("row").get_ref<const Json::object_t&>();
    instance.changes.push_back(
        {line.at("start_lsn").get<std::string>(), line.at("seqval").get<std::string>(),
         line.value("command_id", 0), line.at("operation").get<int>(), line.at("row")});
  }
  for (const Json& line : reader.Lines("ddl/" + name + ".jsonl")) {
    instance.ddl.emplace_back(line.at("lsn").get<std::string>(),
                              line.at("command").get<std::string>());
  }
  return instance;
}

// Instances from before columns were kept have those of their rows, as text.
void InferColumns(FakeInstance& instance) {
  for (const FakeChange& change : instance.changes) {
    for (const auto& [name, value] : change.row.items()) {
      const bool known =
          std::any_of(instance.columns.begin(), instance.columns.end(),
                      [&](const FakeColumn& c) { return c.name == name; });
      if (!known) instance.columns.push_back({name, "STRING"});
    }
  }
}

Fake ReadAll(Reader& reader) {
  Fake fake;
  for (const Json& line : reader.Lines("lsn_time_mapping.jsonl")) {
    fake.mapping.emplace_back(line.at("start_lsn").get<std::string>(),
                              line.at("tran_end_time").get<std::string>());
  }
  const Json min_lsn = reader.Object("min_lsn.json");
  const Json known = reader.Object("instances.json");
  for (const auto& [name, lsn] : min_lsn.items()) {
    const Json meta = known.contains(name) ? known.at(name) : Json::object();
    fake.instances.push_back(InstanceOf(reader, name, meta, min_lsn));
    if (fake.instances.back().columns.empty()) InferColumns(fake.instances.back());
  }
  std::stable_sort(fake.instances.begin(), fake.instances.end(),
                   [](const FakeInstance& a, const FakeInstance& b) {
                     return a.created < b.created;
                   });
  const Json keys = reader.Object("keys.json");
  const Json dropped = reader.Object("dropped.json");
  const Json computed = reader.Object("computed.json");
  for (const FakeInstance& instance : fake.instances) {
    FakeTable& table = fake.tables[instance.table];
    table.keys = Names(keys, instance.table);
    table.dropped = Names(dropped, instance.table);
    table.computed = Names(computed, instance.table);
    table.rows.clear();
    const Json rows = reader.Object("tables/" + instance.table + ".json");
    for (const auto& [key, row] : rows.items()) table.rows.push_back(row);
  }
  return fake;
}

}  // namespace

Result<Fake> ReadFake(const std::string& directory) {
  const auto failed = [&](const std::string& file, const std::string& reason) {
    return Error(ErrorId::kSimulatorFailed)
        .With("file", (std::filesystem::path(directory) / file).string())
        .With("reason", reason);
  };
  Reader reader(directory);
  try {
    Fake fake = ReadAll(reader);
    if (fake.instances.empty()) {
      return failed("min_lsn.json", "no capture instance of the fake is there");
    }
    return fake;
  } catch (const Json::exception& problem) {
    return failed(reader.current(), problem.what());
  }
}

}  // namespace mssql_cdc::sim

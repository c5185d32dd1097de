#include "extension/change_task.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "cdc/spark_ddl.h"

namespace mssql_cdc::extension {
namespace {

using Json = nlohmann::ordered_json;

Error NotOurs(const char* what) {
  return Error(ErrorId::kInternalError)
      .With("reason", std::string(what) + " does not have the form of this release");
}

template <typename T>
Json Maybe(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json MaybeLsn(const std::optional<cdc::Lsn>& lsn) {
  return lsn ? Json(lsn->Text()) : Json();
}

template <typename T>
std::optional<T> Get(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}
std::optional<cdc::Lsn> GetLsn(const Json& json, const char* name) {
  const auto text = Get<std::string>(json, name);
  if (!text) return std::nullopt;
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(*text);
  if (!lsn.ok()) return std::nullopt;
  return lsn.value();
}

Json WindowJson(const cdc::LsnWindow& window) {
  return {{"after", window.after.Text()}, {"through", window.through.Text()}};
}
Result<cdc::LsnWindow> ParseWindow(const Json& json) {
  const auto after = GetLsn(json, "after");
  const auto through = GetLsn(json, "through");
  if (!after || !through) return NotOurs("a window");
  return cdc::LsnWindow{*after, *through};
}

Json ReadsJson(const std::vector<cdc::ColumnRead>& reads) {
  Json list = Json::array();
  for (const cdc::ColumnRead& read : reads) {
    list.push_back(
        {{"name", Maybe(read.name)},
         {"type", read.type ? Json(cdc::SparkTypeName(*read.type)) : Json()}});
  }
  return list;
}
Result<std::vector<cdc::ColumnRead>> ParseReads(const Json& list) {
  std::vector<cdc::ColumnRead> reads;
  for (const Json& json : list) {
    cdc::ColumnRead read{Get<std::string>(json, "name"), std::nullopt};
    if (const auto type = Get<std::string>(json, "type")) {
      TRY_ASSIGN(const std::vector<columns::Field> fields,
                 cdc::ParseColumnsOption("c " + *type));
      read.type = fields[0].type;
    }
    reads.push_back(std::move(read));
  }
  return reads;
}

Result<std::vector<columns::Field>> ParseFields(const std::string& ddl) {
  if (ddl.empty()) return std::vector<columns::Field>();
  return cdc::ParseColumnsOption(ddl);
}

// Runs `read` over what the text holds; a text of another form is an error.
template <typename T, typename F>
Result<T> ParseWith(std::string_view text, const char* what, F read) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return NotOurs(what);
  try {
    return read(json);
  } catch (const Json::exception&) {
    return NotOurs(what);
  }
}

}  // namespace

std::string ChangeTask::Json() const {
  extension::Json json = WindowJson(plan.window);
  json["capture_instance"] = plan.capture_instance;
  json["columns"] = plan.columns.empty() ? "" : cdc::ColumnsDdl(plan.columns);
  json["reads"] = ReadsJson(plan.reads);
  json["declared"] = declared.empty() ? "" : cdc::ColumnsDdl(declared);
  json["command_id"] = plan.command_id;
  json["clock"] = {{"kind", static_cast<int>(plan.clock.kind)},
                   {"offset_minutes", plan.clock.offset_minutes},
                   {"zone", plan.clock.zone}};
  json["fail_on_data_loss"] = plan.fail_on_data_loss;
  return json.dump();
}

Result<ChangeTask> ChangeTask::Parse(std::string_view text) {
  return ParseWith<ChangeTask>(
      text, "a task", [](const extension::Json& json) -> Result<ChangeTask> {
        ChangeTask task;
        TRY_ASSIGN(task.plan.window, ParseWindow(json));
        task.plan.capture_instance = json.at("capture_instance").get<std::string>();
        TRY_ASSIGN(task.plan.columns,
                   ParseFields(json.at("columns").get<std::string>()));
        TRY_ASSIGN(task.plan.reads, ParseReads(json.at("reads")));
        TRY_ASSIGN(task.declared, ParseFields(json.at("declared").get<std::string>()));
        task.plan.command_id = json.at("command_id").get<bool>();
        const extension::Json& clock = json.at("clock");
        task.plan.clock = {
            static_cast<cdc::CommitClock::Kind>(clock.at("kind").get<int>()),
            clock.at("offset_minutes").get<std::int64_t>(),
            clock.at("zone").get<std::string>()};
        task.plan.fail_on_data_loss = json.at("fail_on_data_loss").get<bool>();
        return task;
      });
}

std::string ReadReport::Json() const {
  extension::Json json = WindowJson(window);
  json["capture_instance"] = capture_instance;
  json["rows"] = counts.row_count;
  json["deletes"] = counts.deletes;
  json["inserts"] = counts.inserts;
  json["updates"] = counts.updates;
  json["min_lsn"] = MaybeLsn(counts.min_lsn);
  json["max_lsn"] = MaybeLsn(counts.max_lsn);
  json["min_commit_us"] = Maybe(counts.min_commit_us);
  json["max_commit_us"] = Maybe(counts.max_commit_us);
  json["bytes"] = counts.size_bytes;
  json["read_ns"] = counts.read_ns;
  if (!after) return json.dump();
  json["instance_min"] = MaybeLsn(after->instance_min);
  json["instance_min_commit_us"] = Maybe(after->instance_min_commit_us);
  if (after->newest) {
    json["newest_lsn"] = after->newest->lsn.Text();
    json["newest_commit_us"] = Maybe(after->newest->commit_us);
  }
  json["network_wait_ms"] = Maybe(after->network_wait_ms);
  json["may_lack_rows"] = after->may_lack_rows;
  return json.dump();
}

Result<ReadReport> ReadReport::Parse(std::string_view text) {
  return ParseWith<ReadReport>(
      text, "a read's report", [](const extension::Json& json) -> Result<ReadReport> {
        ReadReport report;
        TRY_ASSIGN(report.window, ParseWindow(json));
        report.capture_instance = json.at("capture_instance").get<std::string>();
        reader::ChangeCounts& counts = report.counts;
        counts.row_count = json.at("rows").get<std::int64_t>();
        counts.deletes = json.at("deletes").get<std::int64_t>();
        counts.inserts = json.at("inserts").get<std::int64_t>();
        counts.updates = json.at("updates").get<std::int64_t>();
        counts.min_lsn = GetLsn(json, "min_lsn");
        counts.max_lsn = GetLsn(json, "max_lsn");
        counts.min_commit_us = Get<std::int64_t>(json, "min_commit_us");
        counts.max_commit_us = Get<std::int64_t>(json, "max_commit_us");
        counts.size_bytes = json.at("bytes").get<std::int64_t>();
        counts.read_ns = json.at("read_ns").get<std::int64_t>();
        if (!json.contains("may_lack_rows")) return report;
        reader::AfterRead after;
        after.instance_min = GetLsn(json, "instance_min");
        after.instance_min_commit_us =
            Get<std::int64_t>(json, "instance_min_commit_us");
        if (const auto newest = GetLsn(json, "newest_lsn")) {
          after.newest =
              cdc::Offset{*newest, Get<std::int64_t>(json, "newest_commit_us")};
        }
        after.network_wait_ms = Get<std::int64_t>(json, "network_wait_ms");
        after.may_lack_rows = json.at("may_lack_rows").get<bool>();
        report.after = after;
        return report;
      });
}

std::string BatchSummary::Json() const {
  extension::Json json;
  json["start"] = extension::Json::parse(start.Json());
  json["end"] = extension::Json::parse(end.Json());
  json["rtt_ms"] = Maybe(rtt_ms);
  json["row_count"] = row_count;
  json["ranges"] = extension::Json::array();
  for (const cdc::LsnWindow& window : windows) {
    json["ranges"].push_back(WindowJson(window));
  }
  json["note"] = note.Json();
  return json.dump();
}

Result<BatchSummary> BatchSummary::Parse(std::string_view text) {
  return ParseWith<BatchSummary>(
      text, "a batch's summary",
      [](const extension::Json& json) -> Result<BatchSummary> {
        BatchSummary summary;
        TRY_ASSIGN(summary.start, cdc::Offset::Parse(json.at("start").dump()));
        TRY_ASSIGN(summary.end, cdc::Offset::Parse(json.at("end").dump()));
        summary.rtt_ms = Get<double>(json, "rtt_ms");
        summary.row_count = json.at("row_count").get<std::int64_t>();
        for (const extension::Json& range : json.at("ranges")) {
          TRY_ASSIGN(const cdc::LsnWindow window, ParseWindow(range));
          summary.windows.push_back(window);
        }
        TRY_ASSIGN(summary.note,
                   pipeline::BatchNote::Parse(json.at("note").get<std::string>()));
        return summary;
      });
}

}  // namespace mssql_cdc::extension

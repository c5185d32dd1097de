#include "runtime/metrics_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "cdc/read_plan.h"
#include "runtime/files.h"

namespace mssql_cdc::runtime {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json TimeOrNull(const std::optional<std::int64_t>& us) {
  return us ? Json(IsoMillis(*us)) : Json();
}

// The number at `key`, if there is one.
template <typename T>
std::optional<T> NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<T>();
}

std::string TextAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

// A range's file as it was written; nullopt for another form.
std::optional<RangeMetrics> ParseRange(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const Result<cdc::Lsn> from = cdc::Lsn::Parse(TextAt(json, "from_lsn"));
  const Result<cdc::Lsn> through = cdc::Lsn::Parse(TextAt(json, "to_lsn"));
  if (!from.ok() || !through.ok()) return std::nullopt;
  RangeMetrics range;
  range.window = {from.value().Previous().value_or(cdc::Lsn{}), through.value()};
  range.row_count = NumberAt<std::int64_t>(json, "rows").value_or(0);
  range.size_bytes = NumberAt<std::int64_t>(json, "bytes").value_or(0);
  range.read_seconds = NumberAt<double>(json, "seconds").value_or(0);
  range.rtt_ms = NumberAt<double>(json, "rtt_ms");
  range.network_wait_ms = NumberAt<std::int64_t>(json, "network_wait_ms");
  range.retention_watermark_us = ParseIsoUs(TextAt(json, "retention_watermark_ts"));
  range.source_max_commit_us = ParseIsoUs(TextAt(json, "source_max_commit_ts"));
  return range;
}

}  // namespace

std::optional<std::string> LocalDirectory(const std::string& metrics_path) {
  constexpr std::string_view kFileUrl = "file://";
  if (EqualsIgnoringAsciiCase(metrics_path.substr(0, kFileUrl.size()), kFileUrl)) {
    return metrics_path.substr(kFileUrl.size());
  }
  if (metrics_path.find("://") != std::string::npos) return std::nullopt;
  return metrics_path;
}

MetricsFiles::MetricsFiles(const std::string& metrics_path, const std::string& sink_id)
    : directory_(LocalDirectory(metrics_path).value_or(metrics_path) + "/" + sink_id) {}

Status MetricsFiles::WriteRange(const RangeMetrics& range) const {
  const std::string from =
      range.window.after.Next().value_or(range.window.after).Text();
  const std::string through = range.window.through.Text();
  Json json;
  json["from_lsn"] = from;
  json["to_lsn"] = through;
  json["rows"] = range.row_count;
  json["bytes"] = range.size_bytes;
  json["seconds"] = range.read_seconds;
  json["rtt_ms"] = OrNull(range.rtt_ms);
  json["network_wait_ms"] = OrNull(range.network_wait_ms);
  json["retention_watermark_ts"] = TimeOrNull(range.retention_watermark_us);
  json["source_max_commit_ts"] = TimeOrNull(range.source_max_commit_us);
  TRY(MakeDirectories(directory_));
  return ReplaceFile(directory_ + "/" + from + "-" + through + ".json", json.dump());
}

Status MetricsFiles::WriteEvent(const cdc::SourceEvent& event) const {
  const bool is_skip = event.kind == cdc::SourceEvent::Kind::kDataSkipped;
  const std::string kind = cdc::NameOf(event.kind);
  Json json;
  json["event"] = kind;
  json["capture_instance"] = event.capture_instance;
  json["lsn"] = event.at.lsn.Text();
  json["commit_ts"] = TimeOrNull(event.at.commit_us);
  json["detail"] = event.detail;
  std::string name = "event-" + kind + "-" + event.at.lsn.Text();
  if (is_skip) {
    json["lost_from_ts"] = TimeOrNull(event.lost_from_us);
    json["lost_to_ts"] = TimeOrNull(event.lost_to_us);
    const Json detail = Json::parse(event.detail, nullptr, false);
    name = "event-" + kind + "-" + event.capture_instance + "-" +
           (detail.is_object() ? TextAt(detail, "from") : "");
    std::ranges::replace(name, '/', '_');  // An instance may be called so.
  }
  TRY(MakeDirectories(directory_));
  return ReplaceFile(directory_ + "/" + name + ".json",
                     json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Result<std::vector<std::string>> MetricsFiles::Names() const {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator each(directory_, failed), end;
       !failed && each != end; each.increment(failed)) {
    if (each->path().extension() == ".json") {
      names.push_back(each->path().filename().string());
    }
  }
  if (failed && failed != std::errc::no_such_file_or_directory) {
    return Error(ErrorId::kFileFailed)
        .With("path", directory_)
        .With("operation", "list")
        .With("cause", failed.message());
  }
  std::ranges::sort(names);
  return names;
}

Result<std::vector<RangeMetrics>> MetricsFiles::ReadRanges(
    const cdc::LsnWindow& window) const {
  TRY_ASSIGN(const std::vector<std::string> names, Names());
  std::vector<RangeMetrics> ranges;
  for (const std::string& name : names) {
    if (name.starts_with("event-")) continue;
    TRY_ASSIGN(const std::optional<std::string> text,
               ReadFileIfThere(directory_ + "/" + name));
    const std::optional<RangeMetrics> range =
        text ? ParseRange(*text) : std::optional<RangeMetrics>();
    if (!range || range->window.after < window.after ||
        window.through < range->window.through) {
      continue;
    }
    ranges.push_back(*range);
  }
  return ranges;
}

Status MetricsFiles::RemoveAll() const {
  TRY_ASSIGN(const std::vector<std::string> names, Names());
  for (const std::string& name : names) TRY(RemoveFile(directory_ + "/" + name));
  return Unit{};
}

}  // namespace mssql_cdc::runtime

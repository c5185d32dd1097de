#include "cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace mssql_cdc::cli {
namespace {

std::string_view RemedyText(Remedy remedy) {
  switch (remedy) {
    case Remedy::kRetry:
      return "run it again: nothing was lost";
    case Remedy::kReconfigure:
      return "change an option, a permission or a server setting";
    case Remedy::kReseed:
      return "take a new snapshot: the source no longer has the changes";
    case Remedy::kReport:
      return "report it, with this line";
  }
  return "";
}

std::string_view RemedyName(Remedy remedy) {
  switch (remedy) {
    case Remedy::kRetry:
      return "retry";
    case Remedy::kReconfigure:
      return "reconfigure";
    case Remedy::kReseed:
      return "reseed";
    case Remedy::kReport:
      return "report";
  }
  return "";
}

// Keys in the order given, so that a person can read the line too.
using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

int ExitCodeOf(const Error& error) {
  switch (error.remedy()) {
    case Remedy::kRetry:
      return 75;
    case Remedy::kReconfigure:
      return 78;
    case Remedy::kReseed:
      return 65;
    case Remedy::kReport:
      return 70;
  }
  return 70;
}

void Output::Line(std::FILE* to, const std::string& line) {
  const std::lock_guard lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), to);
  std::fputc('\n', to);
  errno = 0;
  if (std::fflush(to) == 0 || errno != EPIPE || !closed_pipe_) return;
  std::exchange(closed_pipe_, nullptr)();
}

void Output::Event(std::string_view stream, std::string_view event,
                   const std::string& text, const std::vector<Field>& fields) {
  if (form_ == LogForm::kText) {
    Line(stdout, stream.empty() ? text : fmt::format("{}: {}", stream, text));
    return;
  }
  Json json{{"at", IsoMillis(clock_.NowUtcUs()) + "Z"}, {"level", "info"}};
  if (!stream.empty()) json["stream"] = stream;
  json["event"] = event;
  for (const Field& field : fields) {
    json[field.name] =
        field.quoted ? Json(field.value) : Json::parse(field.value, nullptr, false);
  }
  Line(stdout, Dump(json));
}

void Output::Warning(std::string_view stream, const std::string& text) {
  if (form_ == LogForm::kText) {
    Line(stderr, stream.empty() ? "warning: " + text
                                : fmt::format("{}: warning: {}", stream, text));
    return;
  }
  Json json{{"at", IsoMillis(clock_.NowUtcUs()) + "Z"}, {"level", "warning"}};
  if (!stream.empty()) json["stream"] = stream;
  json["text"] = text;
  Line(stderr, Dump(json));
}

void Output::Failure(std::string_view stream, const Error& error) {
  if (form_ == LogForm::kText) {
    const std::string who = stream.empty() ? "" : std::string(stream) + ": ";
    Line(stderr, fmt::format("{}error: {}\n  what to do: {} (docs/errors.md, {})", who,
                             error.Text(), RemedyText(error.remedy()), error.Code()));
    return;
  }
  Json json{{"at", IsoMillis(clock_.NowUtcUs()) + "Z"}, {"level", "error"}};
  if (!stream.empty()) json["stream"] = stream;
  json["code"] = error.Code();
  json["name"] = RuleOf(error.id()).name;
  json["remedy"] = RemedyName(error.remedy());
  json["text"] = error.Text();
  for (const auto& [key, value] : error.facts()) json["facts"][key] = value;
  Line(stderr, Dump(json));
}

std::string Grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string Duration(std::int64_t duration_ms) {
  if (duration_ms < 1000) return fmt::format("{} ms", duration_ms);
  if (duration_ms < 60'000) {
    return fmt::format("{:.1f} s", static_cast<double>(duration_ms) / 1000);
  }
  return fmt::format("{} min {:02} s", duration_ms / 60'000, duration_ms / 1000 % 60);
}

std::string SizeText(std::int64_t size_bytes) {
  if (size_bytes < 1000) return fmt::format("{} B", size_bytes);
  double size = static_cast<double>(size_bytes);
  std::string_view unit;
  for (const std::string_view larger : {"kB", "MB", "GB", "TB"}) {
    size /= 1000;
    unit = larger;
    if (size < 1000) break;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

}  // namespace mssql_cdc::cli

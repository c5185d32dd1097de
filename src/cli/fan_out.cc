#include "cli/fan_out.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/option_values.h"

namespace mssql_cdc::cli {
namespace {

constexpr std::string_view kPlaceholder = "{ci}";
constexpr std::string_view kOption = "captureInstances";

// Options in which {ci} stands for a name; those that must have it come first.
constexpr std::string_view kRequired[] = {"target", "app_id", "checkpoint"};
constexpr std::string_view kTemplates[] = {"target",      "app_id",        "checkpoint",
                                           "facts_table", "control_table", "silver",
                                           "metricsPath", "fakePath"};

const std::string* Find(const StreamSettings& settings, std::string_view name) {
  for (const auto& [key, value] : settings.options) {
    if (EqualsIgnoringAsciiCase(key, name)) return &value;
  }
  return nullptr;
}

void Erase(StreamSettings& settings, std::string_view name) {
  std::erase_if(settings.options, [&](const auto& option) {
    return EqualsIgnoringAsciiCase(option.first, name);
  });
}

// "a, b" or ["a", "b"].
Result<std::vector<std::string>> ReadNames(const std::string& text) {
  std::vector<std::string> names;
  if (Trim(text).starts_with('[')) return cdc::ParseNamesOption(kOption, text);
  std::string_view rest = text;
  while (!Trim(rest).empty()) {
    const auto comma = rest.find(',');
    const std::string_view name = Trim(rest.substr(0, comma));
    if (name.empty()) return cdc::OptionRefused(kOption, text);
    names.emplace_back(name);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  if (names.empty()) return cdc::OptionRefused(kOption, text);
  return names;
}

bool IsPattern(std::string_view wanted) {
  return wanted.find_first_of("*?") != std::string_view::npos;
}

Status CheckTemplate(const StreamSettings& settings, std::string_view option) {
  const std::string* value = Find(settings, option);
  if (value == nullptr || value->find(kPlaceholder) != std::string::npos) return Unit{};
  return Error(ErrorId::kOptionInvalid)
      .With("option", std::string(option))
      .With("value", *value)
      .With("reason", "with captureInstances it must contain {ci}");
}

// Whether a stream can read it and {ci} can stand for it: in a path its name must not
// be several, or the table would lie in another's place. Errors: OptionInvalid.
Status CheckName(const std::string& name) {
  TRY(cdc::CheckInstanceName(name));
  const bool is_one_name =
      name != "." && name != ".." && name.find_first_of("/\\") == std::string::npos;
  if (is_one_name) return Unit{};
  return Error(ErrorId::kOptionInvalid)
      .With("option", std::string(kOption))
      .With("value", name)
      .With(
          "reason",
          "a name with / or \\, and . and .., cannot stand for {ci} in a path: give it "
          "a [[stream]] of its own");
}

// An exact name, else the only one that differs in case; nullptr: none.
const cdc::CaptureInstance* FindInstance(
    const std::vector<cdc::CaptureInstance>& listed, std::string_view name) {
  const cdc::CaptureInstance* alike = nullptr;
  bool is_only = true;
  for (const cdc::CaptureInstance& instance : listed) {
    if (instance.name == name) return &instance;
    if (!EqualsIgnoringCase(instance.name, name)) continue;
    is_only = alike == nullptr;
    alike = &instance;
  }
  return is_only ? alike : nullptr;
}

using Table = std::pair<std::string, std::string>;  // Schema and name.

Table TableOf(const cdc::CaptureInstance& instance) {
  return {instance.source_schema, instance.source_table};
}

// The oldest of each table, of those that match; none of the tables in `held`.
std::vector<std::string> OldestMatches(const std::string& pattern,
                                       const std::vector<cdc::CaptureInstance>& listed,
                                       const std::set<Table>& held) {
  std::map<Table, const cdc::CaptureInstance*> oldest;
  for (const cdc::CaptureInstance& instance : listed) {
    if (!Matches(pattern, instance.name) || held.contains(TableOf(instance))) continue;
    const cdc::CaptureInstance*& first = oldest[TableOf(instance)];
    if (first == nullptr || instance.created_us < first->created_us) first = &instance;
  }
  std::vector<std::string> names;
  for (const auto& [table, instance] : oldest) names.push_back(instance->name);
  std::sort(names.begin(), names.end());
  return names;
}

StreamSettings ForInstance(const StreamSettings& settings, const std::string& name) {
  StreamSettings one = settings;
  for (auto& [key, value] : one.options) {
    const bool is_template = std::any_of(
        std::begin(kTemplates), std::end(kTemplates),
        [&key = key](std::string_view t) { return EqualsIgnoringAsciiCase(t, key); });
    if (is_template) value = WithInstance(std::move(value), name);
  }
  one.options["captureInstance"] = name;
  return one;
}

}  // namespace

bool FanOut::has_pattern() const {
  return std::any_of(wanted.begin(), wanted.end(), IsPattern);
}

bool NeedsList(const FanOut& fan_out, const std::set<std::string>& taken) {
  std::map<std::string, std::string> met;  // By lower-case name, the name.
  for (const std::string& name : taken) met.emplace(LowerCase(name), name);
  for (const std::string& wanted : fan_out.wanted) {
    if (IsPattern(wanted)) return true;
    if (met.emplace(LowerCase(wanted), wanted).first->second != wanted) return true;
  }
  return false;
}

Result<std::optional<FanOut>> ReadFanOut(StreamSettings settings) {
  const std::string* text = Find(settings, kOption);
  if (text == nullptr) return std::optional<FanOut>();
  FanOut fan_out;
  TRY_ASSIGN(fan_out.wanted, ReadNames(*text));
  if (Find(settings, "captureInstance") != nullptr) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "captureInstance, captureInstances")
        .With("reason", "one stream reads one table or many");
  }
  for (const std::string_view option : kRequired) {
    if (Find(settings, option) == nullptr) {
      return Error(ErrorId::kOptionMissing).With("option", std::string(option));
    }
    TRY(CheckTemplate(settings, option));
  }
  TRY(CheckTemplate(settings, "silver"));
  Erase(settings, kOption);
  fan_out.settings = std::move(settings);
  return std::optional(std::move(fan_out));
}

bool Matches(std::string_view pattern, std::string_view name) {
  const std::string wanted = LowerCase(pattern);
  const std::string text = LowerCase(name);
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string::npos;  // The last * met, and where it may go on.
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < wanted.size() && wanted[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < wanted.size() && (wanted[p] == '?' || wanted[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < wanted.size() && wanted[p] == '*') ++p;
  return p == wanted.size();
}

Expanded ExpandFanOut(const FanOut& fan_out,
                      const std::vector<cdc::CaptureInstance>& listed,
                      const std::set<std::string>& taken) {
  // One name for whatever the server takes for the same.
  const auto key_of = [&](const std::string& name) {
    const cdc::CaptureInstance* instance = FindInstance(listed, name);
    return instance == nullptr ? LowerCase(name) : instance->name;
  };
  std::set<Table> held;
  const auto hold = [&](const std::string& name) {
    const cdc::CaptureInstance* instance = FindInstance(listed, name);
    if (instance != nullptr) held.insert(TableOf(*instance));
  };
  std::set<std::string> met;
  for (const std::string& name : taken) {
    met.insert(key_of(name));
    hold(name);
  }
  for (const std::string& wanted : fan_out.wanted) {
    if (!IsPattern(wanted)) hold(wanted);
  }
  Expanded expanded;
  for (const std::string& wanted : fan_out.wanted) {
    std::vector<std::string> names = {wanted};
    if (IsPattern(wanted)) {
      names = OldestMatches(wanted, listed, held);
      const bool any = std::any_of(
          listed.begin(), listed.end(),
          [&](const auto& instance) { return Matches(wanted, instance.name); });
      if (!any) expanded.unmatched.push_back(wanted);
    }
    for (const std::string& name : names) {
      if (!met.insert(key_of(name)).second) continue;
      expanded.streams.push_back(ForInstance(fan_out.settings, name));
      hold(name);
    }
  }
  return expanded;
}

std::string WithInstance(std::string text, const std::string& name) {
  for (std::size_t at = text.find(kPlaceholder); at != std::string::npos;
       at = text.find(kPlaceholder, at + name.size())) {
    text.replace(at, kPlaceholder.size(), name);
  }
  return text;
}

namespace {

void ExpandCatalog(PipelineFile& file, const std::string& name) {
  std::map<std::string, std::string> more;
  for (const auto& [table, location] : file.catalog) {
    if (table.find(kPlaceholder) == std::string::npos) continue;
    more.emplace(WithInstance(table, name), WithInstance(location, name));
  }
  file.catalog.merge(more);
}

// Of the streams that read by the connection string of `settings`.
std::set<std::string> NamesOfTheirOwn(const std::vector<StreamSettings>& streams,
                                      const StreamSettings& settings) {
  const std::string* connection = Find(settings, "connectionString");
  std::set<std::string> names;
  for (const StreamSettings& stream : streams) {
    const std::string* name = Find(stream, "captureInstance");
    const std::string* other = Find(stream, "connectionString");
    const bool is_elsewhere =
        connection != nullptr && other != nullptr && *connection != *other;
    if (name != nullptr && !is_elsewhere) names.insert(*name);
  }
  return names;
}

}  // namespace

Status ExpandStreams(PipelineFile& file, const ListInstances& list) {
  const std::vector<StreamSettings> written = file.streams;
  std::vector<StreamSettings> streams;
  std::string unmatched;
  for (const StreamSettings& settings : written) {
    TRY_ASSIGN(const std::optional<FanOut> fan_out, ReadFanOut(settings));
    if (!fan_out) {
      streams.push_back(settings);
      continue;
    }
    std::vector<cdc::CaptureInstance> listed;
    const std::set<std::string> taken = NamesOfTheirOwn(written, settings);
    if (NeedsList(*fan_out, taken)) {
      ExpandCatalog(file, fan_out->wanted.front());
      TRY_ASSIGN(listed, list(ForInstance(fan_out->settings, fan_out->wanted.front())));
    }
    Expanded expanded = ExpandFanOut(*fan_out, listed, taken);
    for (const std::string& pattern : expanded.unmatched) {
      unmatched += (unmatched.empty() ? "" : ", ") + pattern;
      file.warnings.push_back("captureInstances: no capture instance matches " +
                              pattern);
    }
    for (StreamSettings& one : expanded.streams) {
      const std::string& name = one.options.at("captureInstance");
      if (const Status named = CheckName(name); !named.ok()) {
        const bool is_asked_for =
            std::ranges::find(fan_out->wanted, name) != fan_out->wanted.end();
        if (is_asked_for) return named.error();
        file.warnings.push_back("captureInstances: " + name +
                                " is not read: " + named.error().Text());
        continue;
      }
      ExpandCatalog(file, name);
      streams.push_back(std::move(one));
    }
  }
  if (streams.empty()) {
    return Error(ErrorId::kCaptureInstanceNotFound).With("captureInstances", unmatched);
  }
  file.streams = std::move(streams);
  return Unit{};
}

}  // namespace mssql_cdc::cli

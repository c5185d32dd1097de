#include "runtime/stream_config.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/text.h"
#include "cdc/capture_instance.h"
#include "cdc/lsn.h"

namespace mssql_cdc::runtime {
namespace {

Error Invalid(std::string_view option, std::string_view value, std::string allowed) {
  return Error(ErrorId::kOptionInvalid)
      .With("option", std::string(option))
      .With("value", std::string(value.substr(0, 100)))
      .With("allowed", std::move(allowed));
}

Result<std::int64_t> ParseNumber(std::string_view option, std::string_view text,
                                 std::int64_t min) {
  const std::optional<std::int64_t> number = ParseInt64(Trim(text));
  if (!number || *number < min) {
    return Invalid(option, text, "an integer from " + std::to_string(min));
  }
  return *number;
}

Result<bool> ParseBool(std::string_view option, std::string_view text) {
  const std::string value = LowerAscii(Trim(text));
  for (const char* yes : {"true", "1", "yes", "y"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"false", "0", "no", "n"}) {
    if (value == no) return false;
  }
  return Invalid(option, text, "true or false");
}

bool IsPath(std::string_view reference) {
  return reference.find_first_of("/:") != std::string_view::npos;
}

// The closest of `names` to `name`; empty if none is close.
template <typename Names, typename NameOf>
std::string Nearest(const Names& names, std::string_view name, NameOf name_of) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const auto& entry : names) {
    const std::string_view candidate = name_of(entry);
    const std::size_t distance = EditDistance(LowerAscii(candidate), LowerAscii(name));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

using Setter = Status (*)(StreamConfig&, std::string_view option, const std::string&);

template <auto kMember>
Status SetText(StreamConfig& config, std::string_view, const std::string& text) {
  config.*kMember = text;
  return Unit{};
}
template <auto kMember>
Status SetBool(StreamConfig& config, std::string_view option, const std::string& text) {
  TRY_ASSIGN(config.*kMember, ParseBool(option, text));
  return Unit{};
}
template <auto kMember, std::int64_t kMin>
Status SetNumber(StreamConfig& config, std::string_view option,
                 const std::string& text) {
  TRY_ASSIGN(config.*kMember, ParseNumber(option, text, kMin));
  return Unit{};
}

Status SetTrigger(StreamConfig& config, std::string_view, const std::string& text) {
  TRY_ASSIGN(config.trigger, ParseTrigger(text));
  return Unit{};
}

Status SetPartitions(StreamConfig& config, std::string_view option,
                     const std::string& text) {
  if (EqualsIgnoringAsciiCase(Trim(text), "auto")) return Unit{};
  TRY_ASSIGN(config.num_partitions, ParseNumber(option, text, 1));
  return Unit{};
}

Status SetStart(StreamConfig& config, std::string_view option,
                const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value.empty()) return Unit{};
  if (value == "earliest" || value == "latest") {
    config.starting_lsn = value;
    return Unit{};
  }
  const Result<cdc::Lsn> lsn = cdc::Lsn::Parse(value);
  if (!lsn.ok()) return Invalid(option, text, "earliest, latest or an LSN");
  config.starting_lsn = lsn.value().Text();
  return Unit{};
}

Status SetIsolation(StreamConfig& config, std::string_view option,
                    const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value == "readcommitted") {
    config.isolation_level = IsolationLevel::kReadCommitted;
  } else if (value == "snapshot") {
    config.isolation_level = IsolationLevel::kSnapshot;
  } else {
    return Invalid(option, text, "readCommitted or snapshot");
  }
  return Unit{};
}

Status SetPolicy(StreamConfig& config, std::string_view option,
                 const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value == "classify") {
    config.schema_change_policy = cdc::SchemaChangePolicy::kClassify;
  } else if (value == "fail") {
    config.schema_change_policy = cdc::SchemaChangePolicy::kFail;
  } else {
    return Invalid(option, text, "classify or fail");
  }
  return Unit{};
}

Status Ignore(StreamConfig&, std::string_view, const std::string&) { return Unit{}; }

struct OptionRow {
  std::string_view name;
  Setter set;
};

constexpr OptionRow kOptions[] = {
    {"captureInstance", SetText<&StreamConfig::capture_instance>},
    {"target", SetText<&StreamConfig::target>},
    {"app_id", SetText<&StreamConfig::app_id>},
    {"checkpoint", SetText<&StreamConfig::checkpoint>},
    {"facts_table", SetText<&StreamConfig::facts_table>},
    {"bootstrap", SetBool<&StreamConfig::bootstrap>},
    {"trigger", SetTrigger},
    {"startingLsn", SetStart},
    {"maxCommitsPerBatch", SetNumber<&StreamConfig::max_commits_per_batch, 1>},
    {"numPartitions", SetPartitions},
    {"arrowBatchSize", SetNumber<&StreamConfig::arrow_batch_size, 1>},
    {"includeCommandId", SetBool<&StreamConfig::include_command_id>},
    {"sourceTimeZone", SetText<&StreamConfig::source_time_zone>},
    {"lockTimeoutMs", SetNumber<&StreamConfig::lock_timeout_ms, 0>},
    {"isolationLevel", SetIsolation},
    {"failOnDataLoss", SetBool<&StreamConfig::fail_on_data_loss>},
    {"schemaChangePolicy", SetPolicy},
    {"pollFirstMs", SetNumber<&StreamConfig::poll_first_ms, 1>},
    {"pollMaxMs", SetNumber<&StreamConfig::poll_max_ms, 1>},
    {"retries", SetNumber<&StreamConfig::retry_count_max, 0>},
    // The connection's, which the caller reads.
    {"connectionString", Ignore},
    {"user", Ignore},
    {"password", Ignore},
    {"accessToken", Ignore},
    {"connectTimeout", Ignore},
};

Status CheckComplete(const StreamConfig& config) {
  const std::pair<const char*, const std::string*> needed[] = {
      {"captureInstance", &config.capture_instance},
      {"target", &config.target},
      {"app_id", &config.app_id},
      {"checkpoint", &config.checkpoint}};
  for (const auto& [name, value] : needed) {
    if (value->empty()) return Error(ErrorId::kOptionMissing).With("option", name);
  }
  TRY(cdc::CheckInstanceName(config.capture_instance));
  if (config.checkpoint.find("://") != std::string::npos) {
    return Invalid("checkpoint", config.checkpoint, "a directory of this machine");
  }
  if (config.poll_max_ms < config.poll_first_ms) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "pollFirstMs, pollMaxMs")
        .With("reason", "the first wait is above the longest");
  }
  return Unit{};
}

}  // namespace

Result<Trigger> ParseTrigger(std::string_view text) {
  const std::string value = LowerAscii(Trim(text));
  if (value == "once") return Trigger{Trigger::Kind::kOnce, 0};
  if (value == "availablenow") return Trigger{Trigger::Kind::kAvailableNow, 0};
  if (value == "continuous") return Trigger{Trigger::Kind::kContinuous, 0};

  const std::size_t unit_begin = value.find_first_not_of("0123456789");
  const std::optional<std::int64_t> count =
      ParseInt64(std::string_view(value).substr(0, unit_begin));
  std::string unit;
  if (unit_begin != std::string::npos) {
    unit = std::string(Trim(std::string_view(value).substr(unit_begin)));
  }
  if (unit.size() > 2 && unit.ends_with('s')) unit.pop_back();
  constexpr std::pair<std::string_view, std::int64_t> kUnitsMs[] = {
      {"ms", 1},        {"millisecond", 1},  {"s", 1000},
      {"second", 1000}, {"min", 60'000},     {"minute", 60'000},
      {"m", 60'000},    {"hour", 3'600'000}, {"h", 3'600'000}};
  for (const auto& [name, unit_ms] : kUnitsMs) {
    if (unit != name || !count || *count < 1) continue;
    if (*count > std::numeric_limits<std::int64_t>::max() / unit_ms) break;
    return Trigger{Trigger::Kind::kInterval, *count * unit_ms};
  }
  return Invalid("trigger", text,
                 "once, availableNow, continuous, or an interval such as 5 seconds");
}

Result<std::string> Locate(const Catalog& catalog, const std::string& reference) {
  if (IsPath(reference)) return reference;
  const auto found = catalog.find(reference);
  if (found != catalog.end()) return found->second;
  Error error(ErrorId::kOptionInvalid);
  error.Add("table", reference);
  error.Add("reason", "the catalog has no such name; a path needs a /");
  const std::string nearest =
      Nearest(catalog, reference,
              [](const auto& entry) -> std::string_view { return entry.first; });
  if (!nearest.empty()) error.Add("nearest", nearest);
  return error;
}

Result<ParsedOptions> ParseStreamOptions(
    const std::map<std::string, std::string>& options, const Catalog& catalog) {
  ParsedOptions parsed;
  StreamConfig& config = parsed.config;
  bool start_given = false;
  std::map<std::string, std::string> seen;  // Lower-case name to spelled name.
  for (const auto& [name, value] : options) {
    const auto [first, is_new] = seen.emplace(LowerAscii(name), name);
    if (!is_new) {
      return Error(ErrorId::kOptionsClash).With("options", first->second + ", " + name);
    }
    const auto* row = std::find_if(std::begin(kOptions), std::end(kOptions),
                                   [&](const OptionRow& known) {
                                     return EqualsIgnoringAsciiCase(known.name, name);
                                   });
    if (row == std::end(kOptions)) {
      parsed.unknown.emplace_back(
          name,
          Nearest(kOptions, name, [](const OptionRow& known) { return known.name; }));
      continue;
    }
    TRY(row->set(config, row->name, value));
    start_given = start_given || (row->name == "startingLsn" && !Trim(value).empty());
  }
  TRY(CheckComplete(config));
  if (config.bootstrap && start_given) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "bootstrap, startingLsn")
        .With("reason", "a bootstrap starts at its snapshot");
  }
  TRY_ASSIGN(config.target_location, Locate(catalog, config.target));
  if (config.facts_table && config.facts_table->empty()) config.facts_table.reset();
  if (config.facts_table) {
    TRY_ASSIGN(config.facts_location, Locate(catalog, *config.facts_table));
  }
  return parsed;
}

}  // namespace mssql_cdc::runtime

#include "runtime/stream_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/near_names.h"
#include "base/text.h"
#include "cdc/option_table.h"
#include "cdc/option_values.h"
#include "columns/value_text.h"
#include "runtime/locations.h"
#include "runtime/metrics_files.h"

namespace mssql_cdc::runtime {
namespace {

bool IsPath(std::string_view reference) {
  return reference.find_first_of("/:") != std::string_view::npos;
}

using Setter = Status (*)(StreamConfig&, std::string_view option, const std::string&);

template <auto kMember>
Status SetText(StreamConfig& config, std::string_view, const std::string& text) {
  config.*kMember = text;
  return Unit{};
}
template <auto kMember>
Status SetBool(StreamConfig& config, std::string_view option, const std::string& text) {
  TRY_ASSIGN(config.*kMember, cdc::ParseBoolOption(option, text));
  return Unit{};
}
template <auto kMember, std::int64_t kMin>
Status SetNumber(StreamConfig& config, std::string_view option,
                 const std::string& text) {
  TRY_ASSIGN(config.*kMember, cdc::ParseIntegerOption(option, text, kMin));
  return Unit{};
}

Status SetTrigger(StreamConfig& config, std::string_view, const std::string& text) {
  TRY_ASSIGN(config.trigger, ParseTrigger(text));
  return Unit{};
}

// "a, b" or ["a", "b"].
Status SetKeys(StreamConfig& config, std::string_view option, const std::string& text) {
  config.silver_keys.clear();
  if (Trim(text).starts_with('[')) {
    TRY_ASSIGN(config.silver_keys, cdc::ParseNamesOption(option, text));
    return Unit{};
  }
  std::string_view rest = text;
  while (!Trim(rest).empty()) {
    const auto comma = rest.find(',');
    const std::string_view name = Trim(rest.substr(0, comma));
    if (name.empty()) return cdc::OptionRefused(option, text);
    config.silver_keys.emplace_back(name);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return Unit{};
}

Status SetGranularity(StreamConfig& config, std::string_view, const std::string& text) {
  TRY_ASSIGN(config.granularity, pipeline::ParseGranularity(text));
  return Unit{};
}

Status SetOnDataLoss(StreamConfig& config, std::string_view option,
                     const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value != "fail" && value != "resnapshot") {
    return cdc::OptionRefused(option, text);
  }
  config.on_data_loss = value == "fail" ? OnDataLoss::kFail : OnDataLoss::kResnapshot;
  return Unit{};
}

Status SetSnapshotMode(StreamConfig& config, std::string_view option,
                       const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value != "full" && value != "chunked") return cdc::OptionRefused(option, text);
  config.snapshot = value == "full" ? pipeline::SnapshotMode::kFull
                                    : pipeline::SnapshotMode::kChunked;
  return Unit{};
}

Status SetUnchangedLob(StreamConfig& config, std::string_view option,
                       const std::string& text) {
  constexpr std::pair<std::string_view, cdc::UnchangedLob> kPolicies[] = {
      {"null", cdc::UnchangedLob::kNull},
      {"previous", cdc::UnchangedLob::kPrevious},
      {"listed", cdc::UnchangedLob::kListed}};
  for (const auto& [name, policy] : kPolicies) {
    if (LowerAscii(Trim(text)) != name) continue;
    config.unchanged_lob = policy;
    return Unit{};
  }
  return cdc::OptionRefused(option, text);
}

Status SetIntervalDays(StreamConfig& config, std::string_view option,
                       const std::string& text) {
  const std::optional<double> days = columns::ParseDoubleText(Trim(text));
  if (!days || !std::isfinite(*days) || *days < 0) {
    return cdc::OptionRefused(option, text);
  }
  config.resnapshot_interval_days = *days;
  return Unit{};
}

struct ParameterRow {
  std::string_view name;
  Setter set;
};

constexpr ParameterRow kParameters[] = {
    {"target", SetText<&StreamConfig::target>},
    {"app_id", SetText<&StreamConfig::app_id>},
    {"checkpoint", SetText<&StreamConfig::checkpoint>},
    {"facts_table", SetText<&StreamConfig::facts_table>},
    {"bootstrap", SetBool<&StreamConfig::bootstrap>},
    {"on_data_loss", SetOnDataLoss},
    {"resnapshot_interval_days", SetIntervalDays},
    {"snapshot_on_switch", SetBool<&StreamConfig::snapshot_on_switch>},
    {"snapshot", SetSnapshotMode},
    {"trigger", SetTrigger},
    {"control_table", SetText<&StreamConfig::control_table>},
    {"keys", SetKeys},
    {"granularity", SetGranularity},
    {"silver", SetText<&StreamConfig::silver>},
    {"silverIntervalMs", SetNumber<&StreamConfig::silver_interval_ms, 0>},
    {"deletionVectors", SetBool<&StreamConfig::deletion_vectors>},
    {"changedColumns", SetBool<&StreamConfig::changed_columns>},
    {"unchangedLob", SetUnchangedLob},
    {"pollFirstMs", SetNumber<&StreamConfig::poll_first_ms, 1>},
    {"pollMaxMs", SetNumber<&StreamConfig::poll_max_ms, 1>},
    {"retries", SetNumber<&StreamConfig::retry_count_max, 0>},
};

Status CheckComplete(const StreamConfig& config) {
  const std::pair<const char*, const std::string*> needed[] = {
      {"target", &config.target},
      {"app_id", &config.app_id},
      {"checkpoint", &config.checkpoint}};
  for (const auto& [name, value] : needed) {
    if (value->empty()) return Error(ErrorId::kOptionMissing).With("option", name);
  }
  // It becomes part of names in two logs and of lines that people read.
  const bool has_control = std::any_of(
      config.app_id.begin(), config.app_id.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (has_control) return cdc::OptionRefused("app_id", config.app_id);
  if (config.checkpoint.find("://") != std::string::npos) {
    return cdc::OptionRefused("checkpoint", config.checkpoint);
  }
  if (config.poll_max_ms < config.poll_first_ms) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "pollFirstMs, pollMaxMs")
        .With("reason", "the first wait is above the longest");
  }
  return Unit{};
}

// What the local runtime does not carry out is refused by name, never left out.
Status CheckCarriedOut(const StreamConfig& config, OptionUse use) {
  const auto refuse = [](std::string_view option, std::string reason) {
    return Error(ErrorId::kOptionInvalid)
        .With("option", std::string(option))
        .With("reason", std::move(reason));
  };
  switch (config.backend) {
    case cdc::Backend::kNative:
      break;
    case cdc::Backend::kFake:
      if (config.fake_path.empty()) {
        return Error(ErrorId::kOptionMissing).With("option", "fakePath");
      }
      if (config.changed_columns) {
        return refuse("changedColumns", "backend = fake has no update mask");
      }
      if (config.unchanged_lob != cdc::UnchangedLob::kNull) {
        return refuse("unchangedLob", "backend = fake has no update mask");
      }
      break;
    case cdc::Backend::kMssqlPython:
    case cdc::Backend::kArrowOdbc:
      return refuse("backend",
                    "mssql-python and arrow-odbc need the Python package; here it is "
                    "native");
  }
  if (!LocalDirectory(config.metrics_path)) {
    return refuse("metricsPath", "here it is a directory, or a file:// URI of one");
  }
  const std::pair<const char*, bool> by_hand[] = {
      {"snapshotLsn", !config.snapshot_lsn.empty()},
      {"snapshotChunks", !config.snapshot_chunks.empty()}};
  for (const auto& [name, given] : by_hand) {
    if (given && use == OptionUse::kStream) {
      return refuse(name, "only for a snapshot by hand: mssql-cdc snapshot");
    }
  }
  return Unit{};
}

Status LocateSilver(const Catalog& catalog, StreamConfig& config) {
  if (config.control_table && config.control_table->empty()) {
    config.control_table.reset();
  }
  if (config.silver && config.silver->empty()) config.silver.reset();
  if (config.control_table) {
    TRY_ASSIGN(config.control_location, Locate(catalog, *config.control_table));
  }
  if (!config.silver) return Unit{};
  if (!config.control_table) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "control_table")
        .With("reason", "silver keeps its position there");
  }
  TRY_ASSIGN(config.silver_location, Locate(catalog, *config.silver));
  return Unit{};
}

}  // namespace

Status CheckSnapshots(const StreamConfig& config) {
  if (config.bootstrap && config.starting_lsn_given) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "bootstrap, startingLsn")
        .With("reason", "a bootstrap starts at its snapshot");
  }
  const bool resnapshots = config.on_data_loss == OnDataLoss::kResnapshot;
  const bool has_facts = config.facts_table && !config.facts_table->empty();
  if (!has_facts &&
      (resnapshots || config.snapshot == pipeline::SnapshotMode::kChunked)) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "facts_table")
        .With("needed_by",
              resnapshots ? "on_data_loss = resnapshot" : "snapshot = chunked");
  }
  if (resnapshots && !config.fail_on_data_loss) {
    return Error(ErrorId::kOptionsClash)
        .With("options", "on_data_loss, failOnDataLoss")
        .With("reason", "a gap that is skipped is never seen again");
  }
  return Unit{};
}

Status CheckLocations(const StreamConfig& config) {
  const std::vector<Place> places = PlacesOf(config);
  for (const Place& outer : places) {
    for (const Place& inner : places) {
      if (&inner != &outer) TRY(CheckBesides(outer, inner, outer.option));
    }
  }
  return Unit{};
}

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
  return cdc::OptionRefused("trigger", text);
}

Result<std::string> Locate(const Catalog& catalog, const std::string& reference) {
  const auto found = catalog.find(reference);
  if (found != catalog.end()) return found->second;
  if (IsPath(reference)) return reference;
  Error error(ErrorId::kOptionInvalid);
  error.Add("table", reference);
  error.Add("reason", "the catalog has no such name; a path needs a /");
  NearNames names(reference);
  for (const auto& [name, location] : catalog) names.Offer(name);
  const std::string nearest = names.Nearest();
  if (!nearest.empty()) error.Add("nearest", nearest);
  return error;
}

Result<ParsedOptions> ParseStreamOptions(
    const std::map<std::string, std::string>& options, const Catalog& catalog,
    OptionUse use) {
  TRY_ASSIGN(cdc::ParsedSourceOptions source, cdc::ParseSourceOptions(options));
  ParsedOptions parsed;
  StreamConfig& config = parsed.config;
  static_cast<cdc::SourceOptions&>(config) = std::move(source.options);
  for (const auto& [name, nearest] : source.others) {
    const auto* row = std::find_if(std::begin(kParameters), std::end(kParameters),
                                   [&name = name](const ParameterRow& known) {
                                     return EqualsIgnoringAsciiCase(known.name, name);
                                   });
    if (row != std::end(kParameters)) {
      TRY(row->set(config, row->name, options.at(name)));
    } else if (nearest.empty()) {
      parsed.unknown.push_back(name);
    } else {
      return Error(ErrorId::kOptionUnknown)
          .With("option", name)
          .With("nearest", nearest);
    }
  }
  TRY(CheckComplete(config));
  TRY(CheckCarriedOut(config, use));
  TRY(CheckSnapshots(config));
  TRY_ASSIGN(config.target_location, Locate(catalog, config.target));
  if (config.facts_table && config.facts_table->empty()) config.facts_table.reset();
  if (config.facts_table) {
    TRY_ASSIGN(config.facts_location, Locate(catalog, *config.facts_table));
  }
  TRY(LocateSilver(catalog, config));
  return parsed;
}

}  // namespace mssql_cdc::runtime

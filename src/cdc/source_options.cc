#include "cdc/source_options.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cdc/capture_instance.h"
#include "cdc/commit_clock.h"
#include "cdc/lsn.h"
#include "cdc/option_table.h"
#include "cdc/option_values.h"
#include "cdc/spark_ddl.h"

namespace mssql_cdc::cdc {
namespace {

using Setter = Status (*)(SourceOptions&, std::string_view option,
                          const std::string& text);

template <auto kMember>
Status SetText(SourceOptions& options, std::string_view, const std::string& text) {
  options.*kMember = text;
  return Unit{};
}
template <auto kMember>
Status SetBool(SourceOptions& options, std::string_view option,
               const std::string& text) {
  TRY_ASSIGN(options.*kMember, ParseBoolOption(option, text));
  return Unit{};
}
template <auto kMember, std::int64_t kMin>
Status SetInteger(SourceOptions& options, std::string_view option,
                  const std::string& text) {
  TRY_ASSIGN(options.*kMember, ParseIntegerOption(option, text, kMin));
  return Unit{};
}

Status SetInstance(SourceOptions& options, std::string_view, const std::string& text) {
  options.capture_instance = text;
  return CheckInstanceName(text);
}

Status SetBackend(SourceOptions& options, std::string_view option,
                  const std::string& text) {
  constexpr std::pair<std::string_view, Backend> kNames[] = {
      {"native", Backend::kNative},
      {"fake", Backend::kFake},
      {"mssql-python", Backend::kMssqlPython},
      {"arrow-odbc", Backend::kArrowOdbc}};
  const std::string lower = LowerAscii(text);
  for (const auto& [name, backend] : kNames) {
    if (name != lower) continue;
    options.backend = backend;
    return Unit{};
  }
  return OptionRefused(option, text);
}

Status SetColumns(SourceOptions& options, std::string_view, const std::string& text) {
  options.columns = text;
  const auto fields = ParseColumnsOption(text);
  return fields.ok() ? Status(Unit{}) : Status(fields.error());
}

Status SetZone(SourceOptions& options, std::string_view, const std::string& text) {
  options.source_time_zone = text;
  if (EqualsIgnoringAsciiCase(text, "auto")) return Unit{};
  const Result<CommitClock> clock = ChooseClock(text, {});
  return clock.ok() ? Status(Unit{}) : Status(clock.error());
}

Status SetStart(SourceOptions& options, std::string_view option,
                const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value.empty()) return Unit{};
  options.starting_lsn_given = true;
  options.starting_lsn = value;
  if (value == "earliest" || value == "latest") return Unit{};
  const Result<Lsn> lsn = Lsn::Parse(value);
  if (!lsn.ok()) return OptionRefused(option, text);
  options.starting_lsn = lsn.value().Text();
  return Unit{};
}

Status SetPartitions(SourceOptions& options, std::string_view option,
                     const std::string& text) {
  options.num_partitions.reset();
  if (EqualsIgnoringAsciiCase(Trim(text), "auto")) return Unit{};
  TRY_ASSIGN(options.num_partitions, ParseIntegerOption(option, text, 1));
  return Unit{};
}

Status SetPolicy(SourceOptions& options, std::string_view option,
                 const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value != "classify" && value != "fail") return OptionRefused(option, text);
  options.schema_change_policy =
      value == "fail" ? SchemaChangePolicy::kFail : SchemaChangePolicy::kClassify;
  return Unit{};
}

Status SetIsolation(SourceOptions& options, std::string_view option,
                    const std::string& text) {
  const std::string value = LowerAscii(Trim(text));
  if (value != "readcommitted" && value != "snapshot") {
    return OptionRefused(option, text);
  }
  options.isolation_level =
      value == "snapshot" ? IsolationLevel::kSnapshot : IsolationLevel::kReadCommitted;
  return Unit{};
}

// A URI has at least two characters before its colon; one is a drive's letter.
Status SetMetricsPath(SourceOptions& options, std::string_view option,
                      const std::string& text) {
  options.metrics_path = text;
  const std::size_t colon = text.find(':');
  const auto is_scheme_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '+' || c == '.' || c == '-';
  };
  if (colon == std::string::npos || colon < 2 ||
      !std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon),
                   is_scheme_character)) {
    return Unit{};
  }
  const std::string scheme = LowerAscii(text.substr(0, colon));
  for (const std::string_view known : {"file", "s3", "gs", "abfss", "hdfs"}) {
    if (scheme == known && text.substr(colon).starts_with("://")) return Unit{};
  }
  return OptionRefused(option, text);
}

Status SetSnapshotLsn(SourceOptions& options, std::string_view option,
                      const std::string& text) {
  const Result<Lsn> lsn = Lsn::Parse(text);
  if (!lsn.ok()) return OptionRefused(option, text);
  options.snapshot_lsn = lsn.value().Text();
  return Unit{};
}

Status SetSnapshotKeys(SourceOptions& options, std::string_view option,
                       const std::string& text) {
  TRY_ASSIGN(options.snapshot_keys, ParseNamesOption(option, text));
  return Unit{};
}

Status LeaveToConnection(SourceOptions&, std::string_view, const std::string&) {
  return Unit{};
}

enum class IfEmpty : std::uint8_t { kNotGiven, kInvalid };

struct SetterRow {
  std::string_view name;
  IfEmpty if_empty;
  Setter set;
};

constexpr std::array kSetters = {
    SetterRow{"captureInstance", IfEmpty::kNotGiven, SetInstance},
    SetterRow{"connectionString", IfEmpty::kNotGiven, LeaveToConnection},
    SetterRow{"user", IfEmpty::kNotGiven, LeaveToConnection},
    SetterRow{"password", IfEmpty::kNotGiven, LeaveToConnection},
    SetterRow{"accessToken", IfEmpty::kNotGiven, LeaveToConnection},
    SetterRow{"tokenProvider", IfEmpty::kNotGiven, LeaveToConnection},
    SetterRow{"backend", IfEmpty::kInvalid, SetBackend},
    SetterRow{"connectTimeout", IfEmpty::kInvalid, LeaveToConnection},
    SetterRow{"lockTimeoutMs", IfEmpty::kInvalid,
              SetInteger<&SourceOptions::lock_timeout_ms, 0>},
    SetterRow{"sourceTimeZone", IfEmpty::kInvalid, SetZone},
    SetterRow{"fakePath", IfEmpty::kNotGiven, SetText<&SourceOptions::fake_path>},
    SetterRow{"columns", IfEmpty::kNotGiven, SetColumns},
    SetterRow{"includeCommandId", IfEmpty::kInvalid,
              SetBool<&SourceOptions::include_command_id>},
    SetterRow{"startingLsn", IfEmpty::kNotGiven, SetStart},
    SetterRow{"maxCommitsPerBatch", IfEmpty::kNotGiven,
              SetInteger<&SourceOptions::max_commits_per_batch, 1>},
    SetterRow{"numPartitions", IfEmpty::kInvalid, SetPartitions},
    SetterRow{"arrowBatchSize", IfEmpty::kInvalid,
              SetInteger<&SourceOptions::arrow_batch_size, 1>},
    SetterRow{"failOnDataLoss", IfEmpty::kInvalid,
              SetBool<&SourceOptions::fail_on_data_loss>},
    SetterRow{"schemaChangePolicy", IfEmpty::kInvalid, SetPolicy},
    SetterRow{"metricsPath", IfEmpty::kNotGiven, SetMetricsPath},
    SetterRow{"snapshotLsn", IfEmpty::kNotGiven, SetSnapshotLsn},
    SetterRow{"snapshotChunks", IfEmpty::kNotGiven,
              SetText<&SourceOptions::snapshot_chunks>},
    SetterRow{"snapshotKeys", IfEmpty::kNotGiven, SetSnapshotKeys},
    SetterRow{"isolationLevel", IfEmpty::kInvalid, SetIsolation},
};

}  // namespace

Result<ParsedSourceOptions> ParseSourceOptions(
    const std::map<std::string, std::string>& options) {
  ParsedSourceOptions parsed;
  std::map<std::string, std::string> spelled;  // By lower-case name.
  for (const auto& [name, value] : options) {
    const auto [first, is_new] = spelled.emplace(LowerAscii(name), name);
    if (!is_new) {
      return Error(ErrorId::kOptionsClash)
          .With("options", first->second + ", " + name)
          .With("reason", "they differ only in case");
    }
    const auto* row =
        std::find_if(kSetters.begin(), kSetters.end(), [&](const SetterRow& known) {
          return EqualsIgnoringAsciiCase(known.name, name);
        });
    if (row == kSetters.end()) {
      parsed.others.emplace_back(name, NearestOption(name));
      continue;
    }
    if (value.empty() && row->if_empty == IfEmpty::kNotGiven) continue;
    TRY(row->set(parsed.options, row->name, value));
  }
  if (parsed.options.capture_instance.empty()) {
    return Error(ErrorId::kOptionMissing)
        .With("option", "captureInstance")
        .With("example", "dbo_orders");
  }
  return parsed;
}

}  // namespace mssql_cdc::cdc

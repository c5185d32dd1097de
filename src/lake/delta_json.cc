#include "lake/delta_json.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "lake/delta_abi.h"

namespace mssql_cdc::lake {
namespace {

using Json = nlohmann::json;

std::string Dump(const Json& json) {
  // Names come from databases: whatever is not UTF-8 must not end the process.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json FieldsJson(const std::vector<columns::Field>& fields) {
  Json all = Json::array();
  for (const columns::Field& field : fields) {
    all.push_back({{"name", field.name},
                   {"type", columns::DeltaTypeName(field.type)},
                   {"nullable", field.nullable},
                   {"comment", field.comment}});
  }
  return all;
}

// "decimal(18,4)".
std::optional<columns::Type> ParseDecimal(std::string_view name) {
  constexpr std::string_view kStart = "decimal(";
  if (!name.starts_with(kStart) || !name.ends_with(')')) return std::nullopt;
  unsigned precision = 0;
  unsigned scale = 0;
  const char* const end = name.data() + name.size() - 1;
  auto [comma, failed] = std::from_chars(name.data() + kStart.size(), end, precision);
  if (failed != std::errc{} || comma == end || *comma != ',') return std::nullopt;
  auto [last, failed_too] = std::from_chars(comma + 1, end, scale);
  if (failed_too != std::errc{} || last != end) return std::nullopt;
  if (precision < 1 || precision > 38 || scale > precision) return std::nullopt;
  return columns::Type{columns::Kind::kDecimal128, static_cast<std::uint8_t>(precision),
                       static_cast<std::uint8_t>(scale)};
}

std::optional<columns::Type> ParseDeltaType(std::string_view name) {
  using columns::Kind;
  for (const Kind kind :
       {Kind::kBool, Kind::kInt16, Kind::kInt32, Kind::kInt64, Kind::kFloat32,
        Kind::kFloat64, Kind::kDate32, Kind::kTimestampNtz, Kind::kTimestampUtc,
        Kind::kUtf8, Kind::kBinary}) {
    if (columns::DeltaTypeName({kind}) == name) return columns::Type{kind};
  }
  return ParseDecimal(name);
}

Error NotUnderstood() {
  return Error(ErrorId::kInternalError).With("text", "from rust/delta");
}

ErrorId IdOf(std::int32_t code) {
  switch (code) {
    case MSSQL_CDC_DELTA_CONFLICT:
      return ErrorId::kLakeConflict;
    case MSSQL_CDC_DELTA_UNREACHABLE:
      return ErrorId::kLakeUnreachable;
    case MSSQL_CDC_DELTA_REFUSED:
      return ErrorId::kLakeRefused;
    case MSSQL_CDC_DELTA_UNSUPPORTED:
      return ErrorId::kLakeTableUnsupported;
    case MSSQL_CDC_DELTA_SCHEMA_MISMATCH:
      return ErrorId::kLakeSchemaMismatch;
    case MSSQL_CDC_DELTA_INTERNAL:
      return ErrorId::kInternalError;
    default:
      return ErrorId::kLakeFailed;
  }
}

}  // namespace

std::string CreateJson(const CreateSpec& spec) {
  return Dump({{"fields", FieldsJson(spec.schema.fields)},
               {"description", spec.description},
               {"properties", spec.properties}});
}

std::string AlterJson(const std::vector<columns::Field>& add,
                      const std::map<std::string, std::string>& properties) {
  return Dump({{"fields", FieldsJson(add)}, {"properties", properties}});
}

std::string AppendJson(const AppendSpec& spec,
                       const std::vector<columns::Field>& fields) {
  Json json = {{"merge_schema", spec.merge_schema}, {"fields", FieldsJson(fields)}};
  if (spec.txn) {
    json["app_id"] = spec.txn->app_id;
    json["txn_version"] = spec.txn->version;
  }
  return Dump(json);
}

std::string ReadJson(const ReadSpec& spec) {
  Json conditions = Json::array();
  for (const Condition& condition : spec.conditions) {
    const char* op = "equal";
    switch (condition.op) {
      case Condition::Operator::kEqual:
        break;
      case Condition::Operator::kIsNull:
        op = "null";
        break;
      case Condition::Operator::kIsNotNull:
        op = "not_null";
        break;
      case Condition::Operator::kAbove:
        op = "above";
        break;
      case Condition::Operator::kAtLeast:
        op = "at_least";
        break;
      case Condition::Operator::kNumberIs:
        op = "number";
        break;
    }
    conditions.push_back({{"column", condition.column},
                          {"op", op},
                          {"text", condition.text},
                          {"number", condition.number}});
  }
  Json json = {{"columns", spec.columns}, {"conditions", conditions}};
  if (spec.version) json["version"] = *spec.version;
  return Dump(json);
}

std::string ChangeJson(const ChangeSpec& spec) {
  return Dump({{"kind", spec.kind == ChangeKind::kOptimize ? "optimize" : "merge"},
               {"fields", FieldsJson(spec.fields)},
               {"commits_nothing", spec.commits_nothing}});
}

std::string ProbeJson(const ProbeSpec& spec) {
  Json json = {{"columns", spec.columns}};
  if (spec.files) json["files"] = *spec.files;
  if (spec.near) {
    Json ranges = Json::array();
    const auto add = [&ranges](const auto& range) {
      ranges.push_back(Json::array({range.first, range.second}));
    };
    for (const auto& range : spec.near->numbers) add(range);
    for (const auto& range : spec.near->texts) add(range);
    json["near"] = {{"column", spec.near->column}, {"ranges", ranges}};
  }
  return Dump(json);
}

Result<std::vector<DataFile>> ParseFiles(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return NotUnderstood();
  std::vector<DataFile> files;
  for (const Json& item : json) {
    DataFile file;
    const auto count = item.find("row_count");
    if (count != item.end() && count->is_number_integer()) {
      file.row_count = count->get<std::int64_t>();
    }
    file.removed_count = item.value("removed_count", std::int64_t{0});
    file.size_bytes = item.value("size_bytes", std::int64_t{0});
    files.push_back(file);
  }
  return files;
}

Result<TableState> ParseState(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return NotUnderstood();
  TableState state;
  state.version = json.value("version", std::int64_t{0});
  const Json fields = json.value("fields", Json::array());
  for (const Json& field : fields) {
    const std::string name = field.value("name", "");
    const std::string type_name = field.value("type", "");
    const std::optional<columns::Type> type = ParseDeltaType(type_name);
    if (!type) {
      return Error(ErrorId::kLakeTableUnsupported)
          .With("column", name)
          .With("type", type_name);
    }
    state.schema.fields.push_back(
        {name, *type, field.value("nullable", true), field.value("comment", "")});
  }
  const Json properties = json.value("properties", Json::object());
  for (const auto& [key, value] : properties.items()) {
    if (value.is_string()) state.properties[key] = value.get<std::string>();
  }
  return state;
}

Result<std::vector<CommitInfo>> ParseHistory(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return NotUnderstood();
  std::vector<CommitInfo> commits;
  for (const Json& item : json) {
    CommitInfo commit;
    commit.version = item.value("version", std::int64_t{0});
    commit.timestamp_ms = item.value("timestamp_ms", std::int64_t{0});
    commit.operation = item.value("operation", "");
    const auto metadata = item.find("user_metadata");
    if (metadata != item.end() && metadata->is_string()) {
      commit.user_metadata = metadata->get<std::string>();
    }
    commits.push_back(std::move(commit));
  }
  return commits;
}

Error DeltaError(std::int32_t code, std::string_view failure,
                 const std::string& location) {
  Error error = Error(IdOf(code)).With("table", location);
  const Json json = Json::parse(failure, nullptr, false);
  if (!json.is_object()) return error;
  const auto column = json.find("column");
  if (column != json.end() && column->is_string()) {
    error.Add("column", column->get<std::string>());
  }
  error.Add("detail", json.value("detail", ""));
  return error;
}

}  // namespace mssql_cdc::lake

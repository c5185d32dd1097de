#include "cdc/type_map.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/case_fold.h"
#include "base/text.h"
#include "cdc/spark_ddl.h"

namespace mssql_cdc::cdc {
namespace {

using columns::Kind;
using columns::Type;

struct TypeRow {
  std::string_view name;
  Type type;
};

// decimal and numeric take precision and scale from the column.
constexpr TypeRow kTypes[] = {
    {"bit", {Kind::kBool}},
    {"tinyint", {Kind::kInt16}},
    {"smallint", {Kind::kInt16}},
    {"int", {Kind::kInt32}},
    {"bigint", {Kind::kInt64}},
    {"real", {Kind::kFloat32}},
    {"float", {Kind::kFloat64}},
    {"money", {Kind::kDecimal128, 19, 4}},
    {"smallmoney", {Kind::kDecimal128, 10, 4}},
    {"date", {Kind::kDate32}},
    {"datetime", {Kind::kTimestampNtz}},
    {"datetime2", {Kind::kTimestampNtz}},
    {"smalldatetime", {Kind::kTimestampNtz}},
    {"datetimeoffset", {Kind::kTimestampUtc}},
    {"time", {Kind::kUtf8}},
    {"char", {Kind::kUtf8}},
    {"varchar", {Kind::kUtf8}},
    {"nchar", {Kind::kUtf8}},
    {"nvarchar", {Kind::kUtf8}},
    {"text", {Kind::kUtf8}},
    {"ntext", {Kind::kUtf8}},
    {"xml", {Kind::kUtf8}},
    {"sysname", {Kind::kUtf8}},
    {"uniqueidentifier", {Kind::kUtf8}},
    {"binary", {Kind::kBinary}},
    {"varbinary", {Kind::kBinary}},
    {"image", {Kind::kBinary}},
    {"timestamp", {Kind::kBinary}},
    {"rowversion", {Kind::kBinary}},
};

constexpr std::array<std::string_view, 11> kReservedNames = {
    "_capture_instance", "_start_lsn", "_seqval",   "_operation", "_command_id",
    "_commit_ts",        "_batch_id",  "_snapshot", "_chunk",     "_changed_columns",
    "_unknown_columns",
};

const SourceColumn* FindById(const std::vector<SourceColumn>& source, std::int64_t id) {
  for (const SourceColumn& column : source) {
    if (column.column_id == id) return &column;
  }
  return nullptr;
}

Error NotReadable(const CaptureInstance& instance, const std::string& column) {
  return Error(ErrorId::kColumnNotReadable)
      .With("capture_instance", instance.name)
      .With("column", column);
}

// Option columns with all that can be read: what to set when something cannot.
std::string ReadableDdl(const std::vector<CapturedColumn>& captured) {
  std::vector<columns::Field> fields;
  for (const CapturedColumn& column : captured) {
    const std::optional<Type> type = MapType(column);
    const bool is_twice =
        std::any_of(fields.begin(), fields.end(), [&](const columns::Field& known) {
          return EqualsIgnoringCase(known.name, column.name);
        });
    if (!type || is_twice || IsReservedName(column.name)) continue;
    fields.push_back({column.name, *type});
  }
  return ColumnsDdl(fields);
}

}  // namespace

std::optional<Type> MapType(const CapturedColumn& column) {
  const std::string name = LowerAscii(column.type_name);
  if (name == "decimal" || name == "numeric") {
    const std::int64_t precision = column.precision.value_or(18);
    const std::int64_t scale = column.scale.value_or(0);
    if (precision < 1 || precision > 38 || scale < 0 || scale > precision) {
      return std::nullopt;
    }
    return Type{Kind::kDecimal128, static_cast<std::uint8_t>(precision),
                static_cast<std::uint8_t>(scale)};
  }
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

bool IsReservedName(std::string_view name) {
  return std::any_of(kReservedNames.begin(), kReservedNames.end(),
                     [&](std::string_view reserved) {
                       return EqualsIgnoringAsciiCase(reserved, name);
                     });
}

Status CheckCapturedNames(const CaptureInstance& instance,
                          const std::vector<CapturedColumn>& captured) {
  constexpr std::string_view kOwn[] = {"__$start_lsn",   "__$end_lsn",
                                       "__$seqval",      "__$operation",
                                       "__$update_mask", "__$command_id"};
  for (const CapturedColumn& column : captured) {
    for (const std::string_view own : kOwn) {
      if (!EqualsIgnoringAsciiCase(own, column.name)) continue;
      return NotReadable(instance, column.name)
          .With("reserved",
                "the change table has a column of its own of this name: "
                "rename the table's, and capture it anew");
    }
  }
  return Unit{};
}

Result<ColumnPlan> PlanColumns(const CaptureInstance& instance,
                               const std::vector<CapturedColumn>& captured,
                               const std::vector<SourceColumn>& source) {
  ColumnPlan plan;
  const auto refuse = [&](const CapturedColumn& column, std::string_view fact,
                          std::string value) {
    return NotReadable(instance, column.name)
        .With(fact, std::move(value))
        .With("set_columns", ReadableDdl(captured));
  };
  for (const CapturedColumn& column : captured) {
    if (IsReservedName(column.name)) {
      return refuse(column, "reserved",
                    "the target has a column of its own of this name");
    }
    const std::optional<Type> type = MapType(column);
    if (!type) return refuse(column, "type", column.type_name);
    for (const ReadColumn& known : plan.columns) {
      if (EqualsIgnoringCase(known.field.name, column.name)) {
        return refuse(column, "reason",
                      "Delta tells columns apart by more than case, and there is " +
                          known.field.name);
      }
    }
    const SourceColumn* live = FindById(source, column.column_id);
    const bool in_source =
        live != nullptr && EqualsIgnoringCase(live->name, column.name);
    plan.columns.push_back({{column.name, *type, true, ""}, in_source});
  }
  if (plan.columns.empty()) {
    return Error(ErrorId::kColumnNotReadable)
        .With("capture_instance", instance.name)
        .With("reason", "it has no column that can be read");
  }
  return plan;
}

}  // namespace mssql_cdc::cdc

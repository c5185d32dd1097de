#include "cdc/declared_columns.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/case_fold.h"
#include "base/near_names.h"
#include "base/text.h"
#include "cdc/find_name.h"
#include "columns/cast.h"

namespace mssql_cdc::cdc {
namespace {

Error Invalid(const std::string& column) {
  return Error(ErrorId::kOptionInvalid)
      .With("option", "columns")
      .With("column", column);
}

Error NotCaptured(const std::string& column,
                  const std::vector<InstanceColumns>& instances) {
  std::string names;
  NearNames near(column);
  for (const InstanceColumns& each : instances) {
    names += (names.empty() ? "" : ", ") + each.instance.name;
    for (const CapturedColumn& captured : each.captured) near.Offer(captured.name);
  }
  Error error = Invalid(column).With("reason", "it is not captured");
  error.Add("capture_instances", std::move(names));
  std::string nearest = near.Nearest();
  if (!nearest.empty()) error.Add("nearest", std::move(nearest));
  return error;
}

Status CheckCast(const columns::Field& declared, const columns::Type& from) {
  const columns::CastFit fit = columns::CastFitOf(from, declared.type);
  if (fit == columns::CastFit::kSame || fit == columns::CastFit::kPerValue) {
    return Unit{};
  }
  return Invalid(declared.name)
      .With("from", columns::DeltaTypeName(from))
      .With("to", columns::DeltaTypeName(declared.type))
      .With("reason", fit == columns::CastFit::kLossy
                          ? "values could be altered without notice"
                          : "there is no such conversion");
}

// The column in the newest instance that captures it.
const CapturedColumn* Newest(const std::string& name,
                             const std::vector<InstanceColumns>& instances) {
  for (auto each = instances.rbegin(); each != instances.rend(); ++each) {
    const auto found = FindName(each->captured, name, &CapturedColumn::name);
    if (found != each->captured.end()) return &*found;
  }
  return nullptr;
}

bool IsComputed(const std::string& name,
                const std::vector<InstanceColumns>& instances) {
  return std::ranges::any_of(instances, [&](const InstanceColumns& each) {
    return FindName(each.computed, name, std::identity{}) != each.computed.end();
  });
}

}  // namespace

Result<DeclaredPlan> PlanDeclared(const std::vector<columns::Field>& declared,
                                  const std::vector<InstanceColumns>& instances,
                                  const std::vector<SourceColumn>& source) {
  DeclaredPlan result;
  for (const columns::Field& column : declared) {
    result.written.push_back(column);
    const CapturedColumn* captured = Newest(column.name, instances);
    if (captured == nullptr) {
      if (!IsComputed(column.name, instances)) {
        return NotCaptured(column.name, instances);
      }
      result.plan.computed.push_back(column.name);
      result.plan.columns.push_back({column, false});
      continue;
    }
    const std::optional<columns::Type> type = MapType(*captured);
    if (!type) {
      return Error(ErrorId::kColumnNotReadable)
          .With("column", column.name)
          .With("type", captured->type_name);
    }
    TRY(CheckCast(column, *type));
    const auto live =
        std::ranges::find(source, captured->column_id, &SourceColumn::column_id);
    const bool in_source =
        live != source.end() && EqualsIgnoringCase(live->name, captured->name);
    result.plan.columns.push_back({{captured->name, *type}, in_source});
  }
  return result;
}

}  // namespace mssql_cdc::cdc

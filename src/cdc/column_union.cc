#include "cdc/column_union.h"

#include <algorithm>
#include <utility>

#include "cdc/find_name.h"
#include "cdc/type_fit.h"

namespace mssql_cdc::cdc {
namespace {

// Puts the columns of a newer instance to those of the older ones.
Status Add(const CaptureInstance& instance, ColumnPlan newer, ColumnPlan& all) {
  const auto name_of = [](const ReadColumn& column) -> const std::string& {
    return column.field.name;
  };
  for (ReadColumn& column : newer.columns) {
    const auto known = FindName(all.columns, column.field.name, name_of);
    if (known == all.columns.end()) {
      all.columns.push_back(std::move(column));
      continue;
    }
    if (!Fits(known->field.type, column.field.type)) {
      return Error(ErrorId::kSchemaChanged)
          .With("capture_instance", instance.name)
          .With("column", column.field.name)
          .With("planned", columns::DeltaTypeName(known->field.type))
          .With("found", columns::DeltaTypeName(column.field.type))
          .With("first_lsn", instance.start_lsn ? instance.start_lsn->Text() : "none");
    }
    known->field.type = column.field.type;
    known->in_source = column.in_source;
  }
  for (std::string& name : newer.computed) {
    if (std::ranges::find(all.computed, name) == all.computed.end()) {
      all.computed.push_back(std::move(name));
    }
  }
  return Unit{};
}

}  // namespace

InstanceColumns PartComputed(const CaptureInstance& instance,
                             std::vector<CapturedColumn> captured,
                             const std::vector<SourceColumn>& source) {
  InstanceColumns columns{instance, {}, {}};
  for (CapturedColumn& column : captured) {
    const bool is_computed = std::ranges::any_of(source, [&](const SourceColumn& live) {
      return live.column_id == column.column_id && live.is_computed;
    });
    if (is_computed) {
      columns.computed.push_back(std::move(column.name));
    } else {
      columns.captured.push_back(std::move(column));
    }
  }
  return columns;
}

Result<ColumnPlan> UniteColumns(const std::vector<InstanceColumns>& instances,
                                const std::vector<SourceColumn>& source) {
  ColumnPlan all;
  for (const InstanceColumns& columns : instances) {
    TRY_ASSIGN(ColumnPlan plan,
               PlanColumns(columns.instance, columns.captured, source));
    plan.computed = columns.computed;
    TRY(Add(columns.instance, std::move(plan), all));
  }
  return all;
}

std::vector<ColumnRead> PlanColumnReads(const std::vector<columns::Field>& fields,
                                        const std::vector<CapturedColumn>& captured) {
  std::vector<ColumnRead> reads;
  for (const columns::Field& field : fields) {
    const auto found = FindName(captured, field.name, &CapturedColumn::name);
    if (found == captured.end()) {
      reads.emplace_back();
      continue;
    }
    reads.push_back({found->name, MapType(*found)});
  }
  return reads;
}

}  // namespace mssql_cdc::cdc

// What option columns makes of the columns that a table's instances capture.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cdc/column_union.h"
#include "cdc/type_map.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

struct DeclaredPlan {
  // In the order declared. Types are those that are read: the newest instance's.
  ColumnPlan plan;
  // The same columns as they are written: named and typed as declared.
  std::vector<columns::Field> written;
};

// `declared` is what ParseColumnsOption gave, `instances` are oldest first and not
// empty. A computed column may be declared: it is NULL in every row and stands in
// plan.computed.
//
// Errors, before anything is read: OptionInvalid (facts option, column) for a column
// that no instance captures (nearest, capture_instances) and for a type that the
// column's values cannot become, or not without the danger of altering them (from, to,
// reason); ColumnNotReadable for a column whose own type has no counterpart.
Result<DeclaredPlan> PlanDeclared(const std::vector<columns::Field>& declared,
                                  const std::vector<InstanceColumns>& instances,
                                  const std::vector<SourceColumn>& source);

}  // namespace mssql_cdc::cdc

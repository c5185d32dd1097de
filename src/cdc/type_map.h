// From SQL Server's metadata to the columns that are written.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

// The written type of a captured column, or nullopt where there is none (sql_variant,
// hierarchyid, geometry, CLR types, ...).
std::optional<columns::Type> MapType(const CapturedColumn& column);

// Names that the target gives to its own columns.
bool IsReservedName(std::string_view name);

// Whether the change table can tell captured columns from its own, __$start_lsn and the
// like. SQL Server captures no table that has one of these names (documentation of
// sys.sp_cdc_enable_table). Errors: ColumnNotReadable (facts column, reserved).
Status CheckCapturedNames(const CaptureInstance& instance,
                          const std::vector<CapturedColumn>& captured);

// A captured column that is read.
struct ReadColumn {
  columns::Field field;
  // Whether the source table still has it: a snapshot reads NULL otherwise (dropped, or
  // dropped and added again, which is another column under the same name).
  bool in_source = true;
  // The target's type holds more than the source's: a snapshot reads it with a cast.
  bool is_widened = false;
};

struct ColumnPlan {
  std::vector<ReadColumn> columns;    // In capture order.
  std::vector<std::string> computed;  // Left out: CDC stores NULL for them.
};

// What to read of `captured`, which has no computed columns. Errors: ColumnNotReadable
// for a column without a type (facts column, type), with a reserved name (facts column,
// reserved) or with the name of another in another case (facts column, reason), each
// with fact set_columns, the option columns that reads the others; and for an instance
// without columns.
Result<ColumnPlan> PlanColumns(const CaptureInstance& instance,
                               const std::vector<CapturedColumn>& captured,
                               const std::vector<SourceColumn>& source);

}  // namespace mssql_cdc::cdc

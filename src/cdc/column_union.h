// One list of columns for a table that several capture instances captured.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cdc/capture_instance.h"
#include "cdc/type_map.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

struct InstanceColumns {
  CaptureInstance instance;
  std::vector<CapturedColumn> captured;  // In capture order, without computed ones.
  std::vector<std::string> computed;     // CDC stores NULL for them.
};

// Parts what an instance captures by what the source table says of its columns; they
// are the same if their ids are, since a dropped name may be used again.
InstanceColumns PartComputed(const CaptureInstance& instance,
                             std::vector<CapturedColumn> captured,
                             const std::vector<SourceColumn>& source);

// The columns of all instances (oldest first, not empty): by name ignoring case, placed
// where they appear first and spelled as there, with the newest instance's type.
// Errors: those of PlanColumns; SchemaChanged if that type does not hold all values of
// an older one (facts capture_instance, column, planned, found, first_lsn).
Result<ColumnPlan> UniteColumns(const std::vector<InstanceColumns>& instances,
                                const std::vector<SourceColumn>& source);

// Where a written column comes from in one instance.
struct ColumnRead {
  // Its name there; absent: the instance does not capture it, and it is NULL.
  std::optional<std::string> name;
  // Its type there, or nullopt for one that cannot be read.
  std::optional<columns::Type> type;

  bool operator==(const ColumnRead&) const = default;
};

// One for each of `fields`.
std::vector<ColumnRead> PlanColumnReads(const std::vector<columns::Field>& fields,
                                        const std::vector<CapturedColumn>& captured);

}  // namespace mssql_cdc::cdc

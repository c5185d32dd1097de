// How the columns of rows and of a table find each other: by name, ignoring case.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::lake {

// The field of that name, or nullptr.
const columns::Field* FindField(const std::vector<columns::Field>& fields,
                                std::string_view name);

// Error LakeSchemaMismatch for a column with two types.
Error TypesDiffer(const std::string& location, const columns::Field& one,
                  const columns::Field& other);

// Every field of any source once, in the order they are met. Errors: LakeSchemaMismatch
// when two sources have one name with two types.
Result<std::vector<columns::Field>> FieldsOfAll(
    const std::vector<std::unique_ptr<columns::BatchReader>>& sources,
    const std::string& location);

}  // namespace mssql_cdc::lake

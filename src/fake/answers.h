// What the fake's history answers to the product's questions.
//
// Its clock is UTC, its schema dbo, its capture job never stands still; a table is
// named as its first capture instance.

#pragma once

#include <vector>

#include "base/error.h"
#include "fake/answer_table.h"
#include "fake/fake_files.h"
#include "sqlserver/session.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::fake {

// The result sets that `request` would bring. Errors: FileRefused, FileFailed;
// PermissionDenied for what only a server has; ServerError 208 for an instance or table
// that is gone.
Result<std::vector<ResultSet>> AnswersTo(const Files& files,
                                         const sqlserver::Request& request,
                                         std::int64_t row_count_max);

}  // namespace mssql_cdc::fake

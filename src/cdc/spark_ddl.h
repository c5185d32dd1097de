// Option columns: Spark's DDL of a list of columns, and the same written back.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "columns/schema.h"

namespace mssql_cdc::cdc {

// Reads "id INT, `odd name` STRING NOT NULL COMMENT 'x', amount: DECIMAL(18,2)": names
// bare or in backticks (doubled inside), a colon or not, the types that captured
// columns have (BOOLEAN, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, DATE,
// TIMESTAMP, TIMESTAMP_NTZ, STRING, BINARY, and Spark's other names of them) in any
// case. NOT NULL and COMMENT are taken and left out.
//
// Errors: OptionInvalid (facts option, reason, near) for anything else, for a name
// twice in any case and for a name that the target gives to a column of its own.
Result<std::vector<columns::Field>> ParseColumnsOption(std::string_view ddl);

// "`id` INT, `amount` DECIMAL(18,2)".
std::string ColumnsDdl(const std::vector<columns::Field>& fields);

// "DECIMAL(18,2)".
std::string SparkTypeName(const columns::Type& type);

}  // namespace mssql_cdc::cdc

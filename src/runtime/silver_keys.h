// Whether rows of bronze can be told apart by the key that silver is to have.

#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "columns/schema.h"

namespace mssql_cdc::runtime {

// `captured` are bronze's columns of the source. Errors: SilverKeyInvalid.
Status CheckSilverKeys(const std::string& bronze, const std::vector<std::string>& keys,
                       const std::vector<columns::Field>& captured);

}  // namespace mssql_cdc::runtime

// Which types hold all values of which others.

#pragma once

#include "columns/schema.h"

namespace mssql_cdc::cdc {

// Whether a column of type `to` holds every value of `from` unchanged: the same type, a
// wider integer, float as double, date as timestamp without a zone, an integer as
// double (not a 64-bit one) or as decimal with digits enough before the point (20 for
// 64 bits, one more than needed, as the existing package has it), a decimal as one
// with no fewer digits on either side of the point.
bool Fits(const columns::Type& from, const columns::Type& to);

}  // namespace mssql_cdc::cdc

// Turns a column into one of another type as Arrow's safe cast does: every value comes
// through unchanged in meaning, or the cast says which row does not fit.
//
// Where Arrow alters values without a word (a float to a decimal, a timestamp to a
// date), there is no cast here.

#pragma once

#include <cstdint>
#include <optional>

#include "columns/batch.h"
#include "columns/schema.h"

namespace mssql_cdc::columns {

enum class CastFit : std::uint8_t {
  kSame,      // Nothing to do.
  kPerValue,  // Values that fit are converted, others are found.
  kLossy,     // Values could be altered without notice: refused.
  kNever,     // There is no such conversion.
};
CastFit CastFitOf(const Type& from, const Type& to);

struct CastOutcome {
  Column column;
  std::optional<std::int64_t> failed_row;  // The first value that does not fit.
};
// Requires CastFitOf(from.type, to) == kPerValue.
CastOutcome Cast(const Column& from, const Type& to);

}  // namespace mssql_cdc::columns

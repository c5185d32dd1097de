// Values of key columns as plans keep them: the bounds of chunks, in JSON on disk and
// as text in statements. Nothing here compares them; only the server knows how.

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cdc/key_types.h"
#include "columns/batch.h"

namespace mssql_cdc::pipeline {

using Int128 = __int128;

// NULL, a bit, an integer (one above bigint's largest included), a float, or the text
// of anything else.
using KeyValue = std::variant<std::monostate, bool, Int128, double, std::string>;
// A value for each key column.
using Key = std::vector<KeyValue>;

// Keys from `lo` on and below `hi`; an absent bound is open, and open below takes NULL.
// Both names and this form are the plans table's, which other programs read.
struct KeyRange {
  std::optional<Key> lo;
  std::optional<Key> hi;

  bool operator==(const KeyRange&) const = default;
};

std::string IntegerText(Int128 value);

// The value as a parameter's text; nullopt for NULL.
std::optional<std::string> BoundText(const KeyValue& value);

// A scalar for a key of one column, a list for several; null is an open end.
nlohmann::ordered_json KeyJson(const std::optional<Key>& key);
// Reads KeyJson's value of a key of `column_count` columns. Errors:
// CheckpointUnreadable (fact reason).
Result<std::optional<Key>> ParseKey(const nlohmann::ordered_json& json,
                                    std::size_t column_count);

// Whether a statement can take the values as they are: those of integer columns are
// written out in it, everything else is bound. A value for each of `types`, or none of
// it fits; bigint's largest and one more does.
bool IsOfTypes(const Key& key, const std::vector<cdc::KeyType>& types);

// The key in the first columns of `row`, one for each of `types`. Errors: InternalError
// if a column is not of its form.
Result<Key> ReadKey(const columns::RecordBatch& batch, std::int64_t row,
                    const std::vector<cdc::KeyType>& types);

}  // namespace mssql_cdc::pipeline

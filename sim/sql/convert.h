// Values from one type to another, with SQL Server's results and errors; and how values
// of one type compare.

#pragma once

#include <string>

#include "sim/sql/collation.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

struct ConvertOptions {
  int style = 0;
  std::string dateformat = "mdy";
  // Of types that name no collation.
  std::string collation = "SQL_Latin1_General_CP1_CI_AS";
  // An INSERT or UPDATE: text that is too long is an error (the caller's 2628), not
  // cut.
  bool assignment = false;
};

// Raises 245, 8114, 8115, 241, 242, ... The pair of types must be convertible at all
// (RuleOfConversion).
Value ConvertValue(const Value& value, const SqlType& from, const SqlType& to,
                   const ConvertOptions& options);

// True if an assignment of `value` to a column of `type` would cut off text or bytes.
bool WouldTruncate(const Value& value, const SqlType& from, const SqlType& to);

// -1, 0, 1. Requires: both of `type`, none NULL. `rule` matters for text only.
int CompareValues(const Value& a, const Value& b, const SqlType& type,
                  const CollationRule& rule);
// Bytes that are equal exactly where CompareValues gives 0; NULLs equal each other.
void AppendHashKey(const Value& value, const SqlType& type, const CollationRule& rule,
                   std::string& key);

// "0x0A0B" without the prefix in style 2.
std::string BinaryText(const Bytes& bytes, int style);
std::string GuidText(const Guid& guid);
std::string FloatText(double value, bool real, int style);

}  // namespace mssql_cdc::sim

#include "sqlserver/ordinal_statements.h"

namespace mssql_cdc::sqlserver {
namespace {

std::string Table(const OrdinalQuestion& question) {
  return QuoteName(question.schema) + "." + QuoteName(question.table);
}

std::string Ordinal(const OrdinalQuestion& question, const std::string& value) {
  if (!question.is_date) return "CAST(" + value + " AS bigint)";
  return "CAST(DATEDIFF(day, CAST('1970-01-01' AS date), " + value + ") AS bigint)";
}

}  // namespace

Request AskOrdinalExtent(const OrdinalQuestion& question) {
  // Two subqueries, so that each is one seek in the key's index.
  const std::string key = "(" + QuoteName(question.key) + ")";
  const std::string from = " FROM " + Table(question) + ")";
  return {SettingsBefore(question.settings) + "SELECT (SELECT " +
              Ordinal(question, "MIN" + key) + from + " AS min_key, (SELECT " +
              Ordinal(question, "MAX" + key) + from + " AS max_key" +
              SettingsAfter(question.settings),
          {}};
}

Request CountOrdinals(const OrdinalQuestion& question, std::int64_t width) {
  const std::string name = QuoteName(question.key);
  const std::string key = Ordinal(question, name);
  const std::string by = " / CAST(" + std::to_string(width) + " AS bigint)";
  // Division cuts towards zero: below it, the slice is one further down.
  return {SettingsBefore(question.settings) +
              "SELECT slice, COUNT_BIG(*) AS row_count, SUM(CAST(k AS "
              "decimal(38,0))) AS key_sum FROM (SELECT " +
              key + " AS k, CASE WHEN " + key + " >= 0 THEN " + key + by + " ELSE (" +
              key + " + 1)" + by + " - 1 END AS slice FROM " + Table(question) +
              " WHERE " + name + " IS NOT NULL) AS sliced GROUP BY slice" +
              SettingsAfter(question.settings),
          {}};
}

}  // namespace mssql_cdc::sqlserver

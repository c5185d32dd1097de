#include "sqlserver/key_statements.h"

#include <utility>

#include "sqlserver/key_spans.h"
#include "sqlserver/question.h"

namespace mssql_cdc::sqlserver {
namespace {

std::string NamesOf(const std::vector<std::string>& columns) {
  std::string names;
  for (const std::string& column : columns) {
    names += (names.empty() ? "" : ", ") + QuoteName(column);
  }
  return names;
}

std::string KeyNames(const KeyTable& table) {
  std::vector<std::string> names;
  for (const KeyColumn& key : table.keys) names.push_back(key.name);
  return NamesOf(names);
}

std::string FromTable(std::string_view schema, std::string_view table) {
  return " FROM " + QuoteName(schema) + "." + QuoteName(table);
}

std::string Where(const std::string& condition) {
  return condition.empty() ? "" : " WHERE " + condition;
}

// A statement that reads the source table, with what goes before and after it.
template <typename What>
Request Reading(What what, const SourceSettings& settings, const std::string& sql,
                std::vector<Parameter> parameters) {
  return Asking(std::move(what),
                SettingsBefore(settings) + sql + SettingsAfter(settings),
                std::move(parameters));
}

// The key of the row that `skip_count` rows precede in the pieces together. Each gives
// only as many rows as can matter.
std::string SeekIn(const KeyTable& table, const std::vector<std::string>& pieces,
                   std::int64_t skip_count) {
  const std::string keys = KeyNames(table);
  const std::string from = FromTable(table.schema, table.table);
  const std::string order = " ORDER BY " + keys;
  const std::string pick =
      order + " OFFSET " + std::to_string(skip_count) + " ROWS FETCH NEXT 1 ROWS ONLY";
  if (pieces.empty()) return "SELECT " + keys + from + " WHERE 1 = 0";
  if (pieces.size() == 1) return "SELECT " + keys + from + Where(pieces[0]) + pick;
  std::string all;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) all += " UNION ALL ";
    all += "SELECT " + keys + " FROM (SELECT TOP (" + std::to_string(skip_count + 1) +
           ") " + keys + from + Where(pieces[i]) + order + ") AS p" + std::to_string(i);
  }
  return "SELECT " + keys + " FROM (" + all + ") AS u" + pick;
}

// A literal of type bigint, whatever its size.
std::string BigInt(std::int64_t value) {
  return "CAST(" + std::to_string(value) + " AS bigint)";
}

}  // namespace

Request AskColumnDetails(std::string_view schema, std::string_view table) {
  return Asking(
      Question::ColumnDetails{std::string(table)},
      "SELECT name, max_length, [precision], scale, collation_name FROM sys.columns "
      "WHERE object_id = OBJECT_ID(@source)",
      {{"@source", Parameter::Kind::kNVarChar,
        QuoteName(schema) + "." + QuoteName(table), 0}});
}

Request AskSpaceUsed(std::string_view schema, std::string_view table) {
  return Asking(Question::SpaceUsed{std::string(table)},
                "EXEC sys.sp_spaceused @objname = @source",
                {{"@source", Parameter::Kind::kNVarChar,
                  QuoteName(schema) + "." + QuoteName(table), 0}});
}

Request AskLastKey(const KeyTable& table) {
  std::string order;
  for (const KeyColumn& key : table.keys) {
    order += (order.empty() ? "" : ", ") + QuoteName(key.name) + " DESC";
  }
  return Reading(Question::LastKey{table}, table.settings,
                 "SELECT TOP (1) " + KeyNames(table) +
                     FromTable(table.schema, table.table) + " ORDER BY " + order,
                 {});
}

Request SeekKey(const KeyTable& table, const KeySpan& span, std::int64_t skip_count) {
  std::vector<Parameter> parameters;
  const std::vector<std::string> pieces =
      PiecesOf(table.keys, span, FirstKey::kIncluded, parameters);
  return Reading(Question::SeekKey{table, span, skip_count}, table.settings,
                 SeekIn(table, pieces, skip_count), std::move(parameters));
}

Request SeekAbove(const KeyTable& table, const KeyBound& bound) {
  std::vector<Parameter> parameters;
  const std::vector<std::string> pieces =
      PiecesOf(table.keys, {bound, std::nullopt}, FirstKey::kExcluded, parameters);
  return Reading(Question::SeekAbove{table, bound}, table.settings,
                 SeekIn(table, pieces, 0), std::move(parameters));
}

Request CountSlices(const SliceQuestion& question) {
  const std::string key = "CAST(" + QuoteName(question.key) + " AS bigint)";
  const std::string width = BigInt(question.width);
  // Division cuts towards zero: below it, one less where something was cut.
  return Reading(
      question, question.settings,
      "SELECT slice, COUNT_BIG(*) AS row_count, MIN(k) AS min_key, MAX(k) AS max_key "
      "FROM (SELECT " +
          key + " AS k, " + key + " / " + width + " - CASE WHEN " + key + " < 0 AND " +
          key + " % " + width + " <> 0 THEN 1 ELSE 0 END AS slice" +
          FromTable(question.schema, question.table) + " WHERE " +
          QuoteName(question.key) + " >= " + BigInt(question.min) + " AND " +
          QuoteName(question.key) + " <= " + BigInt(question.max) +
          ") AS s GROUP BY slice",
      {});
}

Request ReadChunk(const ChunkQuestion& question) {
  const KeyTable& table = question.table;
  std::vector<Parameter> parameters;
  std::vector<std::string> pieces =
      PiecesOf(table.keys, question.span, FirstKey::kIncluded, parameters);
  if (pieces.empty()) pieces.emplace_back("1 = 0");
  std::string columns;
  for (const SelectedColumn& column : question.columns) {
    columns += (columns.empty() ? "" : ", ") + Selected(column, "");
  }
  std::string sql;
  for (const std::string& piece : pieces) {
    sql += (sql.empty() ? "SELECT " : "; SELECT ") + columns +
           FromTable(table.schema, table.table) + Where(piece);
  }
  return Reading(question, table.settings, sql, std::move(parameters));
}

Request MapTimeToLsn(const TimeQuestion& question) {
  const std::string utc = "CAST(@utc AS datetime2(0))";
  std::string local =
      "DATEADD(minute, " + std::to_string(question.offset_minutes) + ", " + utc + ")";
  if (question.zone) {
    const auto local_of = [&](const std::string& time) {
      return "CAST(" + time + " AT TIME ZONE 'UTC' AT TIME ZONE N'" + *question.zone +
             "' AS datetime2(0))";
    };
    const std::string plain = local_of(utc);
    const std::string early =
        "DATEADD(hour, -1, " + local_of("DATEADD(hour, 1, " + utc + ")") + ")";
    local = "CASE WHEN " + early + " < " + plain + " THEN " + early + " ELSE " + plain +
            " END";
  }
  return {"SELECT sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', CAST(" +
              local + " AS datetime)) AS lsn, CASE WHEN " + utc +
              " > DATEADD(minute, 1, SYSUTCDATETIME()) THEN 1 ELSE 0 END AS is_ahead",
          {{"@utc", Parameter::Kind::kNVarChar, question.utc, 0}}};
}

}  // namespace mssql_cdc::sqlserver

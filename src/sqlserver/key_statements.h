// The statements that cut a source table by its key, and read the pieces.
//
// Keys compare as SQL Server compares them: column by column, NULL first, each by its
// column's collation and type. A span of keys becomes disjoint pieces, each of them
// equalities on leading columns and one range, so that an index on the key seeks every
// piece and a row is in exactly one, also where two bounds that are written differently
// are one value to the server ('a' and 'A').

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sqlserver/session.h"
#include "sqlserver/statements.h"

namespace mssql_cdc::sqlserver {

struct KeyColumn {
  std::string name;
  // What a bound is converted to, such as "datetime2(3)"; empty: an integer, whose
  // bounds are literals.
  std::string sql_type;
  std::string collation;   // Of char and varchar, whose code page the text must meet.
  bool is_binary = false;  // Its text is 0x and hexadecimal digits.
};

// One text for each key column, from the first; nullopt is NULL.
using KeyBound = std::vector<std::optional<std::string>>;

// Keys from `lo` on and below `hi`, as the snapshot plans table keeps chunks. Absent
// bounds are open; open below takes NULL too.
struct KeySpan {
  std::optional<KeyBound> lo;
  std::optional<KeyBound> hi;
};

struct KeyTable {
  std::string schema;
  std::string table;
  std::vector<KeyColumn> keys;
  SourceSettings settings;
};

// One set: name, max_length (bytes; -1: max), precision, scale, collation_name of the
// table's columns.
Request AskColumnDetails(std::string_view schema, std::string_view table);

// One row, with the column rows (text): how many rows the table has, about.
Request AskSpaceUsed(std::string_view schema, std::string_view table);

// At most one row: the key columns of the last row in key order.
Request AskLastKey(const KeyTable& table);

// At most one row: the key columns of the row that `skip_count` rows precede in `span`,
// in key order.
Request SeekKey(const KeyTable& table, const KeySpan& span, std::int64_t skip_count);

// At most one row: the first key above `bound`.
Request SeekAbove(const KeyTable& table, const KeyBound& bound);

struct SliceQuestion {
  std::string schema;
  std::string table;
  std::string key;  // One integer column.
  std::int64_t width = 1;
  // Keys from min to max, both included; NULLs are not counted.
  std::int64_t min = 0;
  std::int64_t max = 0;
  SourceSettings settings;
};
// A row for each slice of `width` keys that has rows, in no order: slice bigint (the
// key divided by width, rounded down), row_count bigint, min_key, max_key bigint.
Request CountSlices(const SliceQuestion& question);

struct ChunkQuestion {
  KeyTable table;
  KeySpan span;
  std::vector<SelectedColumn> columns;
};
// One set or more, all with the same columns: the rows whose keys are in the span, in
// no order. Requires at least one column.
Request ReadChunk(const ChunkQuestion& question);

struct TimeQuestion {
  std::string utc;                  // "2026-01-31T10:20:30", UTC.
  std::int64_t offset_minutes = 0;  // Of the server's clock, without a zone.
  std::optional<std::string> zone;
};
// One row: lsn of the last commit at or below that time on the server's clock; NULL or
// zero if there is none. In an hour that the clock repeats, the earlier reading counts.
Request MapTimeToLsn(const TimeQuestion& question);

}  // namespace mssql_cdc::sqlserver

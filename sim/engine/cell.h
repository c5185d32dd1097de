// How values lie in SQLite and in the log: cells that sort as SQL Server sorts.
//
// Whatever SQL Server orders, SQLite orders the same way by comparing integers, reals
// or bytes, so that ranges and both directions of a key are left to SQLite's B-trees.
// Text is the exception: it is stored as it is, and a key column has a second cell
// beside it, the collation's sort key.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/sqlite.h"
#include "sim/value.h"

namespace mssql_cdc::sim {

struct Cell {
  enum class Kind : std::uint8_t { kNull, kInt, kReal, kText, kBlob };
  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string bytes;  // kText: UTF-8, unpaired surrogates as three bytes; kBlob.

  // What the kind does not use may hold an earlier row's value.
  bool operator==(const Cell& other) const;
};

bool IsTextType(TypeId id);
bool IsBinaryType(TypeId id);
// text, ntext, image.
bool IsOldLobType(TypeId id);
// varchar(max), nvarchar(max), varbinary(max), xml.
bool IsMaxType(const SqlType& type);

// Requires a value of `type` (or NULL).
void EncodeCell(const SqlType& type, const Value& value, Cell& cell);
// Reads a cell that EncodeCell wrote for `type`.
Value DecodeCell(const SqlType& type, const Cell& cell);
void DecodeColumn(const SqlType& type, const Statement& row, int column, Value& value);
void BindCell(Statement& statement, int index, const Cell& cell);
Cell ColumnCell(const Statement& row, int column);

// The bytes that sort `value` under `collation` (empty: `database_collation`).
std::string TextSortKey(const Text& value, const std::string& collation,
                        const std::string& database_collation);

// A row in the log: cells one after another.
void AppendCell(std::string& image, const Cell& cell);
// Takes one cell from the front of `image`.
void ReadCell(std::string_view& image, Cell& cell);

std::string BigEndian64(std::uint64_t value);

}  // namespace mssql_cdc::sim

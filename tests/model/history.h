// What a random life of some tables must show to a reader of their changes: the
// generator's own record, by what docs/cdc.md says of each statement, never the
// simulator's change tables.
//
// Every table begins as (id int primary key, a bigint, note nvarchar(60)).

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/dice.h"
#include "tests/seeds.h"

namespace mssql_cdc::model {

// Column name to value text; a column that is absent is NULL.
using Row = std::map<std::string, std::string>;

struct Change {
  int operation = 2;
  Row row;  // Of all columns of the table; id always.
  // Columns that an update changed; of other operations empty.
  std::set<std::string> changed;
};
// Changes of one statement whose order among rows nothing promises.
using StatementChanges = std::vector<Change>;
// One transaction as one table sees it.
using Commit = std::vector<StatementChanges>;

struct Instance {
  std::string name;
  std::set<std::string> columns;  // Captured.
  std::size_t first_commit = 0;   // The first that it holds, by number.
  bool is_dropped = false;
};

struct Table {
  std::string name;
  std::vector<std::string> columns = {"id", "a", "note"};
  std::map<std::int64_t, Row> rows;
  std::vector<Commit> commits;  // Since CDC was enabled.
  std::vector<Instance> instances;
  std::int64_t next_id = 1;
  int added_column_count = 0;
};

// How often each kind of thing was drawn.
using tests::KindCounts;

class History {
 public:
  History(std::uint64_t seed, std::size_t table_count, KindCounts& counts);

  std::vector<Table>& tables() { return tables_; }
  const Table& table(std::size_t index) const { return tables_[index]; }

  // T-SQL that makes the tables and fills them before CDC sees them.
  std::vector<std::string> Create();
  // The next transaction, over one or several tables; recorded unless it rolls back.
  std::string Transaction();
  // A transaction with an insert into every table.
  std::string Touch();
  // DDL of a table that its instances live through, or nullopt where there is none to
  // draw. The newest instance goes on capturing what it captured.
  std::optional<std::string> Definition(std::size_t index);
  // A second instance, with the columns of now, from the next commit on; nullopt if
  // there are two.
  std::optional<std::string> SecondInstance(std::size_t index);
  // Drops the older of two.
  std::optional<std::string> DropOlder(std::size_t index);

 private:
  std::string Statement(Table& table, Commit& commit);
  std::string Insert(Table& table, Commit& commit);
  std::string Update(Table& table, Commit& commit);
  std::string UpdateKey(Table& table, Commit& commit);
  std::string Delete(Table& table, Commit& commit);
  std::string DeleteAndInsert(Table& table, Commit& commit);
  Row Draw(Table& table, std::int64_t id);
  std::string ValueOf(const std::string& column);
  std::vector<std::int64_t> Keys(const Table& table, std::size_t count_max);
  void Count(const std::string& kind) { ++counts_[kind]; }

  Dice dice_;
  KindCounts& counts_;
  std::vector<Table> tables_;
};

// What a reader of `instance` is shown of a commit: the rows it captures, or none. Of
// an update that touched nothing captured there is nothing.
Commit Shown(const Commit& commit, const Instance& instance);

std::string Literal(const std::string& column, const Row& row);

}  // namespace mssql_cdc::model

#include "tests/model/history.h"

#include <algorithm>

#include "base/text.h"

namespace mssql_cdc::model {
namespace {

const char* const kNotes[] = {"", "bolt", "Ключ", "ねじ", "naïve ☃", "a'b", "x]y"};

std::string Quoted(const std::string& text) {
  std::string quoted = "N'";
  for (const char c : text) {
    quoted += c;
    if (c == '\'') quoted += c;
  }
  return quoted + "'";
}

std::string Join(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string IdList(const std::vector<std::int64_t>& ids) {
  std::vector<std::string> texts;
  for (const std::int64_t id : ids) texts.push_back(std::to_string(id));
  return Join(texts, ", ");
}

}  // namespace

std::string Literal(const std::string& column, const Row& row) {
  const auto found = row.find(column);
  if (found == row.end()) return "NULL";
  return column == "id" || column == "a" ? found->second : Quoted(found->second);
}

History::History(std::uint64_t seed, std::size_t table_count, KindCounts& counts)
    : dice_(seed), counts_(counts), tables_(table_count) {
  for (std::size_t i = 0; i < table_count; ++i) {
    tables_[i].name = "t" + std::to_string(i);
    tables_[i].instances = {{"dbo_" + tables_[i].name, {"id", "a", "note"}, 0, false}};
  }
}

std::vector<std::string> History::Create() {
  std::vector<std::string> statements;
  for (Table& table : tables_) {
    statements.push_back("CREATE TABLE dbo." + table.name +
                         " (id int NOT NULL PRIMARY KEY, a bigint NULL, note "
                         "nvarchar(60) NULL)");
    Commit before_cdc;
    const std::uint64_t count = dice_.Below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      statements.push_back(Insert(table, before_cdc));
    }
  }
  return statements;
}

std::string History::ValueOf(const std::string& column) {
  if (column == "a") return std::to_string(static_cast<int>(dice_.Below(2000)) - 1000);
  return kNotes[dice_.Below(std::size(kNotes))] + std::to_string(dice_.Below(1000));
}

Row History::Draw(Table& table, std::int64_t id) {
  Row row = {{"id", std::to_string(id)}};
  for (const std::string& column : table.columns) {
    if (column != "id" && !dice_.Chance(1, 4)) row[column] = ValueOf(column);
  }
  return row;
}

std::vector<std::int64_t> History::Keys(const Table& table, std::size_t count_max) {
  std::vector<std::int64_t> keys;
  for (const auto& [id, row] : table.rows) keys.push_back(id);
  for (std::size_t i = keys.size(); i > 1; --i) {
    std::swap(keys[i - 1], keys[dice_.Below(i)]);
  }
  if (keys.size() > count_max) keys.resize(count_max);
  std::ranges::sort(keys);
  return keys;
}

std::string History::Insert(Table& table, Commit& commit) {
  StatementChanges changes;
  std::vector<std::string> values;
  const std::uint64_t count = dice_.Chance(1, 3) ? 2 + dice_.Below(6) : 1;
  Count(count == 1 ? "insert" : "insert of several rows");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::int64_t id = table.next_id++;
    const Row row = Draw(table, id);
    table.rows[id] = row;
    changes.push_back({2, row, {}});
    std::vector<std::string> literals;
    for (const std::string& column : table.columns) {
      literals.push_back(Literal(column, row));
    }
    values.push_back("(" + Join(literals, ", ") + ")");
  }
  commit.push_back(std::move(changes));
  return "INSERT dbo." + table.name + " (" + Join(table.columns, ", ") + ") VALUES " +
         Join(values, ", ");
}

std::string History::Update(Table& table, Commit& commit) {
  const std::vector<std::int64_t> keys =
      Keys(table, dice_.Chance(1, 3) ? 2 + dice_.Below(4) : 1);
  if (keys.empty()) return Insert(table, commit);
  const std::string& column = table.columns[1 + dice_.Below(table.columns.size() - 1)];
  Count(keys.size() == 1 ? "update" : "update of several rows");
  // Unlike any value before, so that each row changes.
  const std::string value =
      column == "a" ? std::to_string(10'000 + static_cast<int>(dice_.Below(1'000'000)))
                    : "u" + std::to_string(dice_.Next());
  StatementChanges changes;
  for (const std::int64_t id : keys) {
    Row& row = table.rows[id];
    changes.push_back({3, row, {column}});
    row[column] = value;
    changes.push_back({4, row, {column}});
  }
  commit.push_back(std::move(changes));
  return "UPDATE dbo." + table.name + " SET " + column + " = " +
         (column == "a" ? value : Quoted(value)) + " WHERE id IN (" + IdList(keys) +
         ")";
}

std::string History::UpdateKey(Table& table, Commit& commit) {
  const std::vector<std::int64_t> keys =
      Keys(table, dice_.Chance(1, 3) ? 2 + dice_.Below(3) : 1);
  if (keys.empty()) return Insert(table, commit);
  Count(keys.size() == 1 ? "key update" : "key update of several rows");
  const std::int64_t shift = table.next_id;
  // All deletes, then all inserts.
  StatementChanges deletes;
  StatementChanges inserts;
  for (const std::int64_t id : keys) {
    Row row = table.rows[id];
    deletes.push_back({1, row, {}});
    table.rows.erase(id);
    row["id"] = std::to_string(id + shift);
    inserts.push_back({2, row, {}});
  }
  for (const Change& change : inserts) {
    const std::int64_t id = *ParseInt64(change.row.at("id"));
    table.rows[id] = change.row;
    table.next_id = std::max(table.next_id, id + 1);
  }
  commit.push_back(std::move(deletes));
  commit.push_back(std::move(inserts));
  return "UPDATE dbo." + table.name + " SET id = id + " + std::to_string(shift) +
         " WHERE id IN (" + IdList(keys) + ")";
}

std::string History::Delete(Table& table, Commit& commit) {
  const std::vector<std::int64_t> keys =
      Keys(table, dice_.Chance(1, 4) ? 2 + dice_.Below(4) : 1);
  if (keys.empty()) return Insert(table, commit);
  Count(keys.size() == 1 ? "delete" : "delete of several rows");
  StatementChanges changes;
  for (const std::int64_t id : keys) {
    changes.push_back({1, table.rows[id], {}});
    table.rows.erase(id);
  }
  commit.push_back(std::move(changes));
  return "DELETE dbo." + table.name + " WHERE id IN (" + IdList(keys) + ")";
}

std::string History::DeleteAndInsert(Table& table, Commit& commit) {
  const std::vector<std::int64_t> keys = Keys(table, 1);
  if (keys.empty()) return Insert(table, commit);
  Count("delete and insert of one key");
  const Row old = table.rows[keys[0]];
  const Row row = Draw(table, keys[0]);
  table.rows[keys[0]] = row;
  commit.push_back({{1, old, {}}});
  commit.push_back({{2, row, {}}});
  std::vector<std::string> literals;
  for (const std::string& column : table.columns) {
    literals.push_back(Literal(column, row));
  }
  return "DELETE dbo." + table.name + " WHERE id = " + std::to_string(keys[0]) +
         "; INSERT dbo." + table.name + " (" + Join(table.columns, ", ") +
         ") VALUES (" + Join(literals, ", ") + ")";
}

std::string History::Statement(Table& table, Commit& commit) {
  switch (dice_.Below(10)) {
    case 0:
    case 1:
    case 2:
      return Insert(table, commit);
    case 3:
    case 4:
    case 5:
      return Update(table, commit);
    case 6:
      return UpdateKey(table, commit);
    case 7:
      return DeleteAndInsert(table, commit);
    default:
      return Delete(table, commit);
  }
}

std::string History::Transaction() {
  const std::vector<Table> before = tables_;
  const bool rolls_back = dice_.Chance(1, 12);
  std::vector<Commit> commits(tables_.size());
  std::string sql = "BEGIN TRAN; ";
  const std::uint64_t statement_count = dice_.Below(4) + 1;
  for (std::uint64_t i = 0; i < statement_count; ++i) {
    const std::size_t index = dice_.Below(tables_.size());
    sql += Statement(tables_[index], commits[index]) + "; ";
  }
  if (rolls_back) {
    Count("rollback");
    tables_ = before;
    return sql + "ROLLBACK TRAN";
  }
  std::size_t touched = 0;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (commits[i].empty()) continue;
    ++touched;
    tables_[i].commits.push_back(std::move(commits[i]));
  }
  if (touched > 1) Count("transaction over several tables");
  return sql + "COMMIT TRAN";
}

std::string History::Touch() {
  std::string sql = "BEGIN TRAN; ";
  for (Table& table : tables_)
    sql += Insert(table, table.commits.emplace_back()) + "; ";
  return sql + "COMMIT TRAN";
}

std::optional<std::string> History::Definition(std::size_t index) {
  Table& table = tables_[index];
  const std::string alter = "ALTER TABLE dbo." + table.name;
  switch (dice_.Below(4)) {
    case 0: {
      if (table.added_column_count == 2) return std::nullopt;
      Count("added column");
      const std::string name = "extra" + std::to_string(++table.added_column_count);
      table.columns.push_back(name);
      return alter + " ADD " + name + " nvarchar(40) NULL";
    }
    case 1:
      Count("wider text");
      return alter + " ALTER COLUMN note nvarchar(" +
             std::to_string(61 + dice_.Below(900)) + ") NULL";
    case 2:
      Count("narrower integer");
      return alter + " ALTER COLUMN a int NULL";
    default: {
      if (table.columns.size() < 4) return std::nullopt;
      Count("dropped column");
      const std::string name = table.columns.back();
      table.columns.pop_back();
      for (auto& [id, row] : table.rows) row.erase(name);
      return alter + " DROP COLUMN " + name;
    }
  }
}

std::optional<std::string> History::SecondInstance(std::size_t index) {
  Table& table = tables_[index];
  const auto living = std::ranges::count(table.instances, false, &Instance::is_dropped);
  if (living != 1) return std::nullopt;
  Count("second instance");
  Instance instance;
  instance.name = "v" + std::to_string(table.instances.size() + 1) + "_" + table.name;
  instance.columns = {table.columns.begin(), table.columns.end()};
  instance.first_commit = table.commits.size();
  table.instances.push_back(instance);
  return "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'" +
         table.name + "', @role_name = NULL, @capture_instance = N'" + instance.name +
         "'";
}

std::optional<std::string> History::DropOlder(std::size_t index) {
  Table& table = tables_[index];
  const auto older = std::ranges::find(table.instances, false, &Instance::is_dropped);
  if (older + 1 == table.instances.end()) return std::nullopt;
  Count("dropped instance");
  older->is_dropped = true;
  return "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'" +
         table.name + "', @capture_instance = N'" + older->name + "'";
}

Commit Shown(const Commit& commit, const Instance& instance) {
  Commit shown;
  for (const StatementChanges& changes : commit) {
    StatementChanges kept;
    for (const Change& change : changes) {
      const bool is_seen =
          change.changed.empty() ||
          std::ranges::any_of(change.changed, [&](const std::string& column) {
            return instance.columns.contains(column);
          });
      if (!is_seen) continue;
      Change seen{change.operation, {}, {}};
      for (const auto& [column, value] : change.row) {
        if (instance.columns.contains(column)) seen.row[column] = value;
      }
      kept.push_back(std::move(seen));
    }
    if (!kept.empty()) shown.push_back(std::move(kept));
  }
  return shown;
}

}  // namespace mssql_cdc::model

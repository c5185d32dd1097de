#include "sim/engine/stored_table.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/stored_row.h"

namespace mssql_cdc::sim {

std::vector<std::size_t> TrackedColumns(const Catalog& catalog,
                                        const TableMeta& table) {
  std::vector<std::size_t> positions;
  const auto instances = catalog.InstancesOf(table.object_id);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].computed() && Does(Behaviour::kComputedNull)) continue;
    const bool wanted = std::any_of(
        instances.begin(), instances.end(), [&](const CaptureInstance* instance) {
          return std::any_of(instance->columns.begin(), instance->columns.end(),
                             [&](const CapturedColumn& c) {
                               return c.column_id == table.columns[i].column_id;
                             });
        });
    if (wanted) positions.push_back(i);
  }
  return positions;
}

void AppendImageCell(std::string& image, std::int32_t column_id, const Cell& cell) {
  image.push_back(static_cast<char>(column_id & 0xFF));
  image.push_back(static_cast<char>(column_id >> 8 & 0xFF));
  AppendCell(image, cell);
}

StoredTable::StoredTable(Session& session, std::shared_ptr<Database> database,
                         TablePtr table)
    : session_(session),
      database_(std::move(database)),
      table_(std::move(table)),
      catalog_(session.CatalogOf(database_)),
      name_(table_->FullName()) {
  for (const ColumnMeta& column : table_->columns) {
    ColumnInfo info;
    info.name = column.name;
    info.type = column.type;
    info.nullable = column.nullable;
    info.identity = column.identity;
    info.computed = column.computed();
    info.generated = column.computed() || column.type.id == TypeId::kRowVersion;
    columns_.push_back(std::move(info));
  }
  tracked_ = TrackedColumns(*catalog_, *table_);
}

std::optional<std::size_t> StoredTable::IdentityColumn() const {
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    if (table_->columns[i].identity) return i;
  }
  return std::nullopt;
}

bool StoredTable::Grows() const {
  return table_->is_change_table ||
         (table_->schema == "cdc" && table_->name == "lsn_time_mapping");
}

WriteTransaction& StoredTable::Write() {
  WriteTransaction& transaction = session_.Write(database_);
  if (Grows()) transaction.Rewrites();
  return transaction;
}

std::optional<Growth> StoredTable::growth() const {
  if (!Grows() || dirty_ || fail_number_ != 0) return std::nullopt;
  const std::optional<std::uint64_t> rewrite_count = session_.RewriteCount(database_);
  const TablePtr mapping = catalog_->FindTable("cdc", "lsn_time_mapping");
  if (!rewrite_count || mapping == nullptr) return std::nullopt;
  // Commits are captured in the order of their LSNs, each with a row of the mapping.
  Statement newest = session_.Reader(database_).Prepare(
      "SELECT MAX(" + mapping->columns[0].physical + ") FROM " + mapping->physical);
  if (newest.Next() != Step::kRow || newest.IsNull(0)) return std::nullopt;
  return Growth{database_->id(), table_->object_id, *rewrite_count,
                std::string(newest.Blob(0))};
}

void StoredTable::InsertRow(Statement& insert, const std::vector<Value>& row) {
  CheckNullDuplicates(row);
  EncodeRow(*table_, row, cells_);
  BindRow(insert, *table_, catalog_->collation, row, cells_);
  const Step step = insert.Next();
  if (step == Step::kUnique) RaiseDuplicate(row);
  if (step != Step::kDone) {
    RaiseSql(605, 21, 3, "The storage of table '" + name_ + "' failed.");
  }
  insert.Reset();
}

std::uint64_t StoredTable::Insert(const InsertRequest& request) {
  WriteTransaction& transaction = Write();
  std::vector<Row> spool;
  RowFeed feed = request.feed;
  if (session_.open_cursors()[table_->object_id] > 0) {
    // The feed reads the table that it fills: take all of it first.
    Row row;
    while (request.feed(row)) spool.push_back(row);
    feed = [&spool, next = std::size_t{0}](Row& out) mutable {
      if (next == spool.size()) return false;
      out = std::move(spool[next++]);
      return true;
    };
  }
  const std::optional<std::size_t> identity = IdentityColumn();
  const bool explicit_identity =
      identity && std::find(request.columns.begin(), request.columns.end(),
                            *identity) != request.columns.end();
  const bool identity_insert = session_.IdentityInsert(table_->object_id);
  if (explicit_identity && !identity_insert) {
    RaiseSql(544, 16, 1,
             "Cannot insert explicit value for identity column in table '" +
                 table_->name + "' when IDENTITY_INSERT is set to OFF.");
  }
  if (identity && !explicit_identity && identity_insert) {
    RaiseSql(
        545, 16, 1,
        "Explicit value must be specified for identity column in table '" +
            table_->name +
            "' either when IDENTITY_INSERT is set to ON or when a replication user "
            "is inserting into a NOT FOR REPLICATION identity column.");
  }
  std::vector<std::size_t> defaulted;
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    if (!table_->columns[i].default_text.empty() &&
        std::find(request.columns.begin(), request.columns.end(), i) ==
            request.columns.end()) {
      defaulted.push_back(i);
    }
  }
  Statement insert = transaction.connection().Prepare(InsertText(*table_));
  if (!insert) RaiseSql(208, 16, 1, "Invalid object name '" + name_ + "'.");
  std::uint64_t count = 0;
  Row given;
  std::vector<Value> row;
  while (feed(given)) {
    row.assign(table_->columns.size(), Value{});
    for (std::size_t i = 0; i < request.columns.size(); ++i) {
      row[request.columns[i]] = std::move(given[i]);
    }
    for (const std::size_t i : defaulted) {
      row[i] = Expression(table_->columns[i].default_text, i, false).Evaluate({});
    }
    if (identity) {
      const ColumnMeta& column = table_->columns[*identity];
      const auto last = transaction.LastIdentity(table_->object_id);
      if (!explicit_identity) {
        const std::int64_t value = last ? *last + column.increment : column.seed;
        if (column.type.id == TypeId::kDecimal) {
          row[*identity].held = Decimal{value, column.type.scale};
        } else {
          row[*identity].held = value;
        }
        transaction.SetIdentity(table_->object_id, value);
        session_.SetLastIdentity(value);
      } else if (const auto* value = std::get_if<std::int64_t>(&row[*identity].held)) {
        const bool beyond =
            !last || (column.increment > 0 ? *value > *last : *value < *last);
        if (beyond) transaction.SetIdentity(table_->object_id, *value);
        session_.SetLastIdentity(*value);
      }
    }
    Complete(row, "INSERT", transaction);
    InsertRow(insert, row);
    if (tracked()) {
      CheckLobSizes(row);
      transaction.Log(LogAction::kInsert, table_->object_id, transaction.NextRecord(),
                      {}, Image(row));
    }
    if (request.output) request.output(row);
    ++count;
    if ((count & 0x3FF) == 0 && session_.stop_requested()) break;
  }
  transaction.AddRowCount(table_->object_id, static_cast<std::int64_t>(count));
  return count;
}

std::string StoredTable::LocatorText() const {
  if (table_->layout != Layout::kClustered) return "rowid = ?";
  std::string text;
  for (const IndexMeta::Part& part : table_->ClusteredIndex()->parts) {
    text += (text.empty() ? "" : " AND ") +
            table_->ColumnById(part.column_id)->OrderColumn() + " = ?";
  }
  return text;
}

void StoredTable::BindLocator(Statement& statement, int first, RowId id) const {
  if (table_->layout != Layout::kClustered) {
    statement.BindInt(first, id);
    return;
  }
  for (const Cell& cell : keys_[static_cast<std::size_t>(id)]) {
    BindCell(statement, first++, cell);
  }
}

std::vector<Value> StoredTable::ReadRow(RowId id) {
  std::string names;
  for (const ColumnMeta& column : table_->columns) {
    names += (names.empty() ? "" : ",") + column.physical;
  }
  Statement read = session_.Write(database_).connection().Prepare(
      "SELECT " + names + " FROM " + table_->physical + " WHERE " + LocatorText());
  BindLocator(read, 1, id);
  std::vector<Value> row;
  if (read.Next() != Step::kRow) return row;
  row.resize(table_->columns.size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    DecodeColumn(table_->columns[i].type, read, static_cast<int>(i), row[i]);
  }
  return row;
}

void StoredTable::DeleteRow(RowId id) {
  Statement remove = session_.Write(database_).connection().Prepare(
      "DELETE FROM " + table_->physical + " WHERE " + LocatorText());
  BindLocator(remove, 1, id);
  remove.Run();
}

std::uint64_t StoredTable::Delete(const DeleteRequest& request) {
  WriteTransaction& transaction = Write();
  const bool referenced = std::any_of(
      catalog_->tables.begin(), catalog_->tables.end(), [&](const auto& entry) {
        return std::any_of(
            entry.second->foreign_keys.begin(), entry.second->foreign_keys.end(),
            [&](const auto& key) { return key.referenced_id == table_->object_id; });
      });
  const bool wants_row = tracked() || request.output || referenced;
  std::uint64_t count = 0;
  RowId id = 0;
  while (request.feed(id)) {
    std::vector<Value> row;
    if (wants_row) row = ReadRow(id);
    DeleteRow(id);
    if (referenced) CheckReferences(row, "DELETE");
    if (tracked()) {
      transaction.Log(LogAction::kDelete, table_->object_id, transaction.NextRecord(),
                      Image(row), {});
    }
    if (request.output) request.output(row);
    ++count;
    if ((count & 0x3FF) == 0 && session_.stop_requested()) break;
  }
  transaction.AddRowCount(table_->object_id, -static_cast<std::int64_t>(count));
  return count;
}

bool StoredTable::TouchesUniqueIndex(const std::vector<std::size_t>& columns) const {
  for (const IndexMeta& index : table_->indexes) {
    if (!index.unique && !index.clustered) continue;
    for (const IndexMeta::Part& part : index.parts) {
      const auto position = table_->IndexOf(part.column_id);
      if (position &&
          std::find(columns.begin(), columns.end(), *position) != columns.end()) {
        return true;
      }
    }
  }
  return false;
}

std::uint64_t StoredTable::Update(const UpdateRequest& request) {
  WriteTransaction& transaction = Write();
  for (const std::size_t column : request.columns) {
    if (table_->columns[column].identity) {
      RaiseSql(8102, 16, 1,
               "Cannot update identity column '" + table_->columns[column].name + "'.");
    }
  }
  // A MERGE's update of a table with a unique index is deferred, whatever it changes.
  const bool merged = request.of_merge && Does(Behaviour::kMergeDeferred) &&
                      std::any_of(table_->indexes.begin(), table_->indexes.end(),
                                  [](const IndexMeta& index) { return index.unique; });
  return merged || TouchesUniqueIndex(request.columns)
             ? UpdateDeferred(request, transaction)
             : UpdateInPlace(request, transaction);
}

std::vector<Value> StoredTable::NextImage(const OldRow& old,
                                          const std::vector<std::size_t>& columns,
                                          const Row& values,
                                          WriteTransaction& transaction) {
  std::vector<Value> row = old.values;
  for (std::size_t i = 0; i < columns.size(); ++i) row[columns[i]] = values[i];
  Complete(row, "UPDATE", transaction);
  return row;
}

std::uint64_t StoredTable::UpdateInPlace(const UpdateRequest& request,
                                         WriteTransaction& transaction) {
  std::string sets;
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < table_->columns.size(); ++i) {
    const ColumnMeta& column = table_->columns[i];
    const bool asked = std::find(request.columns.begin(), request.columns.end(), i) !=
                       request.columns.end();
    if (!asked && !columns_[i].generated) continue;
    written.push_back(i);
    sets += (sets.empty() ? "" : ",") + column.physical + "=?";
    if (!column.sort_physical.empty()) sets += "," + column.sort_physical + "=?";
  }
  Statement update = transaction.connection().Prepare(
      "UPDATE " + table_->physical + " SET " + sets + " WHERE " + LocatorText());
  std::uint64_t count = 0;
  OldRow old;
  Row values;
  Cell cell;
  while (request.feed(old.id, values)) {
    old.values = ReadRow(old.id);
    if (old.values.empty()) continue;
    const std::vector<Value> row = NextImage(old, request.columns, values, transaction);
    int index = 1;
    for (const std::size_t i : written) {
      EncodeCell(table_->columns[i].type, row[i], cell);
      BindCell(update, index++, cell);
      if (table_->columns[i].sort_physical.empty()) continue;
      BindSortKey(update, index++, table_->columns[i], catalog_->collation, row[i]);
    }
    BindLocator(update, index, old.id);
    if (update.Run() == Step::kUnique) RaiseDuplicate(row);
    if (tracked() && (TrackedColumnsDiffer(old.values, row) ||
                      !Does(Behaviour::kUncapturedColumnsSilent))) {
      CheckLobSizes(row);
      transaction.Log(LogAction::kUpdate, table_->object_id, transaction.NextRecord(),
                      Image(old.values), Image(row));
    }
    if (request.output) request.output(old.values, row);
    ++count;
    if ((count & 0x3FF) == 0 && session_.stop_requested()) break;
  }
  return count;
}

// An update that touches a unique key removes all old rows before it stores the new
// ones, so that keys may change places. The log tells it as SQL Server does
// (facts 1.2): one row, or keys that stay, as delete and insert with one seqval; many
// changed keys as all deletes, then all inserts, each with a seqval of its own.
std::uint64_t StoredTable::UpdateDeferred(const UpdateRequest& request,
                                          WriteTransaction& transaction) {
  std::vector<Pair> pairs;
  OldRow old;
  Row values;
  while (request.feed(old.id, values)) {
    old.values = ReadRow(old.id);
    if (old.values.empty()) continue;
    std::vector<Value> row = NextImage(old, request.columns, values, transaction);
    DeleteRow(old.id);
    pairs.push_back({std::move(old.values), std::move(row)});
    if (session_.stop_requested()) break;
  }
  Statement insert = transaction.connection().Prepare(InsertText(*table_));
  for (const Pair& pair : pairs) {
    InsertRow(insert, pair.after);
    CheckReferences(pair.before, "UPDATE");
  }
  if (tracked()) LogDeferred(pairs, transaction);
  if (request.output) {
    for (const Pair& pair : pairs) request.output(pair.before, pair.after);
  }
  return pairs.size();
}

void StoredTable::LogDeferred(const std::vector<Pair>& pairs,
                              WriteTransaction& transaction) {
  const auto moves_key = [&](const Pair& pair) {
    for (std::size_t c = 0; c < pair.before.size(); ++c) {
      if (TouchesUniqueIndex({c}) && !(pair.before[c] == pair.after[c])) return true;
    }
    return false;
  };
  const bool moves = std::any_of(pairs.begin(), pairs.end(), moves_key);
  const bool bulk = pairs.size() > 1 && moves;
  const std::int32_t id = table_->object_id;
  // Of many rows all deletes come before all inserts, and their seqvals do not follow
  // the order of the commands (DBZ-2329: seqval is not monotone within a transaction).
  std::vector<Lsn> lsns(pairs.size());
  for (Lsn& lsn : lsns) lsn = transaction.NextRecord();
  if (bulk && Does(Behaviour::kSeqvalNotMonotone))
    std::reverse(lsns.begin(), lsns.end());
  const bool deletes_first = bulk && Does(Behaviour::kBulkKeyUpdateDeletesFirst);
  const bool one = !bulk && Does(Behaviour::kKeyUpdateOneSeqval);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    CheckLobSizes(pair.after);
    if (!moves && !Does(Behaviour::kSameValueDeferred)) {
      transaction.Log(LogAction::kUpdate, id, lsns[i], Image(pair.before),
                      Image(pair.after));
      continue;
    }
    transaction.Log(LogAction::kDelete, id, lsns[i], Image(pair.before), {});
    if (deletes_first) continue;
    transaction.Log(LogAction::kInsert, id, one ? lsns[i] : transaction.NextRecord(),
                    {}, Image(pair.after));
  }
  if (!deletes_first) return;
  for (const Pair& pair : pairs) {
    transaction.Log(LogAction::kInsert, id, transaction.NextRecord(), {},
                    Image(pair.after));
  }
}

std::string StoredTable::Image(const std::vector<Value>& row) const {
  std::string image;
  Cell cell;
  for (const std::size_t i : tracked_) {
    EncodeCell(table_->columns[i].type, row[i], cell);
    AppendImageCell(image, table_->columns[i].column_id, cell);
  }
  return image;
}

bool StoredTable::TrackedColumnsDiffer(const std::vector<Value>& a,
                                       const std::vector<Value>& b) const {
  return std::any_of(tracked_.begin(), tracked_.end(),
                     [&](std::size_t i) { return !(a[i] == b[i]); });
}

void StoredTable::CheckLobSizes(const std::vector<Value>& row) const {
  const std::int64_t limit = session_.server().options().max_text_repl_size_bytes;
  if (limit < 0 || !Does(Behaviour::kLobSizeLimit)) return;
  for (const std::size_t i : tracked_) {
    const SqlType& type = table_->columns[i].type;
    if (!IsMaxType(type) && !IsOldLobType(type.id)) continue;
    std::size_t size = 0;
    if (const auto* text = std::get_if<Text>(&row[i].held)) {
      const bool wide = type.id == TypeId::kNVarChar || type.id == TypeId::kNText ||
                        type.id == TypeId::kXml;
      size = text->size() * (wide ? 2 : 1);
    } else if (const auto* bytes = std::get_if<Bytes>(&row[i].held)) {
      size = bytes->size();
    }
    if (size > static_cast<std::size_t>(limit)) {
      RaiseSql(7139, 16, 1,
               "Length of LOB data (" + std::to_string(size) +
                   ") to be replicated exceeds configured maximum " +
                   std::to_string(limit) +
                   ". Use the stored procedure sp_configure to increase the configured "
                   "maximum value for max text repl size option, which defaults to "
                   "65536. A configured value of -1 indicates no limit, other that the "
                   "limit imposed by the data type.");
    }
  }
}

}  // namespace mssql_cdc::sim

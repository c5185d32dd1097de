// Fills a table and its change tables without going through T-SQL, for benches.

#include <algorithm>

#include "sim/engine/cdc.h"
#include "sim/engine/change_rows.h"
#include "sim/engine/engine.h"
#include "sim/engine/stored_row.h"
#include "sim/engine/stored_table.h"
#include "sim/engine/table_layout.h"
#include "sim/sql/interpreter.h"

namespace mssql_cdc::sim {
namespace {

Error Refused(const std::string& table, const std::string& reason) {
  return Error(ErrorId::kSimulatorFailed).With("table", table).With("reason", reason);
}

// A value of the type that differs from row to row and fits every length.
Value MadeUp(const SqlType& type, std::int64_t row) {
  Value value;
  switch (type.id) {
    case TypeId::kBit:
      value.held = row % 2;
      break;
    case TypeId::kTinyInt:
      value.held = row % 256;
      break;
    case TypeId::kSmallInt:
      value.held = row % 32768;
      break;
    case TypeId::kInt:
      value.held = row % 2147483647;
      break;
    case TypeId::kBigInt:
    case TypeId::kNull:
      value.held = row;
      break;
    case TypeId::kReal:
      value.held = static_cast<double>(static_cast<float>(row) / 4);
      break;
    case TypeId::kFloat:
      value.held = static_cast<double>(row) / 8;
      break;
    case TypeId::kDecimal: {
      std::int64_t limit = 1;
      for (int i = 0; i < type.precision && i < 18; ++i) limit *= 10;
      value.held = Decimal{row % limit, type.scale};
      break;
    }
    case TypeId::kMoney:
    case TypeId::kSmallMoney:
      value.held = Decimal{row % 2000000000, 4};
      break;
    case TypeId::kDate:
      value.held = DateTimeValue{730000 + static_cast<std::int32_t>(row % 9000), 0, 0};
      break;
    case TypeId::kTime:
      value.held = DateTimeValue{0, row % 86400 * 10'000'000, 0};
      break;
    case TypeId::kSmallDateTime:
      value.held = DateTimeValue{730000 + static_cast<std::int32_t>(row / 1440 % 9000),
                                 row % 1440 * 600'000'000, 0};
      break;
    case TypeId::kDateTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      value.held = DateTimeValue{730000 + static_cast<std::int32_t>(row / 86400 % 9000),
                                 row % 86400 * 10'000'000, 0};
      break;
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kText:
    case TypeId::kNText: {
      std::string text = "value " + std::to_string(row);
      const bool fixed = type.id == TypeId::kChar || type.id == TypeId::kNChar;
      if (type.length > 0 &&
          (fixed || text.size() > static_cast<std::size_t>(type.length))) {
        text.resize(static_cast<std::size_t>(type.length), ' ');
      }
      value.held = Utf16(text);
      break;
    }
    case TypeId::kXml:
      value.held = Utf16("<r>" + std::to_string(row) + "</r>");
      break;
    case TypeId::kBinary:
    case TypeId::kVarBinary:
    case TypeId::kImage:
    case TypeId::kRowVersion: {
      const std::string bytes = BigEndian64(static_cast<std::uint64_t>(row));
      Bytes held(bytes.begin(), bytes.end());
      if (type.id == TypeId::kBinary || type.length > 0) {
        held.resize(
            type.id == TypeId::kBinary
                ? static_cast<std::size_t>(type.length)
                : std::min<std::size_t>(8, static_cast<std::size_t>(type.length)));
      }
      value.held = std::move(held);
      break;
    }
    case TypeId::kUniqueIdentifier: {
      Guid guid;
      const std::string bytes = BigEndian64(static_cast<std::uint64_t>(row));
      std::copy(bytes.begin(), bytes.end(), guid.bytes + 8);
      value.held = guid;
      break;
    }
    case TypeId::kSqlVariant:
      value.held = row % 2147483647;
      value.variant_type = IntType();
      break;
  }
  return value;
}

// `lsn` plus `distance` on the ten-byte integer.
Lsn Above(const Lsn& lsn, std::uint64_t distance) {
  Lsn above = lsn;
  for (std::size_t i = above.bytes.size(); i-- > 0 && distance > 0;) {
    distance += above.bytes[i];
    above.bytes[i] = static_cast<std::uint8_t>(distance);
    distance >>= 8;
  }
  return above;
}

struct ChangeTarget {
  TablePtr table;
  std::vector<std::size_t> sources;  // Positions in the source; past its end: NULL.
  Statement insert;
  std::string mask;
};

std::vector<ChangeTarget> TargetsOf(const Catalog& catalog, const TableMeta& source,
                                    Connection& connection) {
  std::vector<ChangeTarget> targets;
  for (const CaptureInstance* instance : catalog.InstancesOf(source.object_id)) {
    if (!instance->start_lsn) continue;
    ChangeTarget target;
    target.table = catalog.TableById(instance->change_table_id);
    std::vector<std::int32_t> ordinals;
    for (const CapturedColumn& column : instance->columns) {
      const auto position = source.IndexOf(column.column_id);
      const bool held = position && !source.columns[*position].computed();
      target.sources.push_back(held ? *position : source.columns.size());
      ordinals.push_back(column.ordinal);
    }
    target.mask = UpdateMask(ordinals, ordinals.size());
    target.insert = connection.Prepare(InsertText(*target.table));
    targets.push_back(std::move(target));
  }
  return targets;
}

bool WriteChange(ChangeTarget& target, const std::vector<Cell>& cells,
                 const Lsn& commit, const Lsn& seqval, std::int64_t command_id) {
  Statement& insert = target.insert;
  int index = BindChangeHead(insert, {commit, seqval, 2, target.mask});
  for (const std::size_t source : target.sources) {
    if (source < cells.size()) {
      BindCell(insert, index++, cells[source]);
    } else {
      insert.BindNull(index++);
    }
  }
  BindCommandId(insert, *target.table, index, command_id);
  return insert.Run() == Step::kDone;
}

void NoteRows(WriteTransaction& transaction, const TableMeta& source,
              std::int64_t offset, std::int64_t count) {
  transaction.AddRowCount(source.object_id, count);
  for (const ColumnMeta& column : source.columns) {
    if (column.identity) transaction.SetIdentity(source.object_id, offset + count);
  }
}

}  // namespace

Status SimEngine::BulkInsert(const std::string& database, const std::string& table,
                             std::int64_t count, BulkOptions options,
                             const BulkValue& value) {
  const std::shared_ptr<Database> found = server_->FindDatabase(database);
  const std::optional<ObjectName> name = ParseObjectName(table);
  if (found == nullptr || !name) return Refused(table, "there is no such table");
  found->LockWriter({});
  std::unique_ptr<WriteTransaction> transaction =
      WriteTransaction::Begin(found, server_->Now());
  if (transaction == nullptr) return Refused(table, "the database cannot be written");
  const CatalogPtr catalog = transaction->catalog();
  const TablePtr source =
      catalog->FindTable(name->schema.empty() ? "dbo" : name->schema, name->object);
  if (source == nullptr) return Refused(table, "there is no such table");
  Connection& connection = transaction->connection();
  transaction->Rewrites();  // Transactions that capture has not met may be older.
  Statement insert = connection.Prepare(InsertText(*source));
  std::vector<ChangeTarget> targets;
  if (options.changes) targets = TargetsOf(*catalog, *source, connection);
  const Lsn begin = transaction->NextRecord();
  // The records' LSNs follow one another; the commit's is above them all.
  const Lsn commit = Above(begin, static_cast<std::uint64_t>(count) + 1);
  found->log().MoveTo(commit);
  const std::int64_t offset = transaction->RowCount(source->object_id);
  std::vector<Value> values(source->columns.size());
  std::vector<Cell> cells;
  Lsn seqval = begin;
  std::int64_t command_id = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t number = offset + row + 1;
      values[i] = value ? value(row, i) : MadeUp(source->columns[i].type, number);
    }
    EncodeRow(*source, values, cells);
    if (options.source) {
      BindRow(insert, *source, catalog->collation, values, cells);
      if (insert.Run() != Step::kDone) return Refused(table, connection.LastError());
    }
    seqval = seqval.Incremented();
    for (ChangeTarget& target : targets) {
      if (!WriteChange(target, cells, commit, seqval, ++command_id)) {
        return Refused(table, connection.LastError());
      }
    }
  }
  for (ChangeTarget& target : targets) {
    transaction->AddRowCount(target.table->object_id, count);
    target.insert = {};
  }
  insert = {};
  if (options.source) NoteRows(*transaction, *source, offset, count);
  const DateTimeValue now = server_->Now();
  if (!targets.empty() && !AddMappingRow(*transaction, {commit, now, now, 1, begin})) {
    return Refused(table, "the mapping was not stored");
  }
  if (!transaction->Commit(now)) return Refused(table, "the commit failed");
  return Unit{};
}

}  // namespace mssql_cdc::sim

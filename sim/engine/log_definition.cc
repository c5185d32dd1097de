// DDL in the log: the record that ALTER TABLE leaves for capture.

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/cdc.h"
#include "sim/engine/definitions.h"
#include "sim/engine/stored_table.h"
#include "sim/sql/convert.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::int64_t kTicksPerMinute = 600'000'000;

void Put(std::string& record, std::int64_t value) {
  Cell cell;
  cell.kind = Cell::Kind::kInt;
  cell.integer = value;
  AppendCell(record, cell);
}

void Put(std::string& record, const std::string& value) {
  Cell cell;
  cell.kind = Cell::Kind::kText;
  cell.bytes = value;
  AppendCell(record, cell);
}

}  // namespace

void LogDefinition(Session& session, WriteTransaction& transaction,
                   const TableMeta& table, const std::string& text,
                   const ColumnMeta* altered) {
  const auto instances = transaction.catalog()->InstancesOf(table.object_id);
  if (instances.empty()) return;
  const DateTimeValue now = session.Now();
  // ddl_time shows minutes (S7).
  const std::int64_t ticks = Does(Behaviour::kDdlTimeInMinutes)
                                 ? now.ticks - now.ticks % kTicksPerMinute
                                 : now.ticks;
  std::string record;
  Put(record, text);
  Put(record, now.days);
  Put(record, ticks);
  Put(record, altered == nullptr ? 0 : altered->column_id);
  const SqlType type = altered == nullptr ? SqlType{} : altered->type;
  Put(record, static_cast<int>(type.id));
  Put(record, type.length);
  Put(record, type.precision);
  Put(record, type.scale);
  Put(record, type.collation);
  const Lsn lsn = transaction.NextRecord();
  transaction.Log(LogAction::kDefinition, table.object_id, lsn, record, {});
  if (Does(Behaviour::kDdlHistoryLate)) return;
  DdlEntry entry = ReadDefinition(record).entry;
  entry.source_id = table.object_id;
  entry.lsn = lsn;
  entry.change_table_id = instances.front()->change_table_id;
  transaction.Change().ddl_history.push_back(entry);
}

DefinitionRecord ReadDefinition(std::string_view record) {
  DefinitionRecord definition;
  Cell cell;
  auto take = [&] {
    cell = Cell{};
    ReadCell(record, cell);
    return cell.integer;
  };
  take();
  definition.entry.command = cell.bytes;
  definition.entry.time.days = static_cast<std::int32_t>(take());
  definition.entry.time.ticks = take();
  definition.column_id = static_cast<std::int32_t>(take());
  definition.type.id = static_cast<TypeId>(take());
  definition.type.length = static_cast<std::int32_t>(take());
  definition.type.precision = static_cast<std::uint8_t>(take());
  definition.type.scale = static_cast<std::uint8_t>(take());
  take();
  definition.type.collation = cell.bytes;
  return definition;
}

Value Fitted(const Value& value, const SqlType& from, const SqlType& to) {
  if (!Does(Behaviour::kNarrowingStopsCapture)) return {};
  if (WouldTruncate(value, from, to)) {
    RaiseSql(2628, 16, 1,
             "String or binary data would be truncated in a change table.");
  }
  return ConvertValue(value, from, to, {});
}

}  // namespace mssql_cdc::sim

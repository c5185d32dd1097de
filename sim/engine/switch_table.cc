// ALTER TABLE ... SWITCH: rows change tables without being logged row by row, so no
// capture instance hears of it (facts 1.2).

#include <algorithm>

#include "base/text.h"
#include "sim/engine/behaviour.h"
#include "sim/engine/definitions.h"
#include "sim/engine/stored_table.h"

namespace mssql_cdc::sim {
namespace {

void RequireSameColumns(const TableMeta& from, const TableMeta& to) {
  if (from.columns.size() != to.columns.size()) {
    RaiseSql(4943, 16, 1,
             "ALTER TABLE SWITCH statement failed because table '" + from.FullName() +
                 "' has " + std::to_string(from.columns.size()) +
                 " columns and table '" + to.FullName() + "' has " +
                 std::to_string(to.columns.size()) + " columns.");
  }
  for (std::size_t i = 0; i < from.columns.size(); ++i) {
    const ColumnMeta& a = from.columns[i];
    const ColumnMeta& b = to.columns[i];
    if (a.type == b.type && a.nullable == b.nullable) continue;
    RaiseSql(4944, 16, 1,
             "ALTER TABLE SWITCH statement failed because column '" + a.name +
                 "' has data type or nullability in source table '" + from.FullName() +
                 "' which is different from column '" + b.name + "' in target table '" +
                 to.FullName() + "'.");
  }
}

// The same columns by position, in the same order and direction.
bool SameIndex(const TableMeta& from, const IndexMeta& a, const TableMeta& to,
               const IndexMeta& b) {
  return a.clustered == b.clustered && a.unique == b.unique &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
                    [&](const IndexMeta::Part& x, const IndexMeta::Part& y) {
                      return x.descending == y.descending &&
                             from.IndexOf(x.column_id) == to.IndexOf(y.column_id);
                    });
}

// Every index of the target has its like in the source (4913, 4947; Microsoft's list
// "Database engine events and errors, 4000 to 4999", where 4947 ends in a blank and a
// full stop).
void RequireSameIndexes(const TableMeta& from, const TableMeta& to) {
  const IndexMeta* clustered = from.ClusteredIndex();
  if (clustered != nullptr && to.ClusteredIndex() == nullptr) {
    RaiseSql(4913, 16, 1,
             "ALTER TABLE SWITCH statement failed. The table '" + from.FullName() +
                 "' has clustered index '" + clustered->name + "' while the table '" +
                 to.FullName() + "' does not have clustered index.");
  }
  for (const IndexMeta& wanted : to.indexes) {
    const bool found = std::any_of(
        from.indexes.begin(), from.indexes.end(),
        [&](const IndexMeta& index) { return SameIndex(from, index, to, wanted); });
    if (found) continue;
    RaiseSql(4947, 16, 1,
             "ALTER TABLE SWITCH statement failed. There is no identical index in "
             "source table '" +
                 from.FullName() + "' for the index '" + wanted.name +
                 "' in target table '" + to.FullName() + "' .");
  }
}

// Of a table whose instance does not allow it.
void RequireSwitchAllowed(const Catalog& catalog, const TableMeta& table) {
  for (const CaptureInstance* instance : catalog.InstancesOf(table.object_id)) {
    if (instance->partition_switch || !Does(Behaviour::kSwitchRefused)) continue;
    RaiseSql(22842, 16, 1,
             "ALTER TABLE SWITCH statement failed because the partitioned table '" +
                 table.FullName() +
                 "' is enabled for Change Data Capture with "
                 "@allow_partition_switch set to 0.");
  }
}

std::string Names(const TableMeta& table) {
  std::string names;
  for (const ColumnMeta& column : table.columns) {
    names += (names.empty() ? "" : ",") + column.physical;
    if (!column.sort_physical.empty()) names += "," + column.sort_physical;
  }
  return names;
}

}  // namespace

void SwitchTable(Session& session, const std::shared_ptr<Database>& database,
                 const TablePtr& table, const ObjectName& target_name) {
  WriteTransaction& transaction = session.Write(database);
  const TablePtr target = session.LookUp(database, target_name);
  if (target == nullptr) {
    RaiseSql(4902, 16, 1,
             "Cannot find the object \"" + target_name.Text() +
                 "\" because it does not exist or you do not have permissions.");
  }
  const CatalogPtr catalog = transaction.catalog();
  RequireSameColumns(*table, *target);
  RequireSameIndexes(*table, *target);
  RequireSwitchAllowed(*catalog, *table);
  RequireSwitchAllowed(*catalog, *target);
  if (transaction.RowCount(target->object_id) > 0) {
    RaiseSql(4905, 16, 1,
             "ALTER TABLE SWITCH statement failed. The target table '" +
                 target->FullName() + "' must be empty.");
  }
  Connection& connection = transaction.connection();
  if (!Does(Behaviour::kSwitchNotCaptured)) {
    const std::string image_less;
    transaction.Log(LogAction::kDelete, table->object_id, transaction.NextRecord(),
                    image_less, image_less);
  }
  const std::int64_t count = transaction.RowCount(table->object_id);
  const std::string copy = "INSERT INTO " + target->physical + "(" + Names(*target) +
                           ") SELECT " + Names(*table) + " FROM " + table->physical;
  if (connection.Prepare(copy).Run() != Step::kDone) {
    RaiseSql(605, 21, 3, "The storage of table '" + target->FullName() + "' failed.");
  }
  connection.Prepare("DELETE FROM " + table->physical).Run();
  transaction.AddRowCount(table->object_id, -count);
  transaction.AddRowCount(target->object_id, count);
}

}  // namespace mssql_cdc::sim

// sp_spaceused and sp_rename; which family a procedure belongs to.

#include "sim/engine/procedures.h"

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/definitions.h"
#include "sim/engine/procedure_arguments.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

// An estimate: what so many rows of this table take in pages of 8 KB.
std::int64_t DataKilobytes(const TableMeta& table, std::int64_t row_count) {
  std::int64_t width = 7;
  for (const ColumnMeta& column : table.columns) {
    const std::int64_t length = column.type.length;
    width += length <= 0 ? 16 : length > 100 ? 50 : length;
  }
  return (row_count * width / 8060 + (row_count > 0 ? 1 : 0)) * 8;
}

std::string Kilobytes(std::int64_t count) { return std::to_string(count) + " KB"; }

std::int32_t SpaceUsed(Session& session, std::vector<ProcedureArgument>& given,
                       ReplySink& sink) {
  const Arguments arguments(
      "sp_spaceused", {"@objname", "@updateusage", "@mode", "@oneresultset"}, given);
  const std::string object = arguments.RequiredText(0);
  const std::optional<ObjectName> name = ParseObjectName(object);
  const std::shared_ptr<Database> database =
      name ? session.DatabaseOf(*name) : session.current();
  Connection& reader = session.Reader(database);
  const TablePtr table = name ? session.LookUp(database, *name) : nullptr;
  if (table == nullptr ||
      !session.May(*database, *session.CatalogOf(database), *table, "SELECT")) {
    RaiseSql(15009, 16, 1,
             "The object '" + object + "' does not exist in database '" +
                 database->name() + "' or is invalid for this operation.");
  }
  Statement read =
      reader.Prepare("SELECT row_count FROM table_stat WHERE table_id = ?");
  read.BindInt(1, table->object_id);
  const std::int64_t count = read.Next() == Step::kRow ? read.Int(0) : 0;
  const std::int64_t data = DataKilobytes(*table, count);
  const std::int64_t index = data == 0 ? 0 : 8;
  std::string rows = std::to_string(count);
  rows.resize(20, ' ');
  const SqlType size = TypeOf(TypeId::kVarChar, 18);
  SendRows(sink,
           {Info("name", SysName()), Info("rows", TypeOf(TypeId::kChar, 20)),
            Info("reserved", size), Info("data", size), Info("index_size", size),
            Info("unused", size)},
           {{TextValue(table->name), TextValue(rows),
             TextValue(Kilobytes(data + index)), TextValue(Kilobytes(data)),
             TextValue(Kilobytes(index)), TextValue(Kilobytes(0))}});
  return 0;
}

[[noreturn]] void RaiseAmbiguous(const std::string& name) {
  RaiseSql(15248, 11, 1,
           "Either the parameter @objname is ambiguous or the claimed @objtype (" +
               name + ") is wrong.");
}

void RenameColumn(Session& session, const ObjectName& name, const std::string& fresh) {
  ObjectName table_name;
  table_name.schema = name.database;
  table_name.object = name.schema;
  const std::shared_ptr<Database>& database = session.current();
  const TablePtr table = TableToAlter(session, database, table_name);
  const ColumnMeta* column = table->FindColumn(name.object);
  if (column == nullptr) RaiseAmbiguous("COLUMN");
  WriteTransaction& transaction = session.Write(database);
  for (const CaptureInstance* instance :
       transaction.catalog()->InstancesOf(table->object_id)) {
    for (const CapturedColumn& captured : instance->columns) {
      if (captured.column_id != column->column_id) continue;
      RaiseSql(4928, 16, 1,
               "Cannot alter column '" + column->name +
                   "' because it is 'REPLICATED' or used by Change Data Capture.");
    }
  }
  TableMeta next = *table;
  next.columns[*table->IndexOf(column->column_id)].name = fresh;
  transaction.Change().tables[table->object_id] = std::make_shared<TableMeta>(next);
}

std::int32_t Rename(Session& session, std::vector<ProcedureArgument>& given) {
  const Arguments arguments("sp_rename", {"@objname", "@newname", "@objtype"}, given);
  const std::optional<ObjectName> name = ParseObjectName(arguments.RequiredText(0));
  const std::string fresh = arguments.RequiredText(1);
  const std::string type = LowerAscii(arguments.Text(2).value_or("object"));
  if (!name) RaiseAmbiguous(type);
  if (type == "column") {
    RenameColumn(session, *name, fresh);
    return 0;
  }
  if (type != "object") RaiseAmbiguous(type);
  // A table may be renamed under its instances, which keep name and data (facts 1.4).
  const TablePtr table = TableToAlter(session, session.current(), *name);
  WriteTransaction& transaction = session.Write(session.current());
  if (transaction.catalog()->FindTable(table->schema, fresh) != nullptr) {
    RaiseSql(
        15335, 11, 1,
        "Error: The new name '" + fresh +
            "' is already in use as a object name and would cause a duplicate that "
            "is not permitted.");
  }
  TableMeta next = *table;
  next.name = fresh;
  transaction.Change().tables[table->object_id] = std::make_shared<TableMeta>(next);
  return 0;
}

}  // namespace

std::optional<std::int32_t> CallProcedure(Session& session, const std::string& schema,
                                          const std::string& name,
                                          std::vector<ProcedureArgument>& arguments,
                                          ReplySink& sink) {
  if (schema == "sim") return StepProcedure(session, name, arguments);
  if (!schema.empty() && schema != "sys" && schema != "dbo") return std::nullopt;
  if (name == "sp_spaceused") return SpaceUsed(session, arguments, sink);
  if (name == "sp_rename") return Rename(session, arguments);
  for (const auto family : {OdbcProcedure, DescribeProcedure, CdcProcedure}) {
    if (const auto status = family(session, name, arguments, sink)) return status;
  }
  return std::nullopt;
}

}  // namespace mssql_cdc::sim

// The catalogue procedures that drivers call: sp_tables, sp_columns, sp_pkeys,
// sp_statistics, sp_stored_procedures. Columns, order and patterns are those of
// Microsoft's documentation.

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/engine/odbc_types.h"
#include "sim/engine/procedure_arguments.h"
#include "sim/engine/procedures.h"
#include "sim/engine/system_views.h"
#include "sim/engine/table_layout.h"
#include "sim/sql/binder.h"
#include "sim/sql/collation.h"

namespace mssql_cdc::sim {
namespace {

SqlType Small() { return TypeOf(TypeId::kSmallInt); }
SqlType Text(std::int32_t length) { return TypeOf(TypeId::kVarChar, length); }

// Names are compared as the database compares text; a pattern may hold % _ and [].
class NamePattern {
 public:
  NamePattern(const Session& session, const std::optional<std::string>& pattern,
              bool is_pattern)
      : pattern_(pattern),
        is_pattern_(is_pattern),
        rule_(RuleOfCollation(session.database_collation())) {}

  bool Takes(const std::string& name) const {
    if (!pattern_) return true;
    const std::u16string text = Utf16(name);
    const std::u16string wanted = Utf16(*pattern_);
    return is_pattern_ ? MatchesLike(text, wanted, std::nullopt, rule_)
                       : CompareText(text, wanted, rule_) == 0;
  }

 private:
  std::optional<std::string> pattern_;
  bool is_pattern_;
  CollationRule rule_;
};

ViewContext ContextOf(Session& session) {
  const std::shared_ptr<Database>& database = session.current();
  return {session, database, session.CatalogOf(database)};
}

// Only the current database can be asked (15250).
void RequireThisDatabase(Session& session, const std::optional<std::string>& name) {
  if (!name || EqualsIgnoringAsciiCase(*name, session.current()->name())) return;
  RaiseSql(15250, 16, 1,
           "The database name component of the object qualifier must be the name of "
           "the current database.");
}

// The tables that the login sees and the patterns take, by owner and name.
std::vector<TablePtr> TablesOf(const ViewContext& context, const NamePattern& owner,
                               const NamePattern& name) {
  std::vector<TablePtr> found;
  for (const auto& [id, table] : context.catalog->tables) {
    if (context.Visible(*table) && owner.Takes(table->schema) &&
        name.Takes(table->name)) {
      found.push_back(table);
    }
  }
  std::sort(found.begin(), found.end(), [](const TablePtr& a, const TablePtr& b) {
    return std::tie(a->schema, a->name) < std::tie(b->schema, b->name);
  });
  return found;
}

// sp_tables: user tables and views. `types` is a list such as "'TABLE','VIEW'".
std::int32_t TablesCall(Session& session, std::vector<ProcedureArgument>& given,
                        ReplySink& sink) {
  const Arguments arguments("sp_tables",
                            {"@table_name", "@table_owner", "@table_qualifier",
                             "@table_type", "@fUsePattern"},
                            given);
  RequireThisDatabase(session, arguments.Text(2));
  const bool patterns = arguments.Int(4).value_or(1) != 0;
  const NamePattern name(session, arguments.Text(0), patterns);
  const NamePattern owner(session, arguments.Text(1), patterns);
  const std::optional<std::string> types = arguments.Text(3);
  const auto wanted = [&types](const char* type) {
    return !types || types->find("'" + std::string(type) + "'") != std::string::npos;
  };
  const ViewContext context = ContextOf(session);
  const Value database = TextValue(context.database->name());
  std::vector<Row> rows;
  if (wanted("TABLE")) {
    for (const TablePtr& table : TablesOf(context, owner, name)) {
      rows.push_back({database, TextValue(table->schema), TextValue(table->name),
                      TextValue("TABLE"), Value{}});
    }
  }
  if (wanted("VIEW")) {
    for (const ModuleMeta& module : context.catalog->modules) {
      if (!module.view || !owner.Takes(module.schema) || !name.Takes(module.name)) {
        continue;
      }
      rows.push_back({database, TextValue(module.schema), TextValue(module.name),
                      TextValue("VIEW"), Value{}});
    }
  }
  SendRows(sink,
           {Info("TABLE_QUALIFIER", SysName()), Info("TABLE_OWNER", SysName()),
            Info("TABLE_NAME", SysName()), Info("TABLE_TYPE", Text(32)),
            Info("REMARKS", Text(254))},
           rows);
  return 0;
}

// The columns of sp_columns; the last eleven come with sp_columns_100 only.
std::vector<ColumnInfo> ColumnsColumns(bool is_100) {
  std::vector<ColumnInfo> columns = {Info("TABLE_QUALIFIER", SysName()),
                                     Info("TABLE_OWNER", SysName()),
                                     Info("TABLE_NAME", SysName()),
                                     Info("COLUMN_NAME", SysName()),
                                     Info("DATA_TYPE", Small(), false),
                                     Info("TYPE_NAME", SysName(), false),
                                     Info("PRECISION", IntType()),
                                     Info("LENGTH", IntType()),
                                     Info("SCALE", Small()),
                                     Info("RADIX", Small()),
                                     Info("NULLABLE", Small(), false),
                                     Info("REMARKS", Text(254)),
                                     Info("COLUMN_DEF", NVarChar(4000)),
                                     Info("SQL_DATA_TYPE", Small(), false),
                                     Info("SQL_DATETIME_SUB", Small()),
                                     Info("CHAR_OCTET_LENGTH", IntType()),
                                     Info("ORDINAL_POSITION", IntType(), false),
                                     Info("IS_NULLABLE", Text(254))};
  if (is_100) {
    for (const char* name :
         {"SS_IS_SPARSE", "SS_IS_COLUMN_SET", "SS_IS_COMPUTED", "SS_IS_IDENTITY"}) {
      columns.push_back(Info(name, Small()));
    }
    columns.push_back(Info("SS_UDT_CATALOG_NAME", SysName()));
    columns.push_back(Info("SS_UDT_SCHEMA_NAME", SysName()));
    columns.push_back(Info("SS_UDT_ASSEMBLY_TYPE_NAME", NVarChar(4000)));
    columns.push_back(Info("SS_XML_SCHEMACOLLECTION_CATALOG_NAME", SysName()));
    columns.push_back(Info("SS_XML_SCHEMACOLLECTION_SCHEMA_NAME", SysName()));
    columns.push_back(Info("SS_XML_SCHEMACOLLECTION_NAME", SysName()));
  }
  columns.push_back(Info("SS_DATA_TYPE", TypeOf(TypeId::kTinyInt)));
  return columns;
}

Row ColumnRow(const std::string& database, const TableMeta& table, std::int32_t ordinal,
              const ColumnMeta& column, std::int64_t version, bool is_100) {
  const OdbcType type = OdbcTypeOf(column, version);
  Row row = {TextValue(database),
             TextValue(table.schema),
             TextValue(table.name),
             TextValue(column.name),
             IntValue(type.data_type),
             TextValue(type.type_name),
             IntValue(type.precision),
             IntValue(type.length),
             IntOrNull(type.scale),
             IntOrNull(type.radix),
             IntValue(column.nullable ? 1 : 0),
             Value{},
             column.default_text.empty() ? Value{} : TextValue(column.default_text),
             IntValue(type.sql_data_type),
             IntOrNull(type.datetime_sub),
             IntOrNull(type.octet_length),
             IntValue(ordinal),
             TextValue(column.nullable ? "YES" : "NO")};
  if (is_100) {
    row.push_back(IntValue(column.sparse ? 1 : 0));
    row.push_back(IntValue(0));
    row.push_back(IntValue(column.computed() ? 1 : 0));
    row.push_back(IntValue(column.identity ? 1 : 0));
    row.resize(row.size() + 6);  // No CLR types, no typed XML.
  }
  row.push_back(IntValue(type.tds_type));
  return row;
}

std::int32_t ColumnsCall(Session& session, const std::string& procedure,
                         std::vector<ProcedureArgument>& given, ReplySink& sink) {
  const bool is_100 = procedure == "sp_columns_100";
  std::vector<std::string> parameters = {"@table_name", "@table_owner",
                                         "@table_qualifier", "@column_name"};
  if (is_100) parameters.push_back("@NameScope");
  parameters.push_back("@ODBCVer");
  if (is_100) parameters.push_back("@fUsePattern");
  const Arguments arguments(procedure, parameters, given);
  arguments.Require(0);
  RequireThisDatabase(session, arguments.Text(2));
  const std::int64_t version = arguments.Int(is_100 ? 5 : 4).value_or(2);
  const bool patterns = !is_100 || arguments.Int(6).value_or(1) != 0;
  const NamePattern column_name(session, arguments.Text(3), patterns);
  const ViewContext context = ContextOf(session);
  std::vector<Row> rows;
  for (const TablePtr& table :
       TablesOf(context, NamePattern(session, arguments.Text(1), patterns),
                NamePattern(session, arguments.Text(0), patterns))) {
    std::int32_t ordinal = 0;
    for (const ColumnMeta& column : table->columns) {
      ++ordinal;
      if (!column_name.Takes(column.name)) continue;
      rows.push_back(ColumnRow(context.database->name(), *table, ordinal, column,
                               version, is_100));
    }
  }
  SendRows(sink, ColumnsColumns(is_100), rows);
  return 0;
}

std::int32_t KeysCall(Session& session, std::vector<ProcedureArgument>& given,
                      ReplySink& sink) {
  const Arguments arguments("sp_pkeys",
                            {"@table_name", "@table_owner", "@table_qualifier"}, given);
  arguments.Require(0);
  RequireThisDatabase(session, arguments.Text(2));
  const ViewContext context = ContextOf(session);
  std::vector<Row> rows;
  for (const TablePtr& table :
       TablesOf(context, NamePattern(session, arguments.Text(1).value_or("dbo"), false),
                NamePattern(session, arguments.Text(0), false))) {
    const IndexMeta* key = table->PrimaryKey();
    if (key == nullptr) continue;
    for (std::size_t i = 0; i < key->parts.size(); ++i) {
      const ColumnMeta* column = table->ColumnById(key->parts[i].column_id);
      rows.push_back({TextValue(context.database->name()), TextValue(table->schema),
                      TextValue(table->name), TextValue(column->name),
                      IntValue(static_cast<std::int64_t>(i) + 1),
                      TextValue(key->name)});
    }
  }
  SendRows(sink,
           {Info("TABLE_QUALIFIER", SysName()), Info("TABLE_OWNER", SysName()),
            Info("TABLE_NAME", SysName()), Info("COLUMN_NAME", SysName()),
            Info("KEY_SEQ", Small(), false), Info("PK_NAME", SysName())},
           rows);
  return 0;
}

// One row for the table (TYPE 0) and one for each column of its indexes: 1 clustered, 3
// other. `accuracy` "E" would count the rows; the estimate is not kept, so it is NULL.
std::vector<Row> StatisticsOf(const std::string& database, const TableMeta& table,
                              const NamePattern& index_name, bool unique_only) {
  const Row start = {TextValue(database), TextValue(table.schema),
                     TextValue(table.name)};
  Row whole = start;
  whole.resize(13);
  whole[6] = IntValue(0);
  std::vector<Row> rows = {whole};
  std::vector<const IndexMeta*> indexes;
  for (const IndexMeta& index : table.indexes) {
    if (index_name.Takes(index.name) && (index.unique || !unique_only)) {
      indexes.push_back(&index);
    }
  }
  const auto order = [](const IndexMeta* index) {
    return std::make_tuple(!index->unique, index->clustered ? 1 : 3, index->name);
  };
  std::sort(indexes.begin(), indexes.end(),
            [&order](const auto* a, const auto* b) { return order(a) < order(b); });
  for (const IndexMeta* index : indexes) {
    for (std::size_t i = 0; i < index->parts.size(); ++i) {
      Row row = start;
      row.push_back(IntValue(index->unique ? 0 : 1));
      row.push_back(TextValue(table.name));
      row.push_back(TextValue(index->name));
      row.push_back(IntValue(index->clustered ? 1 : 3));
      row.push_back(IntValue(static_cast<std::int64_t>(i) + 1));
      row.push_back(TextValue(table.ColumnById(index->parts[i].column_id)->name));
      row.push_back(TextValue(index->parts[i].descending ? "D" : "A"));
      row.resize(13);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::int32_t StatisticsCall(Session& session, const std::string& procedure,
                            std::vector<ProcedureArgument>& given, ReplySink& sink) {
  const Arguments arguments(procedure,
                            {"@table_name", "@table_owner", "@table_qualifier",
                             "@index_name", "@is_unique", "@accuracy"},
                            given);
  arguments.Require(0);
  RequireThisDatabase(session, arguments.Text(2));
  const ViewContext context = ContextOf(session);
  const NamePattern index_name(session, arguments.Text(3).value_or("%"), true);
  const bool unique_only = LowerAscii(arguments.Text(4).value_or("N")) == "y";
  std::vector<Row> rows;
  for (const TablePtr& table :
       TablesOf(context, NamePattern(session, arguments.Text(1).value_or("dbo"), false),
                NamePattern(session, arguments.Text(0), false))) {
    rows = StatisticsOf(context.database->name(), *table, index_name, unique_only);
  }
  const SqlType letter = TypeOf(TypeId::kChar, 1);
  SendRows(sink,
           {Info("TABLE_QUALIFIER", SysName()), Info("TABLE_OWNER", SysName()),
            Info("TABLE_NAME", SysName()), Info("NON_UNIQUE", Small()),
            Info("INDEX_QUALIFIER", SysName()), Info("INDEX_NAME", SysName()),
            Info("TYPE", Small(), false), Info("SEQ_IN_INDEX", Small()),
            Info("COLUMN_NAME", SysName()), Info("COLLATION", letter),
            Info("CARDINALITY", IntType()), Info("PAGES", IntType()),
            Info("FILTER_CONDITION", Text(128))},
           rows);
  return 0;
}

// The user's procedures; a name ends with its group's number, which is 1.
std::int32_t StoredProceduresCall(Session& session,
                                  std::vector<ProcedureArgument>& given,
                                  ReplySink& sink) {
  const Arguments arguments("sp_stored_procedures",
                            {"@sp_name", "@sp_owner", "@sp_qualifier", "@fUsePattern"},
                            given);
  RequireThisDatabase(session, arguments.Text(2));
  const bool patterns = arguments.Int(3).value_or(1) != 0;
  const NamePattern name(session, arguments.Text(0), patterns);
  const NamePattern owner(session, arguments.Text(1), patterns);
  const ViewContext context = ContextOf(session);
  std::vector<Row> rows;
  for (const ModuleMeta& module : context.catalog->modules) {
    if (module.view || !owner.Takes(module.schema) || !name.Takes(module.name)) {
      continue;
    }
    rows.push_back({TextValue(context.database->name()), TextValue(module.schema),
                    TextValue(module.name + ";1"), IntValue(-1), IntValue(-1),
                    IntValue(-1), Value{}, IntValue(2)});
  }
  SendRows(sink,
           {Info("PROCEDURE_QUALIFIER", SysName()), Info("PROCEDURE_OWNER", SysName()),
            Info("PROCEDURE_NAME", NVarChar(134), false),
            Info("NUM_INPUT_PARAMS", IntType()), Info("NUM_OUTPUT_PARAMS", IntType()),
            Info("NUM_RESULT_SETS", IntType()), Info("REMARKS", Text(254)),
            Info("PROCEDURE_TYPE", Small())},
           rows);
  return 0;
}

}  // namespace

std::optional<std::int32_t> OdbcProcedure(Session& session, const std::string& name,
                                          std::vector<ProcedureArgument>& given,
                                          ReplySink& sink) {
  if (name == "sp_tables") return TablesCall(session, given, sink);
  if (name == "sp_columns" || name == "sp_columns_100") {
    return ColumnsCall(session, name, given, sink);
  }
  if (name == "sp_pkeys") return KeysCall(session, given, sink);
  if (name == "sp_statistics" || name == "sp_statistics_100") {
    return StatisticsCall(session, name, given, sink);
  }
  if (name == "sp_datatype_info" || name == "sp_datatype_info_100") {
    return TypeInfoCall(name, given, sink);
  }
  if (name == "sp_stored_procedures") return StoredProceduresCall(session, given, sink);
  return std::nullopt;
}

}  // namespace mssql_cdc::sim

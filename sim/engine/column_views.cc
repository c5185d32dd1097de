// sys.columns, sys.types and INFORMATION_SCHEMA.

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/cell.h"
#include "sim/engine/system_views.h"
#include "sim/engine/table_layout.h"
#include "sim/engine/type_facts.h"

namespace mssql_cdc::sim {
namespace {

SqlType Tiny() { return TypeOf(TypeId::kTinyInt); }

Value CollationOf(const ViewContext& context, const SqlType& type) {
  if (!IsTextType(type.id) || type.id == TypeId::kXml) return {};
  return TextValue(type.collation.empty() ? context.catalog->collation
                                          : type.collation);
}

ViewPtr Columns(const ViewContext& context, const std::string& name) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const ColumnMeta& column : table->columns) {
      const TypeFacts facts = FactsOf(column.type);
      const bool sysname = column.type_name == "sysname";
      const bool numeric = column.type_name == "numeric";
      rows.push_back({IntValue(id), TextValue(column.name), IntValue(column.column_id),
                      IntValue(numeric ? 108 : facts.system_type_id),
                      IntValue(sysname   ? 256
                               : numeric ? 108
                                         : facts.user_type_id),
                      IntValue(facts.max_length), IntValue(facts.precision),
                      IntValue(facts.scale), CollationOf(context, column.type),
                      BoolValue(column.nullable), BoolValue(true),
                      BoolValue(column.row_guid), BoolValue(column.identity),
                      BoolValue(column.computed()), BoolValue(false),
                      IntValue(column.default_text.empty() ? 0 : id + column.column_id),
                      BoolValue(column.sparse), BoolValue(false), BoolValue(false)});
    }
  }
  return std::make_shared<RowsTable>(
      "sys." + name,
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("name", SysName()),
          Info("column_id", IntType(), false), Info("system_type_id", Tiny(), false),
          Info("user_type_id", IntType(), false),
          Info("max_length", TypeOf(TypeId::kSmallInt), false),
          Info("precision", Tiny(), false), Info("scale", Tiny(), false),
          Info("collation_name", SysName()), Info("is_nullable", BitType()),
          Info("is_ansi_padded", BitType(), false),
          Info("is_rowguidcol", BitType(), false),
          Info("is_identity", BitType(), false), Info("is_computed", BitType()),
          Info("is_filestream", BitType(), false),
          Info("default_object_id", IntType(), false), Info("is_sparse", BitType()),
          Info("is_column_set", BitType()), Info("is_hidden", BitType())},
      std::move(rows));
}

ViewPtr Types(const ViewContext& context) {
  std::vector<Row> rows;
  auto add = [&](const std::string& name, std::int32_t system_id, std::int32_t user_id,
                 std::int32_t length, std::int32_t precision, std::int32_t scale,
                 const Value& collation) {
    rows.push_back({TextValue(name), IntValue(system_id), IntValue(user_id),
                    IntValue(4), IntValue(length), IntValue(precision), IntValue(scale),
                    collation, BoolValue(name != "sysname" && name != "timestamp"),
                    BoolValue(name == "sysname")});
  };
  for (int id = 0; id < static_cast<int>(TypeId::kNull); ++id) {
    SqlType type;
    type.id = static_cast<TypeId>(id);
    type.length = IsTextType(type.id) || IsBinaryType(type.id) ? 8000 : 0;
    if (type.id == TypeId::kNChar || type.id == TypeId::kNVarChar) type.length = 4000;
    type.precision = 38;
    const bool scaled = type.id == TypeId::kTime || type.id == TypeId::kDateTime2 ||
                        type.id == TypeId::kDateTimeOffset;
    type.scale = scaled ? 7 : type.id == TypeId::kDecimal ? 38 : 0;
    const TypeFacts facts = FactsOf(type);
    add(std::string(SystemTypeName(type.id)), facts.system_type_id, facts.user_type_id,
        facts.max_length, facts.precision, facts.scale, CollationOf(context, type));
  }
  add("numeric", 108, 108, 17, 38, 38, Value{});
  add("sysname", 231, 256, 256, 0, 0, TextValue(context.catalog->collation));
  return std::make_shared<RowsTable>(
      "sys.types",
      std::vector<ColumnInfo>{
          Info("name", SysName(), false), Info("system_type_id", Tiny(), false),
          Info("user_type_id", IntType(), false), Info("schema_id", IntType(), false),
          Info("max_length", TypeOf(TypeId::kSmallInt), false),
          Info("precision", Tiny(), false), Info("scale", Tiny(), false),
          Info("collation_name", SysName()), Info("is_nullable", BitType()),
          Info("is_user_defined", BitType(), false)},
      std::move(rows));
}

ViewPtr IdentityColumns(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const ColumnMeta& column : table->columns) {
      if (!column.identity) continue;
      rows.push_back({IntValue(id), TextValue(column.name), IntValue(column.column_id),
                      IntValue(column.seed), IntValue(column.increment)});
    }
  }
  return std::make_shared<RowsTable>(
      "sys.identity_columns",
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("name", SysName()),
          Info("column_id", IntType(), false), Info("seed_value", BigIntType()),
          Info("increment_value", BigIntType())},
      std::move(rows));
}

ViewPtr DefaultConstraints(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const ColumnMeta& column : table->columns) {
      if (column.default_text.empty()) continue;
      rows.push_back({TextValue(column.default_name), IntValue(id + column.column_id),
                      IntValue(id), IntValue(column.column_id),
                      TextValue(column.default_text)});
    }
  }
  return std::make_shared<RowsTable>(
      "sys.default_constraints",
      std::vector<ColumnInfo>{Info("name", SysName(), false),
                              Info("object_id", IntType(), false),
                              Info("parent_object_id", IntType(), false),
                              Info("parent_column_id", IntType(), false),
                              Info("definition", NVarChar(kMax))},
      std::move(rows));
}

ViewPtr InformationTables(const ViewContext& context) {
  std::vector<Row> rows;
  const Value database = TextValue(context.database->name());
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    rows.push_back({database, TextValue(table->schema), TextValue(table->name),
                    TextValue("BASE TABLE")});
  }
  for (const ModuleMeta& module : context.catalog->modules) {
    if (!module.view) continue;
    rows.push_back({database, TextValue(module.schema), TextValue(module.name),
                    TextValue("VIEW")});
  }
  return std::make_shared<RowsTable>(
      "INFORMATION_SCHEMA.TABLES",
      std::vector<ColumnInfo>{Info("TABLE_CATALOG", SysName()),
                              Info("TABLE_SCHEMA", SysName()),
                              Info("TABLE_NAME", SysName(), false),
                              Info("TABLE_TYPE", TypeOf(TypeId::kVarChar, 10))},
      std::move(rows));
}

ViewPtr InformationColumns(const ViewContext& context) {
  std::vector<Row> rows;
  const Value database = TextValue(context.database->name());
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    std::int32_t ordinal = 0;
    for (const ColumnMeta& column : table->columns) {
      const TypeFacts facts = FactsOf(column.type);
      const std::string type =
          column.type_name == "sysname" ? "nvarchar" : column.type_name;
      rows.push_back(
          {database, TextValue(table->schema), TextValue(table->name),
           TextValue(column.name), IntValue(++ordinal),
           column.default_text.empty() ? Value{} : TextValue(column.default_text),
           TextValue(column.nullable ? "YES" : "NO"), TextValue(type),
           IntOrNull(facts.character_maximum_length),
           facts.character_maximum_length ? IntValue(facts.max_length) : Value{},
           IntOrNull(facts.numeric_precision), IntOrNull(facts.numeric_precision_radix),
           IntOrNull(facts.numeric_scale), IntOrNull(facts.datetime_precision),
           CollationOf(context, column.type)});
    }
  }
  return std::make_shared<RowsTable>(
      "INFORMATION_SCHEMA.COLUMNS",
      std::vector<ColumnInfo>{
          Info("TABLE_CATALOG", SysName()), Info("TABLE_SCHEMA", SysName()),
          Info("TABLE_NAME", SysName(), false), Info("COLUMN_NAME", SysName()),
          Info("ORDINAL_POSITION", IntType()), Info("COLUMN_DEFAULT", NVarChar(4000)),
          Info("IS_NULLABLE", TypeOf(TypeId::kVarChar, 3)),
          Info("DATA_TYPE", SysName()), Info("CHARACTER_MAXIMUM_LENGTH", IntType()),
          Info("CHARACTER_OCTET_LENGTH", IntType()), Info("NUMERIC_PRECISION", Tiny()),
          Info("NUMERIC_PRECISION_RADIX", TypeOf(TypeId::kSmallInt)),
          Info("NUMERIC_SCALE", IntType()),
          Info("DATETIME_PRECISION", TypeOf(TypeId::kSmallInt)),
          Info("COLLATION_NAME", SysName())},
      std::move(rows));
}

ViewPtr KeyColumnUsage(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const IndexMeta& index : table->indexes) {
      if (!index.constraint) continue;
      std::int32_t ordinal = 0;
      for (const IndexMeta::Part& part : index.parts) {
        rows.push_back({TextValue(table->schema), TextValue(index.name),
                        TextValue(table->schema), TextValue(table->name),
                        TextValue(table->ColumnById(part.column_id)->name),
                        IntValue(++ordinal)});
      }
    }
  }
  return std::make_shared<RowsTable>(
      "INFORMATION_SCHEMA.KEY_COLUMN_USAGE",
      std::vector<ColumnInfo>{
          Info("CONSTRAINT_SCHEMA", SysName()), Info("CONSTRAINT_NAME", SysName()),
          Info("TABLE_SCHEMA", SysName()), Info("TABLE_NAME", SysName()),
          Info("COLUMN_NAME", SysName()), Info("ORDINAL_POSITION", IntType())},
      std::move(rows));
}

ViewPtr TableConstraints(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const IndexMeta& index : table->indexes) {
      if (!index.constraint) continue;
      rows.push_back({TextValue(table->schema), TextValue(index.name),
                      TextValue(table->schema), TextValue(table->name),
                      TextValue(index.primary ? "PRIMARY KEY" : "UNIQUE")});
    }
  }
  return std::make_shared<RowsTable>(
      "INFORMATION_SCHEMA.TABLE_CONSTRAINTS",
      std::vector<ColumnInfo>{
          Info("CONSTRAINT_SCHEMA", SysName()), Info("CONSTRAINT_NAME", SysName()),
          Info("TABLE_SCHEMA", SysName()), Info("TABLE_NAME", SysName()),
          Info("CONSTRAINT_TYPE", TypeOf(TypeId::kVarChar, 11))},
      std::move(rows));
}

}  // namespace

ViewPtr ColumnView(const ViewContext& context, const std::string& name) {
  if (name == "columns" || name == "all_columns") return Columns(context, name);
  if (name == "types") return Types(context);
  if (name == "identity_columns") return IdentityColumns(context);
  if (name == "default_constraints") return DefaultConstraints(context);
  return nullptr;
}

ViewPtr InformationView(const ViewContext& context, const std::string& name) {
  if (name == "tables") return InformationTables(context);
  if (name == "columns") return InformationColumns(context);
  if (name == "key_column_usage") return KeyColumnUsage(context);
  if (name == "table_constraints") return TableConstraints(context);
  return nullptr;
}

}  // namespace mssql_cdc::sim

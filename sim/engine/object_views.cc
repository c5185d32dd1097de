// sys.objects, tables, schemas, indexes, constraints and modules.

#include "base/text.h"
#include "sim/engine/cdc.h"
#include "sim/engine/system_views.h"
#include "sim/engine/table_layout.h"

namespace mssql_cdc::sim {
namespace {

SqlType Char2() { return TypeOf(TypeId::kChar, 2); }
SqlType Tiny() { return TypeOf(TypeId::kTinyInt); }

std::vector<ColumnInfo> ObjectColumns() {
  return {Info("name", SysName(), false),
          Info("object_id", IntType(), false),
          Info("principal_id", IntType()),
          Info("schema_id", IntType(), false),
          Info("parent_object_id", IntType(), false),
          Info("type", Char2()),
          Info("type_desc", NVarChar(60)),
          Info("create_date", DateTimeType(), false),
          Info("modify_date", DateTimeType(), false),
          Info("is_ms_shipped", BitType()),
          Info("is_published", BitType()),
          Info("is_schema_published", BitType())};
}

Row ObjectRow(const std::string& name, std::int32_t id, std::int32_t schema_id,
              std::int32_t parent, const char* type, const char* description,
              const std::string& created, bool shipped) {
  const Value at = TimeValue(RoundedToDateTime(FromIsoText(created)));
  return {TextValue(name),
          IntValue(id),
          Value{},
          IntValue(schema_id),
          IntValue(parent),
          TextValue(type),
          TextValue(description),
          at,
          at,
          BoolValue(shipped),
          BoolValue(false),
          BoolValue(false)};
}

ViewPtr Objects(const ViewContext& context, const std::string& name) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    const std::int32_t schema = context.SchemaId(table->schema);
    rows.push_back(ObjectRow(table->name, id, schema, 0, "U ", "USER_TABLE",
                             table->create_date, table->is_ms_shipped));
    for (const IndexMeta& index : table->indexes) {
      if (!index.constraint) continue;
      rows.push_back(ObjectRow(
          index.name, id + index.index_id * 16, schema, id, index.primary ? "PK" : "UQ",
          index.primary ? "PRIMARY_KEY_CONSTRAINT" : "UNIQUE_CONSTRAINT",
          table->create_date, false));
    }
  }
  for (const ModuleMeta& module : context.catalog->modules) {
    rows.push_back(ObjectRow(
        module.name, module.object_id, context.SchemaId(module.schema), 0,
        module.view ? "V " : "P ", module.view ? "VIEW" : "SQL_STORED_PROCEDURE",
        module.create_date, false));
  }
  return std::make_shared<RowsTable>("sys." + name, ObjectColumns(), std::move(rows));
}

ViewPtr Tables(const ViewContext& context) {
  std::vector<ColumnInfo> columns = ObjectColumns();
  for (ColumnInfo& added : std::vector<ColumnInfo>{
           Info("lob_data_space_id", IntType()),
           Info("max_column_id_used", IntType(), false),
           Info("is_tracked_by_cdc", BitType()), Info("temporal_type", Tiny()),
           Info("is_memory_optimized", BitType()),
           Info("is_external", BitType(), false)}) {
    columns.push_back(added);
  }
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    Row row = ObjectRow(table->name, id, context.SchemaId(table->schema), 0, "U ",
                        "USER_TABLE", table->create_date, table->is_ms_shipped);
    row.push_back(IntValue(0));
    row.push_back(IntValue(table->next_column_id - 1));
    row.push_back(BoolValue(!context.catalog->InstancesOf(id).empty()));
    row.push_back(IntValue(0));
    row.push_back(IntValue(0));
    row.push_back(IntValue(0));
    rows.push_back(std::move(row));
  }
  return std::make_shared<RowsTable>("sys.tables", std::move(columns), std::move(rows));
}

ViewPtr Schemas(const ViewContext& context) {
  std::vector<Row> rows;
  for (const SchemaMeta& schema : context.catalog->schemas) {
    rows.push_back({TextValue(schema.name), IntValue(schema.id), IntValue(1)});
  }
  return std::make_shared<RowsTable>(
      "sys.schemas",
      std::vector<ColumnInfo>{Info("name", SysName(), false),
                              Info("schema_id", IntType(), false),
                              Info("principal_id", IntType())},
      std::move(rows));
}

ViewPtr Indexes(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    auto add = [&, object_id = id](const Value& name, std::int32_t index_id,
                                   std::int32_t type, const char* description,
                                   const IndexMeta* index) {
      const bool unique = index != nullptr && index->unique;
      const bool primary = index != nullptr && index->primary;
      const bool constraint = index != nullptr && index->constraint && !primary;
      rows.push_back({IntValue(object_id), name, IntValue(index_id), IntValue(type),
                      TextValue(description), BoolValue(unique), IntValue(1),
                      BoolValue(primary), BoolValue(constraint), IntValue(0),
                      IntValue(0), IntValue(0)});
    };
    if (table->ClusteredIndex() == nullptr) add(Value{}, 0, 0, "HEAP", nullptr);
    for (const IndexMeta& index : table->indexes) {
      add(TextValue(index.name), index.index_id, index.clustered ? 1 : 2,
          index.clustered ? "CLUSTERED" : "NONCLUSTERED", &index);
    }
  }
  return std::make_shared<RowsTable>(
      "sys.indexes",
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("name", SysName()),
          Info("index_id", IntType(), false), Info("type", Tiny(), false),
          Info("type_desc", NVarChar(60)), Info("is_unique", BitType()),
          Info("data_space_id", IntType()), Info("is_primary_key", BitType()),
          Info("is_unique_constraint", BitType()), Info("is_disabled", BitType()),
          Info("is_hypothetical", BitType()), Info("has_filter", BitType(), false)},
      std::move(rows));
}

ViewPtr IndexColumns(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const IndexMeta& index : table->indexes) {
      std::int32_t ordinal = 0;
      for (const IndexMeta::Part& part : index.parts) {
        ++ordinal;
        rows.push_back({IntValue(id), IntValue(index.index_id), IntValue(ordinal),
                        IntValue(part.column_id), IntValue(ordinal), IntValue(0),
                        BoolValue(part.descending), BoolValue(false)});
      }
      for (const std::int32_t included : index.included) {
        ++ordinal;
        rows.push_back({IntValue(id), IntValue(index.index_id), IntValue(ordinal),
                        IntValue(included), IntValue(0), IntValue(0), BoolValue(false),
                        BoolValue(true)});
      }
    }
  }
  return std::make_shared<RowsTable>(
      "sys.index_columns",
      std::vector<ColumnInfo>{
          Info("object_id", IntType(), false), Info("index_id", IntType(), false),
          Info("index_column_id", IntType(), false),
          Info("column_id", IntType(), false), Info("key_ordinal", Tiny(), false),
          Info("partition_ordinal", Tiny(), false),
          Info("is_descending_key", BitType()), Info("is_included_column", BitType())},
      std::move(rows));
}

ViewPtr KeyConstraints(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    for (const IndexMeta& index : table->indexes) {
      if (!index.constraint) continue;
      Row row =
          ObjectRow(index.name, id + index.index_id * 16,
                    context.SchemaId(table->schema), id, index.primary ? "PK" : "UQ",
                    index.primary ? "PRIMARY_KEY_CONSTRAINT" : "UNIQUE_CONSTRAINT",
                    table->create_date, false);
      row.push_back(IntValue(index.index_id));
      row.push_back(BoolValue(false));
      rows.push_back(std::move(row));
    }
  }
  std::vector<ColumnInfo> columns = ObjectColumns();
  columns.push_back(Info("unique_index_id", IntType()));
  columns.push_back(Info("is_system_named", BitType(), false));
  return std::make_shared<RowsTable>("sys.key_constraints", std::move(columns),
                                     std::move(rows));
}

ViewPtr Modules(const ViewContext& context, bool views) {
  std::vector<Row> rows;
  for (const ModuleMeta& module : context.catalog->modules) {
    if (module.view != views) continue;
    rows.push_back(ObjectRow(module.name, module.object_id,
                             context.SchemaId(module.schema), 0, views ? "V " : "P ",
                             views ? "VIEW" : "SQL_STORED_PROCEDURE",
                             module.create_date, false));
  }
  return std::make_shared<RowsTable>(views ? "sys.views" : "sys.procedures",
                                     ObjectColumns(), std::move(rows));
}

ViewPtr Partitions(const ViewContext& context) {
  std::vector<Row> rows;
  for (const auto& [id, table] : context.catalog->tables) {
    if (!context.Visible(*table)) continue;
    Statement read =
        context.session.Reader(context.database)
            .Prepare("SELECT row_count FROM table_stat WHERE table_id = ?");
    read.BindInt(1, id);
    const std::int64_t count = read.Next() == Step::kRow ? read.Int(0) : 0;
    auto add = [&, object_id = id](std::int32_t index_id) {
      rows.push_back({IntValue((std::int64_t{object_id} << 16) + index_id),
                      IntValue(object_id), IntValue(index_id), IntValue(1),
                      IntValue((std::int64_t{object_id} << 16) + index_id),
                      IntValue(count)});
    };
    if (table->ClusteredIndex() == nullptr) add(0);
    for (const IndexMeta& index : table->indexes) add(index.index_id);
  }
  return std::make_shared<RowsTable>(
      "sys.partitions",
      std::vector<ColumnInfo>{
          Info("partition_id", BigIntType(), false),
          Info("object_id", IntType(), false), Info("index_id", IntType(), false),
          Info("partition_number", IntType(), false),
          Info("hobt_id", BigIntType(), false), Info("rows", BigIntType())},
      std::move(rows));
}

}  // namespace

ViewPtr ObjectView(const ViewContext& context, const std::string& name) {
  if (name == "objects" || name == "all_objects") return Objects(context, name);
  if (name == "tables") return Tables(context);
  if (name == "schemas") return Schemas(context);
  if (name == "indexes") return Indexes(context);
  if (name == "index_columns") return IndexColumns(context);
  if (name == "key_constraints") return KeyConstraints(context);
  if (name == "views") return Modules(context, true);
  if (name == "procedures") return Modules(context, false);
  if (name == "partitions") return Partitions(context);
  return nullptr;
}

}  // namespace mssql_cdc::sim

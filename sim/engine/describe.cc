// sp_describe_first_result_set and sp_describe_undeclared_parameters: what a statement
// would return and take, without running it. Columns are those of Microsoft's pages.

#include "base/text.h"
#include "sim/engine/procedure_arguments.h"
#include "sim/engine/procedures.h"
#include "sim/engine/table_layout.h"
#include "sim/engine/type_facts.h"
#include "sim/sql/identifier.h"
#include "sim/sql/parser.h"
#include "tds/spec.h"

namespace mssql_cdc::sim {
namespace {

// Keeps the columns of the first result.
class FirstResult final : public ReplySink {
 public:
  bool Columns(const std::vector<ResultColumn>& found) override {
    if (!columns) columns = found;
    return true;
  }
  bool Row(const std::vector<Value>&) override { return true; }
  bool StatementDone(std::optional<std::uint64_t>, std::uint16_t) override {
    return true;
  }
  bool SendMessage(const Message&) override { return true; }
  bool DatabaseChanged(const std::string&, const std::string&) override { return true; }
  bool TransactionBegan(std::uint64_t) override { return true; }
  bool TransactionEnded(std::uint64_t, bool) override { return true; }
  bool ReturnStatus(std::int32_t) override { return true; }
  bool ReturnValue(const std::string&, const SqlType&, const Value&) override {
    return true;
  }

  std::optional<std::vector<ResultColumn>> columns;
};

std::vector<BoundParameter> Declared(Session& session,
                                     const std::optional<std::string>& text) {
  std::vector<BoundParameter> declared;
  if (!text || Trim(*text).empty()) return declared;
  for (const ast::ProcedureParameter& parameter :
       Parser(*text, true).ParseWholeParameters()) {
    BoundParameter bound;
    bound.name = parameter.name;
    bound.type = ResolveType(parameter.type, session);
    declared.push_back(std::move(bound));
  }
  return declared;
}

// "nvarchar(50)", "decimal(18,4)", "datetime2(3)".
std::string DeclaredText(const SqlType& type) {
  std::string text(SystemTypeName(type.id));
  switch (type.id) {
    case TypeId::kChar:
    case TypeId::kVarChar:
    case TypeId::kNChar:
    case TypeId::kNVarChar:
    case TypeId::kBinary:
    case TypeId::kVarBinary:
      return text +
             (type.length == kMax ? "(max)" : "(" + std::to_string(type.length) + ")");
    case TypeId::kDecimal:
      return text + "(" + std::to_string(type.precision) + "," +
             std::to_string(type.scale) + ")";
    case TypeId::kTime:
    case TypeId::kDateTime2:
    case TypeId::kDateTimeOffset:
      return text + "(" + std::to_string(type.scale) + ")";
    default:
      return text;
  }
}

// The type as TDS names it, and its length there.
struct WireType {
  tds::DataType id;
  std::int32_t length;
};

WireType WireTypeOf(const SqlType& type, const TypeFacts& facts) {
  using tds::DataType;
  const std::int32_t length = facts.max_length == -1 ? 65'535 : facts.max_length;
  switch (type.id) {
    case TypeId::kBit:
      return {DataType::kBitN, 1};
    case TypeId::kTinyInt:
    case TypeId::kSmallInt:
    case TypeId::kInt:
    case TypeId::kBigInt:
      return {DataType::kIntN, length};
    case TypeId::kReal:
    case TypeId::kFloat:
      return {DataType::kFloatN, length};
    case TypeId::kDecimal:
      return {DataType::kNumericN, 17};
    case TypeId::kMoney:
    case TypeId::kSmallMoney:
      return {DataType::kMoneyN, length};
    case TypeId::kDate:
      return {DataType::kDate, 3};
    case TypeId::kTime:
      return {DataType::kTime, length};
    case TypeId::kDateTime:
    case TypeId::kSmallDateTime:
      return {DataType::kDateTimeN, length};
    case TypeId::kDateTime2:
      return {DataType::kDateTime2, length};
    case TypeId::kDateTimeOffset:
      return {DataType::kDateTimeOffset, length};
    case TypeId::kChar:
      return {DataType::kBigChar, length};
    case TypeId::kVarChar:
      return {DataType::kBigVarChar, length};
    case TypeId::kNChar:
      return {DataType::kNChar, length};
    case TypeId::kNVarChar:
      return {DataType::kNVarChar, length};
    case TypeId::kText:
      return {DataType::kText, 2147483647};
    case TypeId::kNText:
      return {DataType::kNText, 2147483646};
    case TypeId::kXml:
      return {DataType::kXml, 8100};
    case TypeId::kBinary:
    case TypeId::kRowVersion:
      return {DataType::kBigBinary, length};
    case TypeId::kVarBinary:
      return {DataType::kBigVarBinary, length};
    case TypeId::kImage:
      return {DataType::kImage, 2147483647};
    case TypeId::kUniqueIdentifier:
      return {DataType::kGuid, 16};
    case TypeId::kSqlVariant:
      return {DataType::kVariant, 8009};
    case TypeId::kNull:
      break;
  }
  return {DataType::kNull, 0};
}

// Rows that grow column by column, with the columns' names from the first.
class Described {
 public:
  Described& Add(const char* prefix, const char* name, SqlType type, Value value,
                 bool nullable = true) {
    if (first_) {
      columns_.push_back(Info(std::string(prefix) + name, std::move(type), nullable));
    }
    row_.push_back(std::move(value));
    return *this;
  }
  void EndRow() {
    first_ = false;
    rows_.push_back(std::move(row_));
    row_.clear();
  }
  void DropRows() { rows_.clear(); }
  void Send(ReplySink& sink) const { SendRows(sink, columns_, rows_); }

 private:
  bool first_ = true;
  std::vector<ColumnInfo> columns_;
  Row row_;
  std::vector<Row> rows_;
};

// What both procedures say of a type, from system_type_id to scale, and from the user's
// type to whether case counts.
void AddType(Described& table, const char* prefix, const SqlType& type) {
  const TypeFacts facts = FactsOf(type);
  table.Add(prefix, "system_type_id", IntType(), IntValue(facts.system_type_id), false)
      .Add(prefix, "system_type_name", NVarChar(256), TextValue(DeclaredText(type)))
      .Add(prefix, "max_length", TypeOf(TypeId::kSmallInt), IntValue(facts.max_length),
           false)
      .Add(prefix, "precision", TypeOf(TypeId::kTinyInt), IntValue(facts.precision),
           false)
      .Add(prefix, "scale", TypeOf(TypeId::kTinyInt), IntValue(facts.scale), false);
}

void AddNoUserType(Described& table, const char* prefix) {
  table.Add(prefix, "user_type_id", IntType(), {})
      .Add(prefix, "user_type_database", SysName(), {})
      .Add(prefix, "user_type_schema", SysName(), {})
      .Add(prefix, "user_type_name", SysName(), {})
      .Add(prefix, "assembly_qualified_type_name", NVarChar(4000), {})
      .Add(prefix, "xml_collection_id", IntType(), {})
      .Add(prefix, "xml_collection_database", SysName(), {})
      .Add(prefix, "xml_collection_schema", SysName(), {})
      .Add(prefix, "xml_collection_name", SysName(), {})
      .Add(prefix, "is_xml_document", BitType(), IntValue(0), false);
}

bool CaseCounts(const Session& session, const SqlType& type) {
  return IsTextType(type.id) &&
         IsCaseSensitive(type.collation.empty() ? session.collation() : type.collation);
}

void AddColumn(Described& table, const Session& session, const ResultColumn& column,
               std::int64_t ordinal) {
  const WireType wire = WireTypeOf(column.type, FactsOf(column.type));
  const bool text = IsTextType(column.type.id) && column.type.id != TypeId::kXml;
  table.Add("", "is_hidden", BitType(), IntValue(0), false)
      .Add("", "column_ordinal", IntType(), IntValue(ordinal), false)
      .Add("", "name", SysName(),
           column.name.empty() ? Value{} : TextValue(column.name))
      .Add("", "is_nullable", BitType(), BoolValue(column.nullable), false);
  AddType(table, "", column.type);
  table.Add("", "collation_name", SysName(),
            text ? TextValue(column.type.collation.empty() ? session.collation()
                                                           : column.type.collation)
                 : Value{});
  AddNoUserType(table, "");
  table
      .Add("", "is_case_sensitive", BitType(),
           BoolValue(CaseCounts(session, column.type)), false)
      .Add("", "is_fixed_length_clr_type", BitType(), IntValue(0), false)
      .Add("", "source_server", SysName(), {})
      .Add("", "source_database", SysName(), {})
      .Add("", "source_schema", SysName(), {})
      .Add("", "source_table", SysName(), {})
      .Add("", "source_column", SysName(), {})
      .Add("", "is_identity_column", BitType(), BoolValue(column.identity))
      .Add("", "is_part_of_unique_key", BitType(), {})
      .Add("", "is_updateable", BitType(),
           BoolValue(!column.computed && !column.identity))
      .Add("", "is_computed_column", BitType(), BoolValue(column.computed))
      .Add("", "is_sparse_column_set", BitType(), IntValue(0))
      .Add("", "ordinal_in_order_by_list", TypeOf(TypeId::kSmallInt), {})
      .Add("", "order_by_list_length", TypeOf(TypeId::kSmallInt), {})
      .Add("", "order_by_is_descending", TypeOf(TypeId::kSmallInt), {})
      .Add("", "tds_type_id", IntType(), IntValue(static_cast<int>(wire.id)), false)
      .Add("", "tds_length", IntType(), IntValue(wire.length), false)
      .Add("", "tds_collation_id", IntType(), {})
      .Add("", "tds_collation_sort_id", TypeOf(TypeId::kTinyInt), {});
  table.EndRow();
}

std::int32_t FirstResultCall(Session& session, std::vector<ProcedureArgument>& given,
                             ReplySink& sink) {
  const Arguments arguments("sp_describe_first_result_set",
                            {"@tsql", "@params", "@browse_information_mode"}, given);
  FirstResult result;
  session.interpreter().Describe(arguments.RequiredText(0),
                                 Declared(session, arguments.Text(1)), result);
  Described table;
  const auto columns = result.columns.value_or(std::vector<ResultColumn>{});
  std::int64_t ordinal = 0;
  for (const ResultColumn& column : columns) {
    AddColumn(table, session, column, ++ordinal);
  }
  if (columns.empty()) {
    AddColumn(table, session, {"", IntType(), true, false, false}, 1);
    table.DropRows();
  }
  table.Send(sink);
  return 0;
}

void AddParameter(Described& table, const Session& session,
                  const UndeclaredParameter& parameter, std::int64_t ordinal) {
  constexpr char kPrefix[] = "suggested_";
  const SqlType type = parameter.type.value_or(IntType());
  const WireType wire = WireTypeOf(type, FactsOf(type));
  table.Add("", "parameter_ordinal", IntType(), IntValue(ordinal), false)
      .Add("", "name", SysName(), TextValue(parameter.name), false);
  AddType(table, kPrefix, type);
  AddNoUserType(table, kPrefix);
  table
      .Add(kPrefix, "is_case_sensitive", BitType(),
           BoolValue(CaseCounts(session, type)), false)
      .Add(kPrefix, "is_fixed_length_clr_type", BitType(), IntValue(0), false)
      .Add(kPrefix, "is_input", BitType(), IntValue(1), false)
      .Add(kPrefix, "is_output", BitType(), IntValue(0), false)
      .Add("", "formal_parameter_name", SysName(), {})
      .Add(kPrefix, "tds_type_id", IntType(), IntValue(static_cast<int>(wire.id)),
           false)
      .Add(kPrefix, "tds_length", IntType(), IntValue(wire.length), false);
  table.EndRow();
}

std::int32_t ParametersCall(Session& session, std::vector<ProcedureArgument>& given,
                            ReplySink& sink) {
  const Arguments arguments("sp_describe_undeclared_parameters", {"@tsql", "@params"},
                            given);
  const std::vector<UndeclaredParameter> found =
      session.interpreter().UndeclaredParameters(arguments.RequiredText(0),
                                                 Declared(session, arguments.Text(1)));
  Described table;
  std::int64_t ordinal = 0;
  for (const UndeclaredParameter& parameter : found) {
    if (!parameter.type) {
      RaiseSql(11502, 16, 1,
               "The type for parameter '" + parameter.name +
                   "' cannot be deduced in this context.");
    }
    AddParameter(table, session, parameter, ++ordinal);
  }
  if (found.empty()) {
    AddParameter(table, session, {}, 1);
    table.DropRows();
  }
  table.Send(sink);
  return 0;
}

}  // namespace

std::optional<std::int32_t> DescribeProcedure(Session& session, const std::string& name,
                                              std::vector<ProcedureArgument>& given,
                                              ReplySink& sink) {
  if (name == "sp_describe_first_result_set") {
    return FirstResultCall(session, given, sink);
  }
  if (name == "sp_describe_undeclared_parameters") {
    return ParametersCall(session, given, sink);
  }
  return std::nullopt;
}

}  // namespace mssql_cdc::sim

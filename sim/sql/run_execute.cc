// EXECUTE: text, procedures, sp_executesql.

#include "base/text.h"
#include "sim/sql/convert.h"
#include "sim/sql/interpreter_state.h"
#include "sim/sql/parser.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

ObjectName Interpreter::State::ProcedureOf(const ast::Execute& node, Frame& frame) {
  if (node.procedure_variable.empty()) return node.procedure;
  auto variable = std::make_shared<ast::Expression>();
  variable->node = ast::Variable{node.procedure_variable};
  const TypedValue held = Evaluate(variable, frame);
  const auto* text = std::get_if<Text>(&held.value.held);
  const auto parsed = text != nullptr ? ParseObjectName(Utf8(*text)) : std::nullopt;
  if (!parsed) {
    RaiseSql(2812, 16, 62,
             "Could not find stored procedure '" +
                 (text != nullptr ? Utf8(*text) : std::string()) + "'.");
  }
  return *parsed;
}

void Interpreter::State::RunExecute(const ast::Execute& node, Frame& frame,
                                    ReplySink& sink) {
  const Nested nested(*this);
  if (node.text) {
    const TypedValue text = Evaluate(node.text, frame);
    const Value sql = ConvertValue(text.value, text.type, NVarCharType(kMax), {});
    Frame inner;
    RunText(sql.IsNull() ? "" : Utf8(std::get<Text>(sql.held)), inner, sink, false);
    return;
  }
  const ObjectName name = ProcedureOf(node, frame);
  std::vector<ProcedureArgument> arguments;
  for (const ast::Argument& argument : node.arguments) {
    ProcedureArgument bound;
    bound.name = argument.name;
    bound.output = argument.output;
    if (std::holds_alternative<ast::DefaultKeyword>(argument.value->node)) {
      bound.is_default = true;
      bound.type = TypeOf(TypeId::kNull);
    } else {
      const TypedValue value = Evaluate(argument.value, frame);
      bound.type = value.type;
      bound.value = value.value;
    }
    if (argument.output &&
        !std::holds_alternative<ast::Variable>(argument.value->node)) {
      RaiseSql(179, 15, 1,
               "Cannot use the OUTPUT option when passing a constant to a stored "
               "procedure.");
    }
    arguments.push_back(std::move(bound));
  }
  const std::int32_t status = CallByName(name, arguments, sink);
  const auto store = [&](const std::string& variable, const SqlType& type,
                         const Value& value) {
    const auto at = frame.variables.values.find(variable);
    if (at == frame.variables.values.end()) {
      RaiseSql(137, 15, 2, "Must declare the scalar variable \"" + variable + "\".");
    }
    at->second.value = ConvertValue(value, type, at->second.type, {});
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].output) continue;
    store(std::get<ast::Variable>(node.arguments[i].value->node).name,
          arguments[i].type, arguments[i].value);
  }
  if (!node.result_variable.empty()) {
    Value value;
    value.held = std::int64_t{status};
    store(node.result_variable, TypeOf(TypeId::kInt), value);
  }
}

std::int32_t Interpreter::State::CallByName(const ObjectName& name,
                                            std::vector<ProcedureArgument>& arguments,
                                            ReplySink& sink) {
  if (EqualsIgnoringAsciiCase(name.object, "sp_executesql") &&
      (name.schema.empty() || EqualsIgnoringAsciiCase(name.schema, "sys") ||
       EqualsIgnoringAsciiCase(name.schema, "dbo"))) {
    ExecuteSqlCall(arguments, sink);
    return 0;
  }
  const auto status = environment.Call(name, arguments, sink);
  if (!status) {
    RaiseSql(2812, 16, 62, "Could not find stored procedure '" + name.Text() + "'.");
  }
  return *status;
}

namespace {

// Which argument of sp_executesql each parameter takes its value from: the one of its
// name, or of its place. Raises 8145.
std::vector<std::optional<std::size_t>> SourcesOf(
    const std::vector<ast::ProcedureParameter>& parameters,
    const std::vector<ProcedureArgument>& arguments) {
  std::vector<std::optional<std::size_t>> sources(parameters.size());
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    std::optional<std::size_t> index;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      const bool named = EqualsIgnoringAsciiCase(parameters[j].name, arguments[i].name);
      if (arguments[i].name.empty() ? j == i - 2 : named) index = j;
    }
    if (!index) {
      RaiseSql(8145, 16, 2, arguments[i].name + " is not a parameter for procedure .");
    }
    sources[*index] = i;
  }
  return sources;
}

}  // namespace

// EXEC sp_executesql N'...', N'@a int, ...', @a = 1.
void Interpreter::State::ExecuteSqlCall(std::vector<ProcedureArgument>& arguments,
                                        ReplySink& sink) {
  const auto text_of = [&](std::size_t index) -> std::string {
    if (index >= arguments.size() || arguments[index].value.IsNull()) return "";
    const TypeId id = arguments[index].type.id;
    if (!IsNationalText(id)) {
      RaiseSql(214, 16, index == 0 ? 2 : 3,
               std::string("Procedure expects parameter '") +
                   (index == 0 ? "@statement" : "@parameters") +
                   "' of type 'ntext/nchar/nvarchar'.");
    }
    return Utf8(std::get<Text>(arguments[index].value.held));
  };
  if (arguments.empty()) {
    RaiseSql(
        201, 16, 10,
        "Procedure or function 'sp_executesql' expects parameter '@statement', which "
        "was not supplied.");
  }
  const std::string sql = text_of(0);
  const std::string declared = text_of(1);
  Frame frame;
  std::vector<ast::ProcedureParameter> parameters;
  if (!declared.empty()) parameters = Parser(declared, true).ParseWholeParameters();
  const auto sources = SourcesOf(parameters, arguments);
  ConvertOptions options;
  options.collation = environment.database_collation();
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const SqlType type = ResolveType(parameters[j].type, environment);
    TypedValue held{type, Value()};
    if (sources[j]) {
      const ProcedureArgument& argument = arguments[*sources[j]];
      if (argument.type.id != TypeId::kNull)
        CheckConversion(argument.type, type, false);
      held.value = ConvertValue(argument.value, argument.type, type, options);
    } else if (parameters[j].default_value) {
      const TypedValue value = Evaluate(parameters[j].default_value, frame);
      held.value = ConvertValue(value.value, value.type, type, options);
    } else {
      RaiseSql(8178, 16, 1,
               "The parameterized query '(" + declared + ")" + sql +
                   "' expects the parameter '" + parameters[j].name +
                   "', which was not supplied.");
    }
    frame.variables.values[parameters[j].name] = std::move(held);
  }
  RunText(sql, frame, sink, false);
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    if (!sources[j] || !arguments[*sources[j]].output) continue;
    const TypedValue& held = frame.variables.values[parameters[j].name];
    arguments[*sources[j]].type = held.type;
    arguments[*sources[j]].value = held.value;
  }
}

}  // namespace mssql_cdc::sim

// The statements that are done at once: variables, SET, transactions, messages,
// waiting.

#include <algorithm>
#include <set>

#include "base/text.h"
#include "sim/sql/convert.h"
#include "sim/sql/dates.h"
#include "sim/sql/interpreter_state.h"
#include "sim/sql/message_format.h"
#include "sim/sql/reads_end_after.h"
#include "sim/sql/set_switches.h"
#include "sim/sql/table_variable.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

void Interpreter::State::RunDeclare(const ast::Declare& node, Frame& frame,
                                    bool check_only) {
  std::set<std::string> names;
  for (const ast::Declare::Item& item : node.items) {
    const bool twice = !names.insert(item.name).second;
    const bool known = frame.variables.values.contains(item.name) ||
                       frame.variables.tables.contains(item.name);
    if (twice || (known && check_only)) {
      RaiseSql(
          134, 15, 2,
          "The variable name '" + item.name +
              "' has already been declared. Variable names must be unique within a "
              "query batch or stored procedure.");
    }
    if (item.table) {
      // A DECLARE met again in a loop keeps the rows.
      if (!known) {
        frame.variables.tables[item.name] = MakeTableVariable(*item.table, environment);
      }
      continue;
    }
    if (!known) {
      const SqlType type = ResolveType(item.type, environment);
      if (IsLargeObject(type.id)) {
        RaiseSql(2739, 16, 1,
                 "The text, ntext, and image data types are invalid for local "
                 "variables.");
      }
      frame.variables.values[item.name] = {type, Value()};
    }
    if (!item.value) continue;
    RunSetVariable({item.name, ast::BinaryOperator::kEqual, item.value}, frame,
                   check_only);
  }
}

void Interpreter::State::RunSetVariable(const ast::SetVariable& node, Frame& frame,
                                        bool check_only) {
  const auto at = frame.variables.values.find(node.name);
  if (at == frame.variables.values.end()) {
    RaiseSql(137, 15, 1, "Must declare the scalar variable \"" + node.name + "\".");
  }
  const ReadsEndAfter reads(environment);
  Binder binder(environment, session, frame.variables);
  Bound bound = binder.Bind(node.value, nullptr);
  if (bound->IsCondition()) RaiseSql(102, 15, 1, "Incorrect syntax near '='.");
  if (node.op != ast::BinaryOperator::kEqual) {
    auto variable = std::make_shared<ast::Expression>();
    variable->node = ast::Variable{node.name};
    bound = binder.Arithmetic(node.op, binder.Bind(variable, nullptr), bound);
  }
  bound = binder.Convert(bound, at->second.type);
  if (check_only) return;
  Context context = binder.MakeContext();
  at->second.value = bound->Get(context);
}

std::int64_t Interpreter::State::NumberOf(const ast::SetOption& node,
                                          Frame& frame) const {
  if (!node.expression) {
    RaiseSql(102, 15, 1, "Incorrect syntax near '" + node.value + "'.");
  }
  const TypedValue value = const_cast<State*>(this)->Evaluate(node.expression, frame);
  const Value number =
      ConvertValue(value.value, value.type, TypeOf(TypeId::kBigInt), {});
  return number.IsNull() ? 0 : std::get<std::int64_t>(number.held);
}

// SET LANGUAGE and SET DATEFORMAT.
void Interpreter::State::SetLanguage(const ast::SetOption& node, Frame& frame) {
  SessionSettings& settings = environment.settings();
  std::string value = node.value;
  if (value.empty()) {
    const TypedValue written = Evaluate(node.expression, frame);
    if (const auto* text = std::get_if<Text>(&written.value.held)) value = Utf8(*text);
  }
  value = LowerAscii(value);
  if (node.name == "LANGUAGE") {
    if (value != "us_english" && value != "english") {
      RaiseSql(2740, 16, 1,
               "SET LANGUAGE failed because '" + value +
                   "' is not an official language name or a language alias on this "
                   "SQL Server.");
    }
    settings.language = "us_english";
    return;
  }
  if (value != "mdy" && value != "dmy" && value != "ymd" && value != "ydm" &&
      value != "myd" && value != "dym") {
    RaiseSql(2741, 16, 1, "SET DATEFORMAT date order '" + value + "' is invalid.");
  }
  settings.dateformat = value;
}

void Interpreter::State::RunSetOption(const ast::SetOption& node, Frame& frame,
                                      ReplySink&) {
  SessionSettings& settings = environment.settings();
  if (node.name == "TRANSACTION ISOLATION LEVEL") {
    settings.isolation =
        node.value == "READ UNCOMMITTED"  ? IsolationLevel::kReadUncommitted
        : node.value == "READ COMMITTED"  ? IsolationLevel::kReadCommitted
        : node.value == "REPEATABLE READ" ? IsolationLevel::kRepeatableRead
        : node.value == "SNAPSHOT"        ? IsolationLevel::kSnapshot
                                          : IsolationLevel::kSerializable;
    return;
  }
  if (node.name == "IDENTITY_INSERT") {
    if (node.value != "ON" && node.value != "OFF") {
      RaiseSql(102, 15, 1, "Incorrect syntax near '" + node.value + "'.");
    }
    environment.SetIdentityInsert(*node.table, node.value == "ON");
    return;
  }
  if (node.name == "LOCK_TIMEOUT") {
    settings.lock_timeout_ms = static_cast<std::int32_t>(NumberOf(node, frame));
  } else if (node.name == "TEXTSIZE") {
    const std::int64_t size = NumberOf(node, frame);
    settings.textsize = size <= 0 ? 2147483647 : static_cast<std::int32_t>(size);
  } else if (node.name == "ROWCOUNT") {
    settings.rowcount = NumberOf(node, frame);
  } else if (node.name == "QUERY_GOVERNOR_COST_LIMIT") {
    NumberOf(node, frame);
  } else if (node.name == "DATEFIRST") {
    const std::int64_t day = NumberOf(node, frame);
    if (day < 1 || day > 7) {
      RaiseSql(2744, 16, 1, "The DATEFIRST value must be from 1 to 7.");
    }
    settings.datefirst = static_cast<std::uint8_t>(day);
  } else if (node.name == "DEADLOCK_PRIORITY") {
    settings.deadlock_priority = node.value == "LOW"    ? -5
                                 : node.value == "HIGH" ? 5
                                 : node.value == "NORMAL"
                                     ? 0
                                     : static_cast<std::int32_t>(NumberOf(node, frame));
  } else if (node.name == "DATEFORMAT" || node.name == "LANGUAGE") {
    SetLanguage(node, frame);
  } else if (node.name == "CONTEXT_INFO") {
    const TypedValue value = Evaluate(node.expression, frame);
    const Value bytes = ConvertValue(value.value, value.type, VarBinaryType(128), {});
    settings.context_info = bytes.IsNull() ? Bytes{} : std::get<Bytes>(bytes.held);
  } else {
    // A list of switches: SET ANSI_NULLS, QUOTED_IDENTIFIER ON.
    std::string name;
    for (const char c : node.name + ',') {
      if (c != ',') {
        name += c;
        continue;
      }
      SetSwitch(settings, name, node.value);
      name.clear();
    }
  }
}

void Interpreter::State::RunTransaction(const ast::TransactionControl& node,
                                        Frame& frame, ReplySink& sink) {
  using Action = ast::TransactionControl::Action;
  std::string name = node.name;
  if (!node.variable.empty()) {
    auto variable = std::make_shared<ast::Expression>();
    variable->node = ast::Variable{node.variable};
    const TypedValue value = Evaluate(variable, frame);
    if (const auto* text = std::get_if<Text>(&value.value.held)) name = Utf8(*text);
  }
  switch (node.action) {
    case Action::kBegin:
      environment.BeginTransaction(name, sink);
      break;
    case Action::kCommit:
      environment.CommitTransaction(sink);
      break;
    case Action::kRollback:
      environment.RollbackTransaction(name, sink);
      break;
    case Action::kSave:
      environment.SaveTransaction(name);
      break;
  }
}

void Interpreter::State::RunPrint(const ast::Print& node, Frame& frame,
                                  ReplySink& sink) {
  const TypedValue value = Evaluate(node.value, frame);
  Message message;
  message.severity = 0;
  message.line = node.value->line;
  const Value text = ConvertValue(value.value, value.type, NVarCharType(4000), {});
  message.text = text.IsNull() ? " " : Utf8(std::get<Text>(text.held));
  message.procedure = frame.module;
  Wanted(sink.SendMessage(message));
}

void Interpreter::State::RunThrow(const ast::Throw& node, Frame& frame) {
  StatementError error;
  error.reach = StatementError::Reach::kBatch;
  if (!node.number) {
    if (session.caught.empty()) {
      RaiseSql(10704, 15, 1,
               "To rethrow an error, a THROW statement must be used inside a CATCH "
               "block. Insert the THROW statement inside a CATCH block, or add error "
               "parameters to the THROW statement.");
    }
    error.message = session.caught.back();
    throw error;
  }
  const auto number = [&](const ast::ExpressionPtr& part) {
    const TypedValue value = Evaluate(part, frame);
    const Value held = ConvertValue(value.value, value.type, TypeOf(TypeId::kInt), {});
    return held.IsNull() ? 0 : std::get<std::int64_t>(held.held);
  };
  const TypedValue text = Evaluate(node.message, frame);
  const Value shown = ConvertValue(text.value, text.type, NVarCharType(2048), {});
  error.message.number = static_cast<std::int32_t>(number(node.number));
  if (error.message.number < 50000) {
    RaiseSql(35100, 16, 10,
             "Error number " + std::to_string(error.message.number) +
                 " in the THROW statement is outside the valid range. Specify an error "
                 "number in the valid range of 50000 to 2147483647.");
  }
  error.message.text = shown.IsNull() ? "" : Utf8(std::get<Text>(shown.held));
  error.message.state = static_cast<std::uint8_t>(number(node.state));
  error.message.severity = 16;
  error.message.line = node.number->line;
  error.message.procedure = frame.module;
  throw error;
}

void Interpreter::State::RunRaiseError(const ast::RaiseError& node, Frame& frame,
                                       ReplySink& sink) {
  std::vector<TypedValue> values;
  for (const ast::ExpressionPtr& argument : node.arguments) {
    values.push_back(Evaluate(argument, frame));
  }
  const auto number = [&](std::size_t index) {
    const Value value =
        ConvertValue(values[index].value, values[index].type, TypeOf(TypeId::kInt), {});
    return value.IsNull() ? 0 : std::get<std::int64_t>(value.held);
  };
  StatementError error;
  error.raised = true;
  error.message.line = node.arguments[0]->line;
  error.message.severity =
      static_cast<std::uint8_t>(std::clamp<std::int64_t>(number(1), 0, 25));
  error.message.state =
      static_cast<std::uint8_t>(std::clamp<std::int64_t>(number(2), 0, 255));
  error.message.procedure = frame.module;
  if (const auto* text = std::get_if<Text>(&values[0].value.held)) {
    error.message.number = 50000;
    const std::string pattern = Utf8(*text);
    values.erase(values.begin(), values.begin() + 3);
    error.message.text = FormattedMessage(pattern, values);
  } else {
    if (number(0) < 13000 || number(0) == 50000) {
      RaiseSql(2732, 16, 1,
               "Error number " + std::to_string(number(0)) +
                   " is invalid. The number must be from 13000 through 2147483647 and "
                   "it cannot be 50000.");
    }
    // A number means a message of sys.messages; there are none of the user's.
    error.message.number = 18054;
    error.message.text = "Error " + std::to_string(number(0)) + ", severity " +
                         std::to_string(error.message.severity) + ", state " +
                         std::to_string(error.message.state) +
                         " was raised, but no message with that error number was found "
                         "in sys.messages.";
  }
  if (error.message.severity <= 10) {
    if (node.with_seterror) session.error_number = error.message.number;
    Wanted(sink.SendMessage(error.message));
    return;
  }
  if (error.message.severity > 18 && !node.with_log) {
    RaiseSql(
        2754, 16, 1,
        "Error severity levels greater than 18 can only be specified by members of "
        "the sysadmin role, using the WITH LOG option.");
  }
  throw error;
}

void Interpreter::State::RunWait(const ast::WaitFor& node, Frame& frame) {
  const TypedValue value = Evaluate(node.value, frame);
  SqlType time = TypeOf(TypeId::kTime);
  const Value held = ConvertValue(value.value, value.type, time, {});
  if (held.IsNull()) return;
  std::int64_t ticks = std::get<DateTimeValue>(held.held).ticks;
  if (!node.delay) {
    ticks -= environment.Now().ticks;
    if (ticks < 0) ticks += kTicksPerDay;
  }
  environment.Wait(ticks / 10'000);
}

}  // namespace mssql_cdc::sim

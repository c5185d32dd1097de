#include "sim/sql/interpreter.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "sim/sql/compiling.h"
#include "sim/sql/convert.h"
#include "sim/sql/dates.h"
#include "sim/sql/parser.h"
#include "sim/sql/set_switches.h"
#include "sim/sql/statements.h"
#include "sim/sql/table_variable.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::uint16_t kSelectCommand = 0xC1;
constexpr std::uint16_t kInsertCommand = 0xC3;
constexpr std::uint16_t kDeleteCommand = 0xC4;
constexpr std::uint16_t kUpdateCommand = 0xC5;
constexpr std::int32_t kNestLevelMax = 32;

// What a statement failed with, and how far that reaches.
struct StatementError {
  Message message;
  enum class Reach : std::uint8_t { kStatement, kBatch, kTransaction };
  Reach reach = Reach::kStatement;
  bool raised = false;  // RAISERROR: XACT_ABORT does not concern it.
};
// A batch ended early; its messages are sent.
struct BatchEnded {};

enum class Flow : std::uint8_t { kNext, kBreak, kContinue, kReturn };

bool IsOneOf(std::int32_t number, std::initializer_list<std::int32_t> numbers) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Failed conversions end the batch and undo the transaction; deadlocks and snapshot
// conflicts the same. Names that are not there end the batch. Everything else ends its
// statement.
StatementError::Reach ReachOf(const Message& message) {
  using enum StatementError::Reach;
  if (IsOneOf(message.number, {241, 242, 244, 245, 248, 295, 296, 1205, 3960, 8114,
                               8169, 266, 3930, 3998})) {
    return kTransaction;
  }
  if (message.severity >= 20) return kTransaction;
  if (IsOneOf(message.number, {207, 208, 209, 4104, 137, 195, 217, 8120, 3951, 3952})) {
    return kBatch;
  }
  return kStatement;
}

// These depend on what exists when the statement runs.
bool IsDeferred(std::int32_t number) {
  return IsOneOf(number, {208, 229, 230, 262, 297, 300, 911, 916, 942, 976, 2812, 4060,
                          1222, 1205, 3906, 3952});
}

[[noreturn]] void RaiseOutsideLoop(std::int32_t number, const std::string& word) {
  RaiseSql(
      number, 15, 1,
      "Cannot use a " + word + " statement outside the scope of a WHILE statement.");
}

// One level more while it lives.
class Deeper {
 public:
  explicit Deeper(std::int32_t& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  std::int32_t& depth_;
};

void Wanted(bool answer) {
  if (!answer) throw StopRequested{};
}

}  // namespace

struct Interpreter::State {
  explicit State(Environment& env) : environment(env) {}

  Environment& environment;
  SessionState session;
  std::int32_t try_depth = 0;

  // One batch or module while it runs.
  struct Frame {
    VariableFrame variables;
    std::string module;
    std::int32_t status = 0;
    std::int32_t loop_depth = 0;
  };

  void RunText(const std::string& text, Frame& frame, ReplySink& sink, bool top_level);
  void Precheck(const std::vector<ast::StatementPtr>& statements, Frame& frame,
                bool& objects);
  void PrecheckOne(const ast::Statement& statement, Frame& frame, bool& objects);
  Flow RunAll(const std::vector<ast::StatementPtr>& statements, Frame& frame,
              ReplySink& sink);
  Flow RunOne(const ast::Statement& statement, Frame& frame, ReplySink& sink);
  Flow RunNode(const ast::Statement& statement, Frame& frame, ReplySink& sink);
  Flow RunTry(const ast::TryCatch& node, Frame& frame, ReplySink& sink);
  void Failed(StatementError error, ReplySink& sink);
  void RunLeaf(const ast::Statement& statement, Frame& frame, ReplySink& sink);
  void RunQuery(const ast::Statement& statement, Frame& frame, ReplySink& sink);
  void RunDeclare(const ast::Declare& node, Frame& frame, bool check_only);
  void RunSetVariable(const ast::SetVariable& node, Frame& frame, bool check_only);
  void RunSetOption(const ast::SetOption& node, Frame& frame, ReplySink& sink);
  std::int64_t NumberOf(const ast::SetOption& node, Frame& frame) const;
  void RunTransaction(const ast::TransactionControl& node, Frame& frame,
                      ReplySink& sink);
  void RunPrint(const ast::Print& node, Frame& frame, ReplySink& sink);
  [[noreturn]] void RunThrow(const ast::Throw& node, Frame& frame);
  void RunRaiseError(const ast::RaiseError& node, Frame& frame, ReplySink& sink);
  void RunWait(const ast::WaitFor& node, Frame& frame);
  void RunExecute(const ast::Execute& node, Frame& frame, ReplySink& sink);
  std::int32_t CallByName(const ObjectName& name,
                          std::vector<ProcedureArgument>& arguments, ReplySink& sink);
  void ExecuteSqlCall(std::vector<ProcedureArgument>& arguments, ReplySink& sink);
  TypedValue Evaluate(const ast::ExpressionPtr& expression, Frame& frame);
  bool Test(const ast::ExpressionPtr& condition, Frame& frame);
  Run MakeRun(Frame& frame, ReplySink* sink, bool bind_only);
  void Done(ReplySink& sink, std::optional<std::int64_t> count, std::uint16_t command);
  template <typename Body>
  void Guarded(ReplySink& sink, Body body);

  // Raises 217 beyond 32 levels.
  class Nested {
   public:
    explicit Nested(State& state) : state_(state) {
      if (state.session.nest_level >= kNestLevelMax) {
        RaiseSql(217, 16, 1,
                 "Maximum stored procedure, function, trigger, or view nesting level "
                 "exceeded (limit 32).");
      }
      ++state.session.nest_level;
    }
    ~Nested() { --state_.session.nest_level; }

   private:
    State& state_;
  };
};

Run Interpreter::State::MakeRun(Frame& frame, ReplySink* sink, bool bind_only) {
  return Run{environment,
             session,
             frame.variables,
             sink,
             bind_only,
             [this, &frame](const ast::Execute& node, ReplySink& capture) {
               RunExecute(node, frame, capture);
             }};
}

void Interpreter::State::Done(ReplySink& sink, std::optional<std::int64_t> count,
                              std::uint16_t command) {
  std::optional<std::uint64_t> shown;
  if (count && !environment.settings().nocount) {
    shown = static_cast<std::uint64_t>(*count);
  }
  Wanted(sink.StatementDone(shown, command));
}

TypedValue Interpreter::State::Evaluate(const ast::ExpressionPtr& expression,
                                        Frame& frame) {
  Binder binder(environment, session, frame.variables);
  const Bound bound = binder.Bind(expression, nullptr);
  if (bound->IsCondition()) RaiseSql(102, 15, 1, "Incorrect syntax near '='.");
  Context context = binder.MakeContext();
  return {bound->type, bound->Get(context)};
}

bool Interpreter::State::Test(const ast::ExpressionPtr& condition, Frame& frame) {
  Binder binder(environment, session, frame.variables);
  const Bound bound = binder.BindCondition(condition, nullptr);
  Context context = binder.MakeContext();
  return bound->test(context) == Truth::kTrue;
}

// Parses and runs a batch. Errors of the text itself: nothing runs; sent at the top
// level, the calling statement's failure below it.
void Interpreter::State::RunText(const std::string& text, Frame& frame, ReplySink& sink,
                                 bool top_level) {
  ast::Batch batch;
  try {
    batch = ParseBatch(text, environment.settings().quoted_identifier);
    const bool alone =
        batch.statements.size() == 1 &&
        !std::holds_alternative<ast::Block>(batch.statements[0]->node) &&
        !std::holds_alternative<ast::If>(batch.statements[0]->node) &&
        !std::holds_alternative<ast::While>(batch.statements[0]->node) &&
        !std::holds_alternative<ast::TryCatch>(batch.statements[0]->node);
    if (!alone) {
      Frame shadow;
      shadow.variables = frame.variables;
      bool objects = true;
      const Compiling compiling(environment);
      Precheck(batch.statements, shadow, objects);
    }
  } catch (SqlError& error) {
    if (error.message.line == 0) error.message.line = 1;
    if (error.message.procedure.empty()) error.message.procedure = frame.module;
    if (!top_level || try_depth > 0) throw;
    session.error_number = error.message.number;
    Wanted(sink.SendMessage(error.message));
    Wanted(sink.StatementDone(std::nullopt, 0));
    return;
  }
  if (environment.settings().parseonly) return;
  RunAll(batch.statements, frame, sink);
}

// Binds everything before anything runs, as SQL Server compiles a batch. Objects that
// do not exist yet are left for later. After USE, names mean other objects.
void Interpreter::State::Precheck(const std::vector<ast::StatementPtr>& statements,
                                  Frame& frame, bool& objects) {
  for (const ast::StatementPtr& statement : statements) {
    try {
      PrecheckOne(*statement, frame, objects);
    } catch (SqlError& error) {
      if (error.message.line == 0) error.message.line = statement->line;
      if (!IsDeferred(error.message.number)) throw;
    }
  }
}

void Interpreter::State::PrecheckOne(const ast::Statement& statement, Frame& frame,
                                     bool& objects) {
  const auto& node = statement.node;
  const auto check = [&](const ast::ExpressionPtr& expression) {
    if (!expression || !objects) return;
    Binder(environment, session, frame.variables).Bind(expression, nullptr);
  };
  const auto one = [&](const ast::StatementPtr& inner) {
    if (inner) Precheck({inner}, frame, objects);
  };
  if (const auto* block = std::get_if<ast::Block>(&node)) {
    Precheck(block->statements, frame, objects);
  } else if (const auto* choice = std::get_if<ast::If>(&node)) {
    one(choice->then);
    one(choice->otherwise);
    check(choice->condition);
  } else if (const auto* loop = std::get_if<ast::While>(&node)) {
    one(loop->body);
    check(loop->condition);
  } else if (const auto* attempt = std::get_if<ast::TryCatch>(&node)) {
    Precheck(attempt->attempt.statements, frame, objects);
    Precheck(attempt->handler.statements, frame, objects);
  } else if (const auto* declare = std::get_if<ast::Declare>(&node)) {
    RunDeclare(*declare, frame, true);
  } else if (std::holds_alternative<ast::Use>(node)) {
    objects = false;
  } else if (!objects) {
    return;
  } else if (const auto* set = std::get_if<ast::SetVariable>(&node)) {
    RunSetVariable(*set, frame, true);
  } else if (const auto* print = std::get_if<ast::Print>(&node)) {
    check(print->value);
  } else {
    const Run run = MakeRun(frame, nullptr, true);
    if (const auto* select = std::get_if<ast::SelectPtr>(&node)) {
      RunSelect(**select, run);
    } else if (const auto* insert = std::get_if<ast::Insert>(&node)) {
      RunInsert(*insert, run);
    } else if (const auto* update = std::get_if<ast::Update>(&node)) {
      RunUpdate(*update, run);
    } else if (const auto* remove = std::get_if<ast::Delete>(&node)) {
      RunDelete(*remove, run);
    } else if (const auto* merge = std::get_if<ast::Merge>(&node)) {
      RunMerge(*merge, run);
    }
  }
}

Flow Interpreter::State::RunAll(const std::vector<ast::StatementPtr>& statements,
                                Frame& frame, ReplySink& sink) {
  for (const ast::StatementPtr& statement : statements) {
    if (environment.stop_requested()) throw StopRequested{};
    const Flow flow = RunOne(*statement, frame, sink);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Interpreter::State::RunOne(const ast::Statement& statement, Frame& frame,
                                ReplySink& sink) {
  StatementError failure;
  try {
    const Flow flow = RunNode(statement, frame, sink);
    return flow;
  } catch (SqlError& error) {
    failure.message = error.message;
    failure.reach = ReachOf(error.message);
  } catch (StatementError& error) {
    failure = error;
  }
  if (failure.message.line == 0) failure.message.line = statement.line;
  if (failure.message.procedure.empty()) failure.message.procedure = frame.module;
  Failed(std::move(failure), sink);
  return Flow::kNext;
}

void Interpreter::State::Failed(StatementError error, ReplySink& sink) {
  using enum StatementError::Reach;
  session.error_number = error.message.number;
  const bool aborts = environment.settings().xact_abort && !error.raised;
  if (try_depth > 0 && error.message.severity < 20) {
    if ((aborts || error.reach == kTransaction) &&
        environment.transaction_count() > 0) {
      environment.DoomTransaction();
    }
    throw error;
  }
  Wanted(sink.SendMessage(error.message));
  Wanted(sink.StatementDone(std::nullopt, 0));
  if ((aborts || error.reach == kTransaction) && environment.transaction_count() > 0) {
    environment.RollbackTransaction("", sink);
  }
  if (aborts || error.reach != kStatement) throw BatchEnded{};
}

Flow Interpreter::State::RunTry(const ast::TryCatch& node, Frame& frame,
                                ReplySink& sink) {
  Message caught;
  ++try_depth;
  try {
    const Flow flow = RunAll(node.attempt.statements, frame, sink);
    --try_depth;
    return flow;
  } catch (StatementError& error) {
    --try_depth;
    caught = error.message;
  } catch (...) {
    --try_depth;
    throw;
  }
  session.caught.push_back(caught);
  Flow flow = Flow::kNext;
  try {
    flow = RunAll(node.handler.statements, frame, sink);
  } catch (...) {
    session.caught.pop_back();
    throw;
  }
  session.caught.pop_back();
  return flow;
}

Flow Interpreter::State::RunNode(const ast::Statement& statement, Frame& frame,
                                 ReplySink& sink) {
  const auto& node = statement.node;
  const bool skips = environment.settings().noexec || environment.settings().fmtonly;
  if (const auto* block = std::get_if<ast::Block>(&node)) {
    return RunAll(block->statements, frame, sink);
  }
  if (const auto* choice = std::get_if<ast::If>(&node)) {
    const ast::StatementPtr& branch =
        Test(choice->condition, frame) ? choice->then : choice->otherwise;
    return branch ? RunOne(*branch, frame, sink) : Flow::kNext;
  }
  if (const auto* loop = std::get_if<ast::While>(&node)) {
    const Deeper deeper(frame.loop_depth);
    while (!skips && Test(loop->condition, frame)) {
      if (environment.stop_requested()) throw StopRequested{};
      const Flow flow = RunOne(*loop->body, frame, sink);
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kReturn) return flow;
    }
    return Flow::kNext;
  }
  if (std::holds_alternative<ast::Break>(node)) {
    if (frame.loop_depth == 0) RaiseOutsideLoop(135, "BREAK");
    return Flow::kBreak;
  }
  if (std::holds_alternative<ast::Continue>(node)) {
    if (frame.loop_depth == 0) RaiseOutsideLoop(136, "CONTINUE");
    return Flow::kContinue;
  }
  if (const auto* leave = std::get_if<ast::Return>(&node)) {
    if (leave->value) {
      if (frame.module.empty()) {
        RaiseSql(178, 15, 1,
                 "A RETURN statement with a return value cannot be used in this "
                 "context.");
      }
      const TypedValue value = Evaluate(leave->value, frame);
      const Value status =
          ConvertValue(value.value, value.type, TypeOf(TypeId::kInt), {});
      if (!status.IsNull()) {
        frame.status = static_cast<std::int32_t>(std::get<std::int64_t>(status.held));
      }
    }
    return Flow::kReturn;
  }
  if (const auto* attempt = std::get_if<ast::TryCatch>(&node)) {
    return RunTry(*attempt, frame, sink);
  }
  if (const auto* rethrow = std::get_if<ast::Throw>(&node)) RunThrow(*rethrow, frame);
  RunLeaf(statement, frame, sink);
  if (!std::holds_alternative<ast::RaiseError>(node)) session.error_number = 0;
  return Flow::kNext;
}

void Interpreter::State::RunLeaf(const ast::Statement& statement, Frame& frame,
                                 ReplySink& sink) {
  const auto& node = statement.node;
  const bool skips = environment.settings().noexec || environment.settings().fmtonly;
  if (const auto* option = std::get_if<ast::SetOption>(&node)) {
    RunSetOption(*option, frame, sink);
    Done(sink, std::nullopt, 0);
    return;
  }
  if (const auto* declare = std::get_if<ast::Declare>(&node)) {
    RunDeclare(*declare, frame, false);
    return;
  }
  if (skips && !std::holds_alternative<ast::SelectPtr>(node)) return;
  if (const auto* set = std::get_if<ast::SetVariable>(&node)) {
    RunSetVariable(*set, frame, false);
    session.row_count = 1;
  } else if (const auto* print = std::get_if<ast::Print>(&node)) {
    RunPrint(*print, frame, sink);
  } else if (const auto* error = std::get_if<ast::RaiseError>(&node)) {
    RunRaiseError(*error, frame, sink);
  } else if (const auto* use = std::get_if<ast::Use>(&node)) {
    environment.Use(use->database, sink);
    session.row_count = 0;
    Done(sink, std::nullopt, 0);
  } else if (const auto* transaction = std::get_if<ast::TransactionControl>(&node)) {
    RunTransaction(*transaction, frame, sink);
    session.row_count = 0;
    Done(sink, std::nullopt, 0);
  } else if (const auto* wait = std::get_if<ast::WaitFor>(&node)) {
    RunWait(*wait, frame);
  } else if (std::holds_alternative<ast::Checkpoint>(node)) {
    Done(sink, std::nullopt, 0);
  } else {
    RunQuery(statement, frame, sink);
  }
}

void Interpreter::State::RunQuery(const ast::Statement& statement, Frame& frame,
                                  ReplySink& sink) {
  const auto& node = statement.node;
  const bool select = std::holds_alternative<ast::SelectPtr>(node);
  const bool execute = std::holds_alternative<ast::Execute>(node);
  const bool definition = std::holds_alternative<ast::DefinitionStatement>(node);
  const bool format_only =
      environment.settings().fmtonly || environment.settings().noexec;
  const StatementKind kind = select       ? StatementKind::kRead
                             : execute    ? StatementKind::kExecute
                             : definition ? StatementKind::kDefinition
                                          : StatementKind::kWrite;
  std::int64_t count = 0;
  std::uint16_t command = 0;
  environment.StatementBegins(kind, sink);
  try {
    Run run = MakeRun(frame, &sink, format_only);
    if (environment.settings().noexec) run.sink = nullptr;
    if (select) {
      count = RunSelect(*std::get<ast::SelectPtr>(node), run);
      command = kSelectCommand;
    } else if (const auto* insert = std::get_if<ast::Insert>(&node)) {
      count = RunInsert(*insert, run);
      command = kInsertCommand;
    } else if (const auto* update = std::get_if<ast::Update>(&node)) {
      count = RunUpdate(*update, run);
      command = kUpdateCommand;
    } else if (const auto* remove = std::get_if<ast::Delete>(&node)) {
      count = RunDelete(*remove, run);
      command = kDeleteCommand;
    } else if (const auto* merge = std::get_if<ast::Merge>(&node)) {
      count = RunMerge(*merge, run);
      command = 0x117;  // MERGE
    } else if (definition) {
      environment.Define(std::get<ast::DefinitionStatement>(node), sink);
    } else {
      RunExecute(std::get<ast::Execute>(node), frame, sink);
    }
  } catch (...) {
    environment.StatementEnds(false, sink);
    throw;
  }
  environment.StatementEnds(true, sink);
  if (execute) return;
  if (!definition) session.row_count = count;
  Done(sink, definition ? std::nullopt : std::optional(count), command);
}

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
    std::string value = node.value;
    if (value.empty()) {
      const TypedValue written = Evaluate(node.expression, frame);
      if (const auto* text = std::get_if<Text>(&written.value.held))
        value = Utf8(*text);
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

namespace {

// The %d, %s, %i, %u, %x of RAISERROR.
std::string Formatted(const std::string& pattern,
                      const std::vector<TypedValue>& values) {
  std::string text;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      text += pattern[i];
      continue;
    }
    if (pattern[i + 1] == '%') {
      text += '%';
      ++i;
      continue;
    }
    const std::size_t end = pattern.find_first_of("dsiuxXo", i + 1);
    if (end == std::string::npos) {
      RaiseSql(2787, 16, 1,
               "Invalid format specification: '" + pattern.substr(i) + "'.");
    }
    if (next < values.size()) {
      const TypedValue& value = values[next++];
      const Value held = ConvertValue(value.value, value.type, NVarCharType(kMax), {});
      text += held.IsNull() ? "(null)" : Utf8(std::get<Text>(held.held));
    } else {
      text += "(null)";
    }
    i = end;
  }
  return text;
}

}  // namespace

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
    error.message.text = Formatted(pattern, values);
  } else {
    if (number(0) < 13000) {
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
  ObjectName name = node.procedure;
  if (!node.procedure_variable.empty()) {
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
    name = *parsed;
  }
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

// The outermost catch: nothing leaves the interpreter.
template <typename Body>
void Interpreter::State::Guarded(ReplySink& sink, Body body) {
  const auto settle = [&] {
    try_depth = 0;
    session.caught.clear();
    session.nest_level = 0;
  };
  try {
    body();
  } catch (const SqlError& error) {
    session.error_number = error.message.number;
    Message message = error.message;
    if (message.line == 0) message.line = 1;
    sink.SendMessage(message) && sink.StatementDone(std::nullopt, 0);
  } catch (const StatementError& error) {
    session.error_number = error.message.number;
    sink.SendMessage(error.message) && sink.StatementDone(std::nullopt, 0);
  } catch (const BatchEnded&) {
  } catch (const StopRequested&) {
    // The client went away or asked to stop. Under XACT_ABORT its transaction goes too.
    if (environment.settings().xact_abort && environment.transaction_count() > 0) {
      try {
        environment.RollbackTransaction("", sink);
      } catch (const SqlError&) {
      }
    }
  } catch (const std::bad_alloc&) {
    sink.SendMessage(
        {701, 1, 17,
         "There is insufficient system memory in resource pool 'default' to "
         "run this query.",
         "", 1});
  }
  settle();
}

Interpreter::Interpreter(Environment& environment)
    : state_(std::make_unique<State>(environment)) {}
Interpreter::~Interpreter() = default;

std::int64_t Interpreter::last_row_count() const { return state_->session.row_count; }

void Interpreter::Batch(const std::string& sql, ReplySink& sink) {
  state_->Guarded(sink, [&] {
    State::Frame frame;
    state_->RunText(sql, frame, sink, true);
  });
}

void Interpreter::ExecuteSql(const std::string& sql,
                             std::vector<BoundParameter> parameters, ReplySink& sink) {
  state_->session.error_number = 0;
  State::Frame frame;
  for (const BoundParameter& parameter : parameters) {
    frame.variables.values[parameter.name] = {parameter.type, parameter.value};
  }
  bool ended = false;
  state_->Guarded(sink, [&] {
    const State::Nested nested(*state_);
    state_->RunText(sql, frame, sink, true);
    ended = true;
  });
  if (!ended && state_->environment.stop_requested()) return;
  if (!sink.ReturnStatus(state_->session.error_number)) return;
  for (const BoundParameter& parameter : parameters) {
    if (!parameter.output) continue;
    const TypedValue& held = frame.variables.values[parameter.name];
    if (!sink.ReturnValue(parameter.name, held.type, held.value)) return;
  }
}

void Interpreter::Procedure(const std::string& name,
                            std::vector<BoundParameter> parameters, ReplySink& sink) {
  std::vector<ProcedureArgument> arguments;
  for (BoundParameter& parameter : parameters) {
    arguments.push_back({parameter.name, parameter.type, std::move(parameter.value),
                         parameter.output, false});
  }
  std::optional<std::int32_t> status;
  state_->Guarded(sink, [&] {
    State::Frame frame;
    try {
      const State::Nested nested(*state_);
      const auto parsed = ParseObjectName(name);
      if (!parsed) {
        RaiseSql(2812, 16, 62, "Could not find stored procedure '" + name + "'.");
      }
      state_->environment.StatementBegins(StatementKind::kExecute, sink);
      try {
        status = state_->CallByName(*parsed, arguments, sink);
      } catch (...) {
        state_->environment.StatementEnds(false, sink);
        throw;
      }
      state_->environment.StatementEnds(true, sink);
    } catch (SqlError& error) {
      StatementError failure{error.message, ReachOf(error.message), false};
      if (failure.message.line == 0) failure.message.line = 1;
      state_->Failed(std::move(failure), sink);
    }
  });
  if (!status) return;
  if (!sink.ReturnStatus(*status)) return;
  for (const ProcedureArgument& argument : arguments) {
    if (!argument.output) continue;
    if (!sink.ReturnValue(argument.name, argument.type, argument.value)) return;
  }
}

std::int32_t Interpreter::RunModule(const std::string& name, const std::string& body,
                                    std::vector<BoundParameter>& parameters,
                                    ReplySink& sink) {
  State::Frame frame;
  frame.module = name;
  for (const BoundParameter& parameter : parameters) {
    frame.variables.values[parameter.name] = {parameter.type, parameter.value};
  }
  state_->RunText(body, frame, sink, false);
  for (BoundParameter& parameter : parameters) {
    const TypedValue& held = frame.variables.values[parameter.name];
    parameter.value = held.value;
  }
  return frame.status;
}

namespace {

class BoundRowExpression final : public RowExpression {
 public:
  BoundRowExpression(const ast::ExpressionPtr& expression,
                     const std::vector<ColumnInfo>& columns,
                     const std::optional<SqlType>& target, Environment& environment)
      : expression_(expression), binder_(environment, session_, variables_) {
    // Its value may be asked for at different times: nothing is kept between rows.
    binder_.SetVariablesChange();
    Scope scope;
    auto table = std::make_shared<BoundTable>();
    for (const ColumnInfo& info : columns) {
      OutputColumn column;
      column.name = info.name;
      column.type = info.type;
      column.nullable = info.nullable;
      column.slot = binder_.NewSlot();
      table->columns.push_back(std::move(column));
    }
    table->used.assign(columns.size(), false);
    scope.tables.push_back(std::move(table));
    bound_ = binder_.Bind(expression, &scope);
    if (bound_->IsCondition()) {
      // A CHECK: its truth as a bit.
      const Bound condition = bound_;
      bound_ = std::make_shared<BoundExpression>();
      bound_->type = TypeOf(TypeId::kBit);
      bound_->evaluate = [condition](Context& context, Value& out) {
        const Truth truth = condition->test(context);
        out = Value();
        if (truth != Truth::kUnknown) out.held = std::int64_t{truth == Truth::kTrue};
      };
    } else if (target) {
      bound_ = binder_.Convert(bound_, *target);
    }
  }

  const SqlType& type() const override { return bound_->type; }
  bool nullable() const override { return bound_->nullable; }
  Value Evaluate(const Row& row) override {
    Context context = binder_.MakeContext();
    std::copy_n(row.begin(), std::min(row.size(), context.slots.size()),
                context.slots.begin());
    return bound_->Get(context);
  }

 private:
  ast::ExpressionPtr expression_;
  SessionState session_;
  VariableFrame variables_;
  Binder binder_;
  Bound bound_;
};

}  // namespace

std::unique_ptr<RowExpression> BindRowExpression(const ast::ExpressionPtr& expression,
                                                 const std::vector<ColumnInfo>& columns,
                                                 const std::optional<SqlType>& target,
                                                 Environment& environment) {
  return std::make_unique<BoundRowExpression>(expression, columns, target, environment);
}

}  // namespace mssql_cdc::sim

#include "sim/sql/interpreter.h"

#include <algorithm>

#include "base/text.h"
#include "sim/sql/compiling.h"
#include "sim/sql/convert.h"
#include "sim/sql/interpreter_state.h"
#include "sim/sql/parser.h"
#include "sim/sql/reads_end_after.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

constexpr std::uint16_t kSelectCommand = 0xC1;
constexpr std::uint16_t kInsertCommand = 0xC3;
constexpr std::uint16_t kDeleteCommand = 0xC4;
constexpr std::uint16_t kUpdateCommand = 0xC5;
bool IsOneOf(std::int32_t number, std::initializer_list<std::int32_t> numbers) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
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

// SET FMTONLY ON while it lives.
class FormatOnly {
 public:
  explicit FormatOnly(SessionSettings& settings)
      : settings_(settings), before_(settings.fmtonly) {
    settings_.fmtonly = true;
  }
  ~FormatOnly() { settings_.fmtonly = before_; }
  FormatOnly(const FormatOnly&) = delete;
  FormatOnly& operator=(const FormatOnly&) = delete;

 private:
  SessionSettings& settings_;
  const bool before_;
};

}  // namespace

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
  const ReadsEndAfter reads(environment);
  Binder binder(environment, session, frame.variables);
  const Bound bound = binder.Bind(expression, nullptr);
  if (bound->IsCondition()) RaiseSql(102, 15, 1, "Incorrect syntax near '='.");
  Context context = binder.MakeContext();
  return {bound->type, bound->Get(context)};
}

bool Interpreter::State::Test(const ast::ExpressionPtr& condition, Frame& frame) {
  const ReadsEndAfter reads(environment);
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
      const ReadsEndAfter reads(environment);
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
  State::Frame frame = State::FrameOf(parameters);
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

void Interpreter::Describe(const std::string& sql,
                           const std::vector<BoundParameter>& declared,
                           ReplySink& sink) {
  State::Frame frame = State::FrameOf(declared);
  const Deeper inside(state_->try_depth);  // Errors come here.
  const FormatOnly format(state_->environment.settings());
  try {
    state_->RunText(sql, frame, sink, false);
  } catch (const StatementError& error) {
    throw SqlError{error.message};
  }
}

std::vector<UndeclaredParameter> Interpreter::UndeclaredParameters(
    const std::string& sql, const std::vector<BoundParameter>& declared) {
  std::vector<UndeclaredParameter> found;
  State::Frame frame = State::FrameOf(declared);
  frame.variables.undeclared = &found;
  const ReadsEndAfter reads(state_->environment);
  const Compiling compiling(state_->environment);
  bool objects = true;
  for (const ast::StatementPtr& statement : ParseBatch(sql).statements) {
    state_->PrecheckOne(*statement, frame, objects);
  }
  return found;
}

std::int32_t Interpreter::RunModule(const std::string& name, const std::string& body,
                                    std::vector<BoundParameter>& parameters,
                                    ReplySink& sink) {
  State::Frame frame = State::FrameOf(parameters);
  frame.module = name;
  state_->RunText(body, frame, sink, false);
  for (BoundParameter& parameter : parameters) {
    const TypedValue& held = frame.variables.values[parameter.name];
    parameter.value = held.value;
  }
  return frame.status;
}

}  // namespace mssql_cdc::sim

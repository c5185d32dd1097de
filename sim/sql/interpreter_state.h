// What the interpreter's parts share: the frame of a batch or module, how a failure
// travels, and the state that lives as long as the session.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/sql/ast.h"
#include "sim/sql/binder.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/statements.h"

namespace mssql_cdc::sim {

inline constexpr std::int32_t kNestLevelMax = 32;

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

// Ends the request where the sink wants no more of it.
inline void Wanted(bool answer) {
  if (!answer) throw StopRequested{};
}

// Failed conversions end the batch and undo the transaction; deadlocks and snapshot
// conflicts the same. Names that are not there end the batch. Everything else ends its
// statement.
StatementError::Reach ReachOf(const Message& message);

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

  static Frame FrameOf(const std::vector<BoundParameter>& parameters) {
    Frame frame;
    for (const BoundParameter& parameter : parameters) {
      frame.variables.values[parameter.name] = {parameter.type, parameter.value};
    }
    return frame;
  }

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
  void SetLanguage(const ast::SetOption& node, Frame& frame);
  std::int64_t NumberOf(const ast::SetOption& node, Frame& frame) const;
  void RunTransaction(const ast::TransactionControl& node, Frame& frame,
                      ReplySink& sink);
  void RunPrint(const ast::Print& node, Frame& frame, ReplySink& sink);
  [[noreturn]] void RunThrow(const ast::Throw& node, Frame& frame);
  void RunRaiseError(const ast::RaiseError& node, Frame& frame, ReplySink& sink);
  void RunWait(const ast::WaitFor& node, Frame& frame);
  ObjectName ProcedureOf(const ast::Execute& node, Frame& frame);
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

}  // namespace mssql_cdc::sim

#include "sim/sql/binder.h"
#include "sim/sql/conditions.h"
#include "sim/sql/decimals.h"
#include "sim/sql/lexer.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {

std::string UpperName(const std::string& name) {
  std::string upper = name;
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string NormalText(const ast::Expression& expression) {
  std::string text;
  for (const Token& token : Tokenize(expression.text, true)) {
    const bool name =
        token.kind == TokenKind::kWord || token.kind == TokenKind::kQuotedName;
    text += name ? UpperName(token.text) : token.text;
    text += token.kind == TokenKind::kString ? '\'' : ' ';
  }
  return text;
}

Binder::Binder(Environment& environment, SessionState& session,
               VariableFrame& variables)
    : environment_(environment), session_(session), variables_(variables) {}

Context Binder::MakeContext() const {
  Context context{environment_, session_, variables_, {}, std::nullopt, std::nullopt};
  context.slots.resize(next_slot_);
  return context;
}

ConvertOptions Binder::Options(int style) const {
  ConvertOptions options;
  options.style = style;
  options.dateformat = environment_.settings().dateformat;
  options.collation = environment_.database_collation();
  return options;
}

CollationRule Binder::RuleFor(const SqlType& type) const {
  return RuleOfCollation(type.collation.empty() ? environment_.database_collation()
                                                : type.collation);
}

Bound Binder::Constant(const SqlType& type, Value value) {
  auto bound = std::make_shared<BoundExpression>();
  bound->type = type;
  bound->nullable = value.IsNull();
  bound->evaluate = [value = std::move(value)](Context&, Value& out) { out = value; };
  return bound;
}

Bound Binder::SlotReference(const OutputColumn& column) {
  auto bound = std::make_shared<BoundExpression>();
  bound->type = column.type;
  bound->nullable = column.nullable;
  bound->identity = column.identity;
  bound->computed = column.computed;
  bound->name = column.name;
  bound->slots = {column.slot};
  bound->slot = column.slot;
  bound->coercibility = BoundExpression::Coercibility::kImplicit;
  bound->evaluate = [slot = column.slot](Context& context, Value& out) {
    out = context.slots[slot];
  };
  return bound;
}

// What depends on no row is evaluated once, when it is first needed.
Bound Binder::Fold(Bound expression) {
  if (!expression->slots.empty() || expression->is_volatile || variables_change_ ||
      !expression->evaluate) {
    return expression;
  }
  auto kept = std::make_shared<std::optional<Value>>();
  auto folded = std::make_shared<BoundExpression>(*expression);
  folded->evaluate = [kept, expression](Context& context, Value& out) {
    if (!*kept) *kept = expression->Get(context);
    out = **kept;
  };
  return folded;
}

Bound Binder::Function(const SqlType& type, std::vector<Bound> arguments,
                       Evaluator evaluator, bool takes_null) {
  auto bound = std::make_shared<BoundExpression>();
  bound->type = type;
  for (const Bound& argument : arguments) AddSlots(argument, *bound);
  bound->evaluate = [arguments = std::move(arguments), evaluator = std::move(evaluator),
                     takes_null](Context& context, Value& out) {
    std::vector<Value> values(arguments.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!arguments[i]) continue;
      arguments[i]->evaluate(context, values[i]);
      if (values[i].IsNull() && !takes_null) {
        out = Value();
        return;
      }
    }
    out = evaluator(context, values);
  };
  return bound;
}

Bound Binder::Bind(const ast::ExpressionPtr& expression, const Scope* scope) {
  try {
    Bound bound = BindNode(expression, scope);
    return bound;
  } catch (SqlError& error) {
    if (error.message.line == 0) error.message.line = expression->line;
    throw;
  }
}

Bound Binder::BindCondition(const ast::ExpressionPtr& expression, const Scope* scope) {
  return Bind(expression, scope);
}

Bound Binder::BindNode(const ast::ExpressionPtr& expression, const Scope* scope) {
  if (scope != nullptr && scope->grouping != nullptr &&
      !scope->grouping->inside_aggregate) {
    if (Bound key = GroupKeyOf(expression, scope)) return key;
  }
  const auto& node = expression->node;
  if (const auto* literal = std::get_if<ast::Literal>(&node)) {
    SqlType type = literal->type;
    // An int literal seen as decimal has as many digits as are written.
    if (type.id == TypeId::kInt) {
      type.precision = DecimalDigits({std::get<std::int64_t>(literal->value.held), 0});
    }
    return Constant(type, literal->value);
  }
  if (const auto* column = std::get_if<ast::ColumnReference>(&node)) {
    return BindColumn(*column, scope);
  }
  if (const auto* variable = std::get_if<ast::Variable>(&node)) {
    return BindVariable(*variable);
  }
  if (const auto* global = std::get_if<ast::GlobalVariable>(&node)) {
    return BindGlobal(*global);
  }
  if (const auto* unary = std::get_if<ast::Unary>(&node))
    return BindUnary(*unary, scope);
  if (const auto* binary = std::get_if<ast::Binary>(&node)) {
    return BindBinary(*binary, scope);
  }
  if (const auto* is_null = std::get_if<ast::IsNull>(&node)) {
    const Bound operand = Bind(is_null->operand, scope);
    const bool negated = is_null->negated;
    Bound bound = NewCondition({operand}, [operand, negated](Context& context) {
      return Of(operand->Get(context).IsNull() != negated);
    });
    if (!negated) {
      bound->shape = BoundExpression::Shape::kIsNull;
      bound->left = operand;
    }
    return bound;
  }
  if (const auto* like = std::get_if<ast::Like>(&node)) return BindLike(*like, scope);
  if (const auto* between = std::get_if<ast::Between>(&node)) {
    const Bound operand = Bind(between->operand, scope);
    const Bound low = Compare(ast::BinaryOperator::kGreaterOrEqual, operand,
                              Bind(between->low, scope));
    const Bound high =
        Compare(ast::BinaryOperator::kLessOrEqual, operand, Bind(between->high, scope));
    const bool negated = between->negated;
    Bound bound = NewCondition({low, high}, [low, high, negated](Context& context) {
      const Truth first = low->test(context);
      Truth truth = Truth::kFalse;
      if (first != Truth::kFalse) {
        const Truth second = high->test(context);
        truth = second == Truth::kFalse    ? second
                : first == Truth::kUnknown ? first
                                           : second;
      }
      return negated ? Not(truth) : truth;
    });
    if (!negated) {
      bound->shape = BoundExpression::Shape::kAnd;
      bound->left = low;
      bound->right = high;
    }
    return bound;
  }
  if (const auto* in = std::get_if<ast::InList>(&node)) return BindIn(*in, scope);
  if (const auto* in = std::get_if<ast::InSelect>(&node))
    return BindInSelect(*in, scope);
  if (const auto* exists = std::get_if<ast::Exists>(&node)) {
    return BindExists(*exists, scope);
  }
  if (const auto* quantified = std::get_if<ast::Quantified>(&node)) {
    return BindQuantified(*quantified, scope);
  }
  if (const auto* select = std::get_if<ast::ScalarSelect>(&node)) {
    return BindScalarSelect(*select, scope);
  }
  if (const auto* choice = std::get_if<ast::Case>(&node))
    return BindCase(*choice, scope);
  if (const auto* convert = std::get_if<ast::Convert>(&node)) {
    return BindConvert(*convert, scope);
  }
  if (const auto* collate = std::get_if<ast::Collate>(&node)) {
    return BindCollate(*collate, scope);
  }
  if (const auto* zone = std::get_if<ast::AtTimeZone>(&node)) {
    return BindAtTimeZone(*zone, scope);
  }
  if (const auto* call = std::get_if<ast::Call>(&node)) {
    return BindCall(expression, *call, scope);
  }
  RaiseSql(156, 15, 1, "Incorrect syntax near the keyword 'DEFAULT'.");
}

// The slot of the GROUP BY expression that `expression` repeats.
Bound Binder::GroupKeyOf(const ast::ExpressionPtr& expression, const Scope* scope) {
  const Grouping& grouping = *scope->grouping;
  if (std::holds_alternative<ast::Literal>(expression->node) ||
      std::holds_alternative<ast::ColumnReference>(expression->node)) {
    return nullptr;
  }
  if (grouping.key_texts.empty()) return nullptr;
  const std::string text = NormalText(*expression);
  for (std::size_t i = 0; i < grouping.keys.size(); ++i) {
    if (grouping.key_texts[i] != text) continue;
    OutputColumn column;
    column.type = grouping.keys[i].expression->type;
    column.nullable = grouping.keys[i].expression->nullable;
    column.slot = grouping.keys[i].slot;
    MarkRead(column.slot);
    return SlotReference(column);
  }
  return nullptr;
}

Bound Binder::Convert(Bound operand, const SqlType& to, bool is_explicit, int style) {
  SqlType from = operand->type;
  if (from.id == TypeId::kNull) {
    SuggestType(operand, to);
    auto bound = std::make_shared<BoundExpression>(*operand);
    bound->type = to;
    bound->slot.reset();
    bound->undeclared.clear();
    return bound;
  }
  CheckConversion(from, to, is_explicit);
  SqlType target = to;
  if (IsText(to.id) && to.collation.empty() && IsText(from.id)) {
    target.collation = from.collation;
  }
  if (from.id == TypeId::kInt && to.id == TypeId::kInt) return operand;
  if (from == target) return operand;
  auto bound = std::make_shared<BoundExpression>();
  bound->type = target;
  bound->nullable = operand->nullable;
  bound->coercibility = operand->coercibility;
  AddSlots(operand, *bound);
  bound->evaluate = [operand, from, target, options = Options(style)](Context& context,
                                                                      Value& out) {
    operand->evaluate(context, out);
    if (!out.IsNull()) out = ConvertValue(out, from, target, options);
  };
  return Fold(bound);
}

Bound Binder::BindLike(const ast::Like& node, const Scope* scope) {
  const auto text = [&](const ast::ExpressionPtr& part) {
    Bound bound = Bind(part, scope);
    if (IsText(bound->type.id)) return bound;
    SqlType type = VarCharType(8000);
    return Convert(bound, type);
  };
  const Bound operand = text(node.operand);
  const Bound pattern = text(node.pattern);
  const Bound escape = node.escape ? text(node.escape) : nullptr;
  SqlType type =
      operand->coercibility <= pattern->coercibility ? operand->type : pattern->type;
  const CollationRule rule = RuleFor(type);
  return NewCondition(
      {operand, pattern, escape},
      [operand, pattern, escape, rule, negated = node.negated](Context& context) {
        const Value x = operand->Get(context);
        const Value y = pattern->Get(context);
        if (x.IsNull() || y.IsNull()) return Truth::kUnknown;
        std::optional<char16_t> mark;
        if (escape) {
          const Value z = escape->Get(context);
          if (z.IsNull()) return Truth::kUnknown;
          const Text& escape_text = std::get<Text>(z.held);
          if (escape_text.size() != 1) {
            RaiseSql(506, 16, 1,
                     "The invalid escape character \"" + Utf8(escape_text) +
                         "\" was specified in a LIKE predicate.");
          }
          mark = escape_text[0];
        }
        const bool holds =
            MatchesLike(std::get<Text>(x.held), std::get<Text>(y.held), mark, rule);
        return Of(holds != negated);
      });
}

Bound Binder::BindIn(const ast::InList& node, const Scope* scope) {
  const Bound operand = Bind(node.operand, scope);
  std::vector<Bound> tests;
  Bound bound = NewCondition({operand}, nullptr);
  for (const ast::ExpressionPtr& item : node.items) {
    tests.push_back(Compare(ast::BinaryOperator::kEqual, operand, Bind(item, scope)));
    AddSlots(tests.back(), *bound);
  }
  if (tests.size() == 1 && !node.negated) return tests[0];
  bound->test = [tests, negated = node.negated](Context& context) {
    Truth truth = Truth::kFalse;
    for (const Bound& test : tests) {
      const Truth one = test->test(context);
      if (one == Truth::kTrue) return negated ? Truth::kFalse : Truth::kTrue;
      if (one == Truth::kUnknown) truth = one;
    }
    return negated ? Not(truth) : truth;
  };
  return bound;
}

}  // namespace mssql_cdc::sim

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/conditions.h"
#include "sim/sql/dates.h"
#include "sim/sql/decimals.h"
#include "sim/sql/identifier.h"
#include "sim/sql/interpreter.h"
#include "sim/sql/lexer.h"
#include "sim/sql/time_zone.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

using ast::BinaryOperator;

bool Holds(BinaryOperator op, int order) {
  switch (op) {
    case BinaryOperator::kEqual:
      return order == 0;
    case BinaryOperator::kNotEqual:
      return order != 0;
    case BinaryOperator::kLess:
      return order < 0;
    case BinaryOperator::kLessOrEqual:
      return order <= 0;
    case BinaryOperator::kGreater:
      return order > 0;
    case BinaryOperator::kGreaterOrEqual:
      return order >= 0;
    default:
      return false;
  }
}

std::optional<Comparison> ComparisonOf(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kEqual:
      return Comparison::kEqual;
    case BinaryOperator::kLess:
      return Comparison::kLess;
    case BinaryOperator::kLessOrEqual:
      return Comparison::kLessOrEqual;
    case BinaryOperator::kGreater:
      return Comparison::kGreater;
    case BinaryOperator::kGreaterOrEqual:
      return Comparison::kGreaterOrEqual;
    default:
      return std::nullopt;
  }
}

[[noreturn]] void RaiseOverflow(const SqlType& type) {
  RaiseSql(8115, 16, 2,
           "Arithmetic overflow error converting expression to data type " +
               TypeWord(type) + ".");
}

[[noreturn]] void RaiseDivideByZero() {
  RaiseSql(8134, 16, 1, "Divide by zero error encountered.");
}

Value IntegerResult(BinaryOperator op, std::int64_t a, std::int64_t b,
                    const SqlType& type) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOperator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case BinaryOperator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case BinaryOperator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case BinaryOperator::kDivide:
    case BinaryOperator::kModulo:
      if (b == 0) RaiseDivideByZero();
      if (b == -1) {
        if (op == BinaryOperator::kModulo) break;
        overflow = __builtin_sub_overflow(std::int64_t{0}, a, &result);
        break;
      }
      result = op == BinaryOperator::kDivide ? a / b : a % b;
      break;
    case BinaryOperator::kBitAnd:
      result = a & b;
      break;
    case BinaryOperator::kBitOr:
      result = a | b;
      break;
    case BinaryOperator::kBitXor:
      result = a ^ b;
      break;
    default:
      break;
  }
  switch (type.id) {
    case TypeId::kTinyInt:
      overflow = overflow || result < 0 || result > 255;
      break;
    case TypeId::kSmallInt:
      overflow = overflow || result < INT16_MIN || result > INT16_MAX;
      break;
    case TypeId::kInt:
      overflow = overflow || result < INT32_MIN || result > INT32_MAX;
      break;
    default:
      break;
  }
  if (overflow) RaiseOverflow(type);
  Value value;
  value.held = result;
  return value;
}

Value DoubleResult(BinaryOperator op, double a, double b, const SqlType& type) {
  double result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      result = a + b;
      break;
    case BinaryOperator::kSubtract:
      result = a - b;
      break;
    case BinaryOperator::kMultiply:
      result = a * b;
      break;
    default:
      if (b == 0) RaiseDivideByZero();
      result = a / b;
      break;
  }
  if (type.id == TypeId::kReal)
    result = static_cast<double>(static_cast<float>(result));
  if (!std::isfinite(result)) RaiseOverflow(type);
  Value value;
  value.held = result;
  return value;
}

Value DecimalResult(BinaryOperator op, const Decimal& a, const Decimal& b,
                    const SqlType& type) {
  const std::uint8_t scale = type.id == TypeId::kDecimal ? type.scale : std::uint8_t{4};
  std::optional<Decimal> result;
  const bool divides = op == BinaryOperator::kDivide || op == BinaryOperator::kModulo;
  if (divides && b.unscaled == 0) RaiseDivideByZero();
  switch (op) {
    case BinaryOperator::kAdd:
      result = AddDecimals(a, b, scale);
      break;
    case BinaryOperator::kSubtract:
      result = AddDecimals(a, {-b.unscaled, b.scale}, scale);
      break;
    case BinaryOperator::kMultiply:
      result = MultiplyDecimals(a, b, scale);
      break;
    case BinaryOperator::kDivide:
      result = DivideDecimals(a, b, scale);
      break;
    default:
      result = ModuloDecimals(a, b, scale);
      break;
  }
  const bool money = IsMoney(type.id);
  const __int128 high = type.id == TypeId::kSmallMoney ? INT32_MAX : INT64_MAX;
  if (!result || (money && (result->unscaled > high || result->unscaled < -high - 1))) {
    RaiseOverflow(type);
  }
  Value value;
  value.held = *result;
  return value;
}

// datetime plus or minus a number of days, or another datetime as such a number.
Value DateResult(BinaryOperator op, const DateTimeValue& a, const DateTimeValue& b,
                 const SqlType& type) {
  const __int128 base = __int128{kDaysOf1900} * kTicksPerDay;
  const __int128 difference = TotalTicks(b) - base;
  const __int128 total =
      TotalTicks(a) + (op == BinaryOperator::kAdd ? difference : -difference);
  DateTimeValue moment;
  const __int128 days = total / kTicksPerDay;
  if (total < 0 || days > kDaysMax) RaiseOverflow(type);
  moment.days = static_cast<std::int32_t>(days);
  moment.ticks = static_cast<std::int64_t>(total % kTicksPerDay);
  const auto rounded = RoundTo(moment, type);
  if (!rounded) RaiseOverflow(type);
  Value value;
  value.held = *rounded;
  return value;
}

}  // namespace

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
  Context context{environment_, session_, variables_, {}, std::nullopt};
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
    const Bound low =
        Compare(BinaryOperator::kGreaterOrEqual, operand, Bind(between->low, scope));
    const Bound high =
        Compare(BinaryOperator::kLessOrEqual, operand, Bind(between->high, scope));
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

Bound Binder::ColumnOf(const Scope& scope, BoundTable& table, std::size_t column) {
  const OutputColumn& found = table.columns[column];
  table.used[column] = true;
  MarkRead(found.slot);
  if (scope.grouping == nullptr || scope.grouping->inside_aggregate) {
    return SlotReference(found);
  }
  for (const GroupKeySpec& key : scope.grouping->keys) {
    if (key.expression->slot != found.slot) continue;
    OutputColumn grouped = found;
    grouped.slot = key.slot;
    MarkRead(key.slot);
    return SlotReference(grouped);
  }
  const std::string owner = table.alias.empty() ? table.name.Text() : table.alias;
  const bool having = std::string_view(scope.clause) == "HAVING clause";
  const bool order = std::string_view(scope.clause) == "ORDER BY clause";
  RaiseSql(having  ? 8121
           : order ? 8127
                   : 8120,
           16, 1,
           "Column '" + owner + '.' + found.name + "' is invalid in the " +
               scope.clause +
               " because it is not contained in either an aggregate function or the "
               "GROUP BY clause.");
}

Bound Binder::BindColumn(const ast::ColumnReference& reference, const Scope* scope) {
  const std::string& name = reference.parts.back();
  std::string written;
  for (const std::string& part : reference.parts) {
    written += (written.empty() ? "" : ".") + part;
  }
  const std::size_t prefixes = reference.parts.size() - 1;
  const auto names_table = [&](const BoundTable& table) {
    if (prefixes == 0) return true;
    const std::string& last = reference.parts[prefixes - 1];
    if (!table.alias.empty()) {
      return prefixes == 1 && EqualsIgnoringAsciiCase(table.alias, last);
    }
    if (!EqualsIgnoringAsciiCase(table.name.object, last)) return false;
    if (prefixes == 1) return true;
    const std::string& schema = reference.parts[prefixes - 2];
    const std::string own = table.name.schema.empty() ? "dbo" : table.name.schema;
    return EqualsIgnoringAsciiCase(own, schema.empty() ? "dbo" : schema);
  };
  bool table_found = false;
  for (; scope != nullptr; scope = scope->outer) {
    BoundTable* found = nullptr;
    std::size_t index = 0;
    for (const auto& table : scope->tables) {
      if (!names_table(*table)) continue;
      table_found = table_found || prefixes > 0;
      for (std::size_t i = 0; i < table->columns.size(); ++i) {
        if (!SameIdentifier(table->columns[i].name, name, environment_)) continue;
        if (found != nullptr) {
          RaiseSql(209, 16, 1, "Ambiguous column name '" + name + "'.");
        }
        found = table.get();
        index = i;
      }
    }
    if (found != nullptr) return ColumnOf(*scope, *found, index);
    if (table_found) break;
  }
  if (prefixes == 0 || table_found) {
    RaiseSql(207, 16, 1, "Invalid column name '" + name + "'.");
  }
  RaiseSql(4104, 16, 1,
           "The multi-part identifier \"" + written + "\" could not be bound.");
}

Bound Binder::BindVariable(const ast::Variable& variable) {
  const auto at = variables_.values.find(variable.name);
  if (at == variables_.values.end()) {
    if (variables_.tables.contains(variable.name)) {
      RaiseSql(137, 16, 1,
               "Must declare the scalar variable \"" + variable.name + "\".");
    }
    RaiseSql(137, 15, 2, "Must declare the scalar variable \"" + variable.name + "\".");
  }
  auto bound = std::make_shared<BoundExpression>();
  bound->type = at->second.type;
  bound->evaluate = [held = &at->second](Context&, Value& out) { out = held->value; };
  return bound;
}

Bound Binder::BindGlobal(const ast::GlobalVariable& variable) {
  const std::string upper = UpperName(variable.name);
  auto bound = std::make_shared<BoundExpression>();
  bound->type = TypeOf(TypeId::kInt);
  bound->nullable = false;
  using Reader = std::int64_t (*)(Context&);
  Reader reader = nullptr;
  if (upper == "@@ROWCOUNT") {
    reader = [](Context& context) { return context.session.row_count; };
  } else if (upper == "@@ERROR") {
    reader = [](Context& context) -> std::int64_t {
      return context.session.error_number;
    };
  } else if (upper == "@@TRANCOUNT") {
    reader = [](Context& context) -> std::int64_t {
      return context.environment.transaction_count();
    };
  } else if (upper == "@@NESTLEVEL") {
    reader = [](Context& context) -> std::int64_t {
      return context.session.nest_level;
    };
  }
  if (reader != nullptr) {
    bound->evaluate = [reader](Context& context, Value& out) {
      out.held = reader(context);
    };
    return bound;
  }
  const auto value = environment_.GlobalVariable(upper);
  if (!value) {
    RaiseSql(137, 15, 2, "Must declare the scalar variable \"" + variable.name + "\".");
  }
  bound->type = value->type;
  bound->nullable = value->value.IsNull();
  bound->evaluate = [upper](Context& context, Value& out) {
    out = context.environment.GlobalVariable(upper)->value;
  };
  return bound;
}

Bound Binder::BindUnary(const ast::Unary& node, const Scope* scope) {
  Bound operand = Bind(node.operand, scope);
  if (node.op == ast::UnaryOperator::kNot) {
    return NewCondition(
        {operand}, [operand](Context& context) { return Not(operand->test(context)); });
  }
  if (node.op == ast::UnaryOperator::kPlus) return operand;
  const SqlType type =
      operand->type.id == TypeId::kNull ? TypeOf(TypeId::kInt) : operand->type;
  const bool minus = node.op == ast::UnaryOperator::kMinus;
  const bool fits =
      minus ? IsNumber(type.id) && type.id != TypeId::kBit : IsInteger(type.id);
  if (!fits) {
    RaiseSql(8117, 16, 1,
             "Operand data type " + TypeWord(type) + " is invalid for " +
                 (minus ? "minus" : "'~'") + " operator.");
  }
  if (!minus) {
    return Fold(Function(type, {operand}, [type](Context&, std::vector<Value>& values) {
      std::int64_t& number = std::get<std::int64_t>(values[0].held);
      number = type.id == TypeId::kBit       ? 1 - number
               : type.id == TypeId::kTinyInt ? (~number & 0xFF)
                                             : ~number;
      return std::move(values[0]);
    }));
  }
  Bound bound = Function(type, {operand}, [type](Context&, std::vector<Value>& values) {
    Value& value = values[0];
    if (auto* integer = std::get_if<std::int64_t>(&value.held)) {
      return IntegerResult(BinaryOperator::kSubtract, 0, *integer, type);
    }
    if (auto* number = std::get_if<double>(&value.held)) {
      *number = -*number;
    } else {
      auto& decimal = std::get<Decimal>(value.held);
      decimal.unscaled = -decimal.unscaled;
    }
    return std::move(value);
  });
  // -2147483648 is written as minus 2147483648, which is a decimal: SQL Server says int
  // only where the literal fits, and so do we.
  return Fold(bound);
}

Bound Binder::Convert(Bound operand, const SqlType& to, bool is_explicit, int style) {
  SqlType from = operand->type;
  if (from.id == TypeId::kNull) {
    auto bound = std::make_shared<BoundExpression>(*operand);
    bound->type = to;
    bound->slot.reset();
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

Bound Binder::Compare(BinaryOperator op, Bound left, Bound right) {
  const SqlType type = CommonType(left->type, right->type);
  if (IsLargeObject(type.id) || type.id == TypeId::kXml) {
    RaiseSql(type.id == TypeId::kXml ? 305 : 402, 16, 1,
             type.id == TypeId::kXml
                 ? std::string("The XML data type cannot be compared or sorted, except "
                               "when using the IS NULL operator.")
                 : "The data types " + TypeWord(left->type) + " and " +
                       TypeWord(right->type) + " are incompatible in the " +
                       OperatorName(op) + " operator.");
  }
  SqlType compared = type;
  if (IsText(type.id) && IsText(left->type.id) && IsText(right->type.id)) {
    using enum BoundExpression::Coercibility;
    const std::string& database = environment_.database_collation();
    const auto named = [&](const Bound& side) {
      return side->type.collation.empty() ? database : side->type.collation;
    };
    const std::string a = named(left), b = named(right);
    if (left->coercibility == right->coercibility && left->coercibility != kDefault &&
        !EqualsIgnoringAsciiCase(a, b)) {
      RaiseSql(468, 16, 9,
               "Cannot resolve the collation conflict between \"" + b + "\" and \"" +
                   a + "\" in the " + OperatorName(op) + " operation.");
    }
    compared.collation = left->coercibility <= right->coercibility ? a : b;
  }
  const CollationRule rule = RuleFor(compared);
  // Lengths do not matter in a comparison; without them nothing is cut off.
  SqlType wide = compared;
  if (IsText(wide.id) || (IsBinary(wide.id) && wide.id != TypeId::kRowVersion)) {
    const bool national = IsNationalText(wide.id);
    if (IsText(wide.id)) wide.id = national ? TypeId::kNVarChar : TypeId::kVarChar;
    if (IsBinary(wide.id)) wide.id = TypeId::kVarBinary;
    wide.length = kMax;
  }
  const auto as_compared = [&](const Bound& side) {
    const bool same_family = (IsText(side->type.id) && IsText(wide.id)) ||
                             (IsBinary(side->type.id) && IsBinary(wide.id));
    return same_family ? side : Convert(side, wide);
  };
  const Bound a = as_compared(left);
  const Bound b = as_compared(right);
  auto bound = std::make_shared<BoundExpression>();
  AddSlots(a, *bound);
  AddSlots(b, *bound);
  const auto test_values = [op, wide, rule](const Value& x, const Value& y) {
    if (x.IsNull() || y.IsNull()) return Truth::kUnknown;
    return Of(Holds(op, CompareValues(x, y, wide, rule)));
  };
  // Columns are compared where they are, without a copy.
  if (a->slot && !b->slot) {
    bound->test = [test_values, slot = *a->slot, b](Context& context) {
      Value y;
      b->evaluate(context, y);
      return test_values(context.slots[slot], y);
    };
  } else if (a->slot && b->slot) {
    bound->test = [test_values, x = *a->slot, y = *b->slot](Context& context) {
      return test_values(context.slots[x], context.slots[y]);
    };
  } else {
    bound->test = [test_values, a, b](Context& context) {
      Value x, y;
      a->evaluate(context, x);
      b->evaluate(context, y);
      return test_values(x, y);
    };
  }
  if (const auto comparison = ComparisonOf(op)) {
    bound->shape = BoundExpression::Shape::kComparison;
    bound->comparison = *comparison;
    bound->left = left;
    bound->right = right;
    bound->compared_type = wide;
    bound->rule = rule;
  }
  return bound;
}

Bound Binder::Arithmetic(BinaryOperator op, Bound left, Bound right) {
  const SqlType type = ArithmeticType(op, left->type, right->type);
  if (IsText(type.id)) {
    SqlType wide = type;
    wide.length = kMax;
    SqlType result = type;
    const Bound a = Convert(left, wide);
    const Bound b = Convert(right, wide);
    const bool null_yields_null = environment_.settings().concat_null_yields_null;
    Bound bound = Function(
        result, {a, b},
        [result](Context&, std::vector<Value>& values) {
          Value value;
          Text text;
          for (Value& part : values) {
            if (!part.IsNull()) text += std::get<Text>(part.held);
          }
          if (result.length != kMax &&
              text.size() > static_cast<std::size_t>(result.length)) {
            text.resize(static_cast<std::size_t>(result.length));
          }
          value.held = std::move(text);
          return value;
        },
        !null_yields_null);
    bound->coercibility = std::min(left->coercibility, right->coercibility);
    return Fold(bound);
  }
  if (IsBinary(type.id) && !IsInteger(left->type.id)) {
    return Fold(
        Function(type, {left, right}, [type](Context&, std::vector<Value>& values) {
          Bytes bytes = std::get<Bytes>(values[0].held);
          const Bytes& more = std::get<Bytes>(values[1].held);
          bytes.insert(bytes.end(), more.begin(), more.end());
          if (type.length != kMax && bytes.size() > 8000) {
            bytes.resize(8000);
          }
          Value value;
          value.held = std::move(bytes);
          return value;
        }));
  }
  if (type.id == TypeId::kDecimal) {
    const auto as_decimal = [&](const Bound& side) {
      if (side->type.id == TypeId::kDecimal) return side;
      SqlType own = IsExactNumber(side->type.id) ? AsDecimal(side->type) : type;
      if (IsText(side->type.id)) {
        own = left->type.id == TypeId::kDecimal ? left->type : right->type;
      }
      return Convert(side, own);
    };
    return Fold(Function(type, {as_decimal(left), as_decimal(right)},
                         [op, type](Context&, std::vector<Value>& values) {
                           return DecimalResult(op, std::get<Decimal>(values[0].held),
                                                std::get<Decimal>(values[1].held),
                                                type);
                         }));
  }
  const Bound a = Convert(left, type, true);
  const Bound b = Convert(right, type, true);
  return Fold(Function(type, {a, b}, [op, type](Context&, std::vector<Value>& values) {
    const auto& x = values[0].held;
    const auto& y = values[1].held;
    if (const auto* integer = std::get_if<std::int64_t>(&x)) {
      return IntegerResult(op, *integer, std::get<std::int64_t>(y), type);
    }
    if (const auto* number = std::get_if<double>(&x)) {
      return DoubleResult(op, *number, std::get<double>(y), type);
    }
    if (const auto* date = std::get_if<DateTimeValue>(&x)) {
      return DateResult(op, *date, std::get<DateTimeValue>(y), type);
    }
    return DecimalResult(op, std::get<Decimal>(x), std::get<Decimal>(y), type);
  }));
}

Bound Binder::BindBinary(const ast::Binary& node, const Scope* scope) {
  Bound left = Bind(node.left, scope);
  Bound right = Bind(node.right, scope);
  if (node.op == BinaryOperator::kAnd || node.op == BinaryOperator::kOr) {
    const bool both = node.op == BinaryOperator::kAnd;
    const Truth decides = both ? Truth::kFalse : Truth::kTrue;
    Bound bound = NewCondition({left, right}, [left, right, decides](Context& context) {
      const Truth first = left->test(context);
      if (first == decides) return first;
      const Truth second = right->test(context);
      if (second == decides) return second;
      return first == Truth::kUnknown ? first : second;
    });
    bound->shape = both ? BoundExpression::Shape::kAnd : BoundExpression::Shape::kOr;
    bound->left = left;
    bound->right = right;
    return bound;
  }
  if (node.op >= BinaryOperator::kEqual) {
    return Compare(node.op, std::move(left), std::move(right));
  }
  return Arithmetic(node.op, std::move(left), std::move(right));
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
    tests.push_back(Compare(BinaryOperator::kEqual, operand, Bind(item, scope)));
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

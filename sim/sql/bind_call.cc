// Function calls: aggregates, windows, built-in functions and the engine's.

#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/sql/binder.h"
#include "sim/sql/function_rules.h"
#include "sim/sql/types.h"

namespace mssql_cdc::sim {
namespace {

struct AggregateRow {
  std::string_view name;
  AggregateKind kind;
};
constexpr AggregateRow kAggregates[] = {{"COUNT", AggregateKind::kCount},
                                        {"COUNT_BIG", AggregateKind::kCount},
                                        {"SUM", AggregateKind::kSum},
                                        {"AVG", AggregateKind::kAverage},
                                        {"MIN", AggregateKind::kMinimum},
                                        {"MAX", AggregateKind::kMaximum},
                                        {"STRING_AGG", AggregateKind::kStringAgg},
                                        {"STDEV", AggregateKind::kStdev},
                                        {"STDEVP", AggregateKind::kStdevP},
                                        {"VAR", AggregateKind::kVar},
                                        {"VARP", AggregateKind::kVarP},
                                        {"CHECKSUM_AGG", AggregateKind::kChecksum}};

struct WindowRow {
  std::string_view name;
  WindowKind kind;
  std::size_t argument_min, argument_max;
};
constexpr WindowRow kWindows[] = {{"ROW_NUMBER", WindowKind::kRowNumber, 0, 0},
                                  {"RANK", WindowKind::kRank, 0, 0},
                                  {"DENSE_RANK", WindowKind::kDenseRank, 0, 0},
                                  {"PERCENT_RANK", WindowKind::kPercentRank, 0, 0},
                                  {"CUME_DIST", WindowKind::kCumeDist, 0, 0},
                                  {"NTILE", WindowKind::kNtile, 1, 1},
                                  {"LAG", WindowKind::kLag, 1, 3},
                                  {"LEAD", WindowKind::kLead, 1, 3},
                                  {"FIRST_VALUE", WindowKind::kFirstValue, 1, 1},
                                  {"LAST_VALUE", WindowKind::kLastValue, 1, 1}};

const AggregateRow* FindAggregate(const std::string& upper) {
  for (const AggregateRow& row : kAggregates) {
    if (row.name == upper) return &row;
  }
  return nullptr;
}

const WindowRow* FindWindow(const std::string& upper) {
  for (const WindowRow& row : kWindows) {
    if (row.name == upper) return &row;
  }
  return nullptr;
}

[[noreturn]] void RaiseOperand(const SqlType& type, const std::string& upper) {
  RaiseSql(8117, 16, 1,
           "Operand data type " + TypeWord(type) + " is invalid for " +
               LowerAscii(upper) + " operator.");
}

void AnyChild(const ast::Expression& expression, bool& found) {
  const auto visit = [&](const ast::ExpressionPtr& child) {
    if (child && !found) found = ContainsAggregate(*child);
  };
  std::visit(
      [&](const auto& node) {
        using T = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<T, ast::Unary> || std::is_same_v<T, ast::IsNull> ||
                      std::is_same_v<T, ast::Collate> ||
                      std::is_same_v<T, ast::InSelect> ||
                      std::is_same_v<T, ast::Quantified>) {
          visit(node.operand);
        } else if constexpr (std::is_same_v<T, ast::Convert>) {
          visit(node.operand);
          visit(node.style);
        } else if constexpr (std::is_same_v<T, ast::AtTimeZone>) {
          visit(node.operand);
          visit(node.zone);
        } else if constexpr (std::is_same_v<T, ast::Binary>) {
          visit(node.left);
          visit(node.right);
        } else if constexpr (std::is_same_v<T, ast::Like>) {
          visit(node.operand);
          visit(node.pattern);
        } else if constexpr (std::is_same_v<T, ast::Between>) {
          visit(node.operand);
          visit(node.low);
          visit(node.high);
        } else if constexpr (std::is_same_v<T, ast::InList>) {
          visit(node.operand);
          for (const auto& item : node.items) visit(item);
        } else if constexpr (std::is_same_v<T, ast::Case>) {
          visit(node.operand);
          for (const auto& [when, then] : node.branches) {
            visit(when);
            visit(then);
          }
          visit(node.otherwise);
        } else if constexpr (std::is_same_v<T, ast::Call>) {
          for (const auto& argument : node.arguments) visit(argument);
          if (node.over) {
            for (const auto& part : node.over->partition) visit(part);
            for (const auto& item : node.over->order) visit(item.expression);
          }
        }
      },
      expression.node);
}

}  // namespace

bool IsAggregateName(const std::string& upper) {
  return FindAggregate(upper) != nullptr;
}

bool ContainsAggregate(const ast::Expression& expression) {
  if (const auto* call = std::get_if<ast::Call>(&expression.node)) {
    if (!call->over && call->name.size() == 1 &&
        IsAggregateName(UpperName(call->name[0]))) {
      return true;
    }
  }
  bool found = false;
  AnyChild(expression, found);
  return found;
}

Bound Binder::BindCall(const ast::ExpressionPtr& expression, const ast::Call& call,
                       const Scope* scope) {
  if (call.name.size() > 1) return BindEngineFunction(call, scope);
  const std::string upper = UpperName(call.name[0]);
  if (call.over) return BindWindow(call, scope);
  if (!IsOfRelease(upper, environment_)) {
    RaiseSql(195, 15, 10,
             "'" + call.name[0] + "' is not a recognized built-in function name.");
  }
  if (IsAggregateName(upper)) return BindAggregate(expression, call, scope);
  if (FindWindow(upper) != nullptr) {
    RaiseSql(10753, 15, 1,
             "The function '" + call.name[0] + "' must have an OVER clause.");
  }
  if (call.star || call.distinct) {
    RaiseSql(
        102, 15, 1,
        std::string("Incorrect syntax near '") + (call.star ? "*" : "distinct") + "'.");
  }
  const BuiltIn built_in = FindBuiltIn(upper);
  if (built_in == nullptr) return BindEngineFunction(call, scope);
  std::vector<Bound> arguments;
  for (const ast::ExpressionPtr& argument : call.arguments) {
    arguments.push_back(Bind(argument, scope));
  }
  CheckArgumentTypes(upper, call, arguments);
  return built_in(*this, call, arguments);
}

Bound Binder::BindEngineFunction(const ast::Call& call, const Scope* scope) {
  ObjectName name;
  std::string text;
  for (const std::string& part : call.name) text += (text.empty() ? "" : ".") + part;
  const std::size_t count = call.name.size();
  name.object = call.name[count - 1];
  if (count > 1) name.schema = call.name[count - 2];
  if (count > 2) name.database = call.name[count - 3];
  const auto function = environment_.FindScalarFunction(name);
  if (!function) {
    if (count == 1) {
      RaiseSql(195, 15, 10,
               "'" + text + "' is not a recognized built-in function name.");
    }
    RaiseSql(4121, 16, 1,
             "Cannot find either column \"" + call.name[0] +
                 "\" or the user-defined function or aggregate \"" + text +
                 "\", or the name is ambiguous.");
  }
  const std::size_t most = function->parameters.size();
  if (call.arguments.size() > most ||
      call.arguments.size() < function->argument_count_min) {
    if (count > 1 && call.arguments.size() < function->argument_count_min) {
      RaiseSql(313, 16, 3,
               "An insufficient number of arguments were supplied for the procedure or "
               "function " +
                   text + ".");
    }
    if (count > 1) {
      RaiseSql(8144, 16, 3,
               "Procedure or function " + text + " has too many arguments specified.");
    }
    RaiseSql(174, 15, 1,
             "The " + LowerAscii(text) + " function requires " +
                 std::to_string(function->argument_count_min) + " argument(s).");
  }
  auto bound = std::make_shared<BoundExpression>();
  bound->type = function->result;
  std::vector<Bound> arguments;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (std::holds_alternative<ast::DefaultKeyword>(call.arguments[i]->node)) {
      arguments.push_back(nullptr);
      continue;
    }
    Bound argument = Bind(call.arguments[i], scope);
    if (function->parameters[i].id != TypeId::kNull) {
      argument = Convert(argument, function->parameters[i], IsMoney(argument->type.id));
    }
    bound->slots.insert(bound->slots.end(), argument->slots.begin(),
                        argument->slots.end());
    arguments.push_back(std::move(argument));
  }
  bound->evaluate = [arguments, call_engine = function->call](Context& context,
                                                              Value& out) {
    std::vector<std::optional<TypedValue>> values;
    for (const Bound& argument : arguments) {
      values.emplace_back();
      if (argument) values.back() = TypedValue{argument->type, argument->Get(context)};
    }
    out = call_engine(values);
  };
  return bound;
}

AggregateSpec Binder::MakeAggregateSpec(const ast::Call& call, const std::string& upper,
                                        const Scope* scope) {
  AggregateSpec spec;
  spec.kind = FindAggregate(upper)->kind;
  spec.distinct = call.distinct;
  const std::size_t wanted = spec.kind == AggregateKind::kStringAgg ? 2 : 1;
  if (call.star && spec.kind != AggregateKind::kCount) {
    RaiseSql(102, 15, 1, "Incorrect syntax near '*'.");
  }
  if (!call.star && call.arguments.size() != wanted) {
    RaiseSql(174, 15, 1,
             "The " + LowerAscii(upper) + " function requires " +
                 std::to_string(wanted) + " argument(s).");
  }
  if (spec.kind == AggregateKind::kCount) {
    spec.type = TypeOf(upper == "COUNT" ? TypeId::kInt : TypeId::kBigInt);
    if (call.star) return spec;
  }
  Bound argument = Bind(call.arguments[0], scope);
  const SqlType type = argument->type;
  spec.rule = RuleFor(type);
  switch (spec.kind) {
    case AggregateKind::kCount:
      break;
    case AggregateKind::kMinimum:
    case AggregateKind::kMaximum:
      if (type.id == TypeId::kBit || type.id == TypeId::kXml ||
          IsLargeObject(type.id) || type.id == TypeId::kNull) {
        RaiseOperand(type, upper);
      }
      spec.type = type;
      break;
    case AggregateKind::kStringAgg:
      argument = Convert(
          argument, IsNationalText(type.id) ? NVarCharType(kMax) : VarCharType(kMax));
      spec.type = argument->type;
      if (type.length != kMax) spec.type.length = IsNationalText(type.id) ? 4000 : 8000;
      spec.separator = Convert(Bind(call.arguments[1], scope), NVarCharType(kMax));
      for (const ast::OrderItem& item : call.within_group) {
        const Bound key = Bind(item.expression, scope);
        spec.within.push_back({key, item.descending, RuleFor(key->type)});
      }
      break;
    case AggregateKind::kChecksum:
      spec.type = TypeOf(TypeId::kInt);
      argument = Convert(argument, spec.type);
      break;
    case AggregateKind::kSum:
    case AggregateKind::kAverage:
      if (!IsNumber(type.id) || type.id == TypeId::kBit) RaiseOperand(type, upper);
      if (IsInteger(type.id)) {
        spec.type = TypeOf(type.id == TypeId::kBigInt ? TypeId::kBigInt : TypeId::kInt);
      } else if (IsMoney(type.id)) {
        spec.type = TypeOf(TypeId::kMoney);
        spec.type.scale = 4;
      } else if (type.id == TypeId::kDecimal) {
        const bool average = spec.kind == AggregateKind::kAverage;
        spec.type =
            DecimalType(38, average ? std::max<int>(type.scale, 6) : type.scale);
      } else {
        spec.type = TypeOf(TypeId::kFloat);
      }
      break;
    default:
      if (!IsNumber(type.id)) RaiseOperand(type, upper);
      spec.type = TypeOf(TypeId::kFloat);
      argument = Convert(argument, spec.type);
      break;
  }
  spec.argument = argument;
  return spec;
}

Bound Binder::BindAggregate(const ast::ExpressionPtr& expression, const ast::Call& call,
                            const Scope* scope) {
  if (scope == nullptr || scope->grouping == nullptr) {
    RaiseSql(
        147, 15, 1,
        "An aggregate may not appear in the WHERE clause unless it is in a subquery "
        "contained in a HAVING clause or a select list, and the column being "
        "aggregated is an outer reference.");
  }
  Grouping& grouping = *scope->grouping;
  if (grouping.inside_aggregate) {
    RaiseSql(130, 15, 1,
             "Cannot perform an aggregate function on an expression containing an "
             "aggregate or a subquery.");
  }
  const std::string text = NormalText(*expression);
  std::size_t index = 0;
  while (index < grouping.aggregates.size() &&
         grouping.aggregate_texts[index] != text) {
    ++index;
  }
  if (index == grouping.aggregates.size()) {
    grouping.inside_aggregate = true;
    AggregateSpec spec;
    try {
      spec = MakeAggregateSpec(call, UpperName(call.name[0]), scope);
    } catch (...) {
      grouping.inside_aggregate = false;
      throw;
    }
    grouping.inside_aggregate = false;
    spec.slot = NewSlot();
    grouping.aggregates.push_back(std::move(spec));
    grouping.aggregate_texts.push_back(text);
  }
  OutputColumn column;
  column.type = grouping.aggregates[index].type;
  if (IsMoney(column.type.id)) column.type.scale = 0;
  column.nullable = grouping.aggregates[index].kind != AggregateKind::kCount;
  column.slot = grouping.aggregates[index].slot;
  MarkRead(column.slot);
  Bound bound = SlotReference(column);
  bound->name.clear();
  return bound;
}

Bound Binder::BindWindow(const ast::Call& call, const Scope* scope) {
  if (scope == nullptr || scope->windows == nullptr) {
    RaiseSql(4108, 15, 1,
             "Windowed functions can only appear in the SELECT or ORDER BY clauses.");
  }
  const std::string upper = UpperName(call.name[0]);
  WindowSpec spec;
  spec.has_frame = call.over->has_frame;
  spec.rows = call.over->rows;
  spec.first = call.over->first;
  spec.last = call.over->last;
  for (const ast::ExpressionPtr& part : call.over->partition) {
    const Bound key = Bind(part, scope);
    spec.partition.push_back({key, 0, RuleFor(key->type)});
  }
  for (const ast::OrderItem& item : call.over->order) {
    if (std::holds_alternative<ast::Literal>(item.expression->node)) {
      RaiseSql(5308, 16, 1,
               "Windowed functions, aggregates and NEXT VALUE FOR functions do not "
               "support integer indices as ORDER BY clause expressions.");
    }
    const Bound key = Bind(item.expression, scope);
    spec.order.push_back({key, item.descending, RuleFor(key->type)});
  }
  if (IsAggregateName(upper)) {
    if (call.distinct) {
      RaiseSql(10759, 15, 1, "Use of DISTINCT is not allowed with the OVER clause.");
    }
    spec.kind = WindowKind::kAggregate;
    spec.aggregate = MakeAggregateSpec(call, upper, scope);
    spec.type = spec.aggregate->type;
  } else {
    const WindowRow* row = FindWindow(upper);
    if (row == nullptr) {
      RaiseSql(
          FindBuiltIn(upper) != nullptr ? 10758 : 195, 15, 1,
          FindBuiltIn(upper) != nullptr
              ? "The function '" + call.name[0] +
                    "' may not have a window frame or OVER clause."
              : "'" + call.name[0] + "' is not a recognized built-in function name.");
    }
    if (call.arguments.size() < row->argument_min ||
        call.arguments.size() > row->argument_max) {
      RaiseSql(174, 15, 1,
               "The " + LowerAscii(upper) + " function requires " +
                   std::to_string(row->argument_max) + " argument(s).");
    }
    if (spec.order.empty()) {
      RaiseSql(4112, 15, 1,
               "The function '" + call.name[0] +
                   "' must have an OVER clause with ORDER BY.");
    }
    spec.kind = row->kind;
    spec.type = TypeOf(TypeId::kBigInt);
    if (row->kind == WindowKind::kPercentRank || row->kind == WindowKind::kCumeDist) {
      spec.type = TypeOf(TypeId::kFloat);
    }
    if (row->kind == WindowKind::kNtile) {
      spec.offset = Convert(Bind(call.arguments[0], scope), TypeOf(TypeId::kBigInt));
    } else if (row->argument_max > 0) {
      spec.argument = Bind(call.arguments[0], scope);
      spec.type = spec.argument->type;
      if (call.arguments.size() > 1) {
        spec.offset = Convert(Bind(call.arguments[1], scope), TypeOf(TypeId::kBigInt));
      }
      if (call.arguments.size() > 2) {
        spec.default_value = Convert(Bind(call.arguments[2], scope), spec.type);
      }
    }
  }
  spec.slot = NewSlot();
  OutputColumn column;
  column.type = spec.type;
  if (column.type.id == TypeId::kInt) column.type.precision = 0;
  column.slot = spec.slot;
  scope->windows->push_back(std::move(spec));
  MarkRead(column.slot);
  Bound bound = SlotReference(column);
  bound->coercibility = BoundExpression::Coercibility::kDefault;
  return bound;
}

}  // namespace mssql_cdc::sim

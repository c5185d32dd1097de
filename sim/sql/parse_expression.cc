#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/sql/decimals.h"
#include "sim/sql/environment.h"
#include "sim/sql/numbers.h"
#include "sim/sql/parser.h"

namespace mssql_cdc::sim {
namespace {

using ast::BinaryOperator;

// Functions whose first argument is the name of a date part.
constexpr std::array kDatePartFunctions =
    std::to_array<std::string_view>({"DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATEPART",
                                     "DATENAME", "DATETRUNC", "DATE_BUCKET"});

// Functions that are written without parentheses.
constexpr std::array kBareFunctions = std::to_array<std::string_view>(
    {"CURRENT_TIMESTAMP", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER",
     "CURRENT_DATE"});

// Reserved words that are functions when a parenthesis follows.
constexpr std::array kReservedFunctions =
    std::to_array<std::string_view>({"LEFT", "RIGHT", "COALESCE", "NULLIF", "USER"});

SqlType TextLiteralType(const Token& token, const Text& text) {
  SqlType type;
  const bool national = token.kind == TokenKind::kNationalString;
  type.id = national ? TypeId::kNVarChar : TypeId::kVarChar;
  const auto length = static_cast<std::int32_t>(text.size());
  type.length = std::max(length, 1);
  if (type.length > (national ? 4000 : 8000)) type.length = kMax;
  return type;
}

}  // namespace

bool IsCondition(const ast::Expression& expression) {
  const auto& node = expression.node;
  if (const auto* unary = std::get_if<ast::Unary>(&node)) {
    return unary->op == ast::UnaryOperator::kNot;
  }
  if (const auto* binary = std::get_if<ast::Binary>(&node)) {
    return binary->op >= BinaryOperator::kEqual;
  }
  return std::holds_alternative<ast::IsNull>(node) ||
         std::holds_alternative<ast::Like>(node) ||
         std::holds_alternative<ast::Between>(node) ||
         std::holds_alternative<ast::InList>(node) ||
         std::holds_alternative<ast::InSelect>(node) ||
         std::holds_alternative<ast::Exists>(node) ||
         std::holds_alternative<ast::Quantified>(node);
}

ast::ExpressionPtr Parser::ParseExpression() {
  const Depth depth(*this);
  ast::ExpressionPtr expression = ParseAdditive();
  if (IsCondition(*expression)) Fail();
  return expression;
}

ast::ExpressionPtr Parser::ParseCondition() {
  ast::ExpressionPtr expression = ParseOr();
  if (!IsCondition(*expression)) {
    const Token& near = Peek().kind == TokenKind::kEnd && tokens_.size() > 1
                            ? tokens_[tokens_.size() - 2]
                            : Peek();
    throw SqlError{{4145, 1, 15,
                    "An expression of non-boolean type specified in a context where a "
                    "condition is expected, near '" +
                        near.text + "'.",
                    "", near.line}};
  }
  return expression;
}

ast::ExpressionPtr Parser::ParseOr() {
  const Depth depth(*this);
  const Token first = Peek();
  ast::ExpressionPtr left = ParseAnd();
  while (IsWord("OR")) {
    if (!IsCondition(*left)) Fail();
    Next();
    ast::ExpressionPtr right = ParseAnd();
    if (!IsCondition(*right)) Fail();
    left = Make(first.begin, first.line,
                ast::Binary{BinaryOperator::kOr, std::move(left), std::move(right)});
  }
  return left;
}

ast::ExpressionPtr Parser::ParseAnd() {
  const Token first = Peek();
  ast::ExpressionPtr left = ParseNot();
  while (IsWord("AND")) {
    if (!IsCondition(*left)) Fail();
    Next();
    ast::ExpressionPtr right = ParseNot();
    if (!IsCondition(*right)) Fail();
    left = Make(first.begin, first.line,
                ast::Binary{BinaryOperator::kAnd, std::move(left), std::move(right)});
  }
  return left;
}

ast::ExpressionPtr Parser::ParseNot() {
  const Token first = Peek();
  if (!AcceptWord("NOT")) return ParsePredicate();
  const Depth depth(*this);
  ast::ExpressionPtr operand = ParseNot();
  if (!IsCondition(*operand)) Fail();
  return Make(first.begin, first.line,
              ast::Unary{ast::UnaryOperator::kNot, std::move(operand)});
}

ast::ExpressionPtr Parser::ParsePredicate() {
  const Token first = Peek();
  if (AcceptWord("EXISTS")) {
    ExpectSymbol("(");
    ast::SelectPtr select = ParseSelect();
    ExpectSymbol(")");
    return Make(first.begin, first.line, ast::Exists{std::move(select)});
  }
  ast::ExpressionPtr left = ParseAdditive();
  if (IsCondition(*left)) return left;
  return ParsePredicateTail(std::move(left), first.begin);
}

ast::ExpressionPtr Parser::ParsePredicateTail(ast::ExpressionPtr left,
                                              std::size_t begin) {
  struct OperatorRow {
    std::string_view symbol;
    BinaryOperator op;
  };
  static constexpr OperatorRow kComparisons[] = {
      {"=", BinaryOperator::kEqual},           {"<>", BinaryOperator::kNotEqual},
      {"!=", BinaryOperator::kNotEqual},       {"<", BinaryOperator::kLess},
      {"<=", BinaryOperator::kLessOrEqual},    {">", BinaryOperator::kGreater},
      {">=", BinaryOperator::kGreaterOrEqual}, {"!>", BinaryOperator::kLessOrEqual},
      {"!<", BinaryOperator::kGreaterOrEqual}};
  const std::int32_t line = left->line;
  for (const OperatorRow& row : kComparisons) {
    if (!AcceptSymbol(row.symbol)) continue;
    if (IsWord("ANY") || IsWord("SOME") || IsWord("ALL")) {
      const bool all = Next().upper == "ALL";
      ExpectSymbol("(");
      ast::SelectPtr select = ParseSelect();
      ExpectSymbol(")");
      return Make(begin, line, ast::Quantified{row.op, left, std::move(select), all});
    }
    ast::ExpressionPtr right = ParseExpression();
    return Make(begin, line, ast::Binary{row.op, std::move(left), std::move(right)});
  }
  if (AcceptWord("IS")) {
    const bool negated = AcceptWord("NOT");
    ExpectWord("NULL");
    return Make(begin, line, ast::IsNull{std::move(left), negated});
  }
  const bool negated =
      IsWord("NOT") && (IsWord("LIKE", 1) || IsWord("IN", 1) || IsWord("BETWEEN", 1));
  if (negated) Next();
  if (AcceptWord("LIKE")) {
    ast::ExpressionPtr pattern = ParseExpression();
    ast::ExpressionPtr escape;
    if (AcceptWord("ESCAPE")) escape = ParseExpression();
    return Make(begin, line, ast::Like{left, pattern, escape, negated});
  }
  if (AcceptWord("BETWEEN")) {
    ast::ExpressionPtr low = ParseExpression();
    ExpectWord("AND");
    ast::ExpressionPtr high = ParseExpression();
    return Make(begin, line, ast::Between{left, low, high, negated});
  }
  if (AcceptWord("IN")) return ParseIn(std::move(left), negated, begin);
  return left;
}

ast::ExpressionPtr Parser::ParseIn(ast::ExpressionPtr left, bool negated,
                                   std::size_t begin) {
  const std::int32_t line = left->line;
  ExpectSymbol("(");
  if (StartsSelect()) {
    ast::SelectPtr select = ParseSelect();
    ExpectSymbol(")");
    return Make(begin, line, ast::InSelect{left, std::move(select), negated});
  }
  std::vector<ast::ExpressionPtr> items;
  do {
    items.push_back(ParseExpression());
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
  return Make(begin, line, ast::InList{left, std::move(items), negated});
}

ast::ExpressionPtr Parser::ParseAdditive() {
  struct OperatorRow {
    std::string_view symbol;
    BinaryOperator op;
  };
  static constexpr OperatorRow kRows[] = {{"+", BinaryOperator::kAdd},
                                          {"-", BinaryOperator::kSubtract},
                                          {"&", BinaryOperator::kBitAnd},
                                          {"|", BinaryOperator::kBitOr},
                                          {"^", BinaryOperator::kBitXor}};
  const Token first = Peek();
  ast::ExpressionPtr left = ParseMultiplicative();
  for (bool found = true; found;) {
    found = false;
    for (const OperatorRow& row : kRows) {
      if (!IsSymbol(row.symbol)) continue;
      if (IsCondition(*left)) Fail();
      Next();
      ast::ExpressionPtr right = ParseMultiplicative();
      if (IsCondition(*right)) Fail();
      left = Make(first.begin, first.line,
                  ast::Binary{row.op, std::move(left), std::move(right)});
      found = true;
      break;
    }
  }
  return left;
}

ast::ExpressionPtr Parser::ParseMultiplicative() {
  struct OperatorRow {
    std::string_view symbol;
    BinaryOperator op;
  };
  static constexpr OperatorRow kRows[] = {{"*", BinaryOperator::kMultiply},
                                          {"/", BinaryOperator::kDivide},
                                          {"%", BinaryOperator::kModulo}};
  const Token first = Peek();
  ast::ExpressionPtr left = ParseUnary();
  for (bool found = true; found;) {
    found = false;
    for (const OperatorRow& row : kRows) {
      if (!IsSymbol(row.symbol)) continue;
      if (IsCondition(*left)) Fail();
      Next();
      ast::ExpressionPtr right = ParseUnary();
      if (IsCondition(*right)) Fail();
      left = Make(first.begin, first.line,
                  ast::Binary{row.op, std::move(left), std::move(right)});
      found = true;
      break;
    }
  }
  return left;
}

ast::ExpressionPtr Parser::ParseUnary() {
  const Depth depth(*this);
  const Token first = Peek();
  std::optional<ast::UnaryOperator> op;
  if (AcceptSymbol("-")) op = ast::UnaryOperator::kMinus;
  if (!op && AcceptSymbol("+")) op = ast::UnaryOperator::kPlus;
  if (!op && AcceptSymbol("~")) op = ast::UnaryOperator::kBitNot;
  if (!op) return ParsePostfix();
  ast::ExpressionPtr operand = ParseUnary();
  if (IsCondition(*operand)) Fail();
  return Make(first.begin, first.line, ast::Unary{*op, std::move(operand)});
}

ast::ExpressionPtr Parser::ParsePostfix() {
  const Token first = Peek();
  ast::ExpressionPtr operand = ParsePrimary();
  for (;;) {
    if (AcceptWord("COLLATE")) {
      std::string collation = ParseName();
      operand = Make(first.begin, first.line,
                     ast::Collate{std::move(operand), std::move(collation)});
    } else if (AreWords({"AT", "TIME", "ZONE"})) {
      AcceptWords({"AT", "TIME", "ZONE"});
      ast::ExpressionPtr zone = ParsePrimary();
      operand =
          Make(first.begin, first.line, ast::AtTimeZone{operand, std::move(zone)});
    } else {
      return operand;
    }
  }
}

ast::ExpressionPtr Parser::ParsePrimary() {
  const Token first = Peek();
  switch (first.kind) {
    case TokenKind::kString:
    case TokenKind::kNationalString:
    case TokenKind::kInteger:
    case TokenKind::kDecimal:
    case TokenKind::kFloat:
    case TokenKind::kMoney:
    case TokenKind::kBinary:
      return ParseLiteral();
    case TokenKind::kVariable:
      Next();
      return Make(first.begin, first.line, ast::Variable{first.text});
    case TokenKind::kGlobal:
      Next();
      return Make(first.begin, first.line, ast::GlobalVariable{first.text});
    case TokenKind::kSymbol: {
      if (!AcceptSymbol("(")) Fail();
      if (StartsSelect()) {
        ast::SelectPtr select = ParseSelect();
        ExpectSymbol(")");
        return Make(first.begin, first.line, ast::ScalarSelect{std::move(select)});
      }
      ast::ExpressionPtr inner = ParseOr();
      ExpectSymbol(")");
      return inner;
    }
    case TokenKind::kEnd:
      Fail();
    case TokenKind::kQuotedName:
    case TokenKind::kWord:
      break;
  }
  if (AcceptWord("NULL")) {
    SqlType type;
    type.id = TypeId::kNull;
    return Make(first.begin, first.line, ast::Literal{type, Value()});
  }
  if (IsWord("CASE")) return ParseCase();
  const bool converts = IsWord("CAST") || IsWord("TRY_CAST") || IsWord("CONVERT") ||
                        IsWord("TRY_CONVERT");
  if (converts && IsSymbol("(", 1)) return ParseConvert();
  return ParseNameOrCall();
}

ast::ExpressionPtr Parser::ParseLiteral() {
  const Token token = Next();
  ast::Literal literal;
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kDecimal: {
      const std::optional<std::int64_t> integer = ParseInt64(token.text);
      if (integer && *integer <= 0x7FFFFFFF) {
        literal.type.id = TypeId::kInt;
        literal.value.held = *integer;
        break;
      }
      const std::optional<Decimal> decimal = ParseDecimal(token.text);
      if (!decimal) {
        throw SqlError{{1007, 1, 15,
                        "The number '" + token.text +
                            "' is out of the range for numeric representation "
                            "(maximum precision 38).",
                        "", token.line}};
      }
      literal.type.id = TypeId::kDecimal;
      literal.type.scale = decimal->scale;
      literal.type.precision = std::max<std::uint8_t>(
          {DecimalDigits(*decimal), decimal->scale, std::uint8_t{1}});
      literal.value.held = *decimal;
      break;
    }
    case TokenKind::kFloat:
      literal.type.id = TypeId::kFloat;
      if (token.text.find_first_of("eE") != std::string::npos) {
        // "1e" means 1e0; a digit appended to a written exponent would change it.
        const char last = token.text.back();
        const bool bare = last == 'e' || last == 'E' || last == '+' || last == '-';
        const auto number = ParseDouble(bare ? token.text + "0" : token.text);
        if (!number) {
          throw SqlError{{168, 1, 15,
                          "The floating point value '" + token.text +
                              "' is out of the range of computer representation (8 "
                              "bytes).",
                          "", token.line}};
        }
        literal.value.held = *number;
      }
      break;
    case TokenKind::kMoney: {
      const std::optional<Decimal> decimal = ParseDecimal(token.text);
      const std::optional<Decimal> money =
          decimal ? Rescale(*decimal, 4) : std::nullopt;
      if (!money) FailAt(token);
      literal.type.id = TypeId::kMoney;
      literal.value.held = *money;
      break;
    }
    case TokenKind::kBinary: {
      std::string digits = token.text;
      if (digits.size() % 2 != 0) digits.insert(digits.begin(), '0');
      Bytes bytes = BytesFromHex(digits);
      literal.type.id = TypeId::kVarBinary;
      literal.type.length = std::max(static_cast<std::int32_t>(bytes.size()), 1);
      if (literal.type.length > 8000) literal.type.length = kMax;
      literal.value.held = std::move(bytes);
      break;
    }
    default: {
      Text text = Utf16(token.text);
      literal.type = TextLiteralType(token, text);
      literal.value.held = std::move(text);
      break;
    }
  }
  return Make(token.begin, token.line, std::move(literal));
}

ast::ExpressionPtr Parser::ParseCase() {
  const Token first = Next();
  ast::Case node;
  if (!IsWord("WHEN")) node.operand = ParseExpression();
  while (AcceptWord("WHEN")) {
    ast::ExpressionPtr when = node.operand ? ParseExpression() : ParseCondition();
    ExpectWord("THEN");
    ast::ExpressionPtr then = ParseExpression();
    node.branches.emplace_back(std::move(when), std::move(then));
  }
  if (node.branches.empty()) Fail();
  if (AcceptWord("ELSE")) node.otherwise = ParseExpression();
  ExpectWord("END");
  return Make(first.begin, first.line, std::move(node));
}

ast::ExpressionPtr Parser::ParseConvert() {
  const Token first = Next();
  ast::Convert node;
  node.attempt = first.upper.starts_with("TRY_");
  ExpectSymbol("(");
  if (first.upper.ends_with("CAST")) {
    node.operand = ParseExpression();
    ExpectWord("AS");
    node.type = ParseType();
  } else {
    node.type = ParseType();
    ExpectSymbol(",");
    node.operand = ParseExpression();
    if (AcceptSymbol(",")) node.style = ParseExpression();
  }
  ExpectSymbol(")");
  return Make(first.begin, first.line, std::move(node));
}

ast::ExpressionPtr Parser::ParseNameOrCall() {
  const Token first = Peek();
  const auto listed = [&](const auto& list) {
    return first.kind == TokenKind::kWord &&
           std::find(list.begin(), list.end(), first.upper) != list.end();
  };
  if (listed(kReservedFunctions) && IsSymbol("(", 1)) {
    Next();
    return ParseCall({first.text}, first.begin);
  }
  if (listed(kBareFunctions) && !IsSymbol("(", 1)) {
    Next();
    ast::Call call;
    call.name = {first.text};
    return Make(first.begin, first.line, std::move(call));
  }
  std::vector<std::string> parts = ParseNameParts(4);
  if (IsSymbol("(")) return ParseCall(std::move(parts), first.begin);
  return Make(first.begin, first.line, ast::ColumnReference{std::move(parts)});
}

ast::ExpressionPtr Parser::ParseArgument() {
  const Token first = Peek();
  if (AcceptWord("DEFAULT")) {
    return Make(first.begin, first.line, ast::DefaultKeyword{});
  }
  return ParseExpression();
}

std::vector<ast::ExpressionPtr> Parser::ParseArguments() {
  std::vector<ast::ExpressionPtr> arguments;
  ExpectSymbol("(");
  if (AcceptSymbol(")")) return arguments;
  do {
    arguments.push_back(ParseArgument());
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
  return arguments;
}

ast::ExpressionPtr Parser::ParseCall(std::vector<std::string> name, std::size_t begin) {
  const std::int32_t line = Peek().line;
  ast::Call call;
  call.name = std::move(name);
  ExpectSymbol("(");
  std::string upper;
  for (const char c : call.name.back()) {
    upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  const bool single = call.name.size() == 1;
  if (single && std::find(kDatePartFunctions.begin(), kDatePartFunctions.end(),
                          upper) != kDatePartFunctions.end()) {
    call.date_part = LowerAscii(ParseName());
    if (IsSymbol(")")) Fail();
    ExpectSymbol(",");
  }
  if (IsSymbol("*") && IsSymbol(")", 1)) {
    Next();
    call.star = true;
  } else if (upper == "IIF" && single) {
    call.arguments.push_back(ParseCondition());
    if (!IsSymbol(")")) ExpectSymbol(",");
  } else {
    call.distinct = AcceptWord("DISTINCT");
    if (!call.distinct) AcceptWord("ALL");
  }
  if (!IsSymbol(")") && !call.star) {
    do {
      call.arguments.push_back(ParseArgument());
    } while (AcceptSymbol(","));
  }
  ExpectSymbol(")");
  if (AcceptWords({"WITHIN", "GROUP"})) {
    ExpectSymbol("(");
    ExpectWord("ORDER");
    ExpectWord("BY");
    call.within_group = ParseOrderList();
    ExpectSymbol(")");
  }
  if (AcceptWord("OVER")) call.over = ParseWindow();
  return Make(begin, line, std::move(call));
}

std::vector<ast::OrderItem> Parser::ParseOrderList() {
  std::vector<ast::OrderItem> items;
  do {
    ast::OrderItem item;
    item.expression = ParseExpression();
    if (AcceptWord("DESC")) {
      item.descending = true;
    } else {
      AcceptWord("ASC");
    }
    items.push_back(std::move(item));
  } while (AcceptSymbol(","));
  return items;
}

ast::FrameBound Parser::ParseFrameBound() {
  using Kind = ast::FrameBound::Kind;
  if (AcceptWords({"UNBOUNDED", "PRECEDING"})) return {Kind::kUnboundedPreceding, 0};
  if (AcceptWords({"UNBOUNDED", "FOLLOWING"})) return {Kind::kUnboundedFollowing, 0};
  if (AcceptWord("CURRENT")) {
    ExpectWord("ROW");
    return {Kind::kCurrentRow, 0};
  }
  const std::int64_t offset = ParseSignedInteger();
  if (AcceptWord("PRECEDING")) return {Kind::kPreceding, offset};
  ExpectWord("FOLLOWING");
  return {Kind::kFollowing, offset};
}

std::shared_ptr<const ast::Window> Parser::ParseWindow() {
  auto window = std::make_shared<ast::Window>();
  ExpectSymbol("(");
  if (AcceptWord("PARTITION")) {
    ExpectWord("BY");
    do {
      window->partition.push_back(ParseExpression());
    } while (AcceptSymbol(","));
  }
  if (AcceptWord("ORDER")) {
    ExpectWord("BY");
    window->order = ParseOrderList();
  }
  if (IsWord("ROWS") || IsWord("RANGE")) {
    window->rows = Next().upper == "ROWS";
    window->has_frame = true;
    if (AcceptWord("BETWEEN")) {
      window->first = ParseFrameBound();
      ExpectWord("AND");
      window->last = ParseFrameBound();
    } else {
      window->first = ParseFrameBound();
    }
  }
  ExpectSymbol(")");
  return window;
}

}  // namespace mssql_cdc::sim

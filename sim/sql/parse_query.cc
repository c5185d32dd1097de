#include "sim/sql/environment.h"
#include "sim/sql/parser.h"

namespace mssql_cdc::sim {

using ast::BinaryOperator;

bool Parser::StartsSelect(std::size_t ahead) const {
  while (IsSymbol("(", ahead)) ++ahead;
  return IsWord("SELECT", ahead);
}

ast::SelectPtr Parser::ParseSelect(bool allow_with) {
  const Depth depth(*this);
  auto select = std::make_shared<ast::Select>();
  select->line = Peek().line;
  if (allow_with && IsWord("WITH")) select->with = ParseWith();
  select->body = ParseQueryExpression();
  if (AcceptWord("ORDER")) {
    ExpectWord("BY");
    select->order_by = ParseOrderList();
    if (AcceptWord("OFFSET")) {
      select->offset = ParseExpression();
      if (!AcceptWord("ROWS")) ExpectWord("ROW");
      if (AcceptWord("FETCH")) {
        if (!AcceptWord("NEXT")) ExpectWord("FIRST");
        select->fetch = ParseExpression();
        if (!AcceptWord("ROWS")) ExpectWord("ROW");
        ExpectWord("ONLY");
      }
    }
  }
  return select;
}

std::vector<ast::CommonTable> Parser::ParseWith() {
  ExpectWord("WITH");
  std::vector<ast::CommonTable> tables;
  do {
    ast::CommonTable table;
    table.line = Peek().line;
    table.name = ParseName();
    if (IsSymbol("(")) table.columns = ParseNameList();
    ExpectWord("AS");
    ExpectSymbol("(");
    table.select = ParseSelect(false);
    ExpectSymbol(")");
    tables.push_back(std::move(table));
  } while (AcceptSymbol(","));
  return tables;
}

ast::QueryExpressionPtr Parser::ParseQueryExpression() {
  ast::QueryExpressionPtr left = ParseQueryTerm();
  while (IsWord("UNION") || IsWord("EXCEPT")) {
    ast::SetOperation operation;
    operation.op = ast::SetOperator::kExcept;
    const std::int32_t line = Peek().line;
    if (Next().upper == "UNION") {
      operation.op =
          AcceptWord("ALL") ? ast::SetOperator::kUnionAll : ast::SetOperator::kUnion;
    }
    operation.left = std::move(left);
    operation.right = ParseQueryTerm();
    left = std::make_shared<ast::QueryExpression>(
        ast::QueryExpression{line, std::move(operation)});
  }
  return left;
}

ast::QueryExpressionPtr Parser::ParseQueryTerm() {
  ast::QueryExpressionPtr left = ParseQueryPrimary();
  while (IsWord("INTERSECT")) {
    const std::int32_t line = Next().line;
    ast::SetOperation operation{ast::SetOperator::kIntersect, std::move(left),
                                ParseQueryPrimary()};
    left = std::make_shared<ast::QueryExpression>(
        ast::QueryExpression{line, std::move(operation)});
  }
  return left;
}

ast::QueryExpressionPtr Parser::ParseQueryPrimary() {
  const Depth depth(*this);
  if (AcceptSymbol("(")) {
    ast::QueryExpressionPtr inner = ParseQueryExpression();
    ExpectSymbol(")");
    return inner;
  }
  auto query = std::make_shared<ast::QueryExpression>();
  query->line = Peek().line;
  query->node = ParseQuerySpecification();
  return query;
}

std::optional<ast::Top> Parser::ParseTop() {
  if (!AcceptWord("TOP")) return std::nullopt;
  ast::Top top;
  if (AcceptSymbol("(")) {
    top.count = ParseExpression();
    ExpectSymbol(")");
  } else {
    const TokenKind kind = Peek().kind;
    if (kind != TokenKind::kInteger && kind != TokenKind::kDecimal &&
        kind != TokenKind::kFloat) {
      Fail();
    }
    top.count = ParseLiteral();
  }
  top.percent = AcceptWord("PERCENT");
  if (AreWords({"WITH", "TIES"})) top.with_ties = AcceptWords({"WITH", "TIES"});
  return top;
}

ast::QuerySpecification Parser::ParseQuerySpecification() {
  ast::QuerySpecification query;
  ExpectWord("SELECT");
  query.distinct = AcceptWord("DISTINCT");
  if (!query.distinct) AcceptWord("ALL");
  query.top = ParseTop();
  query.items = ParseSelectItems();
  if (AcceptWord("INTO")) query.into = ParseObjectName();
  if (AcceptWord("FROM")) query.from = ParseFrom();
  if (AcceptWord("WHERE")) query.where = ParseCondition();
  if (AcceptWord("GROUP")) {
    ExpectWord("BY");
    do {
      query.group_by.push_back(ParseExpression());
    } while (AcceptSymbol(","));
  }
  if (AcceptWord("HAVING")) query.having = ParseCondition();
  return query;
}

std::vector<ast::SelectItem> Parser::ParseSelectItems() {
  std::vector<ast::SelectItem> items;
  do {
    items.push_back(ParseSelectItem());
  } while (AcceptSymbol(","));
  return items;
}

std::optional<BinaryOperator> Parser::AcceptAssignment() {
  struct OperatorRow {
    std::string_view symbol;
    BinaryOperator op;
  };
  static constexpr OperatorRow kRows[] = {
      {"=", BinaryOperator::kEqual},     {"+=", BinaryOperator::kAdd},
      {"-=", BinaryOperator::kSubtract}, {"*=", BinaryOperator::kMultiply},
      {"/=", BinaryOperator::kDivide},   {"%=", BinaryOperator::kModulo},
      {"&=", BinaryOperator::kBitAnd},   {"|=", BinaryOperator::kBitOr},
      {"^=", BinaryOperator::kBitXor}};
  for (const OperatorRow& row : kRows) {
    if (AcceptSymbol(row.symbol)) return row.op;
  }
  return std::nullopt;
}

ast::SelectItem Parser::ParseSelectItem() {
  ast::SelectItem item;
  item.line = Peek().line;
  if (AcceptSymbol("*")) {
    item.star = true;
    return item;
  }
  // t.* and s.t.*
  std::size_t ahead = 0;
  while (IsName(ahead) && IsSymbol(".", ahead + 1)) ahead += 2;
  if (ahead > 0 && IsSymbol("*", ahead)) {
    while (!AcceptSymbol("*")) {
      item.star_of.push_back(ParseName());
      ExpectSymbol(".");
    }
    item.star = true;
    return item;
  }
  if (Peek().kind == TokenKind::kVariable && Peek(1).kind == TokenKind::kSymbol) {
    const std::string name = Peek().text;
    const std::size_t mark = at_;
    Next();
    if (const auto op = AcceptAssignment()) {
      item.variable = name;
      item.assignment = *op;
      item.expression = ParseExpression();
      return item;
    }
    at_ = mark;
  }
  if ((IsName() || Peek().kind == TokenKind::kString) && IsSymbol("=", 1)) {
    item.alias = Peek().kind == TokenKind::kString ? Next().text : ParseName();
    Next();
    item.expression = ParseExpression();
    return item;
  }
  item.expression = ParseExpression();
  const bool as = AcceptWord("AS");
  const TokenKind kind = Peek().kind;
  if (kind == TokenKind::kString || kind == TokenKind::kNationalString) {
    item.alias = Next().text;
  } else if (as || IsName()) {
    item.alias = ParseName();
  }
  return item;
}

std::vector<ast::TableReferencePtr> Parser::ParseFrom() {
  std::vector<ast::TableReferencePtr> tables;
  do {
    tables.push_back(ParseJoins());
  } while (AcceptSymbol(","));
  return tables;
}

ast::TableReferencePtr Parser::ParseJoins() {
  return ParseJoinTail(ParseTablePrimary());
}

ast::TableReferencePtr Parser::ParseJoinTail(ast::TableReferencePtr left) {
  const Depth depth(*this);
  for (;;) {
    const std::int32_t line = Peek().line;
    ast::Join join;
    if (AcceptWords({"CROSS", "JOIN"})) {
      join.kind = ast::JoinKind::kCross;
    } else if (AcceptWords({"CROSS", "APPLY"})) {
      join.kind = ast::JoinKind::kCrossApply;
    } else if (AcceptWords({"OUTER", "APPLY"})) {
      join.kind = ast::JoinKind::kOuterApply;
    } else if (IsWord("JOIN") || IsWord("INNER") || IsWord("LEFT") || IsWord("RIGHT") ||
               IsWord("FULL")) {
      join.kind = ast::JoinKind::kInner;
      if (AcceptWord("LEFT")) {
        join.kind = ast::JoinKind::kLeft;
      } else if (AcceptWord("RIGHT")) {
        join.kind = ast::JoinKind::kRight;
      } else if (AcceptWord("FULL")) {
        join.kind = ast::JoinKind::kFull;
      } else {
        AcceptWord("INNER");
      }
      if (join.kind != ast::JoinKind::kInner) AcceptWord("OUTER");
      // Join hints choose an algorithm, which is ours to choose.
      if (IsWord("JOIN", 1) &&
          (IsWord("LOOP") || IsWord("HASH") || IsWord("MERGE") || IsWord("REMOTE"))) {
        Next();
      }
      ExpectWord("JOIN");
    } else {
      return left;
    }
    join.left = std::move(left);
    if (join.kind == ast::JoinKind::kCross || join.kind >= ast::JoinKind::kCrossApply) {
      join.right = ParseTablePrimary();
    } else {
      join.right = ParseJoinRight();
      ExpectWord("ON");
      join.on = ParseCondition();
    }
    auto table = std::make_shared<ast::TableReference>();
    table->line = line;
    table->node = std::move(join);
    left = std::move(table);
  }
}

// The right side of a join with ON: a table, or joins whose own ON comes first, as in
// "a JOIN b JOIN c ON ... ON ...". Which it is shows only at the ON: as in SQL Server's
// grammar, each ON belongs to the nearest JOIN that has none.
ast::TableReferencePtr Parser::ParseJoinRight() {
  ast::TableReferencePtr right = ParseTablePrimary();
  const bool joins = IsWord("JOIN") || IsWord("INNER") || IsWord("LEFT") ||
                     IsWord("RIGHT") || IsWord("FULL") || IsWord("CROSS");
  return joins ? ParseJoinTail(std::move(right)) : right;
}

std::vector<std::string> Parser::ParseHints() {
  std::vector<std::string> hints;
  ExpectSymbol("(");
  do {
    if (Peek().kind != TokenKind::kWord) Fail();
    hints.push_back(Next().upper);
    if (AcceptSymbol("(")) {
      while (!AcceptSymbol(")")) {
        if (Peek().kind == TokenKind::kEnd) Fail();
        Next();
      }
    }
  } while (AcceptSymbol(",") || Peek().kind == TokenKind::kWord);
  ExpectSymbol(")");
  static constexpr std::string_view kKnown[] = {"NOLOCK",
                                                "READUNCOMMITTED",
                                                "READCOMMITTED",
                                                "READCOMMITTEDLOCK",
                                                "REPEATABLEREAD",
                                                "SERIALIZABLE",
                                                "HOLDLOCK",
                                                "SNAPSHOT",
                                                "UPDLOCK",
                                                "XLOCK",
                                                "TABLOCK",
                                                "TABLOCKX",
                                                "ROWLOCK",
                                                "PAGLOCK",
                                                "READPAST",
                                                "NOWAIT",
                                                "INDEX",
                                                "FORCESEEK",
                                                "FORCESCAN",
                                                "NOEXPAND",
                                                "KEEPIDENTITY",
                                                "KEEPDEFAULTS",
                                                "IGNORE_CONSTRAINTS",
                                                "IGNORE_TRIGGERS"};
  for (const std::string& hint : hints) {
    bool known = false;
    for (const std::string_view word : kKnown) known = known || word == hint;
    if (!known) {
      throw SqlError{
          {321, 1, 15,
           "\"" + hint +
               "\" is not a recognized table hints option. If it "
               "is intended as a parameter to a table-valued function or to the "
               "CHANGETABLE function, ensure that your database compatibility "
               "mode is set to 90.",
           "", Peek().line}};
    }
  }
  return hints;
}

void Parser::ParseTableAlias(ast::TableReference& table) {
  if (AcceptWord("AS")) {
    table.alias = ParseName();
  } else if (IsName()) {
    table.alias = ParseName();
  }
  if (!table.alias.empty() && IsSymbol("(")) table.column_aliases = ParseNameList();
}

ast::TableReferencePtr Parser::ParseTablePrimary() {
  auto table = std::make_shared<ast::TableReference>();
  table->line = Peek().line;
  if (AcceptSymbol("(")) {
    if (AcceptWord("VALUES")) {
      table->node = ast::ValuesTable{ParseRows()};
      ExpectSymbol(")");
    } else if (StartsSelect() || IsWord("WITH")) {
      table->node = ast::DerivedTable{ParseSelect(false)};
      ExpectSymbol(")");
    } else {
      ast::TableReferencePtr inner = ParseJoins();
      ExpectSymbol(")");
      return inner;
    }
    ParseTableAlias(*table);
    if (table->alias.empty()) Fail();  // A derived table needs a name.
    return table;
  }
  if (Peek().kind == TokenKind::kVariable) {
    table->node = ast::VariableTable{Next().text};
    ParseTableAlias(*table);
    return table;
  }
  ObjectName name = ParseObjectName();
  if (IsSymbol("(") && !AreWords({"WITH"})) {
    table->node = ast::FunctionTable{std::move(name), ParseArguments()};
    ParseTableAlias(*table);
    return table;
  }
  ast::NamedTable named{std::move(name), {}};
  ParseTableAlias(*table);
  if (IsWord("WITH") && IsSymbol("(", 1)) {
    Next();
    named.hints = ParseHints();
  }
  table->node = std::move(named);
  return table;
}

// OPTION (...): query hints choose plans, not results.
void Parser::SkipOptionClause() {
  if (!AcceptWord("OPTION")) return;
  ExpectSymbol("(");
  static constexpr std::string_view kKnown[] = {"RECOMPILE",
                                                "MAXDOP",
                                                "FAST",
                                                "KEEP",
                                                "KEEPFIXED",
                                                "FORCE",
                                                "LOOP",
                                                "HASH",
                                                "MERGE",
                                                "CONCAT",
                                                "ORDER",
                                                "OPTIMIZE",
                                                "ROBUST",
                                                "EXPAND",
                                                "MAXRECURSION",
                                                "USE",
                                                "QUERYTRACEON",
                                                "MIN_GRANT_PERCENT",
                                                "MAX_GRANT_PERCENT"};
  do {
    bool known = false;
    for (const std::string_view word : kKnown) known = known || IsWord(word);
    if (!known) Fail();
    int depth = 0;
    while (depth > 0 || (!IsSymbol(",") && !IsSymbol(")"))) {
      if (Peek().kind == TokenKind::kEnd) Fail();
      if (IsSymbol("(")) ++depth;
      if (IsSymbol(")")) --depth;
      Next();
    }
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
}

std::vector<std::vector<ast::ExpressionPtr>> Parser::ParseRows() {
  std::vector<std::vector<ast::ExpressionPtr>> rows;
  do {
    if (!IsSymbol("(")) Fail();
    std::vector<ast::ExpressionPtr> row = ParseArguments();
    if (row.empty()) Fail();
    if (!rows.empty() && row.size() != rows.front().size()) {
      throw SqlError{{10709, 1, 16,
                      "The number of columns for each row in a table value constructor "
                      "must be the same.",
                      "", Peek().line}};
    }
    rows.push_back(std::move(row));
  } while (AcceptSymbol(","));
  return rows;
}

}  // namespace mssql_cdc::sim

#include <utility>

#include "base/text.h"
#include "sim/sql/environment.h"
#include "sim/sql/parser.h"

namespace mssql_cdc::sim {
namespace {

std::string Upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

ast::StatementPtr Parser::ParseStatement() {
  const Depth depth(*this);
  auto statement = std::make_shared<ast::Statement>();
  statement->line = Peek().line;
  ParseStatementNode(*statement);
  AcceptSymbol(";");
  return statement;
}

void Parser::ParseStatementNode(ast::Statement& statement) {
  if (StartsSelect()) {
    statement.node = ParseSelect();
    SkipOptionClause();
    return;
  }
  if (IsWord("WITH")) {
    // 319: a WITH that is no statement's start is a missing semicolon.
    std::vector<ast::CommonTable> with = ParseWith();
    if (StartsSelect()) {
      auto select = std::make_shared<ast::Select>(*ParseSelect(false));
      select->with = std::move(with);
      statement.node = std::move(select);
      SkipOptionClause();
      return;
    }
    if (!ParseModification(statement, std::move(with))) Fail();
    return;
  }
  if (ParseModification(statement, {})) return;
  if (ParseFlow(statement)) return;
  if (ParseDefinition(statement)) return;
  Fail();
}

bool Parser::ParseModification(ast::Statement& statement,
                               std::vector<ast::CommonTable> with) {
  if (IsWord("INSERT")) {
    statement.node = ParseInsert(std::move(with));
  } else if (IsWord("UPDATE") && !IsWord("STATISTICS", 1)) {
    statement.node = ParseUpdate(std::move(with));
  } else if (IsWord("DELETE")) {
    statement.node = ParseDelete(std::move(with));
  } else if (IsWord("MERGE")) {
    statement.node = ParseMerge(std::move(with));
  } else {
    return false;
  }
  SkipOptionClause();
  return true;
}

void Parser::ParseTarget(ObjectName& name, std::string& variable) {
  name.line = Peek().line;
  if (Peek().kind == TokenKind::kVariable) {
    variable = Next().text;
    return;
  }
  name = ParseObjectName();
  if (IsWord("WITH") && IsSymbol("(", 1)) {
    Next();
    ParseHints();
  }
}

std::optional<ast::OutputClause> Parser::ParseOutput() {
  if (!AcceptWord("OUTPUT")) return std::nullopt;
  ast::OutputClause output;
  output.items = ParseSelectItems();
  if (AcceptWord("INTO")) {
    if (Peek().kind == TokenKind::kVariable) {
      output.into_variable = Next().text;
    } else {
      output.into = ParseObjectName();
    }
    if (IsSymbol("(")) output.into_columns = ParseNameList();
  }
  return output;
}

ast::Insert Parser::ParseInsert(std::vector<ast::CommonTable> with) {
  ast::Insert insert;
  insert.with = std::move(with);
  ExpectWord("INSERT");
  insert.top = ParseTop();
  AcceptWord("INTO");
  ParseTarget(insert.target, insert.target_variable);
  if (IsSymbol("(") && !StartsSelect()) insert.columns = ParseNameList();
  insert.output = ParseOutput();
  if (AcceptWords({"DEFAULT", "VALUES"})) {
    insert.default_values = true;
  } else if (AcceptWord("VALUES")) {
    insert.values = ParseRows();
  } else if (IsWord("EXEC") || IsWord("EXECUTE")) {
    insert.execute = std::make_shared<ast::Execute>(ParseExecute(true));
  } else if (StartsSelect() || IsWord("WITH")) {
    insert.select = ParseSelect();
  } else {
    Fail();
  }
  return insert;
}

std::vector<ast::Assignment> Parser::ParseAssignments() {
  std::vector<ast::Assignment> assignments;
  do {
    ast::Assignment assignment;
    if (Peek().kind == TokenKind::kVariable) {
      assignment.variable = Next().text;
    } else {
      // t.column is allowed; the table's name adds nothing.
      assignment.column = ParseNameParts(4).back();
    }
    auto op = AcceptAssignment();
    if (!op) Fail();
    if (!assignment.variable.empty() && IsName() && IsSymbol("=", 1)) {
      assignment.column = ParseName();
      Next();
    }
    assignment.op = *op;
    assignment.value = ParseArgument();
    assignments.push_back(std::move(assignment));
  } while (AcceptSymbol(","));
  return assignments;
}

ast::Update Parser::ParseUpdate(std::vector<ast::CommonTable> with) {
  ast::Update update;
  update.with = std::move(with);
  ExpectWord("UPDATE");
  update.top = ParseTop();
  ParseTarget(update.target, update.target_variable);
  ExpectWord("SET");
  update.assignments = ParseAssignments();
  update.output = ParseOutput();
  if (AcceptWord("FROM")) update.from = ParseFrom();
  if (AcceptWord("WHERE")) update.where = ParseCondition();
  return update;
}

ast::Delete Parser::ParseDelete(std::vector<ast::CommonTable> with) {
  ast::Delete remove;
  remove.with = std::move(with);
  ExpectWord("DELETE");
  remove.top = ParseTop();
  AcceptWord("FROM");
  ParseTarget(remove.target, remove.target_variable);
  remove.output = ParseOutput();
  if (AcceptWord("FROM")) remove.from = ParseFrom();
  if (AcceptWord("WHERE")) remove.where = ParseCondition();
  return remove;
}

ast::Merge Parser::ParseMerge(std::vector<ast::CommonTable> with) {
  ast::Merge merge;
  merge.with = std::move(with);
  ExpectWord("MERGE");
  AcceptWord("INTO");
  std::string variable;
  ParseTarget(merge.target, variable);
  if (!variable.empty()) Fail();
  if (AcceptWord("AS") || IsName()) {
    if (!IsWord("USING")) merge.target_alias = ParseName();
  }
  ExpectWord("USING");
  merge.source = ParseJoins();
  ExpectWord("ON");
  merge.on = ParseCondition();
  while (IsWord("WHEN")) merge.actions.push_back(ParseMergeAction());
  if (merge.actions.empty()) Fail();
  merge.output = ParseOutput();
  if (!IsSymbol(";")) {
    throw SqlError{{10713, 1, 15,
                    "A MERGE statement must be terminated by a semi-colon (;).", "",
                    Peek().line}};
  }
  return merge;
}

ast::MergeAction Parser::ParseMergeAction() {
  ast::MergeAction action;
  ExpectWord("WHEN");
  if (AcceptWord("MATCHED")) {
    action.when = ast::MergeAction::When::kMatched;
  } else {
    ExpectWord("NOT");
    ExpectWord("MATCHED");
    action.when = ast::MergeAction::When::kNotMatched;
    if (AcceptWord("BY")) {
      if (AcceptWord("SOURCE")) {
        action.when = ast::MergeAction::When::kNotMatchedBySource;
      } else {
        ExpectWord("TARGET");
      }
    }
  }
  if (AcceptWord("AND")) action.condition = ParseCondition();
  ExpectWord("THEN");
  if (action.when == ast::MergeAction::When::kNotMatched) {
    ExpectWord("INSERT");
    if (IsSymbol("(")) action.insert_columns = ParseNameList();
    ExpectWord("VALUES");
    action.insert_values = ParseArguments();
    return action;
  }
  if (AcceptWord("DELETE")) {
    action.remove = true;
    return action;
  }
  ExpectWord("UPDATE");
  ExpectWord("SET");
  action.assignments = ParseAssignments();
  return action;
}

ast::Execute Parser::ParseExecute(bool keyword) {
  ast::Execute execute;
  if (keyword) Next();
  if (keyword && AcceptSymbol("(")) {
    execute.text = ParseExpression();
    ExpectSymbol(")");
    return execute;
  }
  if (Peek().kind == TokenKind::kVariable) {
    std::string name = Next().text;
    if (AcceptSymbol("=")) {
      execute.result_variable = std::move(name);
    } else {
      execute.procedure_variable = std::move(name);
    }
  }
  if (execute.procedure_variable.empty()) execute.procedure = ParseObjectName();
  const auto starts_argument = [&] {
    const Token& token = Peek();
    switch (token.kind) {
      case TokenKind::kEnd:
        return false;
      case TokenKind::kSymbol:
        return token.text == "-" || token.text == "+";
      case TokenKind::kWord:
        return !IsReservedWord(token.upper) || token.upper == "NULL" ||
               token.upper == "DEFAULT";
      default:
        return true;
    }
  };
  if (!starts_argument()) return execute;
  do {
    ast::Argument argument;
    if (Peek().kind == TokenKind::kVariable && IsSymbol("=", 1)) {
      argument.name = Next().text;
      Next();
    }
    const Token first = Peek();
    if (first.kind == TokenKind::kWord && IsName()) {
      // A bare word is a string: EXEC sp_help orders.
      Next();
      ast::Literal literal;
      literal.value.held = Utf16(first.text);
      literal.type.id = TypeId::kNVarChar;
      literal.type.length = static_cast<std::int32_t>(first.text.size());
      argument.value = Make(first.begin, first.line, std::move(literal));
    } else if (IsWord("DEFAULT")) {
      argument.value = ParseArgument();
    } else {
      argument.value = ParseUnary();
    }
    if (AcceptWord("OUTPUT") || AcceptWord("OUT")) argument.output = true;
    execute.arguments.push_back(std::move(argument));
  } while (AcceptSymbol(","));
  return execute;
}

ast::Block Parser::ParseStatementsUntil(std::string_view end_word) {
  ast::Block block;
  while (AcceptSymbol(";")) {
  }
  while (!IsWord(end_word)) {
    if (Peek().kind == TokenKind::kEnd) Fail();
    if (AcceptSymbol(";")) continue;
    block.statements.push_back(ParseStatement());
  }
  if (block.statements.empty() && end_word == "END" && !IsWord("CATCH", 1)) Fail();
  return block;
}

bool Parser::ParseFlow(ast::Statement& statement) {
  if (IsWord("BEGIN")) {
    ParseBegin(statement);
  } else if (AcceptWord("IF")) {
    ast::If node;
    node.condition = ParseCondition();
    node.then = ParseStatement();
    if (AcceptWord("ELSE")) node.otherwise = ParseStatement();
    statement.node = std::move(node);
  } else if (AcceptWord("WHILE")) {
    ast::While node;
    node.condition = ParseCondition();
    node.body = ParseStatement();
    statement.node = std::move(node);
  } else if (AcceptWord("BREAK")) {
    statement.node = ast::Break{};
  } else if (AcceptWord("CONTINUE")) {
    statement.node = ast::Continue{};
  } else if (AcceptWord("RETURN")) {
    ast::Return node;
    const Token& token = Peek();
    const bool value =
        token.kind != TokenKind::kEnd && !IsSymbol(";") &&
        (token.kind != TokenKind::kWord || !IsReservedWord(token.upper) ||
         token.upper == "NULL" || token.upper == "CASE");
    if (value) node.value = ParseExpression();
    statement.node = std::move(node);
  } else if (IsWord("EXEC") || IsWord("EXECUTE")) {
    statement.node = ParseExecute(true);
  } else if (AcceptWord("DECLARE")) {
    statement.node = ParseDeclare();
  } else if (IsWord("SET")) {
    ParseSet(statement);
  } else if (AcceptWord("PRINT")) {
    statement.node = ast::Print{ParseExpression()};
  } else if (AcceptWord("RAISERROR")) {
    statement.node = ParseRaiseError();
  } else if (IsWord("THROW")) {
    Next();
    ast::Throw node;
    if (!IsSymbol(";") && Peek().kind != TokenKind::kEnd && !IsWord("END")) {
      node.number = ParseUnary();
      ExpectSymbol(",");
      node.message = ParseUnary();
      ExpectSymbol(",");
      node.state = ParseUnary();
    }
    statement.node = std::move(node);
  } else if (AcceptWord("USE")) {
    statement.node = ast::Use{ParseName()};
  } else if (AcceptWord("COMMIT")) {
    statement.node = ParseTransaction(ast::TransactionControl::Action::kCommit);
  } else if (AcceptWord("ROLLBACK")) {
    statement.node = ParseTransaction(ast::TransactionControl::Action::kRollback);
  } else if (AcceptWord("SAVE")) {
    statement.node = ParseTransaction(ast::TransactionControl::Action::kSave);
  } else if (AcceptWord("WAITFOR")) {
    ast::WaitFor node;
    node.delay = AcceptWord("DELAY");
    if (!node.delay) ExpectWord("TIME");
    node.value = ParseUnary();
    statement.node = std::move(node);
  } else if (AcceptWord("CHECKPOINT")) {
    statement.node = ast::Checkpoint{};
  } else {
    return false;
  }
  return true;
}

void Parser::ParseBegin(ast::Statement& statement) {
  ExpectWord("BEGIN");
  if (IsWord("TRAN") || IsWord("TRANSACTION")) {
    statement.node = ParseTransaction(ast::TransactionControl::Action::kBegin);
  } else if (AcceptWord("TRY")) {
    ast::TryCatch node;
    node.attempt = ParseStatementsUntil("END");
    ExpectWord("END");
    ExpectWord("TRY");
    AcceptSymbol(";");
    ExpectWord("BEGIN");
    ExpectWord("CATCH");
    node.handler = ParseStatementsUntil("END");
    ExpectWord("END");
    ExpectWord("CATCH");
    statement.node = std::move(node);
  } else {
    ast::Block block = ParseStatementsUntil("END");
    ExpectWord("END");
    statement.node = std::move(block);
  }
}

ast::TransactionControl Parser::ParseTransaction(
    ast::TransactionControl::Action action) {
  ast::TransactionControl node;
  node.action = action;
  const bool word = AcceptWord("TRAN") || AcceptWord("TRANSACTION");
  if (!word) {
    if (action == ast::TransactionControl::Action::kSave ||
        action == ast::TransactionControl::Action::kBegin) {
      Fail();
    }
    AcceptWord("WORK");
    return node;
  }
  if (Peek().kind == TokenKind::kVariable) {
    node.variable = Next().text;
  } else if (IsName() && !IsWord("THROW")) {
    node.name = ParseName();
  } else if (action == ast::TransactionControl::Action::kSave) {
    Fail();
  }
  return node;
}

ast::RaiseError Parser::ParseRaiseError() {
  ast::RaiseError node;
  node.arguments = ParseArguments();
  if (node.arguments.size() < 3) Fail();
  if (AcceptWord("WITH")) {
    do {
      if (AcceptWord("NOWAIT")) {
        node.with_nowait = true;
      } else if (AcceptWord("LOG")) {
        node.with_log = true;
      } else if (AcceptWord("SETERROR")) {
        node.with_seterror = true;
      } else {
        Fail();
      }
    } while (AcceptSymbol(","));
  }
  return node;
}

ast::Declare Parser::ParseDeclare() {
  ast::Declare declare;
  do {
    ast::Declare::Item item;
    if (Peek().kind != TokenKind::kVariable) Fail();
    item.name = Next().text;
    AcceptWord("AS");
    if (AcceptWord("TABLE")) {
      ExpectSymbol("(");
      item.table.emplace();
      item.table->name.object = item.name;
      ParseTableElements(item.table->columns, item.table->constraints, true);
      ExpectSymbol(")");
    } else {
      item.type = ParseType();
      if (AcceptSymbol("=")) item.value = ParseExpression();
    }
    declare.items.push_back(std::move(item));
  } while (AcceptSymbol(","));
  return declare;
}

void Parser::ParseSet(ast::Statement& statement) {
  ExpectWord("SET");
  if (Peek().kind != TokenKind::kVariable) {
    statement.node = ParseSetOption();
    return;
  }
  ast::SetVariable node;
  node.name = Next().text;
  const auto op = AcceptAssignment();
  if (!op) Fail();
  node.op = *op;
  node.value = ParseExpression();
  statement.node = std::move(node);
}

ast::SetOption Parser::ParseSetOption() {
  ast::SetOption option;
  if (AcceptWords({"TRANSACTION", "ISOLATION", "LEVEL"})) {
    option.name = "TRANSACTION ISOLATION LEVEL";
    if (AcceptWords({"READ", "UNCOMMITTED"})) {
      option.value = "READ UNCOMMITTED";
    } else if (AcceptWords({"READ", "COMMITTED"})) {
      option.value = "READ COMMITTED";
    } else if (AcceptWords({"REPEATABLE", "READ"})) {
      option.value = "REPEATABLE READ";
    } else if (IsWord("SNAPSHOT") || IsWord("SERIALIZABLE")) {
      option.value = Next().upper;
    } else {
      Fail();
    }
    return option;
  }
  if (AcceptWord("IDENTITY_INSERT")) {
    option.name = "IDENTITY_INSERT";
    option.table = ParseObjectName();
  } else {
    do {
      if (Peek().kind != TokenKind::kWord) Fail();
      std::string name = Next().upper;
      if (name == "STATISTICS") name += ' ' + Next().upper;
      option.name += (option.name.empty() ? "" : ",") + name;
    } while (AcceptSymbol(","));
  }
  if (AcceptWord("ON")) {
    option.value = "ON";
  } else if (AcceptWord("OFF")) {
    option.value = "OFF";
  } else if (Peek().kind == TokenKind::kWord && IsName()) {
    option.value = Upper(Next().text);
  } else if (Peek().kind == TokenKind::kQuotedName) {
    option.value = Next().text;
  } else {
    option.expression = ParseUnary();
  }
  return option;
}

bool Parser::ParseDefinition(ast::Statement& statement) {
  const std::size_t begin = Peek().begin;
  ast::DefinitionStatement node;
  if (IsWord("CREATE")) {
    node.definition = ParseCreate();
  } else if (IsWord("ALTER")) {
    node.definition = ParseAlter();
  } else if (IsWord("DROP")) {
    node.definition = ParseDrop();
  } else if (AcceptWords({"TRUNCATE", "TABLE"})) {
    node.definition = ast::TruncateTable{ParseObjectName()};
  } else if (AcceptWord("GRANT")) {
    node.definition = ParsePermission(ast::Permission::Action::kGrant);
  } else if (AcceptWord("DENY")) {
    node.definition = ParsePermission(ast::Permission::Action::kDeny);
  } else if (AcceptWord("REVOKE")) {
    node.definition = ParsePermission(ast::Permission::Action::kRevoke);
  } else {
    return false;
  }
  node.text = TextFrom(begin);
  statement.node = std::move(node);
  return true;
}

}  // namespace mssql_cdc::sim

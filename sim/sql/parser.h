// Recursive descent over the tokens of one batch. Raises 102, 156 and their kin with
// the line of the token that does not fit; nothing unknown is skipped.

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/sql/ast.h"
#include "sim/sql/lexer.h"

namespace mssql_cdc::sim {

class Parser {
 public:
  Parser(std::string_view sql, bool quoted_identifier);

  ast::Batch ParseBatch();
  // The whole text is one expression.
  ast::ExpressionPtr ParseWholeExpression();
  ObjectName ParseWholeName();
  // "@a int, @b nvarchar(10) OUTPUT": what sp_executesql declares.
  std::vector<ast::ProcedureParameter> ParseWholeParameters();

 private:
  // Tokens.
  const Token& Peek(std::size_t ahead = 0) const;
  bool IsWord(std::string_view upper, std::size_t ahead = 0) const;
  bool IsSymbol(std::string_view symbol, std::size_t ahead = 0) const;
  bool AreWords(std::initializer_list<std::string_view> words) const;
  Token Next();
  bool AcceptWord(std::string_view upper);
  bool AcceptWords(std::initializer_list<std::string_view> words);
  bool AcceptSymbol(std::string_view symbol);
  void ExpectWord(std::string_view upper);
  void ExpectSymbol(std::string_view symbol);
  [[noreturn]] void Fail() const;  // 102 or 156 at the next token.
  [[noreturn]] void FailAt(const Token& token) const;
  std::string TextFrom(std::size_t begin) const;  // Up to the last token read.
  // Recursion is bounded: 191, as SQL Server for statements nested too deeply.
  class Depth;

  // Names.
  bool IsName(std::size_t ahead = 0) const;
  std::string ParseName();
  std::vector<std::string> ParseNameParts(std::size_t part_count_max);
  ObjectName ParseObjectName();
  std::vector<std::string> ParseNameList();  // (a, b)
  ast::TypeName ParseType();
  std::int64_t ParseSignedInteger();

  // Expressions (parse_expression.cc).
  ast::ExpressionPtr ParseExpression();
  ast::ExpressionPtr ParseCondition();
  ast::ExpressionPtr ParseOr();
  ast::ExpressionPtr ParseAnd();
  ast::ExpressionPtr ParseNot();
  ast::ExpressionPtr ParsePredicate();
  ast::ExpressionPtr ParsePredicateTail(ast::ExpressionPtr left, std::size_t begin);
  ast::ExpressionPtr ParseIn(ast::ExpressionPtr left, bool negated, std::size_t begin);
  ast::ExpressionPtr ParseAdditive();
  ast::ExpressionPtr ParseMultiplicative();
  ast::ExpressionPtr ParseUnary();
  ast::ExpressionPtr ParsePostfix();
  ast::ExpressionPtr ParsePrimary();
  ast::ExpressionPtr ParseLiteral();
  ast::ExpressionPtr ParseCase();
  ast::ExpressionPtr ParseConvert();
  ast::ExpressionPtr ParseNameOrCall();
  ast::ExpressionPtr ParseCall(std::vector<std::string> name, std::size_t begin);
  ast::ExpressionPtr ParseArgument();  // DEFAULT allowed.
  std::vector<ast::ExpressionPtr> ParseArguments();
  std::shared_ptr<const ast::Window> ParseWindow();
  ast::FrameBound ParseFrameBound();
  std::vector<ast::OrderItem> ParseOrderList();
  template <typename Node>
  ast::ExpressionPtr Make(std::size_t begin, std::int32_t line, Node node) const;

  // Queries (parse_query.cc).
  ast::SelectPtr ParseSelect(bool allow_with = true);
  std::vector<ast::CommonTable> ParseWith();
  ast::QueryExpressionPtr ParseQueryExpression();
  ast::QueryExpressionPtr ParseQueryTerm();
  ast::QueryExpressionPtr ParseQueryPrimary();
  ast::QuerySpecification ParseQuerySpecification();
  std::optional<ast::Top> ParseTop();
  std::vector<ast::SelectItem> ParseSelectItems();
  ast::SelectItem ParseSelectItem();
  std::optional<ast::BinaryOperator> AcceptAssignment();
  std::vector<ast::TableReferencePtr> ParseFrom();
  ast::TableReferencePtr ParseJoins();
  ast::TableReferencePtr ParseJoinTail(ast::TableReferencePtr left);
  ast::TableReferencePtr ParseJoinRight();
  ast::TableReferencePtr ParseTablePrimary();
  void ParseTableAlias(ast::TableReference& table);
  std::vector<std::string> ParseHints();
  void SkipOptionClause();
  std::vector<std::vector<ast::ExpressionPtr>> ParseRows();
  bool StartsSelect(std::size_t ahead = 0) const;

  // Statements (parse_statement.cc).
  ast::StatementPtr ParseStatement();
  void ParseStatementNode(ast::Statement& statement);
  bool ParseModification(ast::Statement& statement, std::vector<ast::CommonTable> with);
  bool ParseFlow(ast::Statement& statement);
  bool ParseDefinition(ast::Statement& statement);
  ast::Insert ParseInsert(std::vector<ast::CommonTable> with);
  ast::Update ParseUpdate(std::vector<ast::CommonTable> with);
  ast::Delete ParseDelete(std::vector<ast::CommonTable> with);
  ast::Merge ParseMerge(std::vector<ast::CommonTable> with);
  ast::MergeAction ParseMergeAction();
  std::vector<ast::Assignment> ParseAssignments();
  std::optional<ast::OutputClause> ParseOutput();
  void ParseTarget(ObjectName& name, std::string& variable);
  ast::Execute ParseExecute(bool keyword);
  ast::Block ParseStatementsUntil(std::string_view end_word);
  ast::Declare ParseDeclare();
  void ParseSet(ast::Statement& statement);
  ast::SetOption ParseSetOption();
  void ParseBegin(ast::Statement& statement);
  ast::TransactionControl ParseTransaction(ast::TransactionControl::Action action);
  ast::RaiseError ParseRaiseError();

  // Definitions (parse_definition.cc).
  ast::Definition ParseCreate();
  ast::Definition ParseAlter();
  ast::Definition ParseDrop();
  ast::CreateTable ParseCreateTable();
  void ParseTableElements(std::vector<ast::ColumnDefinition>& columns,
                          ast::TableConstraints& constraints, bool until_parenthesis);
  void ParseTableElement(std::vector<ast::ColumnDefinition>& columns,
                         ast::TableConstraints& constraints);
  ast::ColumnDefinition ParseColumn(ast::TableConstraints& constraints);
  bool ParseColumnOption(ast::ColumnDefinition& column,
                         ast::TableConstraints& constraints);
  bool IsConstraintStart() const;
  void ParseConstraint(ast::TableConstraints& constraints, const std::string& column);
  ast::KeyConstraint ParseKey(const std::string& name, const std::string& column);
  void SkipIndexOptions();
  std::vector<ast::IndexColumn> ParseIndexColumns();
  ast::Definition ParseAlterTable();
  ast::Definition ParseAlterDatabase();
  ast::Definition ParseCreateIndex();
  ast::Definition ParseCreatePrincipal();
  ast::Definition ParseAlterPrincipal();
  ast::Definition ParseModule(ast::CreateModule::Kind kind, bool replace,
                              std::size_t begin);
  ast::Permission ParsePermission(ast::Permission::Action action);
  std::string ParseWordOrString();
  std::vector<ast::ProcedureParameter> ParseParameters();

  std::string sql_;
  bool quoted_identifier_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class Parser::Depth {
 public:
  explicit Depth(Parser& parser);
  ~Depth() { --parser_.depth_; }

 private:
  Parser& parser_;
};

// True of comparisons, AND, OR, NOT, IS NULL, EXISTS, ...
bool IsCondition(const ast::Expression& expression);

template <typename Node>
ast::ExpressionPtr Parser::Make(std::size_t begin, std::int32_t line, Node node) const {
  auto expression = std::make_shared<ast::Expression>();
  expression->line = line;
  expression->text = TextFrom(begin);
  expression->node = std::move(node);
  return expression;
}

}  // namespace mssql_cdc::sim

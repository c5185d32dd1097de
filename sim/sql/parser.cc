#include "sim/sql/parser.h"

#include "base/text.h"
#include "sim/sql/environment.h"
#include "sim/sql/interpreter.h"

namespace mssql_cdc::sim {

std::string ObjectName::Text() const {
  std::string text;
  if (!server.empty()) text += server + '.';
  if (!database.empty() || !text.empty()) text += database + '.';
  if (!schema.empty() || !text.empty()) text += schema + '.';
  return text + object;
}

void RaiseSql(std::int32_t number, std::uint8_t severity, std::uint8_t state,
              std::string text) {
  throw SqlError{{number, state, severity, std::move(text), "", 0}};
}

Parser::Parser(std::string_view sql, bool quoted_identifier)
    : sql_(sql),
      quoted_identifier_(quoted_identifier),
      tokens_(Tokenize(sql, quoted_identifier)) {}

Parser::Depth::Depth(Parser& parser) : parser_(parser) {
  constexpr int kDepthMax = 220;
  if (++parser_.depth_ > kDepthMax) {
    --parser_.depth_;
    throw SqlError{{191, 1, 15,
                    "Some part of your SQL statement is nested too deeply. Rewrite the "
                    "query or break it up into smaller queries.",
                    "", parser_.Peek().line}};
  }
}

const Token& Parser::Peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool Parser::IsWord(std::string_view upper, std::size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind == TokenKind::kWord && token.upper == upper;
}

bool Parser::IsSymbol(std::string_view symbol, std::size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind == TokenKind::kSymbol && token.text == symbol;
}

bool Parser::AreWords(std::initializer_list<std::string_view> words) const {
  std::size_t ahead = 0;
  for (const std::string_view word : words) {
    if (!IsWord(word, ahead++)) return false;
  }
  return true;
}

Token Parser::Next() {
  Token token = Peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::AcceptWord(std::string_view upper) {
  if (!IsWord(upper)) return false;
  Next();
  return true;
}

bool Parser::AcceptWords(std::initializer_list<std::string_view> words) {
  if (!AreWords(words)) return false;
  for (std::size_t i = 0; i < words.size(); ++i) Next();
  return true;
}

bool Parser::AcceptSymbol(std::string_view symbol) {
  if (!IsSymbol(symbol)) return false;
  Next();
  return true;
}

void Parser::ExpectWord(std::string_view upper) {
  if (!AcceptWord(upper)) Fail();
}

void Parser::ExpectSymbol(std::string_view symbol) {
  if (!AcceptSymbol(symbol)) Fail();
}

void Parser::Fail() const { FailAt(Peek()); }

// SQL Server names the token that does not fit; at the end, the last one there is.
void Parser::FailAt(const Token& token) const {
  const Token* shown = &token;
  if (token.kind == TokenKind::kEnd && tokens_.size() > 1) {
    shown = &tokens_[tokens_.size() - 2];
  }
  if (shown->kind == TokenKind::kWord && IsReservedWord(shown->upper) &&
      token.kind != TokenKind::kEnd) {
    throw SqlError{{156, 1, 15,
                    "Incorrect syntax near the keyword '" + shown->text + "'.", "",
                    shown->line}};
  }
  throw SqlError{
      {102, 1, 15, "Incorrect syntax near '" + shown->text + "'.", "", shown->line}};
}

std::string Parser::TextFrom(std::size_t begin) const {
  const std::size_t end = at_ == 0 ? 0 : tokens_[at_ - 1].end;
  return end > begin ? sql_.substr(begin, end - begin) : std::string();
}

bool Parser::IsName(std::size_t ahead) const {
  const Token& token = Peek(ahead);
  return token.kind == TokenKind::kQuotedName ||
         (token.kind == TokenKind::kWord && !IsReservedWord(token.upper));
}

std::string Parser::ParseName() {
  if (!IsName()) Fail();
  const Token token = Next();
  if (token.text.empty()) {
    throw SqlError{{1038, 4, 15,
                    "An object or column name is missing or empty. For SELECT INTO "
                    "statements, verify each column has a name. For other statements, "
                    "look for empty alias names. Aliases defined as \"\" or [] are not "
                    "allowed. Change the alias to a valid name.",
                    "", token.line}};
  }
  if (token.text.size() > 128 && Utf16(token.text).size() > 128) {
    throw SqlError{{103, 4, 15,
                    "The identifier that starts with '" + token.text.substr(0, 128) +
                        "' is too long. Maximum length is 128.",
                    "", token.line}};
  }
  return token.text;
}

std::vector<std::string> Parser::ParseNameParts(std::size_t part_count_max) {
  std::vector<std::string> parts{ParseName()};
  while (IsSymbol(".") && !IsSymbol("*", 1)) {
    Next();
    // "master..t": the schema is left out.
    if (IsSymbol(".")) {
      parts.emplace_back();
      continue;
    }
    // After a dot a reserved word is still no name, but $ROWGUID and the like are none
    // either.
    parts.push_back(ParseName());
    if (parts.size() > part_count_max) {
      std::string text;
      for (const std::string& part : parts) text += (text.empty() ? "" : ".") + part;
      throw SqlError{{117, 1, 15,
                      "The object name '" + text +
                          "' contains more than the maximum number of prefixes. The "
                          "maximum is " +
                          std::to_string(part_count_max - 1) + ".",
                      "", Peek().line}};
    }
  }
  return parts;
}

ObjectName Parser::ParseObjectName() {
  ObjectName name;
  name.line = Peek().line;
  std::vector<std::string> parts = ParseNameParts(4);
  std::string* const fields[] = {&name.object, &name.schema, &name.database,
                                 &name.server};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    *fields[i] = parts[parts.size() - 1 - i];
  }
  return name;
}

ObjectName Parser::ParseWholeName() {
  ObjectName name = ParseObjectName();
  if (Peek().kind != TokenKind::kEnd) Fail();
  return name;
}

std::vector<std::string> Parser::ParseNameList() {
  ExpectSymbol("(");
  std::vector<std::string> names;
  do {
    names.push_back(ParseName());
  } while (AcceptSymbol(","));
  ExpectSymbol(")");
  return names;
}

std::int64_t Parser::ParseSignedInteger() {
  const bool negative = AcceptSymbol("-");
  if (Peek().kind != TokenKind::kInteger) Fail();
  const std::optional<std::int64_t> value = ParseInt64(Peek().text);
  if (!value) Fail();
  Next();
  return negative ? -*value : *value;
}

ast::TypeName Parser::ParseType() {
  ast::TypeName type;
  type.line = Peek().line;
  // DOUBLE PRECISION, NATIONAL CHARACTER: the ISO spellings.
  if (AcceptWords({"DOUBLE", "PRECISION"})) {
    type.name = "float";
    return type;
  }
  std::string name;
  if (AcceptWord("NATIONAL")) name = "n";
  type.name = LowerAscii(ParseName());
  if (AcceptSymbol(".")) {
    type.schema = type.name;
    type.name = LowerAscii(ParseName());
  }
  if (AcceptWord("VARYING")) type.name = "var" + type.name;
  type.name = name + type.name;
  if (AcceptSymbol("(")) {
    do {
      if (AcceptWord("MAX")) {
        type.arguments.push_back(kMax);
      } else {
        const std::int64_t value = ParseSignedInteger();
        if (value < 0 || value > 0x7FFFFFFF) Fail();
        type.arguments.push_back(static_cast<std::int32_t>(value));
      }
    } while (AcceptSymbol(","));
    ExpectSymbol(")");
  }
  return type;
}

ast::Batch Parser::ParseBatch() {
  ast::Batch batch;
  while (AcceptSymbol(";")) {
  }
  // A batch may begin with a procedure's name, without EXEC. THROW and others are
  // statements although they are no reserved words.
  if (IsName() && !IsWord("THROW") && !IsWord("ENABLE") && !IsWord("DISABLE")) {
    auto statement = std::make_shared<ast::Statement>();
    statement->line = Peek().line;
    statement->node = ParseExecute(false);
    batch.statements.push_back(std::move(statement));
  }
  while (Peek().kind != TokenKind::kEnd) {
    if (AcceptSymbol(";")) continue;
    batch.statements.push_back(ParseStatement());
  }
  return batch;
}

ast::ExpressionPtr Parser::ParseWholeExpression() {
  ast::ExpressionPtr expression = ParseOr();
  if (Peek().kind != TokenKind::kEnd) Fail();
  return expression;
}

ast::Batch ParseBatch(const std::string& sql, bool quoted_identifier) {
  return Parser(sql, quoted_identifier).ParseBatch();
}

ast::ExpressionPtr ParseExpression(const std::string& text) {
  return Parser(text, true).ParseWholeExpression();
}

std::optional<ObjectName> ParseObjectName(std::string_view text) {
  try {
    return Parser(text, true).ParseWholeName();
  } catch (const SqlError&) {
    return std::nullopt;
  }
}

}  // namespace mssql_cdc::sim

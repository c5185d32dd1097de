#include "sim/sql/lexer.h"

#include <algorithm>
#include <array>

#include "sim/sql/environment.h"

namespace mssql_cdc::sim {
namespace {

// Transact-SQL's reserved keywords (docs: language-elements/reserved-keywords).
constexpr std::array kReserved = std::to_array<std::string_view>({
    "ADD",
    "ALL",
    "ALTER",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "AUTHORIZATION",
    "BACKUP",
    "BEGIN",
    "BETWEEN",
    "BREAK",
    "BROWSE",
    "BULK",
    "BY",
    "CASCADE",
    "CASE",
    "CHECK",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTERED",
    "COALESCE",
    "COLLATE",
    "COLUMN",
    "COMMIT",
    "COMPUTE",
    "CONSTRAINT",
    "CONTAINS",
    "CONTAINSTABLE",
    "CONTINUE",
    "CONVERT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURSOR",
    "DATABASE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DEFAULT",
    "DELETE",
    "DENY",
    "DESC",
    "DISK",
    "DISTINCT",
    "DISTRIBUTED",
    "DOUBLE",
    "DROP",
    "DUMP",
    "ELSE",
    "END",
    "ERRLVL",
    "ESCAPE",
    "EXCEPT",
    "EXEC",
    "EXECUTE",
    "EXISTS",
    "EXIT",
    "EXTERNAL",
    "FETCH",
    "FILE",
    "FILLFACTOR",
    "FOR",
    "FOREIGN",
    "FREETEXT",
    "FREETEXTTABLE",
    "FROM",
    "FULL",
    "FUNCTION",
    "GOTO",
    "GRANT",
    "GROUP",
    "HAVING",
    "HOLDLOCK",
    "IDENTITY",
    "IDENTITYCOL",
    "IDENTITY_INSERT",
    "IF",
    "IN",
    "INDEX",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "KILL",
    "LEFT",
    "LIKE",
    "LINENO",
    "LOAD",
    "MERGE",
    "NATIONAL",
    "NOCHECK",
    "NONCLUSTERED",
    "NOT",
    "NULL",
    "NULLIF",
    "OF",
    "OFF",
    "OFFSETS",
    "ON",
    "OPEN",
    "OPENDATASOURCE",
    "OPENQUERY",
    "OPENROWSET",
    "OPENXML",
    "OPTION",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PERCENT",
    "PIVOT",
    "PLAN",
    "PRIMARY",
    "PRINT",
    "PROC",
    "PROCEDURE",
    "PUBLIC",
    "RAISERROR",
    "READ",
    "READTEXT",
    "RECONFIGURE",
    "REFERENCES",
    "REPLICATION",
    "RESTORE",
    "RESTRICT",
    "RETURN",
    "REVERT",
    "REVOKE",
    "RIGHT",
    "ROLLBACK",
    "ROWCOUNT",
    "ROWGUIDCOL",
    "RULE",
    "SAVE",
    "SCHEMA",
    "SECURITYAUDIT",
    "SELECT",
    "SEMANTICKEYPHRASETABLE",
    "SESSION_USER",
    "SET",
    "SETUSER",
    "SHUTDOWN",
    "SOME",
    "STATISTICS",
    "SYSTEM_USER",
    "TABLE",
    "TABLESAMPLE",
    "TEXTSIZE",
    "THEN",
    "TO",
    "TOP",
    "TRAN",
    "TRANSACTION",
    "TRIGGER",
    "TRUNCATE",
    "TRY_CONVERT",
    "TSEQUAL",
    "UNION",
    "UNIQUE",
    "UNPIVOT",
    "UPDATE",
    "UPDATETEXT",
    "USE",
    "USER",
    "VALUES",
    "VARYING",
    "VIEW",
    "WAITFOR",
    "WHEN",
    "WHERE",
    "WHILE",
    "WITH",
    "WITHIN",
    "WRITETEXT",
});

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '#' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c) || c == '@' || c == '$'; }

class Lexer {
 public:
  Lexer(std::string_view sql, bool quoted_identifier)
      : sql_(sql), quoted_identifier_(quoted_identifier) {}

  std::vector<Token> Run() {
    for (;;) {
      SkipBlanks();
      Token token;
      token.line = line_;
      token.begin = at_;
      if (at_ < sql_.size()) Read(token);
      token.end = at_;
      tokens_.push_back(token);
      if (token.kind == TokenKind::kEnd) return std::move(tokens_);
    }
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0';
  }
  void Advance() {
    if (sql_[at_] == '\n') ++line_;
    ++at_;
  }

  void SkipBlanks() {
    while (at_ < sql_.size()) {
      const char c = Peek();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        Advance();
      } else if (sql_.compare(at_, 3, "\xEF\xBB\xBF") == 0) {
        at_ += 3;
      } else if (sql_.compare(at_, 2, "\xC2\xA0") == 0) {  // A no-break space.
        at_ += 2;
      } else if (c == '-' && Peek(1) == '-') {
        while (at_ < sql_.size() && Peek() != '\n') Advance();
      } else if (c == '/' && Peek(1) == '*') {
        SkipComment();
      } else {
        return;
      }
    }
  }

  // Block comments nest.
  void SkipComment() {
    int depth = 0;
    const std::int32_t first_line = line_;
    do {
      if (Peek() == '/' && Peek(1) == '*') {
        ++depth;
        at_ += 2;
      } else if (Peek() == '*' && Peek(1) == '/') {
        --depth;
        at_ += 2;
      } else if (at_ >= sql_.size()) {
        throw SqlError{{113, 1, 15, "Missing end comment mark '*/'.", "", first_line}};
      } else {
        Advance();
      }
    } while (depth > 0);
  }

  void Read(Token& token) {
    const char c = Peek();
    if ((c == 'N' || c == 'n') && Peek(1) == '\'') {
      ++at_;
      token.kind = TokenKind::kNationalString;
      token.text = Delimited('\'');
    } else if (c == '\'' || (c == '"' && !quoted_identifier_)) {
      token.kind = TokenKind::kString;
      token.text = Delimited(c);
    } else if (c == '"' || c == '[') {
      token.kind = TokenKind::kQuotedName;
      token.text = Delimited(c == '[' ? ']' : '"');
    } else if (c == '@') {
      ReadVariable(token);
    } else if (IsNameStart(c)) {
      ReadWord(token);
    } else if (c == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      token.kind = TokenKind::kBinary;
      at_ += 2;
      while (IsHexDigit(Peek())) token.text += sql_[at_++];
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      ReadNumber(token);
    } else if (c == '$' && (IsDigit(Peek(1)) || Peek(1) == '.' || Peek(1) == '-')) {
      ++at_;
      if (Peek() == '-') token.text += sql_[at_++];
      ReadNumber(token);
      token.kind = TokenKind::kMoney;
    } else {
      ReadSymbol(token);
    }
  }

  void ReadVariable(Token& token) {
    token.kind = Peek(1) == '@' ? TokenKind::kGlobal : TokenKind::kVariable;
    while (Peek() == '@' || IsNamePart(Peek())) token.text += sql_[at_++];
  }

  void ReadWord(Token& token) {
    token.kind = TokenKind::kWord;
    while (at_ < sql_.size() && IsNamePart(Peek())) token.text += sql_[at_++];
    for (const char c : token.text) {
      token.upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }

  void ReadNumber(Token& token) {
    token.kind = TokenKind::kInteger;
    while (IsDigit(Peek())) token.text += sql_[at_++];
    if (Peek() == '.') {
      token.kind = TokenKind::kDecimal;
      token.text += sql_[at_++];
      while (IsDigit(Peek())) token.text += sql_[at_++];
    }
    if (Peek() == 'e' || Peek() == 'E') {
      token.kind = TokenKind::kFloat;
      token.text += sql_[at_++];
      if (Peek() == '+' || Peek() == '-') token.text += sql_[at_++];
      while (IsDigit(Peek())) token.text += sql_[at_++];
    }
  }

  void ReadSymbol(Token& token) {
    static constexpr std::array kTwo = std::to_array<std::string_view>(
        {"<=", ">=", "<>", "!=", "!<", "!>",
         "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::"});
    token.kind = TokenKind::kSymbol;
    const std::string_view two = sql_.substr(at_, 2);
    if (std::find(kTwo.begin(), kTwo.end(), two) != kTwo.end()) {
      token.text = two;
      at_ += 2;
    } else {
      token.text = sql_[at_++];
    }
    token.upper = token.text;
  }

  // From the opening mark to the closing one, which is doubled inside.
  std::string Delimited(char close) {
    const std::int32_t first_line = line_;
    const std::size_t first = at_ + 1;
    Advance();
    std::string text;
    for (;;) {
      if (at_ >= sql_.size()) {
        throw SqlError{{105, 1, 15,
                        "Unclosed quotation mark after the character string '" +
                            std::string(sql_.substr(first)) + "'.",
                        "", first_line}};
      }
      const char c = Peek();
      if (c == close && Peek(1) == close) {
        at_ += 2;
        text += close;
      } else if (c == close) {
        ++at_;
        return text;
      } else {
        text += c;
        Advance();
      }
    }
  }

  std::string_view sql_;
  bool quoted_identifier_;
  std::size_t at_ = 0;
  std::int32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view sql, bool quoted_identifier) {
  return Lexer(sql, quoted_identifier).Run();
}

bool IsReservedWord(std::string_view upper) {
  return std::find(kReserved.begin(), kReserved.end(), upper) != kReserved.end();
}

}  // namespace mssql_cdc::sim
